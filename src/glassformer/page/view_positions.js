// Positions: how this model knows where a token stands, and what two places say to each other.

import { lines } from "./chart.js";
import { button, code, h } from "./dom.js";
import { legend, stamp } from "./ink.js";
import { formulaOf, t } from "./language.js";
import { Matrix } from "./matrix.js";
import { sheetOf } from "./tensors.js";
import { shapeOf, stageKey } from "./view_block.js";

const REACH = 64; // positions of a table that are drawn
const LINES = ["q", "k", "v", "encoder", "decoder", "accent"];

/** The stack whose positions are shown: the one the page looks at, if it has some. */
function stackOf(app) {
  const { run, state } = app;
  const own = state.layer.split(".")[0];
  const has = (stack) => run.has(`${stack}.embedding`);
  return has(own) ? own : has("encoder") ? "encoder" : "decoder";
}

function ownNames(app) {
  const stack = stackOf(app);
  return [`${stack}.embedding.positions`, `${stack}.rotation.cos`, `${stack}.rotation.sin`, `${stack}.distance`].filter(
    (name) => app.run.has(name),
  );
}

export const positions = {
  names: ownNames,

  async prepare(app) {
    const stack = stackOf(app);
    const name = `${stack}.embedding.positions`;
    app.table = null;
    if (!app.run.has(name)) return;
    const { op } = app.run.entry(name);
    if (op.kind === "positions") app.table = await tableOf(app.run, op);
  },

  draw(app) {
    const { run } = app;
    const scheme = run.manifest.model.positions;
    const stack = stackOf(app);
    const names = ownNames(app);
    const removed = names.some((name) => run.entry(name).op.kind === "replaced");
    return h(
      "section.view",
      app.heading("positions", stackPicker(app, stack)),
      h(
        "div.scheme",
        h("h3", t(`scheme.${scheme}`)),
        h("p.lede", t(removed ? "positions.removed" : `scheme.${scheme}.says`)),
      ),
      scheme === "none" || removed
        ? null
        : h(
            "div.two",
            h("div.plate", h("h4", t(`offset.${scheme}`)), chart(app, stack, scheme)),
            app.table &&
              h(
                "div.plate",
                h("h4", t("positions.table", { n: app.table.rows })),
                stamp(app.table, { class: "stamp tall" }),
                h("p.caption", t("positions.tableSays")),
              ),
          ),
      names.length > 0 &&
        h(
          "div.with-inspector",
          h(
            "div.cards",
            names.map((name) => card(app, name)),
          ),
          app.inspectorAside(),
        ),
    );
  },
};

function stackPicker(app, stack) {
  const { run } = app;
  const stacks = ["encoder", "decoder"].filter((one) => run.has(`${one}.embedding`));
  if (stacks.length < 2) return null;
  return h(
    "div.bar",
    h(
      "div.choice",
      { role: "group", "aria-label": t("positions.stack") },
      stacks.map((one) =>
        button([h("i", { class: `dot ${one}` }), t(`stack.${one}`)], () => app.go({ layer: `${one}.0`, cell: [] }), {
          "aria-pressed": one === stack ? "true" : "false",
          data: { key: `positions:${one}` },
        }),
      ),
    ),
  );
}

function card(app, name) {
  const { run, state } = app;
  const sheet = sheetOf(run, name, state.head);
  const matrix = app.inspector.watch(new Matrix(sheet, app.inspector.hooks, { title: t(`stage.${stageKey(name)}`) }));
  return h(
    "article.card.wide",
    { data: { tensor: name } },
    h("header", h("h4", t(`stage.${stageKey(name)}`)), formulaOf(run.entry(name))),
    h("p.shape", shapeOf(run.entry(name))),
    matrix.element,
    h("footer", legend(sheet), code(name, { class: "tensor-name" })),
  );
}

/** The first rows of the table: learned ones from the weights, the paper's computed as the model computes them. */
async function tableOf(run, op) {
  const width = run.manifest.model.d_model;
  let values;
  let rows = Math.min(REACH, run.manifest.model.max_length ?? REACH);
  if (op.weight) {
    rows = Math.min(rows, run.weightEntries.get(op.weight).shape[0]);
    values = await run.weight(op.weight, 0, rows);
  } else {
    values = new Float32Array(rows * width);
    for (let at = 0; at < rows; at++) {
      for (let j = 0; j < width; j++) {
        const angle = at / 10000 ** ((j - (j % 2)) / width);
        values[at * width + j] = j % 2 ? Math.cos(angle) : Math.sin(angle);
      }
    }
  }
  const high = values.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
  return {
    rows,
    cols: width,
    values,
    at: (i, j) => values[i * width + j],
    masked: () => false,
    share: false,
    high,
    hue: "encoder",
  };
}

function chart(app, stack, scheme) {
  const { run } = app;
  let series = [];
  if (app.table) series = [tableSeries(app.table, stack)];
  else if (scheme === "rotary" && run.has(`${stack}.rotation.cos`)) series = [rotarySeries(run, stack)];
  else if (run.has(`${stack}.distance`)) series = distanceSeries(run, `${stack}.distance`);
  if (!series.length || series[0].points.length < 2) return h("p.hint", t("positions.nothing"));
  return lines(series, { label: t(`offset.${scheme}`), key: "offset", say: (x) => t("positions.offset", { x }) });
}

/** The mean dot product of rows that stand `offset` apart. */
function tableSeries({ rows, cols, values }, stack) {
  const reach = Math.min(32, rows - 1);
  const points = [];
  for (let offset = -reach; offset <= reach; offset++) {
    let total = 0,
      count = 0;
    for (let i = 0; i < rows; i++) {
      const other = i + offset;
      if (other < 0 || other >= rows) continue;
      for (let j = 0; j < cols; j++) total += values[i * cols + j] * values[other * cols + j];
      count += 1;
    }
    points.push({ x: offset, y: total / count });
  }
  return { name: "", colour: stack, points };
}

/** What turning leaves of a vector's product with itself: the mean cosine of all pairs' angles. */
function rotarySeries(run, stack) {
  const { op, shape } = run.entry(`${stack}.rotation.cos`);
  const pairs = shape.at(-1);
  const points = [];
  for (let offset = -32; offset <= 32; offset++) {
    let total = 0;
    for (let i = 0; i < pairs; i++) total += Math.cos(offset * op.base ** ((-2 * i) / op.d_head));
    points.push({ x: offset, y: total / pairs });
  }
  return { name: "", colour: stack, points };
}

/** The term of each head by distance, as this run added it. */
function distanceSeries(run, name) {
  const [heads, rows, cols] = run.entry(name).shape;
  const values = run.values(name);
  return Array.from({ length: heads }, (_, head) => {
    const at = new Map();
    for (let i = 0; i < rows; i++) for (let j = 0; j < cols; j++) at.set(j - i, values[(head * rows + i) * cols + j]);
    const points = [...at]
      .filter(([, y]) => Number.isFinite(y))
      .map(([x, y]) => ({ x, y }))
      .sort((a, b) => a.x - b.x);
    return { name: t("flow.head", { n: head }), colour: LINES[head % LINES.length], points };
  });
}
