// A text line by line, each translated once: a line that is not changed is not asked for again.

const FIRST = 300; // characters asked for at once, so that the first lines stand soon
const MOST = 8000;
const KEPT = 3000; // lines that are remembered

/** A line of the text and what has been made of it. */
export class Line {
  /** @type {string | null} */
  made = null;
  /** @type {Told | null} */
  told = null; // its words, once somebody looks at it
  /** @type {{chosen: (string | null)[], told: Promise<Told>} | null} */
  asking = null; // the server, with what was chosen then
  /** @type {(string | null)[]} */
  chosen = []; // translations of sentences that the reader likes better
  silent = false; // whether its words cannot be told
  version = 0;

  /** @param {string} text @param {string} from @param {string} to */
  constructor(text, from, to) {
    this.text = text;
    this.from = from;
    this.to = to;
    if (!text.trim()) this.made = text;
  }

  /** Have its words told, with what was chosen. @param {import("./server.js").Server} server */
  async ask(server) {
    if (this.from === this.to || this.from === "auto" || !this.text.trim()) return;
    const { chosen } = this;
    if (this.asking?.chosen !== chosen) {
      const told = server.words(this.text, this.from, this.to, chosen).finally(() => {
        if (this.asking?.told === told) this.asking = null;
      });
      this.asking = { chosen, told };
    }
    const told = await this.asking.told;
    if (this.told === told || this.chosen !== chosen) return; // somebody has chosen another since
    this.told = told;
    this.made = told.target.join("");
    this.version++;
  }

  /** The sentence that a piece of the translation is in. @param {number} piece */
  sentenceAt(piece) {
    return this.told?.sentences.findIndex(({ target: [from, to] }) => from <= piece && piece < to) ?? -1;
  }
}

export class Lines {
  /** @type {Line[]} */
  now = [];
  /** @type {Map<string, Line>} */
  #known = new Map();

  /** @param {import("./server.js").Server} server */
  constructor(server) {
    this.server = server;
  }

  /** The lines of a text. @param {string} text @param {string} from @param {string} to */
  set(text, from, to) {
    if (this.#known.size > KEPT + this.now.length) {
      const now = new Set(this.now);
      this.#known = new Map([...this.#known].filter(([, line]) => now.has(line)));
    }
    this.now = text ? text.split("\n").map((one) => this.#line(one, from, to)) : [];
  }

  /** @param {string} text @param {string} from @param {string} to */
  #line(text, from, to) {
    const key = `${from} ${to} ${text}`;
    let line = this.#known.get(key);
    if (!line) {
      line = new Line(text, from, to);
      this.#known.set(key, line);
    }
    return line;
  }

  get all() {
    return this.now.filter((line) => line.text.trim()).length;
  }

  get done() {
    return this.now.filter((line) => line.text.trim() && line.made !== null).length;
  }

  /** The translation as far as it is there. */
  get text() {
    return this.now.map((line) => line.made ?? "").join("\n");
  }

  /** Translate what is missing, and tell after each part of it. @param {AbortSignal} signal @param {() => void} tell */
  async fetch(signal, tell) {
    let most = FIRST;
    for (;;) {
      /** @type {Line[]} */
      const batch = [];
      let size = 0;
      for (const line of new Set(this.now)) {
        if (line.made !== null || (size && size + line.text.length > most)) continue;
        batch.push(line);
        size += line.text.length;
        if (size >= most) break;
      }
      if (!batch.length) return;
      const [{ from, to }] = batch;
      const made = await this.server.translate(
        batch.map((line) => line.text),
        from,
        to,
        signal,
      );
      for (const [i, line] of batch.entries()) {
        line.made = made[i];
        line.version++;
      }
      most = Math.min(MOST, 2 * most);
      tell();
    }
  }
}
