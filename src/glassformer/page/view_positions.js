// Positions: how this model knows where a token stands, and what two places say to each other.

import { stackLabel, stageTitle, valueCard } from "./card.js";
import { lines } from "./chart.js";
import { h, toggle } from "./dom.js";
import { thumbnail } from "./heatmap.js";
import { t } from "./language.js";
import { plainSheet, STACKS, sheetOf } from "./tensors.js";

const REACH = 64; // positions of a table that are drawn
const LINES = ["q", "k", "v", "encoder", "decoder", "accent"];

/** @param {App} app */
const stacksOf = (app) => STACKS.filter((stack) => app.run.has(`${stack}.embedding`));

/** The stack whose positions are shown: the one the page looks at, if it has some. @param {App} app */
function stackOf(app) {
  const stacks = stacksOf(app);
  return stacks.find((stack) => app.state.layer.startsWith(stack)) ?? stacks[0];
}

/** @param {App} app */
function ownNames(app) {
  const stack = stackOf(app);
  return [`${stack}.embedding.positions`, `${stack}.rotation.cos`, `${stack}.rotation.sin`, `${stack}.distance`].filter(
    (name) => app.run.has(name),
  );
}

/** @type {Painter} */
export const positions = {
  names: ownNames,

  async prepare(app) {
    const op = app.run.entries.get(`${stackOf(app)}.embedding.positions`)?.op;
    app.positionTable = op?.kind === "positions" ? await tableOf(app.run, op.weight) : null;
  },

  draw(app) {
    const { run } = app;
    const scheme = run.manifest.model.positions;
    const stack = stackOf(app);
    const names = ownNames(app);
    const removed = names.some((name) => run.entry(name).op.kind === "replaced");
    const says = t(removed ? "positions.removed" : `scheme.${scheme}.says`);
    const cards = names.map((name) => {
      const sheet = sheetOf(run, name, app.state.head);
      return valueCard(app, app.inspector.matrix(sheet, { title: stageTitle(name) }), { class: "card wide" });
    });
    return h(
      "section.view",
      app.heading("positions", stackPicker(app, stack)),
      h("div.scheme", h("h3", t(`scheme.${scheme}`)), h("p.lede", says)),
      scheme !== "none" &&
        !removed &&
        h(
          "div.two",
          h("div.plate", h("h4", t(`offset.${scheme}`)), chart(app, stack, scheme)),
          app.positionTable &&
            h(
              "div.plate",
              h("h4", t("positions.table", { n: app.positionTable.rows })),
              thumbnail(app.positionTable, "stamp tall"),
              h("p.caption", t("positions.tableSays")),
            ),
        ),
      names.length > 0 && h("div.with-inspector", h("div.cards", cards), app.inspector.aside()),
    );
  },
};

/** @param {App} app @param {Stack} stack */
function stackPicker(app, stack) {
  const stacks = stacksOf(app);
  if (stacks.length < 2) return null;
  const choices = stacks.map((one) =>
    toggle(stackLabel(one), one === stack, () => app.go({ layer: `${one}.0`, cell: [] }), {
      data: { key: `positions:${one}` },
    }),
  );
  return h("div.bar", h("div.choice", { role: "group", "aria-label": t("positions.stack") }, choices));
}

/**
 * The first rows of the table: learned ones from the weights, the paper's computed as the model computes them.
 * @param {Run} run @param {string | null} weight
 */
async function tableOf(run, weight) {
  const { d_model: width, max_length: most } = run.manifest.model;
  const learned = weight ? run.weightEntries.get(weight)?.shape[0] : undefined;
  const rows = Math.min(REACH, most ?? REACH, learned ?? REACH);
  if (weight) return plainSheet(weight, rows, await run.weight(weight, 0, rows), { hue: "encoder" });
  const values = new Float32Array(rows * width);
  for (let at = 0; at < rows; at++) {
    for (let j = 0; j < width; j++) {
      const angle = at / 10000 ** ((j - (j % 2)) / width);
      values[at * width + j] = j % 2 ? Math.cos(angle) : Math.sin(angle);
    }
  }
  return plainSheet("", rows, values, { hue: "encoder" });
}

/** @param {App} app @param {Stack} stack @param {string} scheme */
function chart(app, stack, scheme) {
  const { run } = app;
  const turned = run.entries.get(`${stack}.rotation.cos`);
  /** @type {Curve[]} */
  let series = [];
  if (app.positionTable) series = [tableSeries(app.positionTable, stack)];
  else if (turned?.op.kind === "rotation") series = [rotarySeries(stack, turned.op, turned.shape[1])];
  else if (run.has(`${stack}.distance`)) series = distanceSeries(run, `${stack}.distance`);
  if (!series.length || series[0].points.length < 2) return h("p.hint", t("positions.nothing"));
  return lines(series, { label: t(`offset.${scheme}`), key: "offset", say: (x) => t("positions.offset", { x }) });
}

/** The mean product of rows that stand `offset` apart. @param {Sheet} table @param {Stack} stack @returns {Curve} */
function tableSeries({ rows, cols, at }, stack) {
  const reach = Math.min(32, rows - 1);
  const points = [];
  for (let offset = -reach; offset <= reach; offset++) {
    let total = 0;
    for (let i = Math.max(0, -offset); i < rows && i + offset < rows; i++) {
      for (let j = 0; j < cols; j++) total += at(i, j) * at(i + offset, j);
    }
    points.push({ x: offset, y: total / (rows - Math.abs(offset)) });
  }
  return { name: "", colour: stack, points };
}

/**
 * What turning leaves of a vector's product with itself: the mean cosine of all pairs' angles.
 * @param {Stack} stack @param {Extract<Op, {kind: "rotation"}>} op @param {number} pairs @returns {Curve}
 */
function rotarySeries(stack, op, pairs) {
  const points = [];
  for (let offset = -32; offset <= 32; offset++) {
    let total = 0;
    for (let i = 0; i < pairs; i++) total += Math.cos(offset * op.base ** ((-2 * i) / op.d_head) * (op.pace?.[i] ?? 1));
    points.push({ x: offset, y: total / pairs });
  }
  return { name: "", colour: stack, points };
}

/** The term of each head by distance, as this run added it. @param {Run} run @param {string} name */
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
