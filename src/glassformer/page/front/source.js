// The text to translate: a field that grows, and a sheet behind it that marks its words.

import { grow, h } from "../dom.js";
import { t } from "./language.js";

const UNDONE = 5000; // characters

export class SourcePane {
  /** @param {Front} app */
  constructor(app) {
    this.app = app;
    this.sheet = h("div.sheet", { "aria-hidden": "true" });
    this.input = h("textarea", {
      id: "source",
      rows: 1,
      autocomplete: "off",
      data: { key: "source" },
      on: {
        input: () => {
          this.mark([]);
          grow(this.input);
          app.typed();
        },
        keydown: (event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) app.translate();
        },
        mousemove: (event) => app.words.light(this.#wordAt(event), "source"),
        mouseleave: () => app.words.light(null),
      },
    });
    this.field = h("div.field", this.sheet, this.input);
  }

  draw() {
    const { input, app } = this;
    input.setAttribute("aria-label", t("source.label"));
    input.placeholder = t(app.files.offered ? "source.placeholderFile" : "source.placeholder");
    input.lang = app.from === "auto" ? "" : app.from;
  }

  /** @param {string} text */
  set(text) {
    this.input.value = text;
    this.mark([]);
    grow(this.input);
  }

  /** Put another text in the place of what was typed, which undoing brings back. @param {string} text */
  replace(text) {
    this.input.focus();
    this.input.select();
    // Of the ways to change a field, the only one that the browser can undo; for a long text it takes very long.
    if (text.length > UNDONE || !document.execCommand(text ? "insertText" : "delete", false, text)) this.set(text);
  }

  /** The word under the pointer, where the browser can tell. @param {MouseEvent} event @returns {WordAt | null} */
  #wordAt({ clientX, clientY }) {
    const place = document.caretPositionFromPoint?.(clientX, clientY);
    if (place?.offsetNode !== this.input) return null;
    let start = 0;
    for (const [line, one] of this.app.lines.now.entries()) {
      if (place.offset <= start + one.text.length) {
        this.app.words.look(line);
        let at = start;
        const piece = one.told?.source.findIndex((word) => {
          at += word.length;
          return place.offset < at;
        });
        return piece === undefined || piece < 0 ? null : { line, piece };
      }
      start += one.text.length + 1;
    }
    return null;
  }

  /** Mark stretches of the text. @param {[number, number][]} spans  in order, by characters */
  mark(spans) {
    const text = this.input.value;
    /** @type {Node[]} */
    const parts = [];
    let at = 0;
    for (const [from, to] of spans) {
      if (from < at || to > text.length) continue;
      parts.push(new Text(text.slice(at, from)), h("mark", text.slice(from, to)));
      at = to;
    }
    this.sheet.replaceChildren(...parts, ...(parts.length ? [new Text(text.slice(at))] : []));
  }
}
