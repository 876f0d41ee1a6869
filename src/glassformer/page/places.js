// Where one stands in a matrix, in words; which of its columns are shown.

import { button, h } from "./dom.js";
import { t } from "./language.js";
import { whole } from "./number.js";

/**
 * A name for a row or column, for a reader who cannot see the label.
 * @param {string} axis
 * @param {number} i
 * @param {string[] | null} labels
 */
export function placeName(axis, i, labels) {
  const word = t(`axis.${axis.split(":")[0]}`);
  return labels ? `${word} ${i} \u201c${labels[i]}\u201d` : `${word} ${i}`;
}

/**
 * Which columns are shown, and how to go to those before and after; a place that is none of them cannot be gone to.
 * @param {number} cols
 * @param {number} first
 * @param {number} last
 * @param {[number, number]} beside   the first columns of the pages before and after
 * @param {(to: number) => void} turn
 * @param {string} key
 */
export function pager(cols, first, last, [before, after], turn, key) {
  /** @param {number} to @param {string} mark @param {"before" | "after"} way */
  const page = (to, mark, way) =>
    button(mark, () => turn(to), {
      "aria-label": t(`matrix.${way}`),
      disabled: to < 0 || to >= cols,
      data: { key: `${way}:${key}` },
    });
  const shown = t("matrix.columns", { from: whole(first), to: whole(last), all: whole(cols) });
  return [page(before, "\u2039", "before"), h("span", shown), page(after, "\u203a", "after")];
}
