// Trace: every value by its name, as in Python and on the command line, as numbers to read and to take home.

import { button, code, h, raw } from "./dom.js";
import { formulaOf, t } from "./language.js";
import { show, whole } from "./number.js";
import { hasHeads, headOf, sheetOf, withMasks } from "./tensors.js";
import { shapeOf } from "./view_block.js";
import { chosenTensor } from "./view_cell.js";

const PAGE = 12;

export const trace = {
  names(app) {
    return withMasks(app.run, [chosenTensor(app)]);
  },

  draw(app) {
    const { run } = app;
    const name = chosenTensor(app);
    const list = h("ul.names", { data: { testid: "names" } });
    const count = h("span.faint", { role: "status" });
    const fill = () => {
      const words = app.search.toLowerCase().split(/\s+/).filter(Boolean);
      const found = [...run.entries.values()].filter((entry) =>
        words.every(
          (word) => entry.name.toLowerCase().includes(word) || (entry.formula ?? "").toLowerCase().includes(word),
        ),
      );
      count.textContent = t("trace.count", { n: found.length, all: run.entries.size });
      list.replaceChildren(
        ...found.map((entry) =>
          h(
            "li",
            button(
              [code(entry.name), raw(entry.shape.join("\u00d7"), { class: "faint" })],
              () => app.go({ tensor: entry.name, cell: [] }),
              {
                class: "name",
                "aria-pressed": entry.name === name ? "true" : "false",
                data: { key: `name:${entry.name}` },
              },
            ),
          ),
        ),
      );
    };
    const search = h("input", {
      type: "search",
      value: app.search,
      placeholder: t("trace.search"),
      "aria-label": t("trace.search"),
      data: { key: "search", testid: "search" },
      spellcheck: "false",
      on: {
        input: () => {
          app.search = search.value;
          fill();
        },
      },
    });
    fill();
    requestAnimationFrame(() => {
      const chosen = list.querySelector("[aria-pressed=true]");
      if (chosen) list.scrollTop = chosen.offsetTop - list.offsetTop - 60;
    });
    return h(
      "section.view",
      app.heading("trace", h("div.bar", downloads(app))),
      h("div.trace", h("div.catalogue", search, count, list), h("div.plate.values", values(app, name))),
    );
  },
};

function downloads(app) {
  const { run, source } = app;
  if (source.live) {
    return [
      h(
        "a.button",
        { href: source.exported(run.id, "json"), download: `${run.id}.json`, data: { key: "json" } },
        t("trace.json"),
      ),
      h(
        "a.button",
        { href: source.exported(run.id, "export"), download: `${run.id}.html`, data: { key: "html" } },
        t("trace.html"),
      ),
    ];
  }
  return [button(t("trace.json"), () => save(run), { data: { key: "json" } }), h("span.faint", t("embedded.file"))];
}

/** The manifest with all values in it, made here because there is no server to ask. */
async function save(run) {
  await run.need([...run.entries.keys()]);
  const number = (value) => (Number.isFinite(value) ? value : String(value).replace("Infinity", "inf").toLowerCase());
  const nest = (values, shape) =>
    shape.length === 1
      ? Array.from(values, number)
      : Array.from({ length: shape[0] }, (_, i) =>
          nest(values.subarray((i * values.length) / shape[0], ((i + 1) * values.length) / shape[0]), shape.slice(1)),
        );
  const tensors = run.manifest.tensors.map((entry) => ({
    ...entry,
    values: nest(run.values(entry.name), entry.shape),
  }));
  const link = h("a", {
    download: `${run.id}.json`,
    href: URL.createObjectURL(new Blob([JSON.stringify({ ...run.manifest, tensors })], { type: "application/json" })),
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function values(app, name) {
  const { run, state } = app;
  const entry = run.entry(name);
  const sheet = sheetOf(run, name, state.head);
  const first = Math.min(app.column, Math.max(0, sheet.cols - 1));
  const from = first - (first % PAGE);
  const columns = Array.from({ length: Math.min(PAGE, sheet.cols - from) }, (_, j) => from + j);
  const turn = (to, mark, label) =>
    button(
      mark,
      () => {
        app.column = to;
        app.redraw();
      },
      { "aria-label": label, disabled: to < 0 || to >= sheet.cols, data: { key: label } },
    );
  return [
    h("h3", code(name)),
    h("p.shape", shapeOf(entry)),
    h("p.formula-line", formulaOf(entry)),
    h(
      "dl.facts",
      h("dt", t("trace.low")),
      h("dd", raw(show(entry.low))),
      h("dt", t("trace.high")),
      h("dd", raw(show(entry.high))),
      entry.inputs?.length
        ? [
            h("dt", t("trace.inputs")),
            h(
              "dd",
              entry.inputs.map((one) =>
                run.has(one)
                  ? button(code(one), () => app.go({ tensor: one, cell: [] }), {
                      class: "link",
                      data: { key: `input:${one}` },
                    })
                  : code(one),
              ),
            ),
          ]
        : null,
    ),
    h(
      "div.bar",
      button(t("trace.cell"), () => app.go({ view: "cell", tensor: name, cell: [] }), { data: { key: "to-cell" } }),
      hasHeads(entry) &&
        h(
          "div.choice",
          { role: "group", "aria-label": t("flow.heads") },
          h("span.label", t("axis.head")),
          Array.from({ length: entry.shape[0] }, (_, head) =>
            button(String(head), () => app.go({ head: headOf(run, entry, head) }), {
              "aria-pressed": head === sheet.head ? "true" : "false",
              "aria-label": t("flow.head", { n: head }),
              data: { key: `head:${head}` },
            }),
          ),
        ),
      sheet.cols > PAGE &&
        h(
          "div.pager",
          turn(from - PAGE, "\u2039", t("matrix.before")),
          h("span", t("matrix.columns", { from: whole(from), to: whole(columns.at(-1)), all: whole(sheet.cols) })),
          turn(from + PAGE, "\u203a", t("matrix.after")),
        ),
    ),
    h(
      "div.scroll",
      h(
        "table.numbers.values-table",
        { data: { testid: "values", tensor: name, head: sheet.head ?? "", from } },
        h(
          "thead",
          h(
            "tr",
            h("td"),
            columns.map((j) =>
              h("th", { scope: "col", translate: "no" }, sheet.colLabels ? sheet.colLabels[j] : String(j)),
            ),
          ),
        ),
        h(
          "tbody",
          Array.from({ length: sheet.rows }, (_, i) =>
            h(
              "tr",
              h("th", { scope: "row", translate: "no" }, sheet.rowLabels ? sheet.rowLabels[i] : String(i)),
              columns.map((j) =>
                h(
                  "td",
                  {
                    class: sheet.masked(i, j) ? "num masked" : "num",
                    title: sheet.masked(i, j) ? t("matrix.masked") : null,
                  },
                  raw(show(sheet.at(i, j))),
                ),
              ),
            ),
          ),
        ),
      ),
    ),
  ];
}
