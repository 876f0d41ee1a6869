// The model in this page: its graphs run in the browser, and each run is told as the server would tell it.

import { logProbabilities, Search } from "./beam_search.js";
import { cacheOf, entriesOf, stepsOf, treeOf } from "./manifest.js";
import { fetched, Graphs, Writer, whole } from "./onnx.js";
import { Refusal } from "./request.js";
import { Run } from "./run.js";
import { Text } from "./tokenizer.js";

const KEPT = 8; // runs whose values stay in memory

/** The model that lies beside this page. */
export class LocalSource {
  /** @type {true} */
  live = true;
  /** @type {false} */
  server = false;
  /** @type {Promise<unknown>} */
  #turn = Promise.resolve();
  #count = 0;
  /** @type {Map<string, ArrayBuffer>} */
  #blobs = new Map();
  /** @type {Promise<Told> | null} */
  #told = null;
  /** @type {Promise<{graphs: Graphs, text: Text}> | null} */
  #ready = null;

  /** @param {string} base  the folder that it lies in */
  constructor(base) {
    this.base = base;
  }

  #facts() {
    this.#told ??= fetched(`${this.base}told.json`).then((answer) => answer.json());
    return this.#told;
  }

  #load() {
    this.#ready ??= this.#facts().then(async (told) => {
      return { graphs: await Graphs.load(this.base, told), text: new Text(told.text) };
    });
    return this.#ready;
  }

  /** @returns {Promise<ServerFacts>} */
  async model() {
    void this.#load();
    return (await this.#facts()).facts;
  }

  /**
   * One run; a later one waits for it, or is let go.
   * @param {State} state
   * @param {AbortSignal} signal
   * @returns {Promise<Answer>}
   */
  run(state, signal) {
    const answer = this.#turn.then(() => this.#run(state, signal));
    this.#turn = answer.catch(() => null);
    return answer;
  }

  /** @param {State} state @param {AbortSignal} signal @returns {Promise<Answer>} */
  async #run(state, signal) {
    signal.throwIfAborted();
    if (state.changes.length) throw new Refusal(0, "needs_server", "");
    const told = await this.#facts();
    const { graphs, text } = await this.#load();
    const { decoder, rules, facts } = told;
    const ids = text.encode(state.text);
    if (!state.text.trim() || !ids.length) throw new Refusal(0, "empty", "");
    if (ids.length > decoder.max_length)
      throw new Refusal(0, "long", "", "", { tokens: ids.length, limit: decoder.max_length });
    const most = facts.limits ?? { beam: 1, padding: 0 };
    const beam = Math.min(state.beam, most.beam);
    const padding = Math.min(state.padding, most.padding);
    const source = [...ids, ...Array(padding).fill(decoder.pad)];
    const real = source.map((_, i) => (i < ids.length ? 1 : 0));
    const counted = Math.ceil(ids.length / rules.stride) * rules.stride;
    const limit = Math.min(rules.growth * counted + rules.slack, decoder.max_length - 1);
    const { end, force_end: forceEnd } = decoder;
    const search = new Search({ beam, limit, end, forceEnd, prefix: state.prefix });
    const writer = await Writer.begin(graphs, source, real, decoder);
    /** @type {Float32Array[]} */
    let cached = [];
    let said = await writer.say([decoder.start], [0]);
    while (search.going) {
      cached.push(said[0]);
      search.advance(said.map(logProbabilities));
      if (!search.going) break;
      signal.throwIfAborted();
      const rows = search.kept;
      said = await writer.say(
        rows.map((row) => /** @type {number} */ (row.ids.at(-1))),
        rows.map((row) => row.parent),
      );
    }
    const { chosen } = search;
    const finished = chosen.length > 0 && chosen.at(-1) === end;
    const forced = finished && forceEnd && chosen.length === limit;
    const reads = [decoder.start, ...chosen].slice(0, Math.max(1, chosen.length));
    const written = { chosen, finished, forced, reads };
    if (beam > 1) cached = await this.#again(graphs, source, real, decoder, reads, signal);
    const { ort } = graphs;
    const values = await graphs.traced.run({
      source: whole(ort, source, [1, source.length]),
      mask: whole(ort, real, [1, real.length]),
      target: whole(ort, reads, [1, reads.length]),
    });
    signal.throwIfAborted();
    const numbers = Object.fromEntries(told.values.map((name) => [name, values[name].data]));
    const size = decoder.vocab_size;
    const logits = reads.map((_, i) => numbers.logits.subarray(i * size, (i + 1) * size));
    const manifest = this.#manifest(told, text, { ids: source, real, written, limit, beam, padding }, state, {
      logits,
      cached,
      selections: beam > 1 ? search.selections : [],
    });
    const { entries, blob } = entriesOf(told, numbers, { src: source.length, tgt: reads.length });
    manifest.tensors = entries;
    this.#blobs.set(manifest.run, blob);
    for (const old of [...this.#blobs.keys()].slice(0, -KEPT)) this.#blobs.delete(old);
    return { run: new Run(manifest, this, ""), before: null, difference: null };
  }

  /**
   * The output read once more, by steps with a cache.
   * @param {Graphs} graphs
   * @param {number[]} source
   * @param {number[]} real
   * @param {Told["decoder"]} decoder
   * @param {number[]} reads
   * @param {AbortSignal} signal
   */
  async #again(graphs, source, real, decoder, reads, signal) {
    const writer = await Writer.begin(graphs, source, real, decoder);
    const rows = [];
    for (const token of reads) {
      signal.throwIfAborted();
      rows.push((await writer.say([token], [0]))[0]);
    }
    return rows;
  }

  /**
   * @param {Told} told
   * @param {Text} text
   * @param {{ids: number[], real: number[], written: Written, limit: number, beam: number, padding: number}} made
   * @param {State} state
   * @param {{logits: Float32Array[], cached: Float32Array[], selections: Selected[][]}} seen
   * @returns {Manifest}
   */
  #manifest(told, text, { ids, real, written, limit, beam, padding }, state, { logits, cached, selections }) {
    const { decoder, rules, facts } = told;
    const pieces = (/** @type {number[]} */ some) => text.target.readable(some);
    const rows = logits.map(logProbabilities);
    const steps = stepsOf(rows, written, pieces, rules.top);
    const said = written.finished ? written.chosen.slice(0, -1) : written.chosen;
    const score = steps.length ? steps[steps.length - 1].total / steps.length : null;
    const tree = { size: beam, start: decoder.start, runnersUp: rules.runners_up, rule: rules.rule };
    /** @type {Manifest["capped"]} */
    const capped = {};
    if (beam < state.beam) capped.beam = { asked: state.beam, used: beam };
    if (padding < state.padding) capped.padding = { asked: state.padding, used: padding };
    return {
      run: `browser-${++this.#count}`,
      model: facts.model,
      options: { beam, length_penalty: 1, max_new_tokens: limit, padding, temperature: 1, prefix: state.prefix },
      changes: [],
      text: state.text,
      about: facts.about,
      unfamiliar: text.unfamiliar(state.text),
      source: { ids, pieces: text.source.readable(ids), real: real.map(Boolean), tag: told.tag },
      target: { ids: written.reads, pieces: pieces(written.reads) },
      output: {
        ids: said,
        pieces: pieces(said),
        text: text.target.decode(said),
        score,
        finished: written.finished && !written.forced,
      },
      tensors: [],
      weights: told.weights,
      steps,
      answer: null,
      one_pass: true,
      beam: treeOf(rows, written, selections, pieces, tree),
      cache: cacheOf(told, logits, cached, ids.length),
      masks: told.masks,
      capped,
    };
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
    return (await this.#facts()).schematics[lang];
  }
}
