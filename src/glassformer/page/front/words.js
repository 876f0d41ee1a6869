// Words that somebody points at: their partners on the other side, and the way to the views that show why.

import { t } from "./language.js";

const BEAM = 4; // of the server's translations, so that the views show the same search

export class Words {
  /** @param {Front} app */
  constructor(app) {
    this.app = app;
  }

  /** Have the words of a line told, and draw them. @param {number} i */
  async look(i) {
    const { lines, server, target } = this.app;
    const line = lines.now[i];
    if (!line || line.told || line.made === null || line.silent) return;
    try {
      await line.ask(server);
    } catch {
      line.silent = true; // it is translated all the same
    }
    target.draw();
  }

  /** Have a line told again, of which a sentence was chosen. @param {Line} line */
  async chosen(line) {
    const { app } = this;
    try {
      await line.ask(app.server);
    } catch (error) {
      app.fail(error);
    }
    app.copied = false;
    app.draw();
    this.light(app.target.cursor);
  }

  /** Light a word and its partners on both sides. @param {WordAt | null} at @param {"source" | "target"} [side] */
  light(at, side = "target") {
    const { lines, source, target } = this.app;
    const told = at && lines.now[at.line]?.told;
    if (!told) {
      target.light([], null);
      return source.mark([]);
    }
    const mine = side === "source" ? 0 : 1;
    const partners = told.links.filter((link) => link[mine] === at.piece).map((link) => link[1 - mine]);
    const [sources, targets] = mine ? [partners, [at.piece]] : [partners.length ? [at.piece] : [], partners];
    let start = lines.now.slice(0, at.line).reduce((sum, line) => sum + line.text.length + 1, 0);
    /** @type {[number, number][]} */
    const spans = [];
    for (const [i, piece] of told.source.entries()) {
      if (sources.includes(i)) spans.push([start, start + piece.length]);
      start += piece.length;
    }
    source.mark(spans);
    target.light(
      targets.map((piece) => ({ line: at.line, piece })),
      mine ? at : null,
    );
  }

  /** Tell someone who does not see it which word it is and where it comes from. @param {WordAt} at */
  say({ line, piece }) {
    const told = this.app.lines.now[line]?.told;
    if (!told) return;
    const from = told.links.filter((link) => link[1] === piece).map((link) => told.source[link[0]]);
    this.app.say([told.target[piece], from.length ? t("word.from", { words: from.join(", ") }) : ""].join(" "));
  }

  /** The address that opens a sentence in the views. @param {{direction: string, text: string}} step */
  address({ direction, text }) {
    const { state, lang } = this.app;
    const given = { text, direction, beam: BEAM, lang: lang === "zh" ? "zh" : "en", theme: state.theme };
    const pairs = Object.entries(given).filter(([, value]) => value);
    return `look#${pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`;
  }

  /** Open the sentence that is looked at, or the first, in the views. */
  async inside() {
    const { lines, target } = this.app;
    const { cursor } = target;
    const at = cursor?.line ?? lines.now.findIndex((line) => line.text.trim());
    await this.look(at);
    const line = lines.now[at];
    const sentence = line?.told?.sentences[Math.max(0, cursor ? line.sentenceAt(cursor.piece) : 0)];
    location.assign(sentence ? this.address(sentence.steps[0]) : "look");
  }
}
