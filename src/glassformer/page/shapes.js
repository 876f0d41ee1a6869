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

/** A text in so many letters at most. @param {string} text @param {number} most */
export function shorten(text, most) {
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}\u2026` : text;
}
