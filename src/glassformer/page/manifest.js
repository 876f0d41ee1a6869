// A run in a browser told as glassformer.explain tells one: its steps, the tree of its search, its cache, its values.

import { highest } from "./beam_search.js";

/**
 * The log-probability of each token written; an end that was forced costs nothing.
 * @param {Float64Array[]} rows
 * @param {Written} written
 */
function chosenOf(rows, { chosen, forced }) {
  return chosen.map((token, step) => (forced && step === chosen.length - 1 ? 0 : rows[step][token]));
}

/**
 * @param {Float64Array[]} rows
 * @param {Written} written
 * @param {(ids: number[]) => string[]} pieces
 * @param {number} top
 */
export function stepsOf(rows, written, pieces, top) {
  const reads = pieces(written.reads);
  let total = 0;
  return chosenOf(rows, written).map((own, step) => {
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
      chosen: written.chosen[step],
      piece: pieces([written.chosen[step]])[0],
      chosen_log_probability: own,
      total,
      forced: written.forced && step === written.chosen.length - 1,
    };
  });
}

/**
 * The tree of hypotheses: what search kept, finished and let go.
 * @param {Float64Array[]} rows
 * @param {Written} written
 * @param {Selected[][]} selections  of a beam; none where the search was greedy
 * @param {(ids: number[]) => string[]} pieces
 * @param {{size: number, start: number, runnersUp: number, rule: string}} rules
 */
export function treeOf(rows, written, selections, pieces, { size, start, runnersUp, rule }) {
  /** @type {(BeamNode & {log_probability: number})[]} */
  const nodes = [];
  /**
   * @param {number | null} parent
   * @param {number} step
   * @param {number} token
   * @param {number} total
   * @param {BeamNode["state"]} state
   */
  const grow = (parent, step, token, total, state) => {
    const before = parent === null ? 0 : nodes[parent].total;
    const score = step >= 0 ? total / (step + 1) : 0;
    const piece = pieces([token])[0];
    const id = nodes.length;
    nodes.push({ id, parent, step, token, piece, log_probability: total - before, total, score, state, winner: false });
    return id;
  };
  grow(null, -1, start, 0, "kept");
  const own = chosenOf(rows, written);
  if (selections.length) grown(selections, rows, written, own, nodes, grow);
  else {
    let at = 0;
    written.chosen.forEach((token, step) => {
      const { total } = nodes[at];
      const others = highest(rows[step], runnersUp + 1).filter((id) => id !== token);
      const ends = written.finished && step === written.chosen.length - 1;
      const following = grow(at, step, token, total + own[step], ends ? "finished" : "kept");
      for (const id of others.slice(0, runnersUp)) grow(at, step, id, total + rows[step][id], "pruned");
      at = following;
    });
  }
  /** @type {number | undefined} */
  let at = 0;
  nodes[0].winner = true;
  for (const token of written.chosen) {
    at = nodes.find((node) => node.parent === at && node.token === token)?.id;
    if (at === undefined) break;
    nodes[at].winner = true;
  }
  return { size, length_penalty: 1, rule, nodes };
}

/**
 * @param {Selected[][]} selections
 * @param {Float64Array[]} rows
 * @param {Written} written
 * @param {number[]} own
 * @param {BeamNode[]} nodes
 * @param {(parent: number, step: number, token: number, total: number, state: BeamNode["state"]) => number} grow
 */
function grown(selections, rows, written, own, nodes, grow) {
  let slots = new Map([[0, 0]]); // the node that each kept target stands at
  let output = 0; // the node that the output has come to
  selections.forEach((selected, step) => {
    /** @type {Map<number, number>} */
    const next = new Map();
    let following = -1;
    for (const { parent, token, total: sum, finished, slot } of selected) {
      const from = slots.get(parent);
      if (from === undefined) continue;
      const chosen = from === output && token === written.chosen[step];
      const along = from === output ? nodes[output].total + (chosen ? own[step] : rows[step][token]) : sum;
      const node = grow(from, step, token, along, finished ? "finished" : slot >= 0 ? "kept" : "pruned");
      if (chosen) following = node;
      if (slot >= 0) next.set(slot, node);
    }
    slots = next;
    output = step + 1 < own.length ? following : -1;
  });
}

/**
 * Multiply-adds of one decoder step: glassformer.explain.kv_cache.multiply_adds.
 * @param {Told["decoder"]} decoder
 * @param {number} keys
 * @param {number} queries
 * @param {number} source
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

/**
 * What the cache held at every step, and whether it made a difference.
 * @param {Told} told
 * @param {Float32Array[]} logits
 * @param {Float32Array[]} cached
 * @param {number} source
 */
export function cacheOf({ decoder, rules }, logits, cached, source) {
  let apart = 0;
  let high = 1;
  logits.forEach((row, step) => {
    row.forEach((value, id) => {
      apart = Math.max(apart, Math.abs(value - cached[step][id]));
      high = Math.max(high, Math.abs(value));
    });
  });
  const layers = Array(decoder.layers).fill(0);
  return {
    steps: logits.map((_, step) => ({
      step,
      self: layers.map(() => step + 1),
      cross: layers.map(() => source),
      with: multiplyAdds(decoder, step + 1, 1, source, step === 0),
      without: multiplyAdds(decoder, step + 1, step + 1, source, true),
    })),
    max_difference: apart,
    equal: apart <= rules.rounding * high,
    used: true,
  };
}

/**
 * The entries of a run's values, in the order in which the graph gives them, and where each lies.
 * @param {Told} told
 * @param {Record<string, Float32Array>} values
 * @param {{src: number, tgt: number}} lengths
 */
export function entriesOf(told, values, lengths) {
  /** @type {Map<string, {offset: number, low: number, high: number}>} */
  const places = new Map();
  let offset = 0;
  const entries = told.tensors.map((row) => {
    const shape = row.shape.map((size, axis) => {
      const side = row.axes[axis].split(":")[1];
      return side === "src" ? lengths.src : side === "tgt" ? lengths.tgt : size;
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
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? { low, high } : { low: 0, high: 0 };
}
