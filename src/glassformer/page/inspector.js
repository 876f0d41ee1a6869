// The panel that says how a cell was made. Pointing previews, a click locks; the cells it was made of light up wherever
// they are drawn.

import { button, code, h, raw } from "./dom.js";
import { explain } from "./equation.js";
import { t } from "./language.js";
import { placeName } from "./matrix.js";
import { show } from "./number.js";
import { axisLabels } from "./tensors.js";

export class Inspector {
  /** @param {{go: Function, light: Function}} app */
  constructor(app) {
    this.app = app;
    this.matrices = [];
    this.locked = null;
    this.shown = null;
    this.asked = 0;
    this.panel = h("div.inspector-body");
    this.hooks = {
      preview: (cell) => this.preview(cell),
      lock: (cell) => this.lock(cell),
      release: () => this.release(),
    };
  }

  /** A new view has been drawn: forget the matrices of the old one. */
  begin() {
    for (const matrix of this.matrices) matrix.observer.disconnect();
    this.matrices = [];
    this.locked = null;
    this.shown = null;
    this.onShow = null;
    this.asked += 1;
    this.#empty();
  }

  watch(matrix) {
    this.matrices.push(matrix);
    return matrix;
  }

  preview(cell) {
    const wanted = cell ?? this.locked;
    for (const matrix of this.matrices) {
      if (matrix !== wanted?.matrix && document.activeElement !== matrix.field) matrix.clear();
    }
    this.app.light(wanted?.tokens ?? []);
    if (!wanted) {
      this.asked += 1;
      for (const matrix of this.matrices) matrix.light([]);
      this.shown = null;
      return this.#empty();
    }
    return this.#explain(wanted);
  }

  lock(cell) {
    const again = this.locked && this.locked.name === cell.name && String(this.locked.index) === String(cell.index);
    this.locked = again ? null : cell;
    this.app.go(again ? { cell: [] } : { tensor: cell.name, cell: cell.index }, { replace: true, quiet: true });
    this.preview(cell);
  }

  release() {
    this.locked = null;
    this.app.go({ cell: [] }, { replace: true, quiet: true });
    this.preview(null);
  }

  async #explain(cell) {
    const turn = ++this.asked;
    let found;
    try {
      found = await explain(this.app.run, cell.name, cell.index);
    } catch (error) {
      if (turn === this.asked) this.app.fail(error);
      return;
    }
    if (turn !== this.asked) return;
    for (const matrix of this.matrices) matrix.light(found.lit);
    if (this.locked) this.locked.matrix?.place?.(...this.locked.matrix.cursor);
    this.shown = found;
    this.panel.replaceChildren(...this.#tell(found));
    this.panel.parentElement?.classList.add("open");
    this.onShow?.(found);
  }

  #empty() {
    this.panel.replaceChildren(h("p.hint", t("cell.hint")));
    this.panel.parentElement?.classList.remove("open");
  }

  #tell(found) {
    const { run } = this.app;
    const locked = this.locked !== null;
    return [
      h(
        "div.inspector-head",
        code(found.name, { class: "tensor-name" }),
        locked
          ? button(t("cell.release"), () => this.release(), { class: "quiet small", data: { key: "release" } })
          : h("span.faint", t("cell.preview")),
      ),
      h("p.place", place(run, found)),
      ...equation(found),
      this.app.state.view === "cell"
        ? null
        : button(t("cell.open"), () => this.app.go({ view: "cell", tensor: found.name, cell: found.index }), {
            class: "quiet",
            data: { key: "open-cell" },
          }),
    ].filter(Boolean);
  }
}

/** Where a cell stands, in words. */
export function place(run, { name, index }) {
  const { axes } = run.entry(name);
  return index.flatMap((i, at) => [at ? " \u00b7 " : "", raw(placeName(axes[at], i, axisLabels(run, axes[at])))]);
}

/** The pieces of an equation in groups that stay on one line: what a plus or a fraction stroke separates. */
function groups(pieces) {
  const found = [[]];
  for (const piece of pieces) {
    found.at(-1).push(piece);
    if (piece.text === " + " || piece.text === " / ") found.push([]);
  }
  return found;
}

function printPiece(piece) {
  if (piece.kind === "sign") return raw(piece.text, { class: "sign" });
  const digits = raw(piece.text, { class: "figure" });
  if (!piece.note) return digits;
  const spoken = /^[#\u03c0]|^cos|^sin/.test(piece.note) ? "no" : null;
  return h("span.noted", digits, h("span.note", { translate: spoken }, piece.note));
}

/** The printed equation of an explanation. */
export function equation(found) {
  const pieces = groups(found.pieces).flatMap((group) => [h("span.together", group.map(printPiece)), h("wbr")]);
  return [
    h("p.op", found.says),
    h(
      "div.equation",
      { data: { testid: "equation", tensor: found.name, index: found.index.join("."), kind: found.kind } },
      h("span.terms", pieces),
      raw(found.holds ? " = " : " \u2248 ", { class: "sign equals" }),
      raw(found.result, { class: "figure result", data: { testid: "cell-value" } }),
    ),
    found.masked && h("p.mark", { data: { testid: "mask-mark" } }, h("span.hatch"), t("matrix.masked")),
    found.change && h("p.mark", t("cell.changed"), " ", code(found.change)),
    found.result === show(found.value) ? null : h("p.faint", t("cell.stored"), " ", raw(show(found.value, 8))),
  ].filter(Boolean);
}
