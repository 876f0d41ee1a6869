// The language of the page: its words, and the formulas that the trace tells in both.

import { h } from "./dom.js";
import { TEXTS } from "./texts.js";

const COLUMN = { en: 0, zh: 1 };
let language = "en";

export function setLanguage(name) {
  language = name in COLUMN ? name : "en";
}

/** The text of that name in the page's language. */
export function t(name, values = {}) {
  const text = TEXTS[name]?.[COLUMN[language]] ?? name;
  return text.replace(/\{(\w+)\}/g, (whole, word) => (word in values ? String(values[word]) : whole));
}

/** What the trace tells in both languages. @param {{en: string, zh: string}} text */
export function told(text) {
  return text[language];
}

/** A formula, typeset: `_` lowers what follows and `^` raises it. */
function typeset(text) {
  return text.split(/(_[A-Za-z0-9]+|\^\([^)]*\)|\^[A-Za-z0-9]+)/).map((piece) => {
    if (piece.startsWith("_")) return h("sub", piece.slice(1));
    if (piece.startsWith("^")) return h("sup", typeset(piece.slice(1).replace(/^\(|\)$/g, "")));
    return piece.replace(/(?<![a-z])-|-(?![a-z])/gi, "\u2212"); // a minus, not the hyphen of a word
  });
}

/** How a value is made, as the trace tells it. @param {import("./source.js").Entry} entry */
export function formulaOf(entry) {
  const told = language === "zh" ? entry.formula_zh : entry.formula;
  return h("span.formula", { translate: "no" }, entry.op.kind === "replaced" ? told : typeset(told)); // with a name
}
