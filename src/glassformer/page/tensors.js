// A tensor as something to look at: which two of its axes are drawn, what its rows and columns are called, which of its
// cells a mask has closed.

/** @type {Stack[]} */
export const STACKS = ["encoder", "decoder"];

/** The last word of a name says what kind of value it is. @param {string} name */
export function lastWord(name) {
  return name.slice(name.lastIndexOf(".") + 1);
}

/** "src" or "tgt" where an axis counts the tokens of a sentence. @param {string} axis */
export function sideOf(axis) {
  return axis.endsWith(":src") ? "src" : axis.endsWith(":tgt") ? "tgt" : null;
}

/** @param {Run} run @param {string} axis */
export function axisLabels(run, axis) {
  const side = sideOf(axis);
  if (side === "src") return run.manifest.source.pieces;
  if (side === "tgt") return run.manifest.target.pieces;
  if (axis === "label") return run.manifest.model.labels;
  const { pieces } = run.manifest.source;
  return axis.endsWith(":square") ? pieces.slice(1) : axis.endsWith(":first") ? pieces.slice(0, 1) : null;
}

/** The name of the mask that closes cells of this value, or null. @param {Run} run @param {string} name */
export function maskOf(run, name) {
  const { op } = run.entry(name);
  if (op.kind === "mask") return op.mask;
  if ((op.kind === "softmax" || op.kind === "same") && run.has(op.input)) return maskOf(run, op.input);
  return null;
}

/** What must be loaded to draw these values. @param {Run} run @param {string[]} names */
export function withMasks(run, names) {
  return names.flatMap((name) => {
    const mask = maskOf(run, name);
    return mask ? [name, mask] : [name];
  });
}

/** The place of an index in a tensor's values. @param {number[]} shape @param {number[]} index */
export function flat(shape, index) {
  return index.reduce((at, i, axis) => at * shape[axis] + i, 0);
}

/** @param {Run} run @param {string} name @param {number[]} index */
export function valueAt(run, name, index) {
  return run.values(name)[flat(run.entry(name).shape, index)];
}

/** @param {number[]} shape @param {number[]} index */
export function fits(shape, index) {
  return index.length === shape.length && index.every((i, axis) => i < shape[axis]);
}

/** @param {Entry} entry */
export function hasHeads(entry) {
  return entry.axes[0] === "head" && entry.shape.length === 3;
}

/**
 * The head to show of a tensor, when the page looks at head `head`: grouped keys and values have fewer.
 * @param {Run} run @param {Entry} entry @param {number} head
 */
export function headFor(run, entry, head) {
  if (!hasHeads(entry)) return null;
  return Math.min(entry.shape[0] - 1, Math.floor((head * entry.shape[0]) / headCount(run, entry.name)));
}

/**
 * The head to look at for a tensor to show its own head `own`: the first of those that share it.
 * @param {Run} run @param {Entry} entry @param {number} own
 */
export function headOf(run, entry, own) {
  return (own * headCount(run, entry.name)) / entry.shape[0];
}

/** @param {Run} run @param {string} name */
function headCount(run, name) {
  const { model } = run.manifest;
  return name.startsWith("decoder") ? (model.decoder_heads ?? model.heads) : model.heads;
}

/** @param {string} name @returns {Hue} */
export function hueOf(name) {
  const word = lastWord(name).split("_")[0];
  if (word === "q" || word === "k" || word === "v") return word;
  return name.startsWith("encoder") || name === "memory" || name === "masks.encoder" ? "encoder" : "decoder";
}

/** @returns {Sheet} @param {Run} run @param {string} name @param {number} head */
export function sheetOf(run, name, head) {
  const entry = run.entry(name);
  const values = run.values(name);
  const shape = entry.shape.length === 1 ? [1, ...entry.shape] : entry.shape;
  const [rowAxis, colAxis] = ["", ...entry.axes].slice(-2);
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
    rowAxis,
    colAxis,
    rowLabels: axisLabels(run, rowAxis),
    colLabels: axisLabels(run, colAxis),
    sequential: entry.op.kind === "softmax" || name.startsWith("masks.") || word === "pattern",
    high: Math.max(Math.abs(entry.low ?? 0), Math.abs(entry.high ?? 0)) || 1,
    hue: hueOf(name),
  };
}

/**
 * A matrix of plain numbers: weights, a table.
 * @param {string} name @param {number} rows @param {Float32Array} values @param {Partial<Sheet>} [more]
 * @returns {Sheet}
 */
export function plainSheet(name, rows, values, more = {}) {
  const cols = values.length / rows;
  return {
    name,
    head: null,
    rows,
    cols,
    at: (i, j) => values[i * cols + j],
    masked: () => false,
    index: (i, j) => [i, j],
    rowAxis: "",
    colAxis: "",
    rowLabels: null,
    colLabels: null,
    sequential: false,
    high: values.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1,
    hue: "decoder",
    ...more,
  };
}

/** The row and column of an index in its matrix. @param {number[]} index @returns {[number, number]} */
export function rowAndColumn(index) {
  return index.length > 1 ? [index[index.length - 2], index[index.length - 1]] : [0, index[0]];
}

/** @param {Model} model @param {Stack} stack */
export const layerCount = (model, stack) => (stack === "encoder" ? model.encoder_layers : model.decoder_layers);

/** The layers of a model, as the address names them. @param {Model} model */
export function layersOf(model) {
  return STACKS.flatMap((stack) => Array.from({ length: layerCount(model, stack) }, (_, i) => `${stack}.${i}`));
}

/** `decoder.1` as `decoder.blocks.1`. @param {string} layer */
export function blockName(layer) {
  const [stack, i] = layer.split(".");
  return `${stack}.blocks.${i}`;
}

/** Every attention of a model: the row of the grid that it is, and the name of its pattern. @param {Run} run */
export function attentionsOf(run) {
  const patterns = [...run.entries.keys()].filter((name) => name.endsWith(".pattern"));
  return patterns.map((name) => {
    const [stack, , i, attention] = name.split(".");
    const place = { name, stack, i: Number(i), attention, layer: `${stack}.${i}`, heads: run.entry(name).shape[0] };
    return /** @type {AttentionPlace} */ (place);
  });
}

/**
 * The stages of a block in the order of the computation, by sublayer; what enters the block comes first.
 * An alias is left out: it would draw the same numbers twice.
 * @param {Run} run @param {string} layer
 */
export function stagesOf(run, layer) {
  const block = blockName(layer);
  /** @type {Record<Part, string[]>} */
  const parts = { self: [], cross: [], feed: [] };
  for (const { name, op } of run.entries.values()) {
    if (!name.startsWith(`${block}.`) || op.kind === "same") continue;
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
