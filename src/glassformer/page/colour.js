// Numbers as colours, read from the style sheet so that light and dark have their own.

const STEPS = 256;
/** @type {Map<string, Uint8ClampedArray>} */
const tables = new Map();

/** A colour of the style sheet. @param {string} name */
export function paint(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The same as [red, green, blue]. @param {string} name */
export function channels(name) {
  return (paint(name).match(/[0-9a-f]{2}/gi) ?? ["80", "80", "80"]).map((one) => parseInt(one, 16));
}

/** @param {number[][]} stops */
function ramp(stops) {
  const table = new Uint8ClampedArray(STEPS * 3);
  for (let n = 0; n < STEPS; n++) {
    const at = (n / (STEPS - 1)) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(at));
    for (let c = 0; c < 3; c++) table[3 * n + c] = stops[low][c] + (at - low) * (stops[low + 1][c] - stops[low][c]);
  }
  return table;
}

/** Forget the tables: the theme has changed. */
export function repaint() {
  tables.clear();
}

/** @param {"diverging" | Stack} kind */
function tableOf(kind) {
  const names =
    kind === "diverging" ? ["minus-2", "minus-1", "zero", "plus-1", "plus-2"] : ["zero", `${kind}-1`, `${kind}-2`];
  const table = tables.get(kind) ?? ramp(names.map((name) => channels(`map-${name}`)));
  tables.set(kind, table);
  return table;
}

/**
 * The colour of a value as [red, green, blue].
 * @param {number} value
 * @param {number} high   the value with the strongest colour
 * @param {boolean} sequential   from nothing to full instead of minus to plus
 * @param {Hue} hue
 */
export function colourOf(value, high, sequential, hue) {
  const table = tableOf(!sequential ? "diverging" : hue === "encoder" ? hue : "decoder");
  // A root spreads the small values, of which there are most, over more of the range.
  const size = Math.min(1, Math.abs(value) / high) ** 0.7;
  const at = sequential ? Math.max(0, Math.sign(value)) * size : 0.5 + 0.5 * Math.sign(value) * size;
  const n = 3 * Math.round(at * (STEPS - 1));
  return [table[n], table[n + 1], table[n + 2]];
}
