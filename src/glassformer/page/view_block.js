// Block: one layer opened, each stage with its shape, its formula and its numbers as colours.

import { button, code, h, raw } from "./dom.js";
import { legend, stamp } from "./ink.js";
import { formulaOf, t } from "./language.js";
import { Matrix } from "./matrix.js";
import { attentionsOf, hasHeads, headFor, lastWord, layersOf, sheetOf, stagesOf, withMasks } from "./tensors.js";

const PARTS = ["self", "cross", "feed"];
const STAMPS = 200_000; // bytes of patterns that are fetched before the view is drawn; other stamps follow

function shownPatterns(app) {
  const all = attentionsOf(app.run);
  const size = all.reduce((total, one) => total + app.run.entry(one.name).bytes, 0);
  return size > STAMPS ? all.filter((one) => one.layer === app.state.layer) : all;
}

/** An alias of the stage before it would draw the same numbers twice. */
function stages(run, layer) {
  const parts = stagesOf(run, layer);
  for (const part of PARTS) {
    parts[part] = parts[part].filter((name, i) => i === 0 || run.entry(name).op.kind !== "same");
  }
  return parts;
}

export const block = {
  names(app) {
    const parts = stages(app.run, app.state.layer);
    return withMasks(app.run, [...PARTS.flatMap((part) => parts[part]), ...shownPatterns(app).map((one) => one.name)]);
  },

  draw(app) {
    const { run, state } = app;
    const parts = stages(run, state.layer);
    const sections = PARTS.filter((part) => parts[part].length).map((part) => section(app, part, parts[part]));
    return h(
      "section.view",
      app.heading("block", layerPicker(app)),
      grid(app),
      strip(parts),
      h("div.with-inspector", h("div.stages", sections), app.inspectorAside()),
    );
  },
};

function layerPicker(app) {
  const { state, run } = app;
  return h(
    "div.bar",
    h("span.label", t("block.layer")),
    h(
      "div.choice",
      layersOf(run.manifest.model).map((layer) => {
        const [stack, i] = layer.split(".");
        return button(
          [h("i", { class: `dot ${stack}` }), `${t(`stack.${stack}`)} ${i}`],
          () => app.go({ layer, cell: [] }),
          {
            "aria-pressed": layer === state.layer ? "true" : "false",
            data: { key: `layer:${layer}`, layer },
          },
        );
      }),
    ),
  );
}

/** Layer by head: every pattern of the model as a stamp. */
function grid(app) {
  const { run, state } = app;
  const late = [];
  const draw = (name, head) => {
    if (withMasks(run, [name]).every((one) => run.isLoaded(one)))
      return stamp({ ...sheetOf(run, name, head), high: 1 });
    const empty = h("span.stamp");
    late.push({ name, head, empty });
    return empty;
  };
  const rows = attentionsOf(run).map((one) =>
    h(
      "div.stamp-row",
      h("span", { class: `stamp-name ${one.stack}` }, t(`grid.${one.stack}.${one.attention}`, { n: one.i })),
      h(
        "div.stamps",
        Array.from({ length: one.heads }, (_, head) => {
          const chosen = one.layer === state.layer && head === state.head;
          return button([draw(one.name, head), raw(String(head))], () => app.go({ layer: one.layer, head, cell: [] }), {
            class: `stamp-button${chosen ? " chosen" : ""}`,
            "aria-pressed": chosen ? "true" : "false",
            "aria-label": `${t(`grid.${one.stack}.${one.attention}`, { n: one.i })}, ${t("flow.head", { n: head })}`,
            data: { key: `stamp:${one.name}:${head}`, head },
          });
        }),
      ),
    ),
  );
  if (late.length) {
    run
      .need(
        withMasks(
          run,
          late.map((one) => one.name),
        ),
      )
      .then(
        () => {
          for (const { name, head, empty } of late) empty.replaceWith(draw(name, head));
        },
        () => {},
      ); // the numbers under them can be clicked all the same
  }
  return h(
    "details.grid-of-heads",
    { open: true },
    h("summary", { data: { key: "grid" } }, t("block.grid"), h("span.faint", t("block.gridHint"))),
    h("div.stamp-grid", rows),
  );
}

/** The order of the stages at a glance; each leads to its own. */
function strip(parts) {
  const steps = PARTS.flatMap((part) => parts[part].map((name, i) => ({ part, name, first: i === 0 })));
  return h(
    "nav.overview",
    { "aria-label": t("block.overview") },
    h(
      "ol",
      steps.map(({ part, name, first }) =>
        h(
          "li",
          { class: first ? `first ${part}` : part },
          h(
            "button",
            {
              type: "button",
              class: `step hue-${hueWord(name)}`,
              data: { key: `step:${name}` },
              title: t(`stage.${stageKey(name)}`),
              on: { click: () => document.getElementById(`stage-${name}`)?.scrollIntoView({ block: "start" }) },
            },
            shortName(name),
          ),
        ),
      ),
    ),
  );
}

function hueWord(name) {
  const word = lastWord(name).split("_")[0];
  return ["q", "k", "v"].includes(word) ? word : "none";
}

function shortName(name) {
  const word = stageKey(name);
  return t(`short.${word}`);
}

export function stageKey(name) {
  if (/\.blocks\.\d+$/.test(name) || name.endsWith(".embedding")) return "stream";
  if (name.endsWith("_residual.norm")) return "norm";
  if (name.endsWith("_residual.sum")) return "sum";
  if (name.endsWith("_residual")) return "residual";
  if (name.startsWith("masks.")) return "mask";
  const word = lastWord(name);
  return KNOWN.has(word) ? word : "value";
}

const KNOWN = new Set([
  "q",
  "k",
  "v",
  "q_plain",
  "k_plain",
  "products",
  "scores",
  "masked",
  "pattern",
  "context",
  "merged",
  "output",
  "up",
  "hidden",
  "down",
  "memory",
  "norm",
  "logits",
  "probabilities",
  "tokens",
  "scaled",
  "positions",
  "cos",
  "sin",
  "distance",
]);

function section(app, part, names) {
  return h(
    "section",
    { class: `sublayer ${part}` },
    h("h3", t(`part.${part}`)),
    h("p.lede", t(`part.${part}.says`)),
    h(
      "div.cards",
      names.map((name) => card(app, name)),
    ),
  );
}

function card(app, name) {
  const { run, state } = app;
  const entry = run.entry(name);
  const key = stageKey(name);
  const sheet = sheetOf(run, name, state.head);
  const softmax = entry.op.kind === "softmax";
  const matrix = app.inspector.watch(
    new Matrix(sheet, app.inspector.hooks, { sums: softmax, title: t(`stage.${key}`) }),
  );
  const wide = sheet.colLabels === null;
  return h(
    "article",
    {
      class: `card ${wide ? (sheet.cols <= 64 ? "narrow" : "wide") : "square"} hue-${hueWord(name)}`,
      id: `stage-${name}`,
      data: { tensor: name },
    },
    h("header", h("h4", t(`stage.${key}`)), formulaOf(entry)),
    h(
      "p.shape",
      shapeOf(entry),
      hasHeads(entry) && h("span.faint", ` \u00b7 ${t("block.showing", { n: headFor(run, entry, state.head) })}`),
    ),
    matrix.element,
    h("footer", legend(sheet), code(name, { class: "tensor-name" })),
  );
}

/** A shape with its axes named: 4 heads x 9 queries x 32. */
export function shapeOf(entry) {
  return entry.shape.flatMap((size, i) => [
    i ? raw(" \u00d7 ", { class: "faint" }) : "",
    h("span.axis", raw(String(size)), " ", h("span.faint", t(`axis.${entry.axes[i].split(":")[0]}`))),
  ]);
}
