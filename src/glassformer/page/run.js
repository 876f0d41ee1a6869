// One run of the model: its manifest, and those of its values and weights that have been loaded.

const GAP = 16384; // bytes that are cheaper to read along than to ask for again

/** The place of an entry's values; an alias has that of the value it stands for. @param {Entry} entry */
const placeOf = ({ offset, bytes }) => `${offset}:${bytes}`;

/** A manifest, and those of its values that have been asked for. */
export class Run {
  /** @type {Map<string, Float32Array>} */
  #loaded = new Map(); // by place
  /** @type {Map<string, Promise<Float32Array>>} */
  #rows = new Map();

  /** @param {Manifest} manifest @param {Source} source @param {string} direction  whose model made it */
  constructor(manifest, source, direction) {
    this.manifest = manifest;
    this.source = source;
    this.direction = direction;
    this.id = manifest.run;
    this.entries = new Map(manifest.tensors.map((entry) => [entry.name, entry]));
    this.weightEntries = new Map(manifest.weights.map((entry) => [entry.name, entry]));
  }

  /** @param {string} name */
  has(name) {
    return this.entries.has(name);
  }

  /** @param {string} name */
  entry(name) {
    const entry = this.entries.get(name);
    if (!entry) throw new Error(`no value is called ${name}`);
    return entry;
  }

  /** Load the values so named, neighbours in one request. @param {string[]} names */
  async need(names) {
    const missing = [...new Set(names)].filter((name) => !this.isLoaded(name)).map((name) => this.entry(name));
    /** @type {{from: number, to: number, entries: Entry[]}[]} */
    const spans = [];
    for (const entry of missing.sort((a, b) => a.offset - b.offset)) {
      const last = spans.at(-1);
      if (last && entry.offset <= last.to + GAP) {
        last.to = Math.max(last.to, entry.offset + entry.bytes);
        last.entries.push(entry);
      } else {
        spans.push({ from: entry.offset, to: entry.offset + entry.bytes, entries: [entry] });
      }
    }
    const load = async (/** @type {typeof spans[0]} */ { from, to, entries }) => {
      const buffer = to > from ? await this.source.values(this.id, from, to) : new ArrayBuffer(0);
      for (const entry of entries) {
        const start = entry.offset - from;
        this.#loaded.set(placeOf(entry), new Float32Array(buffer.slice(start, start + entry.bytes)));
      }
    };
    await Promise.all(spans.map(load));
  }

  /** The values of a tensor that has been loaded. @param {string} name */
  values(name) {
    const values = this.#loaded.get(placeOf(this.entry(name)));
    if (!values) throw new Error(`${name} has not been loaded`);
    return values;
  }

  /** @param {string} name */
  isLoaded(name) {
    return this.#loaded.has(placeOf(this.entry(name)));
  }

  /**
   * Rows `from` to `to` of a weight; of a vector, its numbers.
   * @param {string} name @param {number} [from] @param {number} [to]
   */
  async weight(name, from = 0, to) {
    const entry = this.weightEntries.get(name);
    if (!entry) throw new Error(`no weight is called ${name}`);
    const width = 4 * entry.shape.slice(1).reduce((a, b) => a * b, 1);
    const last = to ?? entry.shape[0];
    const key = `${name}:${from}:${last}`;
    let rows = this.#rows.get(key);
    if (!rows) {
      if (this.#rows.size > 2000) this.#rows.clear();
      const { offset } = entry;
      const buffer = this.source.weights(offset + width * from, offset + width * last, this.direction);
      rows = buffer.then((held) => new Float32Array(held));
      rows.catch(() => this.#rows.delete(key));
      this.#rows.set(key, rows);
    }
    return rows;
  }
}
