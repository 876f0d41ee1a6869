// What went wrong, in the reader's language.

import { raw } from "./dom.js";
import { t } from "./language.js";
import { Refusal } from "./request.js";

const KNOWN_ERRORS = new Set([
  "image",
  "empty",
  "long",
  "long_text",
  "offline",
  "busy",
  "no_weights",
  "no_file",
  "needs_server",
]);

/** @param {unknown} error @returns {Child} */
export function tellError(error) {
  if (!(error instanceof Refusal))
    return [t("error.page"), " ", raw(error instanceof Error ? error.message : String(error))];
  if (KNOWN_ERRORS.has(error.code)) return t(`error.${error.code}`, error.values);
  return [t("error.refused"), " ", raw([error.message, error.hint].filter(Boolean).join(" "))];
}
