// The text to translate: a field that grows, and a sheet behind it that marks its words.

import { grow, h } from "../dom.js";
import { t } from "./language.js";

const MAX_UNDO = 5000; // characters

export class SourcePane {
  /** @param {TranslatePage} app */
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
          this.highlight([]);
          grow(this.input);
          app.onInput();
        },
        keydown: (event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) app.translate();
        },
        mousemove: (event) => app.wordLinks.highlight(this.#wordAt(event), "source"),
        mouseleave: () => app.wordLinks.highlight(null),
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
    this.highlight([]);
    grow(this.input);
  }

  /** Replace the text so that the browser can undo it. @param {string} text */
  replace(text) {
    this.input.focus();
    this.input.select();
    // The only change of a field that the browser can undo; it is slow for a long text.
    if (text.length > MAX_UNDO || !document.execCommand(text ? "insertText" : "delete", false, text)) this.set(text);
  }

  /** The word under the pointer, where the browser can tell. @param {MouseEvent} event @returns {WordPlace | null} */
  #wordAt({ clientX, clientY }) {
    const place = document.caretPositionFromPoint?.(clientX, clientY);
    if (place?.offsetNode !== this.input) return null;
    let start = 0;
    for (const [line, one] of this.app.lines.current.entries()) {
      if (place.offset <= start + one.text.length) {
        this.app.wordLinks.load(line);
        let at = start;
        const piece = one.alignment?.source.findIndex((word) => {
          at += word.length;
          return place.offset < at;
        });
        return piece === undefined || piece < 0 ? null : { line, piece };
      }
      start += one.text.length + 1;
    }
    return null;
  }

  /** @param {[number, number][]} spans  in order, by characters */
  highlight(spans) {
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
