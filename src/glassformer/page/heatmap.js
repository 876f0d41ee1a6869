// Numbers as colours, and matrices as pixels: marks for cells without a colour, thumbnails, the colour scale.

import { h, raw } from "./dom.js";
import { show } from "./number.js";

const STEPS = 256;
/** @type {Map<string, Uint8ClampedArray>} */
const tables = new Map();

/** A colour of the style sheet. @param {string} name */
export function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The same as [red, green, blue]. @param {string} name */
function rgbOf(name) {
  return (cssColour(name).match(/[0-9a-f]{2}/gi) ?? ["80", "80", "80"]).map((one) => parseInt(one, 16));
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
export function clearColours() {
  tables.clear();
}

/** @param {"diverging" | Stack} kind */
function tableOf(kind) {
  const names =
    kind === "diverging" ? ["minus-2", "minus-1", "zero", "plus-1", "plus-2"] : ["zero", `${kind}-1`, `${kind}-2`];
  const table = tables.get(kind) ?? ramp(names.map((name) => rgbOf(`map-${name}`)));
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

/** @param {HTMLCanvasElement} canvas */
export const contextOf = (canvas) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));

/** The mark of a cell that a mask has closed. @param {CanvasRenderingContext2D} ctx @param {Box} box */
export function hatch(ctx, [x, y, width, height]) {
  ctx.fillStyle = cssColour("map-closed");
  ctx.fillRect(x, y, width, height);
  ctx.strokeStyle = cssColour("map-hatch");
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(x + 2, y + height - 2);
  ctx.lineTo(x + width - 2, y + 2);
  ctx.stroke();
}

/**
 * The mark of a value that is no finite number.
 * @param {CanvasRenderingContext2D} ctx @param {Box} box @param {number} value
 */
export function markNonFinite(ctx, [x, y, width, height], value) {
  ctx.fillStyle = cssColour("map-closed");
  ctx.fillRect(x, y, width, height);
  ctx.fillStyle = cssColour("ink");
  ctx.font = `${Math.min(13, height)}px sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillText(Number.isNaN(value) ? "\u00d7" : "\u221e", x + width / 2, y + height / 2);
}

/**
 * A canvas with one colour a pixel; null leaves a pixel clear.
 * @param {number} width @param {number} height @param {(i: number, j: number) => number[] | null} colour
 * @param {Attributes} [attributes]
 */
export function pixelCanvas(width, height, colour, attributes = {}) {
  const canvas = h("canvas", { width, height, ...attributes });
  const image = new ImageData(width, height);
  for (let i = 0, at = 0; i < height; i++) {
    for (let j = 0; j < width; j++, at += 4) {
      const channels = colour(i, j);
      if (channels) image.data.set([...channels, 255], at);
    }
  }
  contextOf(canvas).putImageData(image, 0, 0);
  return canvas;
}

/**
 * A stretch of columns, one pixel a cell.
 * @param {Sheet} sheet @param {number} first @param {number} count @param {Attributes} [attributes]
 */
export function sheetCanvas(sheet, first, count, attributes) {
  const closed = [rgbOf("map-closed"), rgbOf("map-hatch")];
  const colour = (/** @type {number} */ i, /** @type {number} */ column) => {
    const j = first + column;
    const value = sheet.at(i, j);
    if (sheet.masked(i, j) || !Number.isFinite(value)) return closed[(i + j) % 2];
    return colourOf(value, sheet.high, sheet.sequential, sheet.hue);
  };
  return pixelCanvas(count, sheet.rows, colour, attributes);
}

/** A small still picture of a matrix. @param {Sheet} sheet */
export function thumbnail(sheet, className = "stamp") {
  return sheetCanvas(sheet, 0, Math.min(sheet.cols, 512), { class: className, "aria-hidden": "true" });
}

/** The scale of colours beside a matrix. @param {Sheet} sheet */
export function legend({ high, sequential, hue }) {
  const low = sequential ? 0 : -high;
  const colour = (/** @type {number} */ _, /** @type {number} */ n) =>
    colourOf(low + (n / 63) * (high - low), high, sequential, hue);
  const scale = pixelCanvas(64, 1, colour, { class: "scale", "aria-hidden": "true" });
  return h("span.legend", raw(show(low, 3)), scale, raw(show(high, 3)));
}
