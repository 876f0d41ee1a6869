// The language of the page, the names of languages, and the pairs that the server translates.

import { TEXTS } from "./texts.js";

/** @type {FrontLanguage[]} */
const LANGUAGES = ["en", "de", "zh"];
/** Values of the attribute `lang`. @type {Record<FrontLanguage, string>} */
export const LANG_TAGS = { en: "en", de: "de", zh: "zh-Hans" };
/** @type {FrontLanguage} */
let language = "en";

/** @param {FrontLanguage} name */
export function setLanguage(name) {
  language = name;
}

/** The first language of the browser that the page has texts in. */
export function browserLanguage() {
  const wanted = navigator.languages.map((one) => one.toLowerCase().slice(0, 2));
  return /** @type {FrontLanguage} */ (wanted.find((one) => LANGUAGES.some((known) => known === one)) ?? "en");
}

/** The text of that name. @param {string} name @param {Record<string, unknown>} [values] */
export function t(name, values = {}) {
  const text = TEXTS[name]?.[LANGUAGES.indexOf(language)] ?? name;
  return text.replace(/\{(\w+)\}/g, (whole, word) => (word in values ? String(values[word]) : whole));
}

/** @param {number} value */
export const formatNumber = (value) => value.toLocaleString(LANG_TAGS[language]);

/** @param {string} code */
export function languageName(code) {
  const plain = code.replace("-Hans", ""); // there is only one Chinese here
  const names = new Intl.DisplayNames([LANG_TAGS[language]], { type: "language", fallback: "code" });
  return plain && (names.of(plain) ?? plain);
}

export class LanguagePairs {
  /** @param {ServedLanguage[]} languages */
  constructor(languages) {
    this.languages = languages;
    this.codes = languages.map((one) => one.code);
  }

  /** @param {string} code */
  has(code) {
    return this.codes.includes(code);
  }

  /** The targets of a language, or of any language. @param {string} code */
  #targetsOf(code) {
    const found = this.languages.find((one) => one.code === code)?.targets ?? this.codes;
    return found.filter((one) => one !== code);
  }

  /** @param {string} from @param {string} to */
  translates(from, to) {
    return this.#targetsOf(from).includes(to);
  }

  /** The chosen target, the reader's own, or any. @param {string} from @param {string} chosen @param {string} own */
  target(from, chosen, own) {
    if (this.translates(from, chosen)) return chosen;
    const targets = this.#targetsOf(from);
    if (from === "auto") return targets.find((one) => one !== own) ?? chosen; // most readers type in their own language
    return targets.includes(own) ? own : (targets[0] ?? chosen);
  }
}
