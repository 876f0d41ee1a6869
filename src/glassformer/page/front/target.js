// The translation, line by line. A line that somebody looks at is cut into words, which can be pointed at.

import { h } from "../dom.js";
import { t } from "./language.js";

const LETTERS = /[\p{L}\p{N}]/u;

const FEW = 20; // lines that may move while they are waited for

export class TargetPane {
  /** @param {Front} app */
  constructor(app) {
    this.app = app;
    /** @type {WordAt | null} */
    this.cursor = null;
    /** @type {{element: Element, line: Line, version: number}[]} */
    this.rows = []; // as they are drawn
    this.box = h("div.made", {
      role: "group",
      tabindex: "0",
      translate: "no",
      data: { testid: "made", key: "made" },
      on: {
        mouseover: (event) => this.#pointed(event),
        mouseleave: () => app.words.light(null),
        click: (event) => this.#clicked(event),
        keydown: (event) => this.#pressed(event),
        focus: () => this.#entered(),
        blur: () => app.menu.open || this.#leave(),
      },
    });
  }

  draw() {
    const { app, box } = this;
    box.setAttribute("aria-label", t("target.label"));
    box.setAttribute("aria-description", t("target.keys"));
    box.lang = app.to;
    const { now } = app.lines;
    for (const row of this.rows.splice(now.length)) row.element.remove();
    for (const [i, line] of now.entries()) {
      const old = this.rows[i];
      if (old && old.line === line && old.version === line.version) continue;
      const element = this.#line(line, i);
      if (old) old.element.replaceWith(element);
      else box.append(element);
      this.rows[i] = { element, line, version: line.version };
    }
    box.toggleAttribute("data-few", now.length <= FEW);
    box.dataset.empty = now.length ? "" : t("target.empty");
    if (this.cursor && !this.wordAt(this.cursor)) this.cursor = null;
  }

  /** @param {Line} line @param {number} i */
  #line(line, i) {
    // A line break is a character, so that what is selected by hand is the text.
    const row = (/** @type {string} */ kind, /** @type {Child[]} */ ...content) =>
      h("span", i ? "\n" : "", h("span", { class: kind, data: { line: i } }, content));
    const { told, made } = line;
    if (!told) return made === null ? row("line waiting", "\u2003".repeat(8)) : row("line", made);
    const words = told.target.map((piece, at) =>
      LETTERS.test(piece) ? h("span.word", { data: { line: i, piece: at } }, piece) : piece,
    );
    return row(
      "line",
      // What stands between sentences belongs to none.
      words.map((word, at) => {
        const sentence = told.sentences.find(({ target }) => target[0] <= at && at < target[1]);
        if (!sentence) return word;
        return sentence.target[0] === at ? h("span.sentence", words.slice(...sentence.target)) : null;
      }),
    );
  }

  /** @param {WordAt} at @returns {HTMLElement | null} */
  wordAt({ line, piece }) {
    return this.box.querySelector(`[data-line="${line}"][data-piece="${piece}"]`);
  }

  /** @param {Event} event @returns {WordAt | null} */
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
  #pointed(event) {
    const line = this.#lineUnder(event);
    if (line !== null) this.app.words.look(line);
    this.app.words.light(this.#under(event));
  }

  /** @param {MouseEvent} event */
  async #clicked(event) {
    if (getSelection()?.toString()) return; // they are selecting
    const line = this.#lineUnder(event);
    if (line === null) return;
    const { clientX, clientY } = event;
    const told = this.app.lines.now[line]?.told;
    if (!told) await this.app.words.look(line); // it was no word when it was clicked, on a phone say
    const there = told ? event.target : document.elementFromPoint(clientX, clientY);
    if (!(there instanceof HTMLElement) || !there.dataset.piece) return;
    this.#move({ line, piece: Number(there.dataset.piece) });
    this.app.menu.show(line, Number(there.dataset.piece));
  }

  /** @param {WordAt} at */
  #move(at) {
    this.cursor = at;
    this.app.words.light(at);
    this.app.words.say(at);
    this.wordAt(at)?.scrollIntoView({ block: "nearest" });
  }

  #leave() {
    this.cursor = null;
    this.app.words.light(null);
  }

  /** The first word of the first line that has one, when the keyboard comes here. */
  async #entered() {
    if (this.cursor || !this.box.matches(":focus-visible")) return;
    await this.#lineFrom(0, 1, "first");
  }

  /** The words of a line, by their pieces. @param {number} line */
  #words(line) {
    /** @type {NodeListOf<HTMLElement>} */
    const words = this.box.querySelectorAll(`.word[data-line="${line}"]`);
    return [...words].map((word) => Number(word.dataset.piece));
  }

  /**
   * To the next line that has words, and there to its first, last or nearest word.
   * @param {number} line
   * @param {1 | -1} step
   * @param {"first" | "last"} end
   */
  async #lineFrom(line, step, end) {
    const { lines } = this.app;
    for (let at = line; at >= 0 && at < lines.now.length; at += step) {
      if (!lines.now[at].text.trim()) continue;
      await this.app.words.look(at);
      const piece = end === "first" ? this.#words(at)[0] : this.#words(at).at(-1);
      if (piece !== undefined) return this.#move({ line: at, piece });
    }
  }

  /** @param {KeyboardEvent} event */
  async #pressed(event) {
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

  /** Light words, and the sentence that they are in. @param {WordAt[]} words @param {WordAt | null} chief */
  light(words, chief) {
    for (const one of this.box.querySelectorAll(".lit, .chief")) one.classList.remove("lit", "chief");
    for (const one of words) this.wordAt(one)?.classList.add("lit");
    if (chief) this.wordAt(chief)?.classList.add("chief");
  }
}
