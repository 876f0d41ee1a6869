// Block: one layer opened, each stage with its shape, its formula and its numbers as colours.

import { stackLabel, stageKey, stageTitle, valueCard } from "./card.js";
import { button, h, raw, toggle } from "./dom.js";
import { thumbnail } from "./heatmap.js";
import { t } from "./language.js";
import { attentionsOf, hasHeads, headFor, hueOf, layersOf, sheetOf, stagesOf, withMasks } from "./tensors.js";

/** @type {Part[]} */
const PARTS = ["self", "cross", "feed"];
const STAMPS = 200_000; // bytes of patterns that are fetched before the view is drawn; other stamps follow

/** @param {App} app */
function shownPatterns(app) {
  const all = attentionsOf(app.run);
  const size = all.reduce((total, one) => total + app.run.entry(one.name).bytes, 0);
  return size > STAMPS ? all.filter((one) => one.layer === app.state.layer) : all;
}

/** @type {Painter} */
export const block = {
  names(app) {
    const parts = stagesOf(app.run, app.state.layer);
    return withMasks(app.run, [...PARTS.flatMap((part) => parts[part]), ...shownPatterns(app).map((one) => one.name)]);
  },

  draw(app) {
    const { run, state } = app;
    const parts = stagesOf(run, state.layer);
    const sections = PARTS.filter((part) => parts[part].length).map((part) => section(app, part, parts[part]));
    return h(
      "section.view",
      app.heading("block", layerPicker(app)),
      grid(app),
      strip(parts),
      h("div.with-inspector", h("div.stages", sections), app.inspector.aside()),
    );
  },
};

/** @param {App} app */
function layerPicker(app) {
  const choices = layersOf(app.run.manifest.model).map((layer) => {
    const [stack, i] = layer.split(".");
    return toggle(stackLabel(stack, ` ${i}`), layer === app.state.layer, () => app.go({ layer, cell: [] }), {
      data: { key: `layer:${layer}`, layer },
    });
  });
  return h("div.bar", h("span.label", t("block.layer")), h("div.choice", choices));
}

/**
 * Layer by head: a stamp of each, of which one is chosen.
 * @param {App} app @param {string} title @param {string} hint @param {number | null} head @param {StampHooks} hooks
 */
export function stampGrid(app, title, hint, head, { nameOf, draw, choose }) {
  const rows = attentionsOf(app.run).map((one) => {
    const stamps = Array.from({ length: one.heads }, (_, n) => {
      const chosen = one.layer === app.state.layer && n === head;
      return toggle([draw(one, n), raw(String(n))], chosen, () => choose(one, n), {
        class: `stamp-button${chosen ? " chosen" : ""}`,
        "aria-label": `${nameOf(one)}, ${t("flow.head", { n })}`,
        data: { key: `stamp:${one.name}:${n}`, head: n },
      });
    });
    return h("div.stamp-row", h("span", { class: `stamp-name ${one.stack}` }, nameOf(one)), h("div.stamps", stamps));
  });
  const summary = h("summary", { data: { key: "grid" } }, t(title), h("span.faint", t(hint)));
  return h("details.grid-of-heads", { open: true }, summary, h("div.stamp-grid", rows));
}

/** Every pattern of the model as a stamp. @param {App} app */
function grid(app) {
  const { run } = app;
  /** @type {{name: string, head: number, empty: Element}[]} */
  const late = [];
  /** @param {string} name @param {number} head */
  const draw = (name, head) => {
    const loaded = withMasks(run, [name]).every((one) => run.isLoaded(one));
    if (loaded) return thumbnail({ ...sheetOf(run, name, head), high: 1 });
    const empty = h("span.stamp");
    late.push({ name, head, empty });
    return empty;
  };
  const stamps = stampGrid(app, "block.grid", "block.gridHint", app.state.head, {
    nameOf: (one) => t(`grid.${one.stack}.${one.attention}`, { n: one.i }),
    draw: (one, head) => draw(one.name, head),
    choose: ({ layer }, head) => app.go({ layer, head, cell: [] }),
  });
  const drawLate = () => {
    for (const { name, head, empty } of late) empty.replaceWith(draw(name, head));
  };
  // Where they do not come, the numbers under them can be clicked all the same.
  const wanted = late.map((one) => one.name);
  if (late.length) run.need(withMasks(run, wanted)).then(drawLate, () => {});
  return stamps;
}

/** The order of the stages at a glance; each leads to its own. @param {Record<Part, string[]>} parts */
function strip(parts) {
  const steps = PARTS.flatMap((part) =>
    parts[part].map((name, i) => {
      const go = () => document.getElementById(`stage-${name}`)?.scrollIntoView({ block: "start" });
      const attributes = { class: `step hue-${hueOf(name)}`, data: { key: `step:${name}` }, title: stageTitle(name) };
      return h("li", { class: i ? part : `first ${part}` }, button(t(`short.${stageKey(name)}`), go, attributes));
    }),
  );
  return h("nav.overview", { "aria-label": t("block.overview") }, h("ol", steps));
}

/** @param {App} app @param {Part} part @param {string[]} names */
function section(app, part, names) {
  const cards = names.map((name) => stageCard(app, name));
  const title = h("h3", t(`part.${part}`));
  return h("section", { class: `sublayer ${part}` }, title, h("p.lede", t(`part.${part}.says`)), h("div.cards", cards));
}

/** @param {App} app @param {string} name */
function stageCard(app, name) {
  const { run, state } = app;
  const entry = run.entry(name);
  const sheet = sheetOf(run, name, state.head);
  const matrix = app.inspector.matrix(sheet, { sums: entry.op.kind === "softmax", title: stageTitle(name) });
  const size = sheet.colLabels ? "square" : sheet.cols <= 64 ? "narrow" : "wide";
  const showing = hasHeads(entry) && t("block.showing", { n: headFor(run, entry, state.head) });
  const attributes = { class: `card ${size} hue-${hueOf(name)}`, id: `stage-${name}` };
  return valueCard(app, matrix, attributes, showing && h("span.faint", ` \u00b7 ${showing}`));
}
