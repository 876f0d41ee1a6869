// What if: take a part away, or put another in its place, and see what the model says then.

import { changeControls, inForce } from "./changes.js";
import { code, columnHead, h, numberCell, raw, svg, table } from "./dom.js";
import { t } from "./language.js";
import { fixed, show, unit } from "./number.js";
import { line, rect } from "./shapes.js";
import { attentionsOf, hasHeads, sheetOf, withMasks } from "./tensors.js";

/**
 * What is compared: the value that a change has set, else the attention of the layer the page looks at.
 * @param {App} app
 */
function compared(app) {
  const set = [...app.run.entries.values()].find(
    (entry) => entry.op.kind === "replaced" && app.before?.has(entry.name),
  );
  if (set) return set.name;
  const all = attentionsOf(app.run);
  const own = all.filter((one) => one.layer === app.state.layer);
  const cross = own.find((one) => one.attention === "cross_attention");
  const near = cross ?? own[0] ?? all.find((one) => app.state.layer.startsWith(one.stack)) ?? all[0];
  return near?.name ?? null;
}

/** @type {Painter} */
export const whatif = {
  names(app) {
    const name = compared(app);
    return name ? withMasks(app.run, [name]) : [];
  },

  async prepare(app) {
    const name = compared(app);
    if (app.before && name && app.before.has(name)) await app.before.need(withMasks(app.before, [name]));
  },

  draw(app) {
    const { state, before, difference } = app;
    const nothing = h("div.empty", h("p.big-hint", t("whatif.choose")), h("p.faint", t("whatif.chooseSays")));
    return h(
      "section.view",
      app.heading("whatif"),
      h(
        "div.whatif",
        h("div.controls", changeControls(app)),
        h(
          "div.outcome",
          inForce(app),
          before && difference ? outcome(before, app.run, difference) : nothing,
          before && state.changes.length > 0 && pictures(app, before),
        ),
      ),
    );
  },
};

/** @param {Run} before @param {Run} after @param {Difference} difference */
function outcome(before, after, difference) {
  const writes = difference.forced.length > 0;
  const changed = difference.same_output ? "" : " changed";
  /** @param {"before" | "after"} which @param {Run} run */
  const side = (which, run) =>
    h(
      "div",
      { class: `side ${which}${which === "after" ? changed : ""}` },
      h("span.label", t(`whatif.${which}`)),
      raw(difference[`output_${which}`] || "\u2014", { class: "said", data: { testid: `output-${which}` } }),
      writes && h("span.faint", t("whatif.total"), " ", raw(show(difference[`total_${which}`]))),
      h("span.faint", t("run"), " ", code(run.id, { data: { testid: `run-${which}` } })),
    );
  return h(
    "div.plate",
    h("div.sides", side("before", before), side("after", after)),
    h("p", { class: `verdict${changed}` }, t(!writes ? "whatif.none" : changed ? "whatif.changed" : "whatif.same")),
    writes && differences(difference),
  );
}

/** @param {Difference} difference */
function differences({ forced, total_before: before, total_after: after }) {
  const most = Math.max(1e-6, ...forced.map((one) => Math.abs(one.difference ?? 0)));
  const num = { class: "num" };
  const head = [
    columnHead(t("decode.piece")),
    ["whatif.before", "whatif.after", "whatif.change"].map((name) => columnHead(t(name), num)),
    h("th.bar-cell"),
  ];
  const rows = forced.map((one) => {
    const change = apart(one.before, one.after);
    return h(
      "tr",
      h("td", raw(one.piece)),
      numberCell(show(one.before)),
      numberCell(show(one.after)),
      numberCell(change, { data: { difference: one.difference } }),
      h("td.bar-cell", slant(change === "0" ? 0 : (one.difference ?? 0) / most)),
    );
  });
  const foot = [
    h("th", { scope: "row" }, t("whatif.sum")),
    numberCell(show(before)),
    numberCell(show(after)),
    numberCell(apart(before, after), { data: { testid: "total-difference" } }),
    h("td.bar-cell"),
  ];
  const attributes = { class: "numbers differences", data: { testid: "differences" } };
  const title = h("h3", t("whatif.difference"));
  return h("div", title, h("p.lede", t("whatif.differenceSays")), table(attributes, { head, rows, foot }));
}

/**
 * The difference of two printed numbers, to no more digits than they have.
 * @param {number | null} before
 * @param {number | null} after
 */
function apart(before, after) {
  if (before === null || after === null) return "\u2014";
  const finest = Math.min(unit(show(before)), unit(show(after)));
  const change = after - before;
  if (Math.abs(change) < finest / 2) return "0";
  const text = unit(show(change)) < finest ? fixed(change, -Math.log10(finest)) : show(change);
  return change > 0 && text !== "0" ? `+${text}` : text;
}

/** A bar that leans left for less likely, right for likelier; none where nothing has changed. @param {number} by */
function slant(by) {
  const long = Math.max(0.5, 48 * Math.min(1, Math.abs(by)));
  const bar = rect([by < 0 ? 50 - long : 50, 2, long, 6], { class: by < 0 ? "less" : "more" });
  const attributes = { viewBox: "0 0 100 10", "aria-hidden": "true", preserveAspectRatio: "none" };
  return svg("svg.slant", attributes, line([50, 0], [50, 10], { class: "axis" }), by !== 0 && bar);
}

/** The value that is compared, in both runs. @param {App} app @param {Run} before */
function pictures(app, before) {
  const { run } = app;
  const name = compared(app);
  if (!name || ![before, run].every((one) => one.has(name) && one.isLoaded(name))) return null;
  const { op } = run.entry(name);
  const head = op.kind === "replaced" && "head" in op.by ? op.by.head : app.state.head;
  /** @type {Hooks} */
  const hooks = {
    preview: (cell) => app.light(cell?.tokens ?? []),
    lock: (cell) => app.go({ view: "cell", tensor: cell.name, cell: cell.index }),
    release() {},
  };
  const { high } = sheetOf(before, name, head);
  /** @param {"before" | "after"} which @param {Run} one */
  const picture = (which, one) => {
    const title = t(`whatif.${which}`);
    const matrix = app.inspector.matrix({ ...sheetOf(one, name, head), high }, { title }, hooks);
    return h("div", h("h4", title), matrix.element);
  };
  const shown = hasHeads(run.entry(name)) ? t("flow.head", { n: head }) : "";
  return h(
    "div.plate",
    h("h3", t("whatif.pattern")),
    h("p.lede", code(name), " \u00b7 ", shown),
    h("div.two", picture("before", before), picture("after", run)),
  );
}
