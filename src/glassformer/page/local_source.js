// The model in this page: its graphs run in the browser, and each run has the manifest that the server would send.

import { BeamSearch, logProbabilities } from "./beam_search.js";
import { entriesOf, manifestOf } from "./manifest.js";
import { fetchFile, int64, loadGraphs, StepDecoder } from "./onnx.js";
import { Refusal } from "./request.js";
import { Run } from "./run.js";
import { Tokenizer } from "./tokenizer.js";

const KEPT = 8; // runs whose values stay in memory

/** The model that lies beside this page. */
export class LocalSource {
  /** @type {true} */
  live = true;
  /** @type {false} */
  server = false;
  /** @type {Promise<unknown>} */
  #queue = Promise.resolve();
  #count = 0;
  /** @type {Map<string, ArrayBuffer>} */
  #blobs = new Map();
  /** @type {Promise<ModelFile> | null} */
  #file = null;
  /** @type {Promise<{graphs: import("./onnx.js").Graphs, tokenizer: Tokenizer}> | null} */
  #model = null;

  /** @param {string} base  the folder that it lies in */
  constructor(base) {
    this.base = base;
  }

  #readFile() {
    this.#file ??= fetchFile(`${this.base}told.json`).then((answer) => answer.json());
    return this.#file;
  }

  #load() {
    this.#model ??= this.#readFile().then(async (file) => {
      return { graphs: await loadGraphs(this.base, file), tokenizer: new Tokenizer(file.text) };
    });
    return this.#model;
  }

  /** @returns {Promise<ServerFacts>} */
  async model() {
    void this.#load();
    return (await this.#readFile()).facts;
  }

  /**
   * One run; a later one waits for it, or is let go.
   * @param {State} state @param {AbortSignal} signal @returns {Promise<Answer>}
   */
  run(state, signal) {
    const answer = this.#queue.then(() => this.#run(state, signal));
    this.#queue = answer.catch(() => null);
    return answer;
  }

  /** @param {State} state @param {AbortSignal} signal @returns {Promise<Answer>} */
  async #run(state, signal) {
    signal.throwIfAborted();
    if (state.changes.length) throw new Refusal(0, "needs_server", "");
    const file = await this.#readFile();
    const { graphs, tokenizer } = await this.#load();
    const { decoder, facts } = file;
    const ids = tokenizer.encode(state.text);
    if (!state.text.trim() || !ids.length) throw new Refusal(0, "empty", "");
    if (ids.length > decoder.max_length)
      throw new Refusal(0, "long", "", "", { tokens: ids.length, limit: decoder.max_length });
    const limits = facts.limits ?? { beam: 1, padding: 0 };
    const beam = Math.min(state.beam, limits.beam);
    const padding = Math.min(state.padding, limits.padding);
    const source = [...ids, ...Array(padding).fill(decoder.pad)];
    const real = source.map((_, i) => (i < ids.length ? 1 : 0));
    const memory = await graphs.encode(source, real);
    const start = () => new StepDecoder(graphs, memory, real, decoder);
    const search = this.#search(file, ids.length, beam, state.prefix);
    const greedy = await this.#decode(search, start(), decoder.start, signal);
    const { chosen } = search;
    const finished = chosen.length > 0 && chosen.at(-1) === decoder.end;
    const forced = finished && decoder.force_end && chosen.length === search.limit;
    const reads = [decoder.start, ...chosen].slice(0, Math.max(1, chosen.length));
    const cached = beam > 1 ? await this.#readAgain(start(), reads, signal) : greedy;
    const values = await graphs.tracer.run({
      source: int64(graphs.ort, source, [1, source.length]),
      mask: int64(graphs.ort, real, [1, real.length]),
      target: int64(graphs.ort, reads, [1, reads.length]),
    });
    signal.throwIfAborted();
    const numbers = Object.fromEntries(file.values.map((name) => [name, values[name].data]));
    const size = decoder.vocab_size;
    const logits = reads.map((_, i) => numbers.logits.subarray(i * size, (i + 1) * size));
    const id = `browser-${++this.#count}`;
    const output = { chosen, finished, forced, reads };
    const { limit, selections } = search;
    const run = { id, ids: source, real, output, limit, beam, padding, logits, cached, selections };
    const { entries, blob } = entriesOf(file, numbers, { src: source.length, tgt: reads.length });
    const manifest = { ...manifestOf(file, tokenizer, state, run), tensors: entries };
    this.#blobs.set(id, blob);
    for (const old of [...this.#blobs.keys()].slice(0, -KEPT)) this.#blobs.delete(old);
    return { run: new Run(manifest, this, ""), before: null, difference: null };
  }

  /** @param {ModelFile} file @param {number} tokens   of the source @param {number} beam @param {number[]} prefix */
  #search({ decoder, rules }, tokens, beam, prefix) {
    const counted = Math.ceil(tokens / rules.stride) * rules.stride;
    const limit = Math.min(rules.growth * counted + rules.slack, decoder.max_length - 1);
    return new BeamSearch({ beam, limit, end: decoder.end, forceEnd: decoder.force_end, prefix });
  }

  /**
   * Search to its end; the logits of each step's best.
   * @param {BeamSearch} search @param {StepDecoder} stepDecoder @param {number} start @param {AbortSignal} signal
   */
  async #decode(search, stepDecoder, start, signal) {
    const best = [];
    let rows = await stepDecoder.step([start], [0]);
    while (search.running) {
      best.push(rows[0]);
      search.advance(rows.map(logProbabilities));
      if (!search.running) break;
      signal.throwIfAborted();
      const last = search.active.map(({ ids }) => /** @type {number} */ (ids.at(-1)));
      const from = search.active.map(({ parent }) => parent);
      rows = await stepDecoder.step(last, from);
    }
    return best;
  }

  /**
   * The output read once more, by steps with a cache.
   * @param {StepDecoder} stepDecoder @param {number[]} reads @param {AbortSignal} signal
   */
  async #readAgain(stepDecoder, reads, signal) {
    const rows = [];
    for (const token of reads) {
      signal.throwIfAborted();
      rows.push((await stepDecoder.step([token], [0]))[0]);
    }
    return rows;
  }

  /** @param {string} run @param {number} from @param {number} to */
  async values(run, from, to) {
    const blob = this.#blobs.get(run);
    if (!blob) throw new Refusal(404, "forgotten", "");
    return blob.slice(from, to);
  }

  /** @param {number} from @param {number} to */
  async weights(from, to) {
    const { graphs } = await this.#load();
    return graphs.weights.buffer.slice(from, to);
  }

  /** @param {string} _direction @param {Language} lang */
  async schematics(_direction, lang) {
    return (await this.#readFile()).schematics[lang];
  }
}
