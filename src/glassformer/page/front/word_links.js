// Words that the reader points at: their partners on the other side, and the way into the views of the model.

import { t } from "./language.js";
import { toHash } from "./state.js";

const BEAM = 4; // as for the server's translations, so that the views show the same search

export class WordLinks {
  /** @param {TranslatePage} app */
  constructor(app) {
    this.app = app;
  }

  /** Load the words of a line, and draw them. @param {number} i */
  async load(i) {
    const { lines, server, target } = this.app;
    const line = lines.current[i];
    if (!line || line.alignment || line.translation === null || line.failed) return;
    try {
      await line.align(server);
    } catch {
      line.failed = true; // the translation stays
    }
    target.draw();
  }

  /** Load a line again after a choice. @param {Line} line */
  async reload(line) {
    const { app } = this;
    try {
      await line.align(app.server);
    } catch (error) {
      app.fail(error);
    }
    app.copied = false;
    app.draw();
    this.highlight(app.target.cursor);
  }

  /** A word and its partners on both sides. @param {WordPlace | null} at @param {"source" | "target"} [side] */
  highlight(at, side = "target") {
    const { lines, source, target } = this.app;
    const alignment = at && lines.current[at.line]?.alignment;
    if (!alignment) {
      target.highlight([], null);
      return source.highlight([]);
    }
    const own = side === "source" ? 0 : 1;
    const partners = alignment.links.filter((link) => link[own] === at.piece).map((link) => link[1 - own]);
    const [sources, targets] = own ? [partners, [at.piece]] : [partners.length ? [at.piece] : [], partners];
    let start = lines.current.slice(0, at.line).reduce((sum, line) => sum + line.text.length + 1, 0);
    /** @type {[number, number][]} */
    const spans = [];
    for (const [i, piece] of alignment.source.entries()) {
      if (sources.includes(i)) spans.push([start, start + piece.length]);
      start += piece.length;
    }
    source.highlight(spans);
    const places = targets.map((piece) => ({ line: at.line, piece }));
    target.highlight(places, own ? at : null);
  }

  /** Tell a screen reader the word and its source. @param {WordPlace} at */
  announce({ line, piece }) {
    const alignment = this.app.lines.current[line]?.alignment;
    if (!alignment) return;
    const from = alignment.links.filter((link) => link[1] === piece).map((link) => alignment.source[link[0]]);
    const doubted = alignment.sentences.some(({ doubts }) => doubts.includes(piece));
    const says = [from.length ? t("word.from", { words: from.join(", ") }) : "", doubted ? t("word.doubted") : ""];
    this.app.announce([alignment.target[piece], ...says.filter(Boolean)].join(" "));
  }

  /** The address of a sentence in the views of the model. @param {{direction: string, text: string}} step */
  lookAddress({ direction, text }) {
    const { state, lang } = this.app;
    const given = { text, direction, beam: BEAM, lang: lang === "zh" ? "zh" : "en", theme: state.theme };
    return `look#${toHash(given)}`;
  }

  /** Open the sentence at the cursor, or the first one, in the views of the model. */
  async openLook() {
    const { lines, target } = this.app;
    const { cursor } = target;
    const at = cursor?.line ?? lines.current.findIndex((line) => line.text.trim());
    await this.load(at);
    const line = lines.current[at];
    const sentence = line?.alignment?.sentences[Math.max(0, cursor ? line.sentenceAt(cursor.piece) : 0)];
    location.assign(sentence ? this.lookAddress(sentence.steps[0]) : "look");
  }
}
