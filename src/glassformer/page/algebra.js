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
export function toTerm(expression, symbols) {
  if (typeof expression === "number") return exact(expression);
  if (typeof expression === "string") return symbols[expression];
  const [name, ...rest] = expression;
  const parts = rest.map((part) => toTerm(part, symbols));
  if (name === "-") return parts.length > 1 ? difference(...parts) : negative(parts[0]);
  return BUILDERS[name]?.(...parts) ?? call(name, ...parts);
}

/** @param {Term} term */
function negative(term) {
  return term.kind === "number" ? { ...term, value: -term.value } : product(exact(-1), term);
}

/** Operations and named functions on numbers. @type {Record<string, (...values: number[]) => number>} */
const FUNCTIONS = {
  sum: (...values) => values.reduce((a, b) => a + b, 0),
  product: (...values) => values.reduce((a, b) => a * b, 1),
  difference: (a, b) => a - b,
  quotient: (a, b) => a / b,
  power: (a, b) => a ** b,
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

/** The error function, by a series whose terms all have one sign. @param {number} x */
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let [term, total] = [x, x];
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(total); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    total += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * total;
}

/** @param {Term & {kind: "number"}} term @param {number} digits */
function text(term, digits) {
  return term.exact ? String(term.value).replaceAll("-", "\u2212") : show(term.value, digits);
}

/**
 * What the numbers give as printed with so many digits; or as they are, with null.
 * @param {Term} term @param {number | null} digits @returns {number}
 */
export function evaluate(term, digits) {
  if (term.kind === "number") return digits === null ? term.value : read(text(term, digits));
  const values = term.parts.map((part) => evaluate(part, digits));
  return FUNCTIONS[term.kind === "call" ? term.name : term.kind](...values);
}

const RANK = { sum: 1, difference: 1, product: 2, quotient: 2, power: 3, call: 4, number: 4 };
const SIGNS = { sum: " + ", difference: " \u2212 ", product: " \u00d7 ", quotient: " / ", power: "^" };

/**
 * A term as printed pieces, with brackets where the order of the operations needs them.
 * @param {Term} term @param {number} digits @returns {Printed[]}
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
 * @param {Term} term @param {number} value @returns {Equation}
 */
export function equationOf(term, value) {
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
