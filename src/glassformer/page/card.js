// A value as a card: what it is, its formula and shape, its matrix, its scale of colours and its name.

import { button, code, h, raw, toggle } from "./dom.js";
import { legend } from "./heatmap.js";
import { formulaOf, hasText, t } from "./language.js";
import { hasHeads, lastWord } from "./tensors.js";

/** What a value is to a reader, by the name of its text. @param {string} name */
export function stageKey(name) {
  if (/\.blocks\.\d+$/.test(name) || name.endsWith(".embedding")) return "stream";
  if (name.endsWith("_residual.norm")) return "norm";
  if (name.endsWith("_residual.sum")) return "sum";
  if (name.endsWith("_residual")) return "residual";
  if (name.startsWith("masks.")) return "mask";
  const word = lastWord(name);
  return hasText(`stage.${word}`) ? word : "value";
}

/** @param {string} name */
export const stageTitle = (name) => t(`stage.${stageKey(name)}`);

/** @param {string} stack @param {string} [layer] */
export const stackLabel = (stack, layer = "") => [h("i", { class: `dot ${stack}` }), `${t(`stack.${stack}`)}${layer}`];

/** A shape with its axes named: 4 heads x 9 queries x 32. @param {Entry} entry */
export function shapeOf(entry) {
  return entry.shape.flatMap((size, i) => [
    i ? raw(" \u00d7 ", { class: "faint" }) : "",
    h("span.axis", raw(String(size)), " ", h("span.faint", t(`axis.${entry.axes[i].split(":")[0]}`))),
  ]);
}

/**
 * @param {Matrix} matrix @param {Attributes} attributes
 * @param {{title?: string, formula?: Child, shape: Child, name?: Child}} content   a name in place of the plain one
 */
export function card({ sheet, element }, attributes, { title = stageTitle(sheet.name), formula, shape, name }) {
  return h(
    "article",
    attributes,
    h("header", h("h4", title), formula),
    h("p.shape", shape),
    element,
    h("footer", legend(sheet), name ?? code(sheet.name, { class: "tensor-name" })),
  );
}

/** A card of one of the run's values. @param {App} app @param {Matrix} matrix @param {Attributes} attributes */
export function valueCard(app, matrix, attributes, /** @type {Child} */ more = null) {
  const entry = app.run.entry(matrix.sheet.name);
  const content = { formula: formulaOf(entry), shape: [shapeOf(entry), more] };
  return card(matrix, { data: { tensor: entry.name }, ...attributes }, content);
}

/** A button with the name of a value that leads to it. @param {App} app @param {string} name @param {string} key */
export function nameLink(app, name, key, label = code(name), attributes = {}) {
  return button(label, () => app.go({ tensor: name, cell: [] }), { class: "link", data: { key }, ...attributes });
}

/**
 * Which head of a value to look at, where it has heads.
 * @param {Entry} entry @param {number | null} chosen @param {(head: number) => unknown} pick
 */
export function headPicker(entry, chosen, pick) {
  if (!hasHeads(entry)) return null;
  const heads = Array.from({ length: entry.shape[0] }, (_, head) =>
    toggle(String(head), head === chosen, () => pick(head), {
      "aria-label": t("flow.head", { n: head }),
      data: { key: `head:${head}` },
    }),
  );
  const group = { role: "group", "aria-label": t("flow.heads") };
  return h("div.choice", group, h("span.label", t("axis.head")), heads);
}
