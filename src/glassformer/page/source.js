// Where the numbers come from: the server, a range of bytes at a time, or the file that this page was exported to.

/**
 * @typedef {{name: string, shape: number[], axes: string[], op: Object<string, any>, formula: string,
 *            inputs: string[], offset: number, bytes: number, low: number|null, high: number|null}} Entry
 */

const GAP = 16384; // bytes that are cheaper to read along than to ask for again

/** What the server says when it refuses, or what kept it from answering. */
export class Refusal extends Error {
  constructor(status, code, message, hint, values = {}) {
    super(message);
    Object.assign(this, { status, code, hint, values });
  }
}

async function ask(address, options = {}) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "offline", "The server does not answer.", "");
  }
  if (answer.ok) return answer;
  let said = {};
  try {
    said = (await answer.json()).error ?? {};
  } catch {
    // Not ours: a proxy's page, say. The status has to do.
  }
  throw new Refusal(
    answer.status,
    said.code ?? "",
    said.message ?? `HTTP ${answer.status}`,
    said.hint ?? "",
    said.values,
  );
}

function post(address, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return ask(address, { method: "POST", headers, body: JSON.stringify(body), signal }).then((answer) => answer.json());
}

async function bytes(address, from, to) {
  const answer = await ask(address, { headers: { Range: `bytes=${from}-${to - 1}` } });
  const buffer = await answer.arrayBuffer();
  return answer.status === 206 ? buffer : buffer.slice(from, to);
}

/** The server that this page came from. */
export class Server {
  live = true;

  model() {
    return ask("api/model").then((answer) => answer.json());
  }

  /** One run, or with changes the run before them too. */
  async run(state, signal) {
    const asked = { text: state.text, beam: state.beam, padding: state.padding };
    if (state.changes.length === 0) {
      const manifest = await post("api/trace", { ...asked, prefix: state.prefix }, signal);
      return { run: new Run(manifest, this), before: null, difference: null };
    }
    const changes = state.prefix.length ? [...state.changes, { kind: "prefix", ids: state.prefix }] : state.changes;
    const found = await post("api/whatif", { ...asked, changes }, signal);
    const notes = { notes: found.notes, capped: found.capped };
    return {
      run: new Run({ ...found.after, ...notes }, this),
      before: new Run(found.before, this),
      difference: found.difference,
    };
  }

  async values(run, from, to) {
    try {
      return await bytes(`api/runs/${run}/blob`, from, to);
    } catch (refusal) {
      if (refusal.status === 404) throw new Refusal(404, "forgotten", refusal.message, refusal.hint);
      throw refusal;
    }
  }

  weights(from, to) {
    return bytes("api/weights", from, to);
  }

  labs(lang) {
    return ask(`api/labs?lang=${lang}`).then((answer) => answer.json());
  }

  /** What a lab found; the server runs it if it has not yet. */
  async lab(name, seed, lang) {
    const { running } = await this.labs(lang);
    // Asked for all the same it would refuse, and a refusal is an error in the browser's console.
    if (running && (running.name !== name || running.seed !== seed))
      throw new Refusal(409, "lab_busy", "", "", running);
    return post(`api/labs/${name}`, { seed, lang });
  }

  exported(run, kind) {
    return `api/runs/${run}/${kind}`;
  }
}

function decode(base64) {
  const text = atob(base64);
  const found = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) found[i] = text.charCodeAt(i);
  return found.buffer;
}

/** One run inside the page's own file. */
export class Embedded {
  live = false;

  constructor({ manifest, blob, weights }) {
    this.manifest = typeof manifest === "string" ? JSON.parse(manifest) : manifest;
    this.blob = decode(blob);
    this.stored = weights ? decode(weights) : null;
  }

  async model() {
    const { model, weights, about } = this.manifest;
    return { model, weights, about, limits: null, examples: [], version: "" };
  }

  async run() {
    return { run: new Run(this.manifest, this), before: null, difference: null };
  }

  async values(_run, from, to) {
    return this.blob.slice(from, to);
  }

  async weights(from, to) {
    if (!this.stored) throw new Refusal(0, "no_weights", "This file holds no weights.", "");
    return this.stored.slice(from, to);
  }
}

/** A manifest, and those of its values that have been asked for. */
export class Run {
  #loaded = new Map(); // by offset: an alias shares the values it stands for
  #rows = new Map();

  constructor(manifest, source) {
    this.manifest = manifest;
    this.source = source;
    this.id = manifest.run;
    /** @type {Map<string, Entry>} */
    this.entries = new Map(manifest.tensors.map((entry) => [entry.name, entry]));
    this.weightEntries = new Map((manifest.weights ?? []).map((entry) => [entry.name, entry]));
  }

  has(name) {
    return this.entries.has(name);
  }

  entry(name) {
    const entry = this.entries.get(name);
    if (!entry) throw new Error(`no value is called ${name}`);
    return entry;
  }

  /** Load the values so named, neighbours in one request. */
  async need(names) {
    const missing = [...new Set(names)]
      .map((name) => this.entry(name))
      .filter((entry) => !this.#loaded.has(`${entry.offset}:${entry.bytes}`))
      .sort((a, b) => a.offset - b.offset);
    const spans = [];
    for (const entry of missing) {
      const last = spans.at(-1);
      if (last && entry.offset <= last.to + GAP) {
        last.to = Math.max(last.to, entry.offset + entry.bytes);
        last.entries.push(entry);
      } else {
        spans.push({ from: entry.offset, to: entry.offset + entry.bytes, entries: [entry] });
      }
    }
    await Promise.all(
      spans.map(async ({ from, to, entries }) => {
        const buffer = to > from ? await this.source.values(this.id, from, to) : new ArrayBuffer(0);
        for (const entry of entries) {
          const start = entry.offset - from;
          this.#loaded.set(
            `${entry.offset}:${entry.bytes}`,
            new Float32Array(buffer.slice(start, start + entry.bytes)),
          );
        }
      }),
    );
  }

  /** The values of a tensor that has been loaded. @returns {Float32Array} */
  values(name) {
    const entry = this.entry(name);
    const found = this.#loaded.get(`${entry.offset}:${entry.bytes}`);
    if (!found) throw new Error(`${name} has not been loaded`);
    return found;
  }

  isLoaded(name) {
    const entry = this.entry(name);
    return this.#loaded.has(`${entry.offset}:${entry.bytes}`);
  }

  /** Rows `from` to `to` of a weight; of a vector, its numbers. */
  async weight(name, from = 0, to = null) {
    const entry = this.weightEntries.get(name);
    if (!entry) throw new Error(`no weight is called ${name}`);
    const width = entry.shape.slice(1).reduce((a, b) => a * b, 1);
    const last = to ?? entry.shape[0];
    const key = `${name}:${from}:${last}`;
    if (!this.#rows.has(key)) {
      if (this.#rows.size > 2000) this.#rows.clear();
      const start = entry.offset + 4 * width * from;
      const found = this.source
        .weights(start, entry.offset + 4 * width * last)
        .then((buffer) => new Float32Array(buffer));
      found.catch(() => this.#rows.delete(key));
      this.#rows.set(key, found);
    }
    return this.#rows.get(key);
  }
}

/** The numbers' home: inside this file, if it is an exported one, else the server. */
export function findSource() {
  return window.GLASSFORMER_EMBEDDED ? new Embedded(window.GLASSFORMER_EMBEDDED) : new Server();
}
