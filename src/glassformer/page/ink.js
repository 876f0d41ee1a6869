// Matrices as pictures: marks for cells that have no colour, stamps, the scale of colours.

import { colourOf, paint } from "./colour.js";
import { h, raw } from "./dom.js";
import { show } from "./number.js";

/** The mark of a cell that a mask has closed. */
export function hatch(pen, x, y, width, height) {
  pen.fillStyle = paint("map-closed");
  pen.fillRect(x, y, width, height);
  pen.strokeStyle = paint("map-hatch");
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(x + 2, y + height - 2);
  pen.lineTo(x + width - 2, y + 2);
  pen.stroke();
}

/** The mark of a value that is no finite number. */
export function strange(pen, value, x, y, width, height) {
  pen.fillStyle = paint("map-closed");
  pen.fillRect(x, y, width, height);
  pen.fillStyle = paint("ink");
  pen.font = `${Math.min(13, height)}px sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(Number.isNaN(value) ? "\u00d7" : "\u221e", x + width / 2, y + height / 2);
}

/** A stretch of columns, one pixel a cell. */
export function picture(sheet, first, count) {
  const canvas = document.createElement("canvas");
  canvas.width = count;
  canvas.height = sheet.rows;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(count, sheet.rows);
  const closed = ["map-closed", "map-hatch"].map((name) =>
    paint(name)
      .match(/[0-9a-f]{2}/gi)
      .map((one) => parseInt(one, 16)),
  );
  for (let i = 0, at = 0; i < sheet.rows; i++) {
    for (let j = first; j < first + count; j++, at += 4) {
      const value = sheet.at(i, j);
      const odd = sheet.masked(i, j) || !Number.isFinite(value);
      const [r, g, b] = odd ? closed[(i + j) % 2] : colourOf(value, sheet.high, sheet.share, sheet.hue);
      image.data.set([r, g, b, 255], at);
    }
  }
  pen.putImageData(image, 0, 0);
  return canvas;
}

/** A still picture of a matrix, as small as a stamp. */
export function stamp(sheet, attributes = {}) {
  const canvas = picture(sheet, 0, Math.min(sheet.cols, 512));
  canvas.className = "stamp";
  canvas.setAttribute("aria-hidden", "true");
  for (const [name, value] of Object.entries(attributes)) canvas.setAttribute(name, value);
  return canvas;
}

/** The scale of colours beside a matrix. */
export function legend(sheet) {
  const canvas = document.createElement("canvas");
  canvas.width = 64;
  canvas.height = 1;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(64, 1);
  for (let n = 0; n < 64; n++) {
    const share = n / 63;
    const value = sheet.share ? share * sheet.high : (2 * share - 1) * sheet.high;
    image.data.set([...colourOf(value, sheet.high, sheet.share, sheet.hue), 255], 4 * n);
  }
  pen.putImageData(image, 0, 0);
  canvas.className = "scale";
  canvas.setAttribute("aria-hidden", "true");
  return h("span.legend", raw(show(sheet.share ? 0 : -sheet.high, 3)), canvas, raw(show(sheet.high, 3)));
}
