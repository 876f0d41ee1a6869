// The translation, line by line. A line under the pointer is split into words that can be pointed at.

import { h } from "../dom.js";
import { t } from "./language.js";

const LETTERS = /[\p{L}\p{N}]/u;

const MAX_ANIMATED = 20; // waiting lines

export class TargetPane {
  /** @param {TranslatePage} app */
  constructor(app) {
    this.app = app;
    /** @type {WordPlace | null} */
    this.cursor = null;
    /** @type {{element: Element, line: Line, version: number}[]} */
    this.rows = []; // as they are drawn
    this.box = h("div.made", {
      role: "group",
      tabindex: "0",
      translate: "no",
      data: { testid: "made", key: "made" },
      on: {
        mouseover: (event) => this.#onPointer(event),
        mouseleave: () => app.wordLinks.highlight(null),
        click: (event) => this.#onClick(event),
        keydown: (event) => this.#onKey(event),
        focus: (event) => {
          const byKey = /** @type {HTMLElement} */ (event.target).matches(":focus-visible");
          if (!this.cursor && byKey) this.#lineFrom(0, 1, "first");
        },
        blur: () => app.menu.open || this.#leave(),
      },
    });
  }

  draw() {
    const { app, box } = this;
    box.setAttribute("aria-label", t("target.label"));
    box.setAttribute("aria-description", t("target.keys"));
    box.lang = app.to;
    const { current } = app.lines;
    for (const row of this.rows.splice(current.length)) row.element.remove();
    for (const [i, line] of current.entries()) {
      const old = this.rows[i];
      if (old && old.line === line && old.version === line.version) continue;
      const element = this.#line(line, i);
      if (old) old.element.replaceWith(element);
      else box.append(element);
      this.rows[i] = { element, line, version: line.version };
    }
    box.toggleAttribute("data-few", current.length <= MAX_ANIMATED);
    box.dataset.empty = current.length ? "" : t("target.empty");
    if (this.cursor && !this.wordAt(this.cursor)) this.cursor = null;
  }

  /** @param {Line} line @param {number} i */
  #line(line, i) {
    // A line break is a character, so that what is selected by hand is the text.
    const row = (/** @type {string} */ kind, /** @type {Child[]} */ ...content) =>
      h("span", i ? "\n" : "", h("span", { class: kind, data: { line: i } }, content));
    const { alignment, translation } = line;
    if (!alignment) return translation === null ? row("line waiting", "\u2003".repeat(8)) : row("line", translation);
    const doubted = new Set(alignment.sentences.flatMap(({ doubts }) => doubts));
    const words = alignment.target.map((piece, at) => {
      const kind = doubted.has(at) ? "span.word.doubted" : "span.word";
      return LETTERS.test(piece) ? h(kind, { data: { line: i, piece: at } }, piece) : piece;
    });
    return row(
      "line",
      // What stands between sentences belongs to none.
      words.map((word, at) => {
        const sentence = alignment.sentences.find(({ target }) => target[0] <= at && at < target[1]);
        if (!sentence) return word;
        if (sentence.target[0] !== at) return null;
        const sure = sentence.probability;
        const title = sure === null ? null : t("sentence.sure", { percent: Math.round(100 * sure) });
        return h("span.sentence", { title }, words.slice(...sentence.target));
      }),
    );
  }

  /** @param {WordPlace} at @returns {HTMLElement | null} */
  wordAt({ line, piece }) {
    return this.box.querySelector(`[data-line="${line}"][data-piece="${piece}"]`);
  }

  /** @param {Event} event @returns {WordPlace | null} */
  #under({ target }) {
    const { dataset } = /** @type {HTMLElement} */ (target);
    if (dataset.piece) return { line: Number(dataset.line), piece: Number(dataset.piece) };
    return null;
  }

  /** @param {Event} event */
  #lineUnder({ target }) {
    /** @type {HTMLElement | null} */
    const line = /** @type {HTMLElement} */ (target).closest(".line");
    return line?.dataset.line ? Number(line.dataset.line) : null;
  }

  /** @param {Event} event */
  #onPointer(event) {
    const line = this.#lineUnder(event);
    if (line !== null) this.app.wordLinks.load(line);
    this.app.wordLinks.highlight(this.#under(event));
  }

  /** @param {MouseEvent} event */
  async #onClick(event) {
    if (getSelection()?.toString()) return; // they are selecting
    const line = this.#lineUnder(event);
    if (line === null) return;
    const { clientX, clientY } = event;
    const alignment = this.app.lines.current[line]?.alignment;
    if (!alignment) await this.app.wordLinks.load(line); // it was no word when it was clicked, on a phone say
    const there = alignment ? event.target : document.elementFromPoint(clientX, clientY);
    if (!(there instanceof HTMLElement) || !there.dataset.piece) return;
    this.#move({ line, piece: Number(there.dataset.piece) });
    this.app.menu.show(line, Number(there.dataset.piece));
  }

  /** @param {WordPlace} at */
  #move(at) {
    this.cursor = at;
    this.app.wordLinks.highlight(at);
    this.app.wordLinks.announce(at);
    this.wordAt(at)?.scrollIntoView({ block: "nearest" });
  }

  #leave() {
    this.cursor = null;
    this.app.wordLinks.highlight(null);
  }

  /** The words of a line, by their pieces. @param {number} line */
  #words(line) {
    /** @type {NodeListOf<HTMLElement>} */
    const words = this.box.querySelectorAll(`.word[data-line="${line}"]`);
    return [...words].map((word) => Number(word.dataset.piece));
  }

  /** To the next line with words. @param {number} line @param {1 | -1} step @param {"first" | "last"} end */
  async #lineFrom(line, step, end) {
    const { lines } = this.app;
    for (let at = line; at >= 0 && at < lines.current.length; at += step) {
      if (!lines.current[at].text.trim()) continue;
      await this.app.wordLinks.load(at);
      const piece = end === "first" ? this.#words(at)[0] : this.#words(at).at(-1);
      if (piece !== undefined) return this.#move({ line: at, piece });
    }
  }

  /** @param {KeyboardEvent} event */
  async #onKey(event) {
    const at = this.cursor;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && at) return this.#leave();
    const keys = ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "Home", "End", "Enter", " "];
    if (!keys.includes(event.key)) return;
    event.preventDefault();
    if (!at) return this.#lineFrom(0, 1, "first");
    const words = this.#words(at.line);
    const place = words.indexOf(at.piece);
    if (event.key === "Enter" || event.key === " ") return this.app.menu.show(at.line, at.piece);
    if (event.key === "Home") return this.#move({ ...at, piece: words[0] });
    if (event.key === "End") return this.#move({ ...at, piece: words[words.length - 1] });
    if (event.key === "ArrowDown") return this.#lineFrom(at.line + 1, 1, "first");
    if (event.key === "ArrowUp") return this.#lineFrom(at.line - 1, -1, "first");
    const next = place + (event.key === "ArrowRight" ? 1 : -1);
    if (next < 0) return this.#lineFrom(at.line - 1, -1, "last");
    if (next >= words.length) return this.#lineFrom(at.line + 1, 1, "first");
    return this.#move({ ...at, piece: words[next] });
  }

  /** Light words, and the sentence that they are in. @param {WordPlace[]} words @param {WordPlace | null} chief */
  highlight(words, chief) {
    for (const one of this.box.querySelectorAll(".lit, .chief")) one.classList.remove("lit", "chief");
    for (const one of words) this.wordAt(one)?.classList.add("lit");
    if (chief) this.wordAt(chief)?.classList.add("chief");
  }
}
