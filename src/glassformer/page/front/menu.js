// What else could stand there: other words that the model would go on with, and other sentences.

import { button, fill, h, rove } from "../dom.js";
import { isAbort } from "../request.js";
import { t } from "./language.js";

const AROUND = 28; // characters shown on either side of what is different

export class Menu {
  /** @param {Front} app */
  constructor(app) {
    this.app = app;
    this.turn = 0;
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

  /** @param {boolean} back  whether the focus goes back to the translation */
  close(back) {
    this.turn++;
    if (!this.open) return;
    this.box.hidden = true;
    if (back) this.app.target.box.focus();
    else this.app.words.light(null);
  }

  /** @param {number} i  a line @param {number} piece  of its translation */
  async show(i, piece) {
    const { app } = this;
    const line = app.lines.now[i];
    const place = line.sentenceAt(piece);
    const word = app.target.wordAt({ line: i, piece });
    if (!line.told || place < 0 || !word) return;
    const { target, steps } = line.told.sentences[place];
    const said = line.told.target.slice(...target).join("");
    const prefix = line.told.target.slice(target[0], piece).join("");
    const last = steps[steps.length - 1];
    const turn = ++this.turn;
    const head = h("p.menu-head", h("span.label", t("menu.instead")), h("b", word.textContent ?? ""));
    const links = steps.map((step, k) =>
      h(
        "a.button",
        { href: app.words.address(step), data: { key: `look:${k}` } },
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
      if (turn === this.turn && !isAbort(error)) {
        this.close(true);
        app.fail(error);
      }
      return;
    }
    if (turn !== this.turn) return;
    const known = new Set([bare(said)]);
    const fresh = (/** @type {string} */ text) => !known.has(bare(text)) && known.add(bare(text));
    const [texts, free] = [others.texts.filter(fresh), others.free.filter(fresh)];
    const first = line.chosen[place] ? [button(t("menu.first"), () => this.#choose(line, place, null), item)] : [];
    /** @param {string} text */
    const choice = (text) =>
      button(different(said, text), () => this.#choose(line, place, text), { ...item, title: text });
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
    const { length } = line.told?.sentences ?? [];
    line.chosen = Array.from({ length }, (_, i) => (i === place ? text : (line.chosen[i] ?? null)));
    await this.app.words.chosen(line);
  }
}

const item = { class: "menu-item" };

/** What makes a wording another one: a space does not. @param {string} text */
const bare = (text) => text.replace(/\s/g, "");

/** A translation, with that marked in which it is not the other. @param {string} before @param {string} after */
function different(before, after) {
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
    lead.length > AROUND ? `\u2026${lead.slice(-AROUND).replace(/^[\p{Script=Latin}\d]+/u, "")}` : lead,
    h("b", after.slice(start, stop)),
    tail.length > AROUND ? `${tail.slice(0, AROUND).replace(/[\p{Script=Latin}\d]+$/u, "")}\u2026` : tail,
  );
}
