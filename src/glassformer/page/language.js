// The language of the page: its words, and the formulas that the trace tells in both.

import { h, raw } from "./dom.js";
import { Refusal } from "./request.js";
import { TEXTS } from "./texts.js";

const COLUMN = { en: 0, zh: 1 };
/** @type {Language} */
let language = "en";

/** @param {Language} name */
export function setLanguage(name) {
  language = name;
}

/** What else a text is called, where a model does something else; the nearest first. @type {Record<Task, string[]>} */
const VARIANTS = {
  translate: [],
  continue: ["continue", "one"],
  fill: ["fill", "reads", "one"],
  label: ["label", "reads", "one"],
  image: ["image", "label", "reads", "one"],
};
/** @type {string[]} */
let variants = [];

/** What the model does, so that nothing is said of parts that it does not have. @param {Task} task */
export function setTask(task) {
  variants = VARIANTS[task];
}

/** @param {string} name */
export const hasText = (name) => name in TEXTS;

/** The text of that name in the page's language. @param {string} name @param {Record<string, unknown>} [values] */
export function t(name, values = {}) {
  const variant = variants.find((one) => `${name}|${one}` in TEXTS);
  const text = TEXTS[variant ? `${name}|${variant}` : name]?.[COLUMN[language]] ?? name;
  return text.replace(/\{(\w+)\}/g, (whole, word) => (word in values ? String(values[word]) : whole));
}

/** A text of the trace, in the language of the page. @param {{en: string, zh: string}} text */
export function localized(text) {
  return text[language];
}

/** A formula, typeset: `_` lowers what follows and `^` raises it. @param {string} text @returns {Child[]} */
function typeset(text) {
  return text.split(/(_[A-Za-z0-9]+|\^\([^)]*\)|\^[A-Za-z0-9]+)/).map((piece) => {
    if (piece.startsWith("_")) return h("sub", piece.slice(1));
    if (piece.startsWith("^")) return h("sup", typeset(piece.slice(1).replace(/^\(|\)$/g, "")));
    return piece.replace(/(?<![a-z])-|-(?![a-z])/gi, "\u2212"); // a minus, not the hyphen of a word
  });
}

/** The formula of a value, from the trace. @param {Entry} entry */
export function formulaOf(entry) {
  const formula = language === "zh" ? entry.formula_zh : entry.formula;
  const named = entry.op.kind === "replaced"; // by a change, whose name is no formula
  return h("span.formula", { translate: "no" }, named ? formula : typeset(formula));
}

/**
 * Why something did not work.
 * @param {unknown} error @param {string} [unknown]   what stands before a refusal without a text of its own
 * @returns {Child}
 */
export function errorText(error, unknown = "error.unknown") {
  if (!(error instanceof Refusal))
    return [t("error.page"), " ", raw(error instanceof Error ? error.message : String(error))];
  if (hasText(`error.${error.code}`)) return t(`error.${error.code}`, error.values);
  return [t(unknown), " ", raw([error.message, error.hint].filter(Boolean).join(" "))];
}
