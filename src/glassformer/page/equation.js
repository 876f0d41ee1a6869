// How one cell was made: its equation with the model's own numbers, and the cells they come from.

import { build, call, difference, evaluate, exact, number, power, product, quotient, settle, sum } from "./algebra.js";
import { t, told } from "./language.js";
import { flat, maskOf, valueAt } from "./tensors.js";
import { TEXTS } from "./texts.js";

const SHOWN = 4; // terms of a long sum; the others become one number

/**
 * @typedef {{name: string, head: number|null, row: number|null, col: number|null}} Lit   null: all of that axis
 * @typedef {{name: string, index: number[]}} Cell
 * @typedef {Object} Explanation
 * @property {string} name
 * @property {number[]} index
 * @property {number} value
 * @property {string} kind              of the operation
 * @property {string} says              the operation in words
 * @property {boolean} masked
 * @property {import("./algebra.js").Printed[]} pieces
 * @property {string} result            the value as printed
 * @property {Lit[]} lit                inputs
 * @property {{name: string, row: number|null, values: Float32Array}[]} weights
 * @property {Cell[]} links             inputs that are single cells
 * @property {string} change            where a what-if has set the value
 */

/** @returns {Promise<Explanation>} */
export async function explain(run, name, index) {
  const made = run.entry(name).op;
  // A what-if may have set some heads only.
  const op = made.heads && made.otherwise && !made.heads.includes(index[0]) ? made.otherwise : made;
  const mask = maskOf(run, name);
  const inputs = [op.input, ...(op.inputs ?? []), op.q, op.k, op.v, op.pattern, op.cos, op.sin, op.bias, mask];
  await run.need([name, ...inputs.filter((one) => one && run.has(one))]);
  const value = valueAt(run, name, index);
  const hidden = mask !== null && valueAt(run, mask, index.slice(-2)) === 0;
  const found = { lit: [], weights: [], links: [], change: "" };
  const make = MAKERS[op.kind] ?? (op.row ? norm : MAKERS.same); // of norms there are several kinds
  const term = await make({ run, op, name, index, value, hidden, found });
  const kind = op.kind + (op.bias && (op.kind === "linear" || op.kind === "mask") ? ".bias" : op.gated ? ".gated" : "");
  const says = op.why ? told(op.why) : t(`op.${kind}`);
  return { name, index, value, kind: op.kind, says, masked: hidden, ...settle(term, value), ...found };
}

/** One cell of an input, lit and linked. */
function take({ run, found }, name, index) {
  found.lit.push(area(name, index));
  found.links.push({ name, index });
  return number(valueAt(run, name, index));
}

function area(name, index) {
  return { name, head: index.length === 3 ? index[0] : null, row: index.at(-2) ?? null, col: index.at(-1) ?? null };
}

/** A sum of products: the largest few are printed, the others become one number. */
function sumOfProducts(pairs, more = []) {
  const sized = pairs.map(([a, b], j) => ({ a, b, j, size: Math.abs(a * b) }));
  const few =
    sized.length <= SHOWN + 2
      ? sized
      : [...sized]
          .sort((x, y) => y.size - x.size)
          .slice(0, SHOWN)
          .sort((x, y) => x.j - y.j);
  const kept = new Set(few.map((one) => one.j));
  const rest = sized.filter((one) => !kept.has(one.j)).reduce((total, one) => total + one.a * one.b, 0);
  const parts = few.map(({ a, b, j }) => product(number(a, `#${j}`), number(b)));
  if (few.length < sized.length) parts.push(number(rest, t("equation.others", { n: sized.length - few.length })));
  return sum(...parts, ...more);
}

function rowOf(run, name, lead) {
  const { shape } = run.entry(name);
  const width = shape.at(-1);
  const start = flat(shape, [...lead, 0]);
  return run.values(name).subarray(start, start + width);
}

async function linear(cell) {
  const { run, op, index, found } = cell;
  const [at, out] = op.heads
    ? [index[1], index[0] * run.entry(cell.name).shape[2] + index[2]]
    : [index.at(-2), index.at(-1)];
  const row = (op.rows?.[0] ?? 0) + out;
  const weights = await run.weight(op.weight, row, row + 1);
  const x = rowOf(run, op.input, [at]);
  found.lit.push({ name: op.input, head: null, row: at, col: null });
  found.weights.push({ name: op.weight, row, values: weights });
  const more = [];
  if (op.bias) {
    const [bias] = await run.weight(op.bias, row, row + 1);
    more.push(number(bias, t("symbol.b")));
  }
  return sumOfProducts(
    Array.from(x, (value, j) => [value, weights[j]]),
    more,
  );
}

function products({ run, op, index, found }) {
  const [head, i, j] = index;
  const group = grouped(run, op.q, op.k, head);
  const q = rowOf(run, op.q, [head, i]);
  const k = rowOf(run, op.k, [group, j]);
  found.lit.push({ name: op.q, head, row: i, col: null }, { name: op.k, head: group, row: j, col: null });
  return sumOfProducts(Array.from(q, (value, d) => [value, k[d]]));
}

function grouped(run, many, few, head) {
  return Math.floor((head * run.entry(few).shape[0]) / run.entry(many).shape[0]);
}

function context({ run, op, index, found }) {
  const [head, i, d] = index;
  const group = grouped(run, op.pattern, op.v, head);
  const shares = rowOf(run, op.pattern, [head, i]);
  const { shape } = run.entry(op.v);
  const v = run.values(op.v);
  found.lit.push({ name: op.pattern, head, row: i, col: null }, { name: op.v, head: group, row: null, col: d });
  return sumOfProducts(Array.from(shares, (share, j) => [share, v[flat(shape, [group, j, d])]]));
}

function softmax({ run, op, index, value, hidden, found }) {
  const row = rowOf(run, op.input, index.slice(0, -1));
  const own = index.at(-1);
  const heat = op.temperature ?? 1;
  found.lit.push({ ...area(op.input, index), col: null });
  found.links.push({ name: op.input, index });
  const highest = row.reduce((a, b) => Math.max(a, b), -Infinity);
  if (highest === -Infinity) return number(value, t("equation.blind"));
  const raised = (x) => {
    if (x === -Infinity) return call("exp", number(x));
    const gap = difference(number(x), number(highest));
    return call("exp", heat === 1 ? gap : quotient(gap, exact(heat)));
  };
  const open = Array.from(row, (x, j) => ({ x, j, size: Math.exp((x - highest) / heat) })).filter(
    (one) => one.x > -Infinity,
  );
  const few =
    open.length <= SHOWN + 2
      ? open
      : [...open]
          .sort((a, b) => b.size - a.size)
          .slice(0, SHOWN)
          .sort((a, b) => a.j - b.j);
  const kept = new Set(few.map((one) => one.j));
  const rest = open.filter((one) => !kept.has(one.j)).reduce((total, one) => total + one.size, 0);
  const parts = few.map((one) => raised(one.x));
  if (few.length < open.length) parts.push(number(rest, t("equation.others", { n: open.length - few.length })));
  return quotient(
    hidden ? call("exp", number(-Infinity)) : raised(row[own]),
    parts.length > 1 ? sum(...parts) : parts[0],
  );
}

function masking(cell) {
  const { op, index, hidden, found } = cell;
  const parts = [take(cell, op.input, index)];
  if (op.bias && !hidden)
    parts.push({
      ...take(cell, op.bias, cell.run.entry(op.bias).shape.length === 3 ? index : index.slice(1)),
      note: t("equation.distance"),
    });
  found.lit.push({ name: op.mask, head: null, row: index.at(-2), col: index.at(-1) });
  if (hidden) parts.push(number(-Infinity, t("equation.masked")));
  return parts.length > 1 ? sum(...parts) : parts[0];
}

const REDUCTIONS = {
  sum: (values) => values.reduce((a, b) => a + b, 0),
  mean: (values) => values.reduce((a, b) => a + b, 0) / values.length,
  max: (values) => values.reduce((a, b) => Math.max(a, b), -Infinity),
};

/** By the expression that the trace tells, once what all values of the row share has been computed. */
async function norm(cell) {
  const { run, op, index, found } = cell;
  const [i, j] = index;
  const row = Array.from(rowOf(run, op.input, [i]), (x) => number(x));
  found.lit.push({ name: op.input, head: null, row: i, col: null });
  found.links.push({ name: op.input, index });
  const symbols = { "\u03b5": exact(op.eps) };
  const named = (symbol, value) => {
    symbols[symbol] = number(value, TEXTS[`symbol.${symbol}`] ? t(`symbol.${symbol}`) : symbol);
  };
  if (op.weight) named("g", (await run.weight(op.weight, j, j + 1))[0]);
  if (op.bias) named("b", (await run.weight(op.bias, j, j + 1))[0]);
  for (const [symbol, [reduction, of]] of Object.entries(op.row)) {
    named(symbol, REDUCTIONS[reduction](row.map((x) => evaluate(build(of, { ...symbols, x }), null))));
  }
  return build(op.expression, { ...symbols, x: row[j] });
}

function rotation(cell) {
  const { op, index } = cell;
  const [head, i, d] = index;
  const even = d - (d % 2);
  const a = take(cell, op.input, [head, i, even]);
  const b = take(cell, op.input, [head, i, even + 1]);
  const cos = { ...take(cell, op.cos, [i, even / 2]), note: "cos" };
  const sin = { ...take(cell, op.sin, [i, even / 2]), note: "sin" };
  return d % 2 ? sum(product(a, sin), product(b, cos)) : difference(product(a, cos), product(b, sin));
}

function activation(cell) {
  const { run, op, index } = cell;
  const pi = number(Math.PI, "\u03c0");
  const acted = build(op.expression, { u: take(cell, op.input, index), "\u03c0": pi });
  if (!op.gated) return acted;
  const width = run.entry(cell.name).shape.at(-1);
  return product(acted, take(cell, op.input, [...index.slice(0, -1), index.at(-1) + width]));
}

async function positions({ run, op, index, found }) {
  const at = Math.max(0, index[0] - (op.shift ?? 0)); // padding before a text does not count
  const j = index[1];
  if (op.weight) {
    const row = await run.weight(op.weight, at, at + 1);
    found.weights.push({ name: op.weight, row: at, values: row });
    return number(row[j]);
  }
  const width = run.manifest.model.d_model;
  const angle = quotient(exact(at), power(exact(10000), quotient(exact(j - (j % 2)), exact(width))));
  return call(j % 2 ? "cos" : "sin", angle);
}

/** The bucket of a distance is a row of the table, with a number for each head. */
async function relative({ run, op, index: [head, i, j], found }) {
  const bucket = op.buckets[j - i + (op.buckets.length - 1) / 2];
  const row = await run.weight(op.weight, bucket, bucket + 1);
  found.weights.push({ name: op.weight, row: bucket, values: row });
  return number(row[head], t("equation.bucket", { n: bucket }));
}

const MAKERS = {
  lookup: async ({ run, op, index, found }) => {
    const [at, j] = index;
    const id = Array.isArray(op.ids) ? op.ids[at] : run.manifest[op.ids].ids[at];
    const row = await run.weight(op.weight, id, id + 1);
    found.weights.push({ name: op.weight, row: id, values: row });
    return number(row[j]);
  },
  scale: (cell) => product(take(cell, cell.op.input, cell.index), number(cell.op.by, t("equation.scale"))),
  positions,
  add: (cell) => sum(...cell.op.inputs.map((name) => take(cell, name, cell.index))),
  linear,
  rotate: rotation,
  products,
  mask: masking,
  softmax,
  context,
  merge: (cell) => {
    const width = cell.run.entry(cell.op.input).shape.at(-1);
    const [i, j] = cell.index;
    return take(cell, cell.op.input, [Math.floor(j / width), i, j % width]);
  },
  activation,
  relative,
  alibi: ({ op, index: [head, i, j] }) =>
    product(number(-op.slopes[head], t("equation.slope")), exact(Math.abs(j - i), t("equation.apart"))),
  rotation: ({ op, index: [at, i] }) =>
    call(op.part, product(exact(at), power(exact(op.base), quotient(exact(-2 * i), exact(op.d_head))))),
  visible: (cell) => exact(cell.value),
  same: (cell) =>
    cell.op.input && cell.run.has(cell.op.input) ? take(cell, cell.op.input, cell.index) : number(cell.value),
  replaced: (cell) => {
    cell.found.change = JSON.stringify(cell.op.heads ? { ...cell.op.by, head: cell.index[0] } : cell.op.by);
    return number(cell.value);
  },
};
