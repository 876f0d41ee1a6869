// Numbers as colours, read from the style sheet so that light and dark have their own.

const STEPS = 256;
const tables = new Map();

function channels(text) {
  const found = /^#?([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text.trim());
  return found ? found.slice(1).map((one) => parseInt(one, 16)) : [128, 128, 128];
}

export function paint(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

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

/** @param {"signed"|"encoder"|"decoder"|"q"|"k"|"v"} kind */
function table(kind) {
  if (!tables.has(kind)) {
    const names =
      kind === "signed"
        ? ["minus-2", "minus-1", "zero", "plus-1", "plus-2"]
        : [
            "zero",
            `${kind === "encoder" ? "encoder" : "decoder"}-1`,
            `${kind === "encoder" ? "encoder" : "decoder"}-2`,
          ];
    tables.set(kind, ramp(names.map((name) => channels(paint(`map-${name}`)))));
  }
  return tables.get(kind);
}

/**
 * The colour of a value as [red, green, blue].
 * @param {number} value
 * @param {number} high   the value with the strongest colour
 * @param {boolean} share from nothing to full instead of minus to plus
 * @param {string} hue
 */
export function colourOf(value, high, share, hue) {
  const colours = table(share ? hue : "signed");
  // A root spreads the small values, of which there are most, over more of the range.
  const at = share
    ? Math.max(0, Math.min(1, value / high)) ** 0.7
    : 0.5 + 0.5 * Math.sign(value) * Math.min(1, Math.abs(value) / high) ** 0.7;
  const n = 3 * Math.round(at * (STEPS - 1));
  return [colours[n], colours[n + 1], colours[n + 2]];
}
