// Cell: one number, the equation that made it, the matrices it was made of.

import { button, code, h } from "./dom.js";
import { legend } from "./ink.js";
import { formulaOf, t } from "./language.js";
import { Matrix } from "./matrix.js";
import { fits, hasHeads, headFor, headOf, sheetOf, withMasks } from "./tensors.js";
import { shapeOf, stageKey } from "./view_block.js";

/** The tensor to look at: the one asked for, else a pattern, which is what most come to see. */
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

function chosenHead(app, name) {
  const { run, state } = app;
  const entry = run.entry(name);
  const asked = hasHeads(entry) && fits(entry.shape, state.cell) && state.tensor === name;
  return asked && headFor(run, entry, state.head) !== state.cell[0] ? headOf(run, entry, state.cell[0]) : state.head;
}

function ingredients(run, name) {
  return [...new Set((run.entry(name).inputs ?? []).filter((one) => run.has(one)))];
}

export const cell = {
  names(app) {
    const name = chosenTensor(app);
    return withMasks(app.run, [name, ...ingredients(app.run, name)]);
  },

  draw(app) {
    const { run } = app;
    const name = chosenTensor(app);
    const entry = run.entry(name);
    const head = chosenHead(app, name);
    const sheet = sheetOf(run, name, head);
    const matrix = app.inspector.watch(
      new Matrix(sheet, app.inspector.hooks, {
        sums: entry.op.kind === "softmax",
        title: t(`stage.${stageKey(name)}`),
      }),
    );
    app.main = matrix;
    const inputs = ingredients(run, name).map((one) => {
      const drawn = sheetOf(run, one, head);
      const small = app.inspector.watch(
        new Matrix(drawn, app.inspector.hooks, {
          title: t(`stage.${stageKey(one)}`),
          most: drawn.colLabels ? 20 : undefined,
        }),
      );
      return h(
        "article.card.input",
        { data: { tensor: one } },
        h("header", h("h4", t(`stage.${stageKey(one)}`))),
        h("p.shape", shapeOf(run.entry(one))),
        small.element,
        h(
          "footer",
          legend(drawn),
          button(code(one, { class: "tensor-name" }), () => app.go({ tensor: one, cell: [] }), {
            class: "link",
            "aria-label": t("cell.goto"),
            data: { key: `goto:${one}` },
          }),
        ),
      );
    });
    const weights = h("div.weight-rows");
    app.inspector.onShow = (found) => weights.replaceChildren(...found.weights.map((one) => weightRow(one)));
    const users = [...run.entries.values()].filter((one) => (one.inputs ?? []).includes(name));
    return h(
      "section.view",
      app.heading("cell"),
      h("div.bar", tensorPicker(app, name), headPicker(app, entry, sheet.head)),
      h(
        "div.cell-page",
        h(
          "div.cell-left",
          h("div.cell-equation", { "aria-live": "polite" }, app.inspector.panel),
          h("h3", t("cell.madeOf")),
          h("div.ingredients", inputs),
          weights,
          users.length > 0 &&
            h(
              "p.users",
              t("cell.goesInto"),
              " ",
              users.map((one) =>
                button(code(one.name), () => app.go({ tensor: one.name, cell: [] }), {
                  class: "link",
                  data: { key: `user:${one.name}` },
                }),
              ),
            ),
        ),
        h(
          "article.card.main",
          { data: { tensor: name } },
          h("header", h("h4", t(`stage.${stageKey(name)}`)), formulaOf(entry)),
          h("p.shape", shapeOf(entry)),
          matrix.element,
          h("footer", legend(sheet), code(name, { class: "tensor-name" })),
        ),
      ),
    );
  },

  /** Put the lock where the address says, or the cursor on the first cell with something to see. */
  shown(app) {
    const { state, main } = app;
    const { sheet } = main;
    const entry = app.run.entry(sheet.name);
    const asked = state.tensor === sheet.name && fits(entry.shape, state.cell) ? state.cell : null;
    const [i, j] = asked ? [asked.length > 1 ? asked.at(-2) : 0, asked.at(-1)] : strongest(sheet);
    main.place(i, j);
    const tokens = main.tokensAt(i, j);
    const target = { name: sheet.name, index: sheet.index(i, j), tokens, matrix: main };
    app.inspector.locked = target;
    app.inspector.preview(target);
  },
};

function strongest(sheet) {
  let best = [0, 0];
  for (let i = 0; i < sheet.rows; i++) {
    for (let j = 0; j < sheet.cols; j++) {
      if (Number.isFinite(sheet.at(i, j)) && sheet.at(i, j) > sheet.at(...best)) best = [i, j];
    }
  }
  return best;
}

function weightRow({ name, row, values }) {
  const sheet = {
    name,
    head: null,
    rows: 1,
    cols: values.length,
    at: (_, j) => values[j],
    masked: () => false,
    index: (_, j) => [row, j],
    rowAxis: "out",
    colAxis: "in",
    rowLabels: null,
    colLabels: null,
    share: false,
    hue: "decoder",
    high: values.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1,
  };
  const quiet = { preview() {}, lock() {}, release() {} };
  const matrix = new Matrix(sheet, quiet, { title: t("cell.weights") });
  return h(
    "article.card.input",
    h("header", h("h4", t("cell.weights"))),
    h("p.shape", t("cell.row", { n: row })),
    matrix.element,
    h("footer", legend(sheet), code(name, { class: "tensor-name" })),
  );
}

/** Every name, to type or to choose from. */
export function tensorPicker(app, name) {
  const choose = h(
    "select",
    {
      "aria-label": t("cell.tensor"),
      translate: "no",
      data: { key: "tensor", testid: "tensor" },
      on: { change: (event) => app.go({ tensor: event.target.value, cell: [] }) },
    },
    [...app.run.entries.keys()].map((one) => h("option", { value: one, selected: one === name ? true : null }, one)),
  );
  choose.value = name;
  return h("label.field-label", h("span.label", t("cell.tensor")), choose);
}

function headPicker(app, entry, head) {
  if (!hasHeads(entry)) return null;
  return h(
    "div.choice",
    { role: "group", "aria-label": t("flow.heads") },
    h("span.label", t("axis.head")),
    Array.from({ length: entry.shape[0] }, (_, one) =>
      button(
        String(one),
        () => {
          const { cell: at } = app.state;
          app.go({ head: headOf(app.run, entry, one), cell: at.length === 3 ? [one, at[1], at[2]] : [] });
        },
        {
          "aria-pressed": one === head ? "true" : "false",
          "aria-label": t("flow.head", { n: one }),
          data: { key: `head:${one}` },
        },
      ),
    ),
  );
}
