// Matrices as pixels: marks for cells that have no colour, thumbnails, the scale of colours.

import { channels, colourOf, paint } from "./colour.js";
import { h, raw } from "./dom.js";
import { show } from "./number.js";

/** @param {HTMLCanvasElement} canvas */
export const penOf = (canvas) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));

/** The mark of a cell that a mask has closed. @param {CanvasRenderingContext2D} pen @param {Box} box */
export function hatch(pen, [x, y, width, height]) {
  pen.fillStyle = paint("map-closed");
  pen.fillRect(x, y, width, height);
  pen.strokeStyle = paint("map-hatch");
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(x + 2, y + height - 2);
  pen.lineTo(x + width - 2, y + 2);
  pen.stroke();
}

/**
 * The mark of a value that is no finite number.
 * @param {CanvasRenderingContext2D} pen
 * @param {Box} box
 * @param {number} value
 */
export function markOdd(pen, [x, y, width, height], value) {
  pen.fillStyle = paint("map-closed");
  pen.fillRect(x, y, width, height);
  pen.fillStyle = paint("ink");
  pen.font = `${Math.min(13, height)}px sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(Number.isNaN(value) ? "\u00d7" : "\u221e", x + width / 2, y + height / 2);
}

/**
 * A canvas, each pixel of the colour that is told for it; none leaves it clear.
 * @param {number} width
 * @param {number} height
 * @param {(i: number, j: number) => number[] | null} colour
 * @param {Attributes} [attributes]
 */
export function pixels(width, height, colour, attributes = {}) {
  const canvas = h("canvas", { width, height, ...attributes });
  const image = new ImageData(width, height);
  for (let i = 0, at = 0; i < height; i++) {
    for (let j = 0; j < width; j++, at += 4) {
      const channels = colour(i, j);
      if (channels) image.data.set([...channels, 255], at);
    }
  }
  penOf(canvas).putImageData(image, 0, 0);
  return canvas;
}

/**
 * A stretch of columns, one pixel a cell.
 * @param {Sheet} sheet
 * @param {number} first
 * @param {number} count
 * @param {Attributes} [attributes]
 */
export function picture(sheet, first, count, attributes) {
  const closed = [channels("map-closed"), channels("map-hatch")];
  const colour = (/** @type {number} */ i, /** @type {number} */ column) => {
    const j = first + column;
    const value = sheet.at(i, j);
    if (sheet.masked(i, j) || !Number.isFinite(value)) return closed[(i + j) % 2];
    return colourOf(value, sheet.high, sheet.sequential, sheet.hue);
  };
  return pixels(count, sheet.rows, colour, attributes);
}

/** A small still picture of a matrix. @param {Sheet} sheet */
export function thumbnail(sheet, className = "stamp") {
  return picture(sheet, 0, Math.min(sheet.cols, 512), { class: className, "aria-hidden": "true" });
}

/** The scale of colours beside a matrix. @param {Sheet} sheet */
export function legend({ high, sequential, hue }) {
  const low = sequential ? 0 : -high;
  const colour = (/** @type {number} */ _, /** @type {number} */ n) =>
    colourOf(low + (n / 63) * (high - low), high, sequential, hue);
  const scale = pixels(64, 1, colour, { class: "scale", "aria-hidden": "true" });
  return h("span.legend", raw(show(low, 3)), scale, raw(show(high, 3)));
}
