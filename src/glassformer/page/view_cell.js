// Cell: one number, the equation that made it, the matrices it was made of.

import { card, headPicker, nameLink, shapeOf, stageTitle, valueCard } from "./card.js";
import { code, h } from "./dom.js";
import { t } from "./language.js";
import { Matrix } from "./matrix.js";
import { fits, hasHeads, headFor, headOf, plainSheet, rowAndColumn, sheetOf, withMasks } from "./tensors.js";

/** The tensor to look at: the one asked for, else a pattern, which is what most come to see. @param {App} app */
export function chosenTensor(app) {
  const { run, state } = app;
  if (run.has(state.tensor)) return state.tensor;
  const names = [...run.entries.keys()];
  return (
    names.find((name) => name.endsWith("cross_attention.pattern")) ??
    names.find((name) => name.endsWith(".pattern")) ??
    names[0]
  );
}

/** @param {App} app @param {string} name */
function chosenHead(app, name) {
  const { run, state } = app;
  const entry = run.entry(name);
  const asked = hasHeads(entry) && fits(entry.shape, state.cell) && state.tensor === name;
  return asked && headFor(run, entry, state.head) !== state.cell[0] ? headOf(run, entry, state.cell[0]) : state.head;
}

/** @param {Run} run @param {string} name */
function inputNames(run, name) {
  return [...new Set(run.entry(name).inputs.filter((one) => run.has(one)))];
}

/** @type {Painter} */
export const cell = {
  names(app) {
    const name = chosenTensor(app);
    return withMasks(app.run, [name, ...inputNames(app.run, name)]);
  },

  draw(app) {
    const { run } = app;
    const name = chosenTensor(app);
    const entry = run.entry(name);
    const head = chosenHead(app, name);
    const sheet = sheetOf(run, name, head);
    const matrix = app.inspector.matrix(sheet, { sums: entry.op.kind === "softmax", title: stageTitle(name) });
    const weights = h("div.weight-rows");
    app.inspector.onShow = (shown) => weights.replaceChildren(...shown.weights.map(weightCard));
    const users = [...run.entries.values()].filter((one) => one.inputs.includes(name)).map((one) => one.name);
    const links = users.map((user) => nameLink(app, user, `user:${user}`));
    const pick = (/** @type {number} */ one) => {
      const { cell: at } = app.state;
      return app.go({ head: headOf(run, entry, one), cell: at.length === 3 ? [one, at[1], at[2]] : [] });
    };
    return h(
      "section.view",
      app.heading("cell"),
      h("div.bar", tensorPicker(app, name), headPicker(entry, sheet.head, pick)),
      h(
        "div.cell-page",
        h(
          "div.cell-left",
          h("div.cell-equation", { "aria-live": "polite" }, app.inspector.panel),
          h("h3", t("cell.madeOf")),
          h("div.ingredients", inputCards(app, name, head)),
          weights,
          users.length > 0 && h("p.users", t("cell.goesInto"), " ", links),
        ),
        valueCard(app, matrix, { class: "card main" }),
      ),
    );
  },

  /** Put the lock where the address says, or the cursor on the first cell with something to see. */
  shown(app) {
    const { state, inspector } = app;
    const [matrix] = inspector.matrices;
    const { sheet } = matrix;
    const { shape } = app.run.entry(sheet.name);
    const asked = state.tensor === sheet.name && fits(shape, state.cell);
    inspector.relock(matrix, ...(asked ? rowAndColumn(state.cell) : argmax(sheet)));
  },
};

/** @param {App} app @param {string} name @param {number} head */
function inputCards(app, name, head) {
  return inputNames(app.run, name).map((one) => {
    const sheet = sheetOf(app.run, one, head);
    const matrix = app.inspector.matrix(sheet, { title: stageTitle(one), most: sheet.colLabels ? 20 : undefined });
    const label = code(one, { class: "tensor-name" });
    const link = nameLink(app, one, `goto:${one}`, label, { "aria-label": t("cell.goto") });
    const attributes = { class: "card input", data: { tensor: one } };
    return card(matrix, attributes, { shape: shapeOf(app.run.entry(one)), name: link });
  });
}

/** @param {Sheet} sheet */
function argmax(sheet) {
  /** @type {[number, number]} */
  let best = [0, 0];
  for (let i = 0; i < sheet.rows; i++) {
    for (let j = 0; j < sheet.cols; j++) {
      if (Number.isFinite(sheet.at(i, j)) && sheet.at(i, j) > sheet.at(...best)) best = [i, j];
    }
  }
  return best;
}

/** @param {WeightRow} weight */
function weightCard({ name, row, values }) {
  const sheet = plainSheet(name, 1, values, { index: (_, j) => [row, j], rowAxis: "out", colAxis: "in" });
  const title = t("cell.weights");
  const matrix = new Matrix(sheet, { preview() {}, lock() {}, release() {} }, { title });
  return card(matrix, { class: "card input" }, { title, shape: t("cell.row", { n: row }) });
}

/** Every name, to type or to choose from. @param {App} app @param {string} name */
function tensorPicker(app, name) {
  const options = [...app.run.entries.keys()].map((one) => h("option", { value: one, selected: one === name }, one));
  const data = { key: "tensor", testid: "tensor" };
  const choose = h("select", { "aria-label": t("cell.tensor"), translate: "no", data }, options);
  choose.value = name;
  choose.addEventListener("change", () => app.go({ tensor: choose.value, cell: [] }));
  return h("label.field-label", h("span.label", t("cell.tensor")), choose);
}
