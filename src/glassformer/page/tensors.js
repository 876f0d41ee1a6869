// A tensor as something to look at: which two of its axes are drawn, what its rows and columns are called, which of its
// cells a mask has closed.

/**
 * @typedef {Object} Sheet      one matrix of a tensor: all of it, or one head
 * @property {string} name
 * @property {number|null} head
 * @property {number} rows
 * @property {number} cols
 * @property {(i: number, j: number) => number} at
 * @property {(i: number, j: number) => boolean} masked
 * @property {(i: number, j: number) => number[]} index     of a cell in the whole tensor
 * @property {string} rowAxis
 * @property {string} colAxis
 * @property {string[]|null} rowLabels
 * @property {string[]|null} colLabels
 * @property {boolean} share    shares of one: drawn from nothing to full, not from minus to plus
 * @property {number} high      the value that gets the strongest colour
 * @property {string} hue       q, k, v, encoder or decoder
 */

/** The last word of a name says what kind of value it is. */
export function lastWord(name) {
  return name.slice(name.lastIndexOf(".") + 1);
}

/** "src" or "tgt" where an axis counts the tokens of a sentence. */
export function sideOf(axis) {
  return axis.endsWith(":src") ? "src" : axis.endsWith(":tgt") ? "tgt" : null;
}

export function axisLabels(run, axis) {
  const side = sideOf(axis);
  if (side === "src") return run.manifest.source.pieces;
  if (side === "tgt") return run.manifest.target.pieces;
  return null;
}

/** The name of the mask that closes cells of this value, or null. */
export function maskOf(run, name) {
  const { op } = run.entry(name);
  if (op.kind === "mask") return op.mask;
  if (op.kind === "softmax" && run.has(op.input)) return maskOf(run, op.input);
  if (op.kind === "same" && run.has(op.input)) return maskOf(run, op.input);
  return null;
}

/** What must be loaded to draw these values. */
export function withMasks(run, names) {
  return names.flatMap((name) => {
    const mask = maskOf(run, name);
    return mask ? [name, mask] : [name];
  });
}

/** The place of an index in a tensor's values. */
export function flat(shape, index) {
  return index.reduce((at, i, axis) => at * shape[axis] + i, 0);
}

export function valueAt(run, name, index) {
  return run.values(name)[flat(run.entry(name).shape, index)];
}

export function fits(shape, index) {
  return index.length === shape.length && index.every((i, axis) => i < shape[axis]);
}

export function hasHeads(entry) {
  return entry.axes[0] === "head" && entry.shape.length === 3;
}

/** The head to show of a tensor, when the page looks at head `head`: grouped keys and values have fewer. */
export function headFor(run, entry, head) {
  if (!hasHeads(entry)) return null;
  return Math.min(entry.shape[0] - 1, Math.floor((head * entry.shape[0]) / headCount(run, entry.name)));
}

/** The head to look at for a tensor to show its own head `own`: the first of those that share it. */
export function headOf(run, entry, own) {
  return (own * headCount(run, entry.name)) / entry.shape[0];
}

export function headCount(run, name) {
  const { model } = run.manifest;
  return name.startsWith("decoder") ? (model.decoder_heads ?? model.heads) : model.heads;
}

function hueOf(name) {
  const word = lastWord(name).split("_")[0];
  if (word === "q" || word === "k" || word === "v") return word;
  return name.startsWith("encoder") || name === "memory" || name === "masks.encoder" ? "encoder" : "decoder";
}

/** @returns {Sheet} */
export function sheetOf(run, name, head) {
  const entry = run.entry(name);
  const values = run.values(name);
  const shape = entry.shape.length === 1 ? [1, ...entry.shape] : entry.shape;
  const axes = entry.shape.length === 1 ? ["", ...entry.axes] : entry.axes;
  const [rows, cols] = shape.slice(-2);
  const own = headFor(run, entry, head);
  const start = own === null ? 0 : own * rows * cols;
  const mask = maskOf(run, name);
  const open = mask === null ? null : run.values(mask);
  const word = lastWord(name);
  return {
    name,
    head: own,
    rows,
    cols,
    at: (i, j) => values[start + i * cols + j],
    masked: (i, j) => open !== null && open[i * cols + j] === 0,
    index: (i, j) => (entry.shape.length === 1 ? [j] : own === null ? [i, j] : [own, i, j]),
    rowAxis: axes.at(-2),
    colAxis: axes.at(-1),
    rowLabels: axisLabels(run, axes.at(-2)),
    colLabels: axisLabels(run, axes.at(-1)),
    share: entry.op.kind === "softmax" || name.startsWith("masks.") || word === "pattern",
    high: Math.max(Math.abs(entry.low ?? 0), Math.abs(entry.high ?? 0)) || 1,
    hue: hueOf(name),
  };
}

/** The layers of a model, as the address names them. */
export function layersOf(model) {
  const of = (stack, n) => Array.from({ length: n }, (_, i) => `${stack}.${i}`);
  return [...of("encoder", model.encoder_layers), ...of("decoder", model.decoder_layers)];
}

/** `decoder.1` as `decoder.blocks.1`. */
export function blockName(layer) {
  const [stack, i] = layer.split(".");
  return `${stack}.blocks.${i}`;
}

/** Every attention of a model: the row of the grid that it is, and the name of its pattern. */
export function attentionsOf(run) {
  return [...run.entries.keys()]
    .filter((name) => name.endsWith(".pattern"))
    .map((name) => {
      const [stack, , i, attention] = name.split(".");
      return { name, stack, i: Number(i), attention, layer: `${stack}.${i}`, heads: run.entry(name).shape[0] };
    });
}

/** The stages of a block in the order of the computation, by sublayer; what enters the block comes first. */
export function stagesOf(run, layer) {
  const block = blockName(layer);
  const names = [...run.entries.keys()].filter((name) => name.startsWith(`${block}.`));
  const parts = { self: [], cross: [], feed: [] };
  for (const name of names) {
    const rest = name.slice(block.length + 1);
    const part = rest.startsWith("self_") ? "self" : rest.startsWith("cross_") ? "cross" : "feed";
    parts[part].push(name);
  }
  const [stack, i] = layer.split(".");
  const entering = i === "0" ? `${stack}.embedding` : `${stack}.blocks.${Number(i) - 1}`;
  if (run.has(entering)) parts.self.unshift(entering);
  if (parts.cross.length && run.has("memory")) parts.cross.unshift("memory");
  return parts;
}
