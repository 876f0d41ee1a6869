// A text line by line. Each line is translated once: an unchanged line is not sent again.

const FIRST_BATCH = 300; // characters, so that the first lines come soon
const MAX_BATCH = 8000;
const CACHE_SIZE = 3000; // lines

/** A line of the text and its translation. */
export class Line {
  /** @type {string | null} */
  translation = null;
  /** @type {Alignment | null} */
  alignment = null; // loaded when the reader points at the line
  /** @type {{chosen: (string | null)[], alignment: Promise<Alignment>} | null} */
  pending = null; // the request for the alignment
  /** @type {(string | null)[]} */
  chosen = []; // translations of sentences that the reader prefers
  failed = false; // whether there is no alignment
  version = 0;

  /** @param {string} text @param {string} from @param {string} to */
  constructor(text, from, to) {
    this.text = text;
    this.from = from;
    this.to = to;
    if (!text.trim()) this.translation = text;
  }

  /** Load the alignment, with the chosen translations. @param {import("./server.js").Server} server */
  async align(server) {
    if (this.from === this.to || this.from === "auto" || !this.text.trim()) return;
    const { chosen } = this;
    if (this.pending?.chosen !== chosen) {
      const alignment = server.words(this.text, this.from, this.to, chosen).finally(() => {
        if (this.pending?.alignment === alignment) this.pending = null;
      });
      this.pending = { chosen, alignment };
    }
    const alignment = await this.pending.alignment;
    if (this.alignment === alignment || this.chosen !== chosen) return; // the reader has chosen another one since
    this.alignment = alignment;
    this.translation = alignment.target.join("");
    this.version++;
  }

  /** The index of the sentence that a piece of the translation is in. @param {number} piece */
  sentenceAt(piece) {
    return this.alignment?.sentences.findIndex(({ target: [from, to] }) => from <= piece && piece < to) ?? -1;
  }
}

export class Lines {
  /** @type {Line[]} */
  current = [];
  /** @type {Map<string, Line>} */
  #cache = new Map();

  /** @param {import("./server.js").Server} server */
  constructor(server) {
    this.server = server;
  }

  /** The lines of a text. @param {string} text @param {string} from @param {string} to */
  set(text, from, to) {
    if (this.#cache.size > CACHE_SIZE + this.current.length) {
      const current = new Set(this.current);
      this.#cache = new Map([...this.#cache].filter(([, line]) => current.has(line)));
    }
    this.current = (text ? text.split("\n") : []).map((one) => {
      const key = `${from} ${to} ${one}`;
      const line = this.#cache.get(key) ?? new Line(one, from, to);
      this.#cache.set(key, line);
      return line;
    });
  }

  get total() {
    return this.current.filter((line) => line.text.trim()).length;
  }

  get done() {
    return this.current.filter((line) => line.text.trim() && line.translation !== null).length;
  }

  /** The translation so far. */
  get text() {
    return this.current.map((line) => line.translation ?? "").join("\n");
  }

  /** Translate what is missing, in growing batches. @param {AbortSignal} signal @param {() => void} progress */
  async translate(signal, progress) {
    for (let limit = FIRST_BATCH; ; limit = Math.min(MAX_BATCH, 2 * limit)) {
      /** @type {Line[]} */
      const batch = [];
      let size = 0;
      for (const line of new Set(this.current)) {
        if (line.translation !== null || (size && size + line.text.length > limit)) continue;
        batch.push(line);
        size += line.text.length;
        if (size >= limit) break;
      }
      if (!batch.length) return;
      const [{ from, to }] = batch;
      const texts = batch.map((line) => line.text);
      const translations = await this.server.translate(texts, from, to, signal);
      for (const [i, line] of batch.entries()) {
        line.translation = translations[i];
        line.version++;
      }
      progress();
    }
  }
}
