// Text to pieces and back, as glassformer.data does it; tests hold both to the same ids.

const SCRIPTS = ["Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"];
const UNSPACED = SCRIPTS.map((script) => `\\p{Script=${script}}`).join("");
const SPACE = "\\t\\n\\v\\f\\r\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const RESERVED = 4; // ids of padding, start, end and unknown
const FIRST_BYTE = "<0x00>";
/** @type {Record<string, string>} */
const DRAWN = { " ": "▁", "\n": "\\n", "\t": "\\t", "\r": "\\r" };

/** Where a text may be cut: a word with the space before it, a digit, a run of one sign. @param {string} marks */
function pattern(marks) {
  const parts = [
    `\\x20?(?:(?![${UNSPACED}])[\\p{L}\\p{M}]){1,64}`,
    `\\x20?[${UNSPACED}]{1,16}`,
    "(?<=\\p{L})['’]\\p{L}{1,2}(?!\\p{L})",
    "\\x20?\\p{N}",
    `\\x20?([^${SPACE}\\p{L}\\p{M}\\p{N}${marks}])\\1{0,15}`,
    `[${SPACE}]`,
  ];
  return new RegExp((marks ? [`[${marks}]`, ...parts] : parts).join("|"), "gu");
}

/** One vocabulary. */
class Vocabulary {
  /** @type {Map<string, number[]>} */
  #cache = new Map();

  /** @param {VocabularyFile} file */
  constructor(file) {
    this.pieces = file.pieces;
    this.ids = new Map(file.pieces.map((piece, id) => [piece, id]));
    this.scores = file.scores ?? null;
    this.ranks = new Map((file.merges ?? []).map(([left, right], rank) => [`${left}\0${right}`, rank]));
    this.pattern = pattern(file.marks);
    this.special = new Set([0, 1, 2, ...file.tags]);
    this.bytes = this.ids.get(FIRST_BYTE) ?? 0;
    this.longest = Math.max(...file.pieces.map((piece) => piece.length));
    this.least = Math.min(...(this.scores ?? [0]));
  }

  /** @param {string} text */
  encode(text) {
    if (!text) return [];
    const whole = text.replace(/\p{Cs}/gu, "\ufffd"); // half of a surrogate pair is no text
    return whole.split(" ").flatMap((word) => this.#word(word));
  }

  /** @param {string} word */
  #word(word) {
    let ids = this.#cache.get(word);
    if (!ids) {
      ids = this.#split(` ${word}`).flatMap((part) => (this.scores ? this.#unigram(part) : this.#bytePairs(part)));
      this.#cache.set(word, ids);
    }
    return ids;
  }

  /** @param {string} text */
  #split(text) {
    const parts = [];
    let at = 0;
    for (const match of text.matchAll(this.pattern)) {
      if (match.index > at) parts.push(text.slice(at, match.index));
      parts.push(match[0]);
      at = match.index + match[0].length;
    }
    if (at < text.length) parts.push(text.slice(at));
    return parts;
  }

  /** The ids of a character's bytes. @param {string} character */
  #byteIds(character) {
    return Array.from(new TextEncoder().encode(character), (byte) => this.bytes + byte);
  }

  /** Byte-pair encoding: the earliest learnt pair is merged first. @param {string} part */
  #bytePairs(part) {
    const pieces = Array.from(part).flatMap((one) =>
      this.ids.has(one) ? [one] : this.#byteIds(one).map((id) => this.pieces[id]),
    );
    for (;;) {
      let best = Infinity;
      let place = -1;
      for (let i = 0; i + 1 < pieces.length; i++) {
        const rank = this.ranks.get(`${pieces[i]}\0${pieces[i + 1]}`) ?? Infinity;
        if (rank < best) [best, place] = [rank, i];
      }
      if (place < 0) break;
      pieces.splice(place, 2, pieces[place] + pieces[place + 1]);
    }
    return pieces.map((piece) => this.ids.get(piece) ?? RESERVED - 1);
  }

  /** Unigram: the cut whose pieces are together the likeliest. @param {string} part */
  #unigram(part) {
    const scores = /** @type {number[]} */ (this.scores);
    /** @type {{score: number, from: number, id: number}[]} */
    const best = [{ score: 0, from: 0, id: -1 }];
    for (let end = 1; end <= part.length; end++) best.push({ score: -Infinity, from: 0, id: -1 });
    for (let at = 0; at < part.length; at++) {
      if (best[at].score === -Infinity) continue;
      const character = String.fromCodePoint(/** @type {number} */ (part.codePointAt(at)));
      let single = false;
      for (let end = at + 1; end <= Math.min(part.length, at + this.longest); end++) {
        const id = this.ids.get(part.slice(at, end));
        if (id === undefined) continue;
        const score = best[at].score + scores[id];
        if (end === at + character.length) single = true;
        if (score > best[end].score) best[end] = { score, from: at, id };
      }
      const next = at + character.length;
      const unknown = best[at].score + this.least - 10; // what the library charges for a character it does not know
      if (!single && unknown > best[next].score) best[next] = { score: unknown, from: at, id: -1 };
    }
    /** @type {number[]} */
    const ids = [];
    for (let at = part.length; at > 0; at = best[at].from) {
      const { from, id } = best[at];
      ids.unshift(...(id < 0 ? this.#byteIds(part.slice(from, at)) : [id]));
    }
    return ids;
  }

  /** @param {number[]} ids */
  decode(ids) {
    const encoder = new TextEncoder();
    /** @type {number[]} */
    const bytes = [];
    for (const id of ids) {
      if (this.special.has(id)) continue;
      if (id >= this.bytes && id < this.bytes + 256) bytes.push(id - this.bytes);
      else bytes.push(...encoder.encode(this.pieces[id]));
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(bytes)).replace(/^ /, "");
  }

  /** Pieces to look at. @param {number[]} ids */
  readable(ids) {
    return ids.map((id) => this.pieces[id].replace(/[ \n\t\r]/g, (sign) => DRAWN[sign]));
  }
}

const SINGLE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff";
const LETTER = `(?![${SINGLE}])[\\p{L}\\p{Nl}\\p{No}]`;
const WORD = new RegExp(`[${SINGLE}]|(?:${LETTER})+(?:['’](?:${LETTER})+)*`, "gu");

/** Both sides of a model's text. */
export class Tokenizer {
  /** @param {ModelFile["text"]} file */
  constructor({ sides, first, words }) {
    this.source = new Vocabulary(sides[0]);
    this.target = sides.length > 1 ? new Vocabulary(sides[1]) : this.source;
    this.first = first;
    this.words = new Set(words);
  }

  /** @param {string} text */
  encode(text) {
    const ids = this.source.encode(text);
    return ids.length ? [...this.first, ...ids] : ids;
  }

  /** The words that training never met, each once. @param {string} text */
  unfamiliar(text) {
    /** @type {Map<string, string>} */
    const found = new Map();
    if (!this.words.size) return [];
    for (const [word] of text.matchAll(WORD)) {
      const folded = word.toUpperCase().toLowerCase().replaceAll("ς", "σ"); // as near as a browser comes to folding
      if (!found.has(folded)) found.set(folded, word);
    }
    return [...found].filter(([folded]) => !this.words.has(folded)).map(([, word]) => word);
  }
}
