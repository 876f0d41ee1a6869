// The manifest of a run in the browser, as glassformer.explain writes it: steps, beam, cache, values.

import { highest, logProbabilities } from "./beam_search.js";

/**
 * All of a manifest but its tensors: `entriesOf` has those.
 * @param {ModelFile} file @param {import("./tokenizer.js").Tokenizer} tokenizer @param {State} state
 * @param {LocalRun} run @returns {Manifest}
 */
export function manifestOf(file, tokenizer, state, run) {
  const { facts } = file;
  const { ids, real, output, limit, beam, padding } = run;
  const pieces = (/** @type {number[]} */ some) => tokenizer.target.readable(some);
  const rows = run.logits.map(logProbabilities);
  const steps = stepsOf(rows, output, pieces, file.rules.top);
  const written = output.finished ? output.chosen.slice(0, -1) : output.chosen;
  const score = steps.length ? steps[steps.length - 1].total / steps.length : null;
  /** @type {Manifest["capped"]} */
  const capped = {};
  if (beam < state.beam) capped.beam = { asked: state.beam, used: beam };
  if (padding < state.padding) capped.padding = { asked: state.padding, used: padding };
  return {
    run: run.id,
    model: facts.model,
    options: { beam, length_penalty: 1, max_new_tokens: limit, padding, temperature: 1, prefix: state.prefix },
    changes: [],
    text: state.text,
    about: facts.about,
    unfamiliar: tokenizer.unfamiliar(state.text),
    source: { ids, pieces: tokenizer.source.readable(ids), real: real.map(Boolean), tag: file.tag },
    target: { ids: output.reads, pieces: pieces(output.reads) },
    output: {
      ids: written,
      pieces: pieces(written),
      text: tokenizer.target.decode(written),
      score,
      finished: output.finished && !output.forced,
    },
    tensors: [],
    weights: file.weights,
    steps,
    answer: null,
    one_pass: true,
    beam: treeOf(file, rows, run, pieces),
    cache: cacheOf(file, run),
    masks: file.masks,
    capped,
  };
}

/**
 * The log-probability of each token written; an end that was forced costs nothing.
 * @param {Float64Array[]} rows @param {DecodedTokens} output
 */
function tokenLogProbabilities(rows, { chosen, forced }) {
  return chosen.map((token, step) => (forced && step === chosen.length - 1 ? 0 : rows[step][token]));
}

/**
 * @param {Float64Array[]} rows @param {DecodedTokens} output @param {(ids: number[]) => string[]} pieces
 * @param {number} top
 */
function stepsOf(rows, output, pieces, top) {
  const reads = pieces(output.reads);
  let total = 0;
  return tokenLogProbabilities(rows, output).map((own, step) => {
    total += own;
    const ids = highest(rows[step], top);
    const shown = pieces(ids);
    return {
      step,
      reads: reads[step],
      top: ids.map((id, i) => {
        const value = rows[step][id];
        return { id, piece: shown[i], probability: Math.exp(value), log_probability: value };
      }),
      chosen: output.chosen[step],
      piece: pieces([output.chosen[step]])[0],
      chosen_log_probability: own,
      total,
      forced: output.forced && step === output.chosen.length - 1,
    };
  });
}

/**
 * The candidates of a greedy search, as a beam has them: the token written, and those that came next.
 * @param {Float64Array[]} rows @param {DecodedTokens} output @param {number} runnersUp @returns {BeamCandidate[][]}
 */
function greedyCandidates(rows, { chosen, finished }, runnersUp) {
  return chosen.map((token, step) => {
    const ends = finished && step === chosen.length - 1;
    const others = highest(rows[step], runnersUp + 1).filter((id) => id !== token);
    return [token, ...others.slice(0, runnersUp)].map((id, i) => {
      return { parent: 0, token: id, total: 0, finished: ends && i === 0, slot: i || ends ? -1 : 0 };
    });
  });
}

/**
 * The tree of hypotheses: what the search kept, finished and pruned.
 * @param {ModelFile} file @param {Float64Array[]} rows @param {LocalRun} run
 * @param {(ids: number[]) => string[]} pieces
 */
function treeOf({ decoder, rules }, rows, { output, beam, selections }, pieces) {
  const own = tokenLogProbabilities(rows, output);
  /** @type {(BeamNode & {log_probability: number})[]} */
  const nodes = [];
  /** @type {(parent: number | null, step: number, token: number, total: number, state: BeamNode["state"]) => number} */
  const grow = (parent, step, token, total, state) => {
    const id = nodes.length;
    const log_probability = total - (parent === null ? 0 : nodes[parent].total);
    const score = step >= 0 ? total / (step + 1) : 0;
    const [piece] = pieces([token]);
    nodes.push({ id, parent, step, token, piece, log_probability, total, score, state, winner: false });
    return id;
  };
  grow(null, -1, decoder.start, 0, "kept");
  let slots = new Map([[0, 0]]); // the node of each kept target
  let last = 0; // the last node of the output; -1 after its end
  const candidates = beam > 1 ? selections : greedyCandidates(rows, output, rules.runners_up);
  candidates.forEach((selected, step) => {
    /** @type {Map<number, number>} */
    const kept = new Map();
    let next = -1;
    for (const { parent, token, total: sum, finished, slot } of selected) {
      const from = slots.get(parent);
      if (from === undefined) continue;
      const chosen = from === last && token === output.chosen[step];
      const total = from === last ? nodes[last].total + (chosen ? own[step] : rows[step][token]) : sum;
      const node = grow(from, step, token, total, finished ? "finished" : slot >= 0 ? "kept" : "pruned");
      if (chosen) next = node;
      if (slot >= 0) kept.set(slot, node);
    }
    slots = kept;
    last = step + 1 < own.length ? next : -1;
  });
  /** @type {number | undefined} */
  let at = 0;
  nodes[0].winner = true;
  for (const token of output.chosen) {
    at = nodes.find((node) => node.parent === at && node.token === token)?.id;
    if (at === undefined) break;
    nodes[at].winner = true;
  }
  return { size: beam, length_penalty: 1, rule: rules.rule, nodes };
}

/**
 * Multiply-adds of one decoder step: glassformer.explain.kv_cache.multiply_adds.
 * @param {ModelFile["decoder"]} decoder @param {number} keys @param {number} queries @param {number} source
 * @param {boolean} first
 */
function multiplyAdds(decoder, keys, queries, source, first) {
  const { d_model: width, d_ff, gated, layers, vocab_size } = decoder;
  const wide = decoder.heads * decoder.d_head;
  const narrow = decoder.groups * decoder.d_head;
  let layer = queries * (width * (wide + 2 * narrow) + wide * width);
  layer += 2 * wide * queries * keys;
  layer += queries * width * d_ff * (gated ? 3 : 2);
  layer += queries * 2 * width * wide + 2 * wide * queries * source;
  layer += first ? 2 * source * width * narrow : 0;
  return layers * layer + width * vocab_size;
}

/** What the cache held at every step, and whether it matters. @param {ModelFile} file @param {LocalRun} run */
function cacheOf({ decoder, rules }, { ids, logits, cached }) {
  let difference = 0;
  let high = 1;
  logits.forEach((row, step) => {
    row.forEach((value, id) => {
      difference = Math.max(difference, Math.abs(value - cached[step][id]));
      high = Math.max(high, Math.abs(value));
    });
  });
  const layers = Array(decoder.layers).fill(0);
  return {
    steps: logits.map((_, step) => ({
      step,
      self: layers.map(() => step + 1),
      cross: layers.map(() => ids.length),
      with: multiplyAdds(decoder, step + 1, 1, ids.length, step === 0),
      without: multiplyAdds(decoder, step + 1, step + 1, ids.length, true),
    })),
    max_difference: difference,
    equal: difference <= rules.rounding * high,
    used: true,
  };
}

/**
 * The entries of a run's values, in the order in which the graph gives them, and where each lies.
 * @param {ModelFile} file @param {Record<string, Float32Array>} values @param {{src: number, tgt: number}} lengths
 */
export function entriesOf(file, values, lengths) {
  /** @type {Map<string, {offset: number, low: number, high: number}>} */
  const places = new Map();
  let offset = 0;
  const entries = file.tensors.map((row) => {
    const shape = row.shape.map((size, axis) => {
      const side = row.axes[axis].split(":")[1];
      return side === "src" || side === "tgt" ? lengths[side] : size;
    });
    const bytes = 4 * shape.reduce((a, b) => a * b, 1);
    let place = row.op.kind === "same" ? places.get(row.op.input) : undefined;
    if (!place) {
      place = { offset, ...spanOf(values[row.name]) };
      offset += bytes;
    }
    places.set(row.name, place);
    return { ...row, shape, bytes, ...place };
  });
  const blob = new Float32Array(offset / 4);
  for (const { name, op, offset: at } of entries) if (op.kind !== "same") blob.set(values[name], at / 4);
  return { entries, blob: blob.buffer };
}

/** The lowest and highest of the finite values. @param {Float32Array} values */
function spanOf(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? { low, high } : { low: 0, high: 0 };
}
