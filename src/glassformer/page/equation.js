// How one cell was made: its equation with the model's own numbers, and the cells they come from.

import {
  call,
  difference,
  equationOf,
  evaluate,
  exact,
  number,
  power,
  product,
  quotient,
  sum,
  toTerm,
} from "./algebra.js";
import { hasText, localized, t } from "./language.js";
import { flat, maskOf, rowAndColumn, valueAt } from "./tensors.js";

const SHOWN = 4; // terms of a long sum; the others become one number

/** @param {Run} run @param {string} name @param {number[]} index @returns {Promise<Explanation>} */
export async function explain(run, name, index) {
  const { op: made, inputs } = run.entry(name);
  // A what-if may have set some heads only.
  const others = made.kind === "replaced" && !made.heads?.includes(index[0]) ? made.otherwise : undefined;
  const op = others ?? made;
  const mask = maskOf(run, name);
  await run.need([name, ...inputs.filter((one) => run.has(one)), ...(mask ? [mask] : [])]);
  const value = valueAt(run, name, index);
  const hidden = mask !== null && valueAt(run, mask, index.slice(-2)) === 0;
  /** @type {Operands} */
  const operands = { areas: [], weights: [], change: "" };
  // Of norms there are several kinds.
  const builder = "row" in op ? norm : (TERM_BUILDERS[op.kind] ?? TERM_BUILDERS.same);
  const make = /** @type {(cell: CellContext) => Term | Promise<Term>} */ (builder);
  const term = await make({ run, op, name, index, value, hidden, operands });
  const shown = { ...equationOf(term, value), ...operands };
  return { name, index, value, kind: op.kind, description: describeOp(op), masked: hidden, ...shown };
}

/** An operation in words. @param {Op} op */
function describeOp(op) {
  if ("why" in op) return localized(op.why);
  if ((op.kind === "linear" || op.kind === "mask") && op.bias) return t(`op.${op.kind}.bias`);
  return t(op.kind === "activation" && op.gated ? "op.activation.gated" : `op.${op.kind}`);
}

/** One cell of an input, highlighted. @param {CellContext} cell @param {string} name @param {number[]} index */
function inputAt({ run, operands }, name, index) {
  operands.areas.push(area(name, index));
  return number(valueAt(run, name, index));
}

/** @param {string} name @param {number[]} index @returns {Area} */
function area(name, index) {
  return { name, head: index.length === 3 ? index[0] : null, row: index.at(-2) ?? null, col: index.at(-1) ?? null };
}

/** A row of a weight, as an operand. @param {CellContext} cell @param {string} name @param {number} row */
async function weightRow({ run, operands }, name, row) {
  const values = await run.weight(name, row, row + 1);
  operands.weights.push({ name, row, values });
  return values;
}

/**
 * A sum: of many terms the largest few are printed, the others become one number.
 * @param {{value: number, print: () => Term}[]} terms
 * @param {Term[]} more   what is added and always printed
 */
function longSum(terms, ...more) {
  const bySize = [...terms].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const large = new Set(terms.length <= SHOWN + 2 ? terms : bySize.slice(0, SHOWN));
  const parts = terms.filter((one) => large.has(one)).map((one) => one.print());
  const rest = terms.filter((one) => !large.has(one));
  if (rest.length) {
    const total = rest.reduce((sum, one) => sum + one.value, 0);
    parts.push(number(total, t("equation.others", { n: rest.length })));
  }
  const all = [...parts, ...more];
  return all.length > 1 ? sum(...all) : all[0];
}

/** A sum of products. @param {ArrayLike<number>} a @param {(j: number) => number} b @param {Term[]} more */
function sumOfProducts(a, b, ...more) {
  const terms = Array.from(a, (x, j) => ({
    value: x * b(j),
    print: () => product(number(x, `#${j}`), number(b(j))),
  }));
  return longSum(terms, ...more);
}

/** The last axis of a value at what leads to it. @param {Run} run @param {string} name @param {number[]} lead */
function rowOf(run, name, ...lead) {
  const { shape } = run.entry(name);
  const start = flat(shape, [...lead, 0]);
  return run.values(name).subarray(start, start + shape[shape.length - 1]);
}

/** The head of keys or values that serves a query's. @param {Run} run @param {string} many @param {string} few */
const headShared = (run, many, few, head = 0) =>
  Math.floor((head * run.entry(few).shape[0]) / run.entry(many).shape[0]);

/** @type {Record<string, (values: number[]) => number>} */
const REDUCTIONS = {
  sum: (values) => values.reduce((a, b) => a + b, 0),
  mean: (values) => values.reduce((a, b) => a + b, 0) / values.length,
  max: (values) => values.reduce((a, b) => Math.max(a, b), -Infinity),
};

/**
 * By the expression that the trace tells, once what all values of the row share has been computed.
 * @param {CellContext<Norm>} cell
 */
async function norm({ run, op, index: [i, j], operands }) {
  const row = Array.from(rowOf(run, op.input, i), (x) => number(x));
  operands.areas.push({ name: op.input, head: null, row: i, col: null });
  /** @type {Record<string, Term>} */
  const symbols = { "\u03b5": exact(op.eps) };
  /** @param {string} symbol @param {number} value */
  const name = (symbol, value) => {
    symbols[symbol] = number(value, hasText(`symbol.${symbol}`) ? t(`symbol.${symbol}`) : symbol);
  };
  if (op.weight) name("g", (await run.weight(op.weight, j, j + 1))[0]);
  if (op.bias) name("b", (await run.weight(op.bias, j, j + 1))[0]);
  for (const [symbol, [reduction, of]] of Object.entries(op.row)) {
    name(symbol, REDUCTIONS[reduction](row.map((x) => evaluate(toTerm(of, { ...symbols, x }), null))));
  }
  return toTerm(op.expression, { ...symbols, x: row[j] });
}

/** The term of a cell, by how its value was made. @type {{[K in Exclude<Op, Norm>["kind"]]: TermBuilder<K>}} */
const TERM_BUILDERS = {
  async lookup(cell) {
    const { run, op } = cell;
    const [at, j] = cell.index;
    const ids = Array.isArray(op.ids) ? op.ids : run.manifest[op.ids].ids;
    return number((await weightRow(cell, op.weight, ids[at]))[j]);
  },
  pixels: (cell) => number(cell.value),
  async prepend(cell) {
    const [i, j] = cell.index;
    if (i > 0) return inputAt(cell, cell.op.input, [i - 1, j]);
    const values = await cell.run.weight(cell.op.weight);
    cell.operands.weights.push({ name: cell.op.weight, row: 0, values });
    return number(values[j]);
  },
  first: (cell) => inputAt(cell, cell.op.input, [0, cell.index[1]]),
  scale: (cell) => product(inputAt(cell, cell.op.input, cell.index), number(cell.op.by, t("equation.scale"))),
  async positions(cell) {
    const { run, op } = cell;
    const [place, j] = cell.index;
    const at = Math.max(0, place - (op.shift ?? 0)); // padding before a text does not count
    if (op.weight) return number((await weightRow(cell, op.weight, at))[j]);
    const width = run.manifest.model.d_model;
    const angle = quotient(exact(at), power(exact(10000), quotient(exact(j - (j % 2)), exact(width))));
    return call(j % 2 ? "cos" : "sin", angle);
  },
  add: (cell) => sum(...cell.op.inputs.map((name) => inputAt(cell, name, cell.index))),
  async linear(cell) {
    const { run, op, index, operands } = cell;
    const [row, column] = rowAndColumn(index);
    const out = op.heads ? index[0] * run.entry(cell.name).shape[2] + column : column;
    const at = (op.rows?.[0] ?? 0) + out;
    const weights = await weightRow(cell, op.weight, at);
    operands.areas.push({ name: op.input, head: null, row, col: null });
    const bias = op.bias ? [number((await run.weight(op.bias, at, at + 1))[0], t("symbol.b"))] : [];
    return sumOfProducts(rowOf(run, op.input, row), (j) => weights[j], ...bias);
  },
  rotate(cell) {
    const { op } = cell;
    const [head, i, d] = cell.index;
    const even = d - (d % 2);
    const a = inputAt(cell, op.input, [head, i, even]);
    const b = inputAt(cell, op.input, [head, i, even + 1]);
    const cos = { ...inputAt(cell, op.cos, [i, even / 2]), note: "cos" };
    const sin = { ...inputAt(cell, op.sin, [i, even / 2]), note: "sin" };
    return d % 2 ? sum(product(a, sin), product(b, cos)) : difference(product(a, cos), product(b, sin));
  },
  products({ run, op, index: [head, i, j], operands }) {
    const shared = headShared(run, op.q, op.k, head);
    const k = rowOf(run, op.k, shared, j);
    operands.areas.push({ name: op.q, head, row: i, col: null }, { name: op.k, head: shared, row: j, col: null });
    return sumOfProducts(rowOf(run, op.q, head, i), (d) => k[d]);
  },
  mask(cell) {
    const { run, op, index, hidden, operands } = cell;
    const parts = [inputAt(cell, op.input, index)];
    if (op.bias && !hidden) {
      const place = run.entry(op.bias).shape.length === 3 ? index : index.slice(1);
      parts.push({ ...inputAt(cell, op.bias, place), note: t("equation.distance") });
    }
    operands.areas.push(area(op.mask, index.slice(-2)));
    if (hidden) parts.push(number(-Infinity, t("equation.masked")));
    return parts.length > 1 ? sum(...parts) : parts[0];
  },
  softmax({ run, op, index, value, hidden, operands }) {
    const row = rowOf(run, op.input, ...index.slice(0, -1));
    operands.areas.push({ ...area(op.input, index), col: null });
    const highest = row.reduce((a, b) => Math.max(a, b), -Infinity);
    if (highest === -Infinity) return number(value, t("equation.blind"));
    /** @param {number} x */
    const raised = (x) => {
      if (x === -Infinity) return call("exp", number(x));
      const gap = difference(number(x), number(highest));
      return call("exp", op.temperature === 1 ? gap : quotient(gap, exact(op.temperature)));
    };
    const open = row.filter((x) => x > -Infinity);
    const terms = Array.from(open, (x) => ({
      value: Math.exp((x - highest) / op.temperature),
      print: () => raised(x),
    }));
    return quotient(raised(hidden ? -Infinity : row[index[index.length - 1]]), longSum(terms));
  },
  context({ run, op, index: [head, i, d], operands }) {
    const shared = headShared(run, op.pattern, op.v, head);
    operands.areas.push({ name: op.pattern, head, row: i, col: null }, { name: op.v, head: shared, row: null, col: d });
    return sumOfProducts(rowOf(run, op.pattern, head, i), (j) => valueAt(run, op.v, [shared, j, d]));
  },
  merge(cell) {
    const [i, j] = cell.index;
    const width = cell.run.entry(cell.op.input).shape[2];
    return inputAt(cell, cell.op.input, [Math.floor(j / width), i, j % width]);
  },
  activation(cell) {
    const { run, op, index } = cell;
    const symbols = { u: inputAt(cell, op.input, index), "\u03c0": number(Math.PI, "\u03c0") };
    const acted = toTerm(op.expression, symbols);
    if (!op.gated) return acted;
    const [i, j] = index;
    return product(acted, inputAt(cell, op.input, [i, j + run.entry(cell.name).shape[1]]));
  },
  /** The bucket of a distance is a row of the table, with a number for each head. */
  async relative(cell) {
    const { op } = cell;
    const [head, i, j] = cell.index;
    const bucket = op.buckets[j - i + (op.buckets.length - 1) / 2];
    return number((await weightRow(cell, op.weight, bucket))[head], t("equation.bucket", { n: bucket }));
  },
  alibi: ({ op, index: [head, i, j] }) =>
    product(number(-op.slopes[head], t("equation.slope")), exact(Math.abs(j - i), t("equation.apart"))),
  rotation({ op, index: [at, i] }) {
    const turn = power(exact(op.base), quotient(exact(-2 * i), exact(op.d_head)));
    const slowed = op.pace ? product(turn, number(op.pace[i], t("equation.pace"))) : turn;
    return call(op.part, product(exact(at), slowed));
  },
  visible: (cell) => exact(cell.value),
  same: (cell) => (cell.run.has(cell.op.input) ? inputAt(cell, cell.op.input, cell.index) : number(cell.value)),
  replaced({ op, index, value, operands }) {
    operands.change = JSON.stringify(op.heads ? { ...op.by, head: index[0] } : op.by);
    return number(value);
  },
};
