// The panel that says how a cell was made. Pointing previews, a click locks; the cells it was made of light up wherever
// they are drawn.

import { button, code, fill, h, raw } from "./dom.js";
import { explain } from "./equation.js";
import { t } from "./language.js";
import { Matrix, placeName } from "./matrix.js";
import { show } from "./number.js";
import { axisLabels } from "./tensors.js";

export class Inspector {
  /** @param {Page} app */
  constructor(app) {
    this.app = app;
    /** @type {Matrix[]} */
    this.matrices = [];
    /** @type {CellTarget | null} */
    this.locked = null;
    /** @type {((shown: Explanation) => void) | null} */
    this.onShow = null;
    this.requests = 0;
    this.panel = h("div.inspector-body");
    /** @type {MatrixHooks} */
    this.hooks = {
      preview: (cell) => this.preview(cell),
      lock: (cell) => this.lock(cell),
      release: () => this.release(),
    };
  }

  /** The panel beside a view. */
  aside() {
    return h("aside.inspector", { "aria-live": "polite" }, this.panel);
  }

  /** A new view has been drawn: forget the matrices of the old one. */
  reset() {
    for (const matrix of this.matrices) matrix.observer.disconnect();
    this.matrices = [];
    this.locked = null;
    this.onShow = null;
    this.requests += 1;
    this.#empty();
  }

  /**
   * A matrix whose cells this panel tells of.
   * @param {Sheet} sheet @param {MatrixOptions} [options] @param {MatrixHooks} [hooks]
   */
  matrix(sheet, options = {}, hooks = this.hooks) {
    const matrix = new Matrix(sheet, hooks, options);
    this.matrices.push(matrix);
    return matrix;
  }

  /** @param {CellTarget | null} cell */
  preview(cell) {
    const wanted = cell ?? this.locked;
    for (const matrix of this.matrices) {
      if (matrix !== wanted?.matrix && document.activeElement !== matrix.field) matrix.clear();
    }
    this.app.highlight(wanted?.tokens ?? []);
    if (!wanted) {
      this.requests += 1;
      for (const matrix of this.matrices) matrix.highlight([]);
      return this.#empty();
    }
    return this.#explain(wanted);
  }

  /** @param {CellTarget} cell */
  lock(cell) {
    const again = this.locked && this.locked.name === cell.name && String(this.locked.index) === String(cell.index);
    this.locked = again ? null : cell;
    this.app.go(again ? { cell: [] } : { tensor: cell.name, cell: cell.index }, { replace: true, quiet: true });
    this.preview(cell);
  }

  /** Put the lock on a cell that the address names. @param {Matrix} matrix @param {number} i @param {number} j */
  relock(matrix, i, j) {
    matrix.place(i, j);
    this.locked = matrix.currentCell();
    this.preview(this.locked);
  }

  release() {
    this.locked = null;
    this.app.go({ cell: [] }, { replace: true, quiet: true });
    this.preview(null);
  }

  /** @param {CellTarget} cell */
  async #explain(cell) {
    const turn = ++this.requests;
    const { run } = /** @type {App} */ (this.app);
    let explanation;
    try {
      explanation = await explain(run, cell.name, cell.index);
    } catch (error) {
      if (turn === this.requests) this.app.showError(error);
      return;
    }
    if (turn !== this.requests) return;
    for (const matrix of this.matrices) matrix.highlight(explanation.areas);
    this.locked?.matrix.place(...this.locked.matrix.cursor);
    fill(this.panel, this.#describe(run, explanation));
    this.panel.parentElement?.classList.add("open");
    this.onShow?.(explanation);
  }

  #empty() {
    fill(this.panel, h("p.hint", t("cell.hint")));
    this.panel.parentElement?.classList.remove("open");
  }

  /** @param {Run} run @param {Explanation} explanation @returns {Child[]} */
  #describe(run, explanation) {
    return [
      h(
        "div.inspector-head",
        code(explanation.name, { class: "tensor-name" }),
        this.locked
          ? button(t("cell.release"), () => this.release(), { class: "quiet small", data: { key: "release" } })
          : h("span.faint", t("cell.preview")),
      ),
      h("p.place", place(run, explanation)),
      equation(explanation),
      this.app.state.view !== "cell" &&
        button(t("cell.open"), () => this.app.go({ view: "cell", tensor: explanation.name, cell: explanation.index }), {
          class: "quiet",
          data: { key: "open-cell" },
        }),
    ];
  }
}

/** Where a cell stands, in words. @param {Run} run @param {Explanation} explanation */
function place(run, { name, index }) {
  const { axes } = run.entry(name);
  return index.flatMap((i, at) => [at ? " \u00b7 " : "", raw(placeName(axes[at], i, axisLabels(run, axes[at])))]);
}

/**
 * The pieces of an equation in groups that stay on one line: what a plus or a fraction stroke separates.
 * @param {Printed[]} pieces
 */
function grouped(pieces) {
  /** @type {Printed[]} */
  let group = [];
  const groups = [group];
  for (const piece of pieces) {
    group.push(piece);
    if (piece.text !== " + " && piece.text !== " / ") continue;
    group = [];
    groups.push(group);
  }
  return groups;
}

/** @param {Printed} piece */
function printPiece(piece) {
  if (piece.kind === "sign") return raw(piece.text, { class: "sign" });
  const digits = raw(piece.text, { class: "figure" });
  if (!piece.note) return digits;
  const spoken = /^[#\u03c0]|^cos|^sin/.test(piece.note) ? "no" : null;
  return h("span.noted", digits, h("span.note", { translate: spoken }, piece.note));
}

/** The printed equation of an explanation. @param {Explanation} explanation */
function equation(explanation) {
  const { name, index, kind } = explanation;
  const data = { testid: "equation", tensor: name, index: index.join("."), kind };
  const pieces = grouped(explanation.pieces).flatMap((group) => [h("span.together", group.map(printPiece)), h("wbr")]);
  return [
    h("p.op", explanation.description),
    h(
      "div.equation",
      { data },
      h("span.terms", pieces),
      raw(explanation.holds ? " = " : " \u2248 ", { class: "sign equals" }),
      raw(explanation.result, { class: "figure result", data: { testid: "cell-value" } }),
    ),
    explanation.masked && h("p.mark", { data: { testid: "mask-mark" } }, h("span.hatch"), t("matrix.masked")),
    explanation.change && h("p.mark", t("cell.changed"), " ", code(explanation.change)),
    explanation.result !== show(explanation.value) &&
      h("p.faint", t("cell.stored"), " ", raw(show(explanation.value, 8))),
  ];
}
