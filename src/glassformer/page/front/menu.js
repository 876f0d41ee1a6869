// A menu of alternatives for a word: other words at its place, and other sentences.

import { button, fill, h, rove } from "../dom.js";
import { isAbort } from "../request.js";
import { t } from "./language.js";

const CONTEXT = 28; // characters on either side of the difference

export class AlternativesMenu {
  /** @param {TranslatePage} app */
  constructor(app) {
    this.app = app;
    this.request = 0;
    this.box = h("div.menu", {
      role: "dialog",
      hidden: true,
      tabindex: "-1",
      data: { testid: "menu" },
      on: {
        keydown: (event) => {
          if (event.key !== "Escape") return;
          event.stopPropagation();
          this.close(true);
        },
      },
    });
    rove(this.box);
    document.addEventListener("pointerdown", (event) => {
      if (this.open && !this.box.contains(/** @type {Node} */ (event.target))) this.close(false);
    });
  }

  get open() {
    return !this.box.hidden;
  }

  /** @param {boolean} back  whether the focus returns to the translation */
  close(back) {
    this.request++;
    if (!this.open) return;
    this.box.hidden = true;
    if (back) this.app.target.box.focus();
    else this.app.wordLinks.highlight(null);
  }

  /** @param {number} i  a line @param {number} piece  of its translation */
  async show(i, piece) {
    const { app } = this;
    const line = app.lines.current[i];
    const place = line.sentenceAt(piece);
    const word = app.target.wordAt({ line: i, piece });
    if (!line.alignment || place < 0 || !word) return;
    const { target, steps } = line.alignment.sentences[place];
    const sentence = line.alignment.target.slice(...target).join("");
    const prefix = line.alignment.target.slice(target[0], piece).join("");
    const last = steps[steps.length - 1];
    const request = ++this.request;
    const head = h("p.menu-head", h("span.label", t("menu.instead")), h("b", word.textContent ?? ""));
    const links = steps.map((step, k) =>
      h(
        "a.button",
        { href: app.wordLinks.lookAddress(step), data: { key: `look:${k}` } },
        steps.length > 1 ? t("look.step", { n: k + 1, of: steps.length }) : t("look"),
      ),
    );
    this.box.setAttribute("aria-label", `${t("menu.instead")} ${word.textContent}`);
    this.box.setAttribute("aria-busy", "true");
    const list = h("div.menu-list", h("p.faint", t("menu.asking")));
    fill(this.box, head, list, h("div.menu-foot", links));
    this.box.hidden = false;
    this.#place(word);
    this.box.focus();
    let others;
    try {
      others = await app.server.alternatives(last.direction, last.text, prefix);
    } catch (error) {
      if (request === this.request && !isAbort(error)) {
        this.close(true);
        app.fail(error);
      }
      return;
    }
    if (request !== this.request) return;
    const known = new Set([withoutSpaces(sentence)]);
    const fresh = (/** @type {string} */ text) => !known.has(withoutSpaces(text)) && known.add(withoutSpaces(text));
    const [texts, free] = [others.texts.filter(fresh), others.free.filter(fresh)];
    const first = line.chosen[place] ? [button(t("menu.first"), () => this.#choose(line, place, null), item)] : [];
    /** @param {string} text */
    const choice = (text) =>
      button(showDifference(sentence, text), () => this.#choose(line, place, text), { ...item, title: text });
    fill(
      list,
      texts.map(choice),
      free.length > 0 && h("p.label", t("menu.sentence")),
      free.map(choice),
      first,
      !texts.length && !free.length && !first.length && h("p.faint", t("menu.none")),
    );
    this.box.setAttribute("aria-busy", "false");
    this.#place(word);
    this.box.querySelector("button")?.focus();
  }

  /** Below the word, within the window; the styles put it at the bottom of a phone. @param {HTMLElement} word */
  #place(word) {
    const { left, bottom, top } = word.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.box;
    const { clientWidth, clientHeight } = document.documentElement;
    const above = bottom + height + 12 > clientHeight && top > height + 12;
    this.box.style.left = `${Math.max(8, Math.min(left, clientWidth - width - 8)) + window.scrollX}px`;
    this.box.style.top = `${(above ? top - height - 6 : bottom + 6) + window.scrollY}px`;
  }

  /** @param {Line} line @param {number} place @param {string | null} text */
  async #choose(line, place, text) {
    this.close(true);
    const { length } = line.alignment?.sentences ?? [];
    line.chosen = Array.from({ length }, (_, i) => (i === place ? text : (line.chosen[i] ?? null)));
    await this.app.wordLinks.reload(line);
  }
}

const item = { class: "menu-item" };

/** A wording without spaces, to compare it. @param {string} text */
const withoutSpaces = (text) => text.replace(/\s/g, "");

/** A translation with the difference from another one in bold. @param {string} before @param {string} after */
function showDifference(before, after) {
  const short = Math.min(before.length, after.length);
  let start = 0;
  while (start < short && before[start] === after[start]) start++;
  let end = 0;
  while (end < short - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  // Whole words, where there are spaces between them.
  while (start > 0 && /[\p{Script=Latin}\d]/u.test(after[start - 1])) start--;
  while (end > 0 && /[\p{Script=Latin}\d]/u.test(after[after.length - end])) end--;
  const stop = Math.max(start, after.length - end);
  const [lead, tail] = [after.slice(0, start), after.slice(stop)];
  return h(
    "span",
    lead.length > CONTEXT ? `\u2026${lead.slice(-CONTEXT).replace(/^[\p{Script=Latin}\d]+/u, "")}` : lead,
    h("b", after.slice(start, stop)),
    tail.length > CONTEXT ? `${tail.slice(0, CONTEXT).replace(/[\p{Script=Latin}\d]+$/u, "")}\u2026` : tail,
  );
}
