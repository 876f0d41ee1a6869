// An equation of printed numbers. What is printed is what is computed: the digits of the inputs are raised until the
// printed numbers, evaluated, give the printed result.

import { DIGITS, fixed, read, show } from "./number.js";

/** A number of the model. `note` says what it is. @param {number} value @returns {Term & {kind: "number"}} */
export function number(value, note = "") {
  return { kind: "number", value, note };
}

/** A number that is printed as it stands: a count, a position. @param {number} value @returns {Term} */
export function exact(value, note = "") {
  return { kind: "number", value, note, exact: true };
}

/** @type {Record<Operation, (...parts: Term[]) => Term>} */
export const { sum, product, difference, quotient, power } = {
  sum: (...parts) => ({ kind: "sum", parts }),
  product: (...parts) => ({ kind: "product", parts }),
  difference: (...parts) => ({ kind: "difference", parts }),
  quotient: (...parts) => ({ kind: "quotient", parts }),
  power: (...parts) => ({ kind: "power", parts }),
};
/** @param {string} name @param {Term[]} parts @returns {Term} */
export const call = (name, ...parts) => ({ kind: "call", name, parts });

/** @type {Record<string, (...parts: Term[]) => Term>} */
const BUILDERS = { "+": sum, "*": product, "/": quotient, "^": power };

/**
 * An expression that the trace tells, as a term.
 * @param {Expression} expression
 * @param {Record<string, Term>} symbols   what they stand for
 * @returns {Term}
 */
export function build(expression, symbols) {
  if (typeof expression === "number") return exact(expression);
  if (typeof expression === "string") return symbols[expression];
  const [name, ...rest] = expression;
  const parts = rest.map((part) => build(part, symbols));
  if (name === "-") return parts.length > 1 ? difference(...parts) : negative(parts[0]);
  return BUILDERS[name]?.(...parts) ?? call(name, ...parts);
}

/** @param {Term} term */
function negative(term) {
  return term.kind === "number" ? { ...term, value: -term.value } : product(exact(-1), term);
}

/** @type {Record<string, (...values: number[]) => number>} */
const FUNCTIONS = {
  abs: Math.abs,
  exp: Math.exp,
  log: Math.log,
  "\u221a": Math.sqrt,
  sin: Math.sin,
  cos: Math.cos,
  tanh: Math.tanh,
  max: Math.max,
  min: Math.min,
  erf,
};

/** The error function to about 1e-13: a series near zero, a continued fraction beyond. @param {number} x */
function erf(x) {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let [term, total] = [size, size];
    for (let n = 1; Math.abs(term) > 1e-17 * total && n < 100; n++) {
      term *= -(size * size) / n;
      total += term / (2 * n + 1);
    }
    return Math.sign(x) * (2 / Math.sqrt(Math.PI)) * total;
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-size * size) / Math.sqrt(Math.PI) / (size + fraction));
}

/** @param {Term & {kind: "number"}} term @param {number} digits */
function text(term, digits) {
  return term.exact ? String(term.value).replaceAll("-", "\u2212") : show(term.value, digits);
}

/**
 * What the numbers give as printed with so many digits; or as they are, with null.
 * @param {Term} term
 * @param {number | null} digits
 * @returns {number}
 */
export function evaluate(term, digits) {
  if (term.kind === "number") return digits === null ? term.value : read(text(term, digits));
  const values = term.parts.map((part) => evaluate(part, digits));
  switch (term.kind) {
    case "sum":
      return values.reduce((a, b) => a + b, 0);
    case "product":
      return values.reduce((a, b) => a * b, 1);
    case "difference":
      return values[0] - values[1];
    case "quotient":
      return values[0] / values[1];
    case "power":
      return values[0] ** values[1];
    default:
      return FUNCTIONS[term.name](...values);
  }
}

const RANK = { sum: 1, difference: 1, product: 2, quotient: 2, power: 3, call: 4, number: 4 };
const SIGNS = { sum: " + ", difference: " \u2212 ", product: " \u00d7 ", quotient: " / ", power: "^" };

/**
 * A term as printed pieces, with brackets where the order of the operations needs them.
 * @param {Term} term
 * @param {number} digits
 * @returns {Printed[]}
 */
function print(term, digits) {
  if (term.kind === "number") return [{ text: text(term, digits), kind: "number", note: term.note }];
  if (term.kind === "call") {
    const inside = term.parts.flatMap((part, i) => [...(i ? [sign(", ")] : []), ...print(part, digits)]);
    return [sign(`${term.name}(`), ...inside, sign(")")];
  }
  return term.parts.flatMap((part, i) => {
    const pieces = print(part, digits);
    const negative = part.kind === "number" && pieces[0].text.startsWith("\u2212");
    const later = i > 0 && (term.kind === "difference" || term.kind === "quotient" || term.kind === "power");
    const bracket =
      RANK[part.kind] < RANK[term.kind] ||
      (later && RANK[part.kind] === RANK[term.kind]) ||
      (negative && (i > 0 || term.kind === "power"));
    return [...(i ? [sign(SIGNS[term.kind])] : []), ...(bracket ? [sign("("), ...pieces, sign(")")] : pieces)];
  });
}

/** @param {string} mark @returns {Printed} */
function sign(mark) {
  return { text: mark, kind: "sign" };
}

/**
 * The equation `term = value` with as few digits as make it true in print.
 * @param {Term} term
 * @param {number} value
 * @returns {Equation}
 */
export function settle(term, value) {
  if (!Number.isFinite(value)) return { pieces: print(term, DIGITS), result: show(value), holds: true };
  const forms = [
    ...[DIGITS, 3, 2].map((count) => (/** @type {number} */ x) => show(x, count)),
    ...[6, 5, 4, 3, 2].map((decimals) => (/** @type {number} */ x) => fixed(x, decimals)),
  ];
  for (const form of forms) {
    const result = form(value);
    // One digit more than the result has, then two, and so on: single precision holds eight.
    for (let digits = DIGITS; digits <= 9; digits++) {
      const found = evaluate(term, digits);
      if (form(found) === result) return { pieces: print(term, digits), result, holds: true };
    }
  }
  return { pieces: print(term, 9), result: show(value), holds: false };
}
