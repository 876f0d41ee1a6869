// Following one token through the picture of the flow, by pointer or by keyboard.

import { focusOnly } from "./dom.js";

/** A token under the pointer keeps its own threads and ribbons, the others step back; a click holds it so. */
export function follow(app, pictures) {
  const all = (selector) => pictures.flatMap((picture) => [...picture.querySelectorAll(selector)]);
  const [lines, tokens] = [all("[data-to]"), all(".piece")];
  const keyOf = (token) => `${token.dataset.side}:${token.dataset.index}`;
  const tokenAt = (event) => event.target.closest(".piece, .piece-place");
  const held = () => app.state.token || null;
  const show = (wanted) => {
    const key = wanted ?? held();
    const partners = [];
    for (const picture of pictures) picture.classList.toggle("asking", key !== null);
    for (const line of lines) {
      const on = key !== null && (line.dataset.from === key || line.dataset.to === key);
      line.classList.toggle("on", on);
      if (on && line.classList.contains("ribbon")) partners.push(line.dataset.from, line.dataset.to);
    }
    const lit = [...new Set(key === null ? [] : [key, ...partners])].map((one) => one.split(":"));
    app.light(lit.map(([side, index]) => ({ side, index: Number(index) })));
  };
  const mark = () => {
    for (const token of tokens) token.toggleAttribute("data-locked", keyOf(token) === held());
    show(null);
  };
  const hold = (key) => {
    app.hold(key);
    mark();
  };
  for (const picture of pictures) {
    picture.addEventListener("pointerover", (event) => {
      const token = tokenAt(event);
      show(token ? keyOf(token) : (event.target.closest(".ribbon")?.dataset.to ?? null));
    });
    picture.addEventListener("pointerleave", () => show(null));
    picture.addEventListener("click", (event) => {
      const token = tokenAt(event);
      const ribbon = event.target.closest(".ribbon");
      if (token || ribbon) hold(token ? keyOf(token) : ribbon.dataset.to);
    });
  }
  const sides = [...new Set(tokens.map((token) => token.dataset.side))];
  for (const side of sides) {
    const own = tokens.filter((token) => token.dataset.side === side);
    own.forEach((token, i) => {
      token.setAttribute("tabindex", i ? "-1" : "0");
      token.addEventListener("focus", () => show(keyOf(token)));
      token.addEventListener("blur", () => show(null));
      token.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") hold(keyOf(token));
        else if (event.key === "Escape" && held()) hold(held());
        const next = own[i + ({ ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0)];
        if (next && next !== token) {
          focusOnly(own, next);
        } else if (!["Enter", " ", "ArrowDown", "ArrowUp"].includes(event.key)) return;
        event.preventDefault();
      });
    });
  }
  if (held()) mark();
}
