// The language of the page, and what languages are called in it.

import { TEXTS } from "./texts.js";

/** @type {FrontLanguage[]} */
export const LANGUAGES = ["en", "de", "zh"];
/** How each is written in the attribute `lang`. @type {Record<FrontLanguage, string>} */
export const WRITTEN = { en: "en", de: "de", zh: "zh-Hans" };
/** @type {FrontLanguage} */
let language = "en";

/** @param {FrontLanguage} name */
export function setLanguage(name) {
  language = name;
}

/** The first of those that the browser asks for that the page knows. */
export function preferred() {
  const asked = navigator.languages.map((one) => one.toLowerCase().slice(0, 2));
  return /** @type {FrontLanguage} */ (asked.find((one) => LANGUAGES.some((known) => known === one)) ?? "en");
}

/** The text of that name. @param {string} name @param {Record<string, unknown>} [values] */
export function t(name, values = {}) {
  const text = TEXTS[name]?.[LANGUAGES.indexOf(language)] ?? name;
  return text.replace(/\{(\w+)\}/g, (whole, word) => (word in values ? String(values[word]) : whole));
}

/** A number as the language writes it. @param {number} value */
export const whole = (value) => value.toLocaleString(WRITTEN[language]);

/** What a language is called. @param {string} code */
export function nameOf(code) {
  const plain = code.replace("-Hans", ""); // where there is one Chinese, nobody asks which
  return (
    plain && (new Intl.DisplayNames([WRITTEN[language]], { type: "language", fallback: "code" }).of(plain) ?? plain)
  );
}
