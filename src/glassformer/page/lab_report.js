// What a lab found: its figure, and as tables its checks and numbers, each a mean over the seeds with its interval.

import { code, columnHead, h, numberCell, table } from "./dom.js";
import { t } from "./language.js";
import { brief, fixed, show } from "./number.js";

/** @type {Record<Check["outcome"], [string, string, string]>} */
const OUTCOMES = {
  passed: ["\u2713", "holds", "labs.passed"],
  failed: ["\u2717", "fails", "labs.notPassed"],
  open: ["?", "open", "labs.open"],
};

/** The figure as the server has drawn it, or what the server lacks to draw it. @param {LabReport} report */
export function figure({ figure: { caption, panels }, svg }) {
  if (svg === null) return h("p.notice", t("labs.noFigure"), " ", code("pip install 'glassformer[plot]'"));
  const dark = document.documentElement.dataset.theme === "dark";
  // A picture follows the system's theme, and has to follow the page's.
  const themed = svg.replace("(prefers-color-scheme:dark)", dark ? "all" : "not all");
  const src = `data:image/svg+xml,${encodeURIComponent(themed)}`;
  const alt = panels.map(({ title }) => title).join("; ");
  return h(
    "figure.lab-figure",
    { data: { testid: "lab-figure" } },
    h("div.plate.lab-picture", { tabindex: 0 }, h("img", { src, alt })),
    caption && h("figcaption.caption", caption),
  );
}

/** @param {LabReport} report */
export function checks(report) {
  /** @param {Check} check */
  const limit = ({ low, high }) => {
    const [least, most] = [number(low), number(high)];
    if (least === most) return `= ${brief(least)}`;
    if (!Number.isFinite(least)) return `\u2264 ${brief(most)}`;
    if (!Number.isFinite(most)) return `\u2265 ${brief(least)}`;
    return t("labs.between", { low: brief(least), high: brief(most) });
  };
  const rows = report.checks.map((check) => {
    const [sign, kind, words] = OUTCOMES[check.outcome];
    const mark = { class: `check-mark ${kind}`, "aria-label": t(words) };
    return h(
      "tr",
      { data: { passed: check.passed } },
      h("td", mark, sign),
      h("td.words", check.text, check.extent && h("span.faint", " \u00b7 ", t("labs.extent"))),
      numberCell(meanOf(check.value, check)),
      numberCell(limit(check)),
    );
  });
  const num = { class: "num" };
  const head = [h("th"), h("th"), columnHead(t("labs.value"), num), columnHead(t("labs.bounds"), num)];
  const attributes = { class: "numbers lab-checks", data: { testid: "lab-checks" } };
  return h(
    "div.plate",
    h("h4", t("labs.checks")),
    h("p.caption", t("labs.checksSay")),
    table(attributes, { head, rows }),
  );
}

/** @param {LabReport} report */
export function numbers(report) {
  const rows = Object.entries(report.numbers).map(([name, value]) =>
    h("tr", h("td.words", name), numberCell(meanOf(value, report.spreads[name]))),
  );
  return h("div.plate", h("h4", t("labs.numbers")), table({ data: { testid: "lab-numbers" } }, { rows }));
}

/** A mean and half its interval, to the same place. @param {number | string} value @param {Spread} spread */
function meanOf(value, spread) {
  const mean = number(value);
  const half = number(spread.interval[1]) - mean;
  if (!(half > 0) || !Number.isFinite(half)) return show(mean);
  if (half < 1e-3 || half >= 1e5) return `${show(mean)} \u00b1 ${show(half, 2)}`;
  const decimals = Math.max(0, 1 - Math.floor(Math.log10(half)));
  return `${fixed(mean, decimals)} \u00b1 ${fixed(half, decimals)}`;
}

/** JSON has no infinity; the server sends its name. @param {number | string} value */
function number(value) {
  if (typeof value === "number") return value;
  return value === "inf" ? Infinity : value === "-inf" ? -Infinity : NaN;
}
