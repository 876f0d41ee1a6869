// Following one token through the picture of the flow, by pointer or by keyboard.

import { focusOnly } from "./dom.js";

/** The key of the token under the pointer, or of that which a ribbon leads to. @param {MouseEvent} event */
function pointedAt(event) {
  const target = /** @type {Element} */ (event.target);
  const token = /** @type {SVGElement | null} */ (target.closest(".piece, .piece-place"));
  const ribbon = /** @type {SVGElement | null} */ (target.closest(".ribbon"));
  return token ? keyOf(token) : (ribbon?.dataset.to ?? null);
}

/** @param {SVGElement} token */
const keyOf = (token) => `${token.dataset.side}:${token.dataset.index}`;

/**
 * A token under the pointer keeps its own threads and ribbons, the others step back; a click holds it so.
 * @param {App} app
 * @param {SVGElement[]} pictures
 */
export function follow(app, pictures) {
  /** @param {string} selector */
  const all = (selector) =>
    pictures.flatMap((one) => /** @type {SVGElement[]} */ ([...one.querySelectorAll(selector)]));
  const [lines, tokens] = [all("[data-to]"), all(".piece")];
  const held = () => app.state.token || null;
  /** @param {string | null} wanted */
  const show = (wanted) => {
    const key = wanted ?? held();
    const lit = key === null ? [] : [key];
    for (const picture of pictures) picture.classList.toggle("asking", key !== null);
    for (const line of lines) {
      const { from = "", to = "" } = line.dataset;
      const on = key === from || key === to;
      line.classList.toggle("on", on);
      if (on && line.classList.contains("ribbon")) lit.push(from, to);
    }
    app.light(lit);
  };
  const mark = () => {
    for (const token of tokens) token.toggleAttribute("data-locked", keyOf(token) === held());
    show(null);
  };
  /** @param {string | null} key */
  const hold = (key) => {
    if (key === null) return;
    app.hold(key);
    mark();
  };
  for (const picture of pictures) {
    picture.addEventListener("pointerover", (event) => show(pointedAt(event)));
    picture.addEventListener("pointerleave", () => show(null));
    picture.addEventListener("click", (event) => hold(pointedAt(event)));
  }
  for (const side of ["src", "tgt"]) {
    const own = tokens.filter((token) => token.dataset.side === side);
    own.forEach((token, i) => {
      token.setAttribute("tabindex", i ? "-1" : "0");
      token.addEventListener("focus", () => show(keyOf(token)));
      token.addEventListener("blur", () => show(null));
      token.addEventListener("keydown", (event) => {
        if (event.key === "Escape") return hold(held());
        if (event.key === "Enter" || event.key === " ") hold(keyOf(token));
        else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
          focusOnly(own, own[i + (event.key === "ArrowDown" ? 1 : -1)] ?? token);
        } else return;
        event.preventDefault();
      });
    });
  }
  if (held()) mark();
}
