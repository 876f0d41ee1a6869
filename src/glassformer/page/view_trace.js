// Trace: every value by its name, as in Python and on the command line, as numbers to read and to take home.

import { headPicker, nameLink, shapeOf } from "./card.js";
import { button, code, columnHead, h, raw, table, toggle } from "./dom.js";
import { formulaOf, t } from "./language.js";
import { pager } from "./matrix.js";
import { show } from "./number.js";
import { headOf, sheetOf, withMasks } from "./tensors.js";
import { chosenTensor } from "./view_cell.js";

const PAGE = 12;

/** @type {Painter} */
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
      const matching = [...run.entries.values()].filter((entry) =>
        words.every(
          (word) => entry.name.toLowerCase().includes(word) || (entry.formula ?? "").toLowerCase().includes(word),
        ),
      );
      count.textContent = t("trace.count", { n: matching.length, all: run.entries.size });
      list.replaceChildren(
        ...matching.map((entry) => {
          const label = [code(entry.name), raw(entry.shape.join("\u00d7"), { class: "faint" })];
          const open = () => app.go({ tensor: entry.name, cell: [] });
          const attributes = { class: "name", data: { key: `name:${entry.name}` } };
          return h("li", toggle(label, entry.name === name, open, attributes));
        }),
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
      /** @type {HTMLElement | null} */
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

/** @param {App} app */
function downloads(app) {
  const { run, source } = app;
  if (source.server) {
    /** @param {"json" | "export"} kind @param {"json" | "html"} key */
    const link = (kind, key) => {
      const attributes = { href: source.exported(run.id, kind), download: `${run.id}.${key}`, data: { key } };
      return h("a.button", attributes, t(`trace.${key}`));
    };
    return [link("json", "json"), link("export", "html")];
  }
  return [
    button(t("trace.json"), () => save(run), { data: { key: "json" } }),
    !source.live && h("span.faint", t("embedded.file")),
  ];
}

/** The manifest with all values in it, made here because there is no server to ask. @param {Run} run */
async function save(run) {
  await run.need([...run.entries.keys()]);
  /** @param {number} value */
  const number = (value) => (Number.isFinite(value) ? value : String(value).replace("Infinity", "inf").toLowerCase());
  /** @param {Float32Array} values @param {number[]} shape @returns {unknown[]} */
  const nest = (values, [length, ...inner]) => {
    const size = values.length / length;
    if (!inner.length) return Array.from(values, number);
    return Array.from({ length }, (_, i) => nest(values.subarray(i * size, (i + 1) * size), inner));
  };
  const tensors = run.manifest.tensors.map((entry) => {
    return { ...entry, values: nest(run.values(entry.name), entry.shape) };
  });
  const link = h("a", {
    download: `${run.id}.json`,
    href: URL.createObjectURL(new Blob([JSON.stringify({ ...run.manifest, tensors })], { type: "application/json" })),
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** @param {App} app @param {string} name */
function values(app, name) {
  const { run, state } = app;
  const entry = run.entry(name);
  const sheet = sheetOf(run, name, state.head);
  const first = Math.min(app.column, Math.max(0, sheet.cols - 1));
  const from = first - (first % PAGE);
  const columns = Array.from({ length: Math.min(PAGE, sheet.cols - from) }, (_, j) => from + j);
  const last = columns[columns.length - 1];
  const turn = (/** @type {number} */ to) => {
    app.column = to;
    app.redraw();
  };
  const inputs = entry.inputs.map((one) => (run.has(one) ? nameLink(app, one, `input:${one}`) : code(one)));
  /** @param {string[] | null} labels @param {number} i */
  const nameOf = (labels, i) => labels?.[i] ?? String(i);
  const head = [h("td"), columns.map((j) => columnHead(nameOf(sheet.colLabels, j), { translate: "no" }))];
  const rows = Array.from({ length: sheet.rows }, (_, i) => {
    const cells = columns.map((j) => {
      const masked = sheet.masked(i, j);
      const attributes = { class: masked ? "num masked" : "num", title: masked && t("matrix.masked") };
      return h("td", attributes, raw(show(sheet.at(i, j))));
    });
    return h("tr", h("th", { scope: "row", translate: "no" }, nameOf(sheet.rowLabels, i)), cells);
  });
  const data = { testid: "values", tensor: name, head: sheet.head ?? "", from };
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
      inputs.length > 0 && [h("dt", t("trace.inputs")), h("dd", inputs)],
    ),
    h(
      "div.bar",
      button(t("cell.open"), () => app.go({ view: "cell", tensor: name, cell: [] }), { data: { key: "to-cell" } }),
      headPicker(entry, sheet.head, (head) => app.go({ head: headOf(run, entry, head) })),
      sheet.cols > PAGE && h("div.pager", pager(sheet.cols, from, last, [from - PAGE, from + PAGE], turn, "page")),
    ),
    table({ class: "numbers values-table", data }, { head, rows }),
  ];
}
