// Shapes of pictures: rectangles, lines, curves, and labels, which are never translated.

import { svg } from "./dom.js";

/** @param {Box} box @param {Attributes} [attributes] */
export function rect([x, y, width, height], attributes = {}) {
  return svg("rect", { x, y, width, height, ...attributes });
}

/** @param {Spot} from @param {Spot} to @param {Attributes} [attributes] */
export function line([x1, y1], [x2, y2], attributes = {}) {
  return svg("line", { x1, y1, x2, y2, ...attributes });
}

/** @param {Spot} at @param {string} text @param {Attributes} [attributes] */
export function label([x, y], text, attributes = {}) {
  return svg("text", { x, y, translate: "no", ...attributes }, text);
}

/** The way on from one point to another, level at both ends. @param {Spot} from @param {Spot} to */
export function curve([x1, y1], [x2, y2]) {
  const middle = (x1 + x2) / 2;
  return `C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}

/** @param {SVGElement} shape @param {Record<string, string | number>} attributes */
export function move(shape, attributes) {
  for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, String(value));
}

const WIDE = /[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]/;

/** How much room a text takes, in letters; a character of Chinese takes that of almost two. @param {string} text */
export function roomOf(text) {
  return [...text].reduce((sum, letter) => sum + (WIDE.test(letter) ? 1.75 : 1), 0);
}

/** A text in the room of so many letters at most. @param {string} text @param {number} most */
export function shorten(text, most) {
  if (roomOf(text) <= most) return text;
  const letters = [...text];
  while (letters.length > 1 && roomOf(letters.join("")) > most - 1) letters.pop();
  return `${letters.join("")}\u2026`;
}
