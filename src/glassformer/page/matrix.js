// A matrix on a canvas that can be hovered, tapped and walked through with the arrow keys. Names of rows and columns
// are real text; one live cell tells a screen reader where the cursor stands.

import { button, fill, focusedKey, h, stepInGrid, zoom } from "./dom.js";
import { colourOf, contextOf, cssColour, hatch, markNonFinite, sheetCanvas } from "./heatmap.js";
import { t } from "./language.js";
import { fixed, show, whole } from "./number.js";
import { sideOf } from "./tensors.js";

const NAMED = { least: 14, most: 38 }; // pixels of a cell whose row and column are tokens, by letters of 16
const PLAIN = { least: 2, most: 16 };
let made = 0;

export class Matrix {
  /** @param {Sheet} sheet @param {MatrixHooks} hooks @param {MatrixOptions} [options] */
  constructor(sheet, hooks, options = {}) {
    this.sheet = sheet;
    this.hooks = hooks;
    this.options = options;
    /** @type {[number, number]} */
    this.cursor = [0, 0];
    /** @type {Area[]} */
    this.highlighted = [];
    this.first = 0; // column at the left edge
    this.shown = this.page = 0; // columns that are drawn, and that have room
    this.wide = this.tall = 0; // of a cell, in pixels; none before the first layout
    this.active = false;
    this.id = `cell-${++made}`;
    this.cells = h("canvas.ink", { "aria-hidden": "true" });
    this.over = h("canvas.over", { "aria-hidden": "true" });
    this.live = h("div", { role: "gridcell", id: this.id, class: "unseen", translate: "no" });
    this.field = h(
      "div.field",
      {
        role: "grid",
        tabindex: "0",
        data: { tensor: sheet.name, key: `field:${sheet.name}:${sheet.head}` },
        "aria-label": `${options.title ?? sheet.name}, ${t("matrix.size", { rows: sheet.rows, cols: sheet.cols })}`,
        "aria-rowcount": sheet.rows,
        "aria-colcount": sheet.cols,
        "aria-activedescendant": this.id,
        on: {
          pointermove: (event) => this.#point(event, false),
          pointerleave: () => this.#leave(),
          click: (event) => this.#point(event, true),
          keydown: (event) => this.#key(event),
          focus: () => this.#show(),
          blur: () => this.#leave(),
        },
      },
      this.cells,
      this.over,
      h("div", { role: "row" }, this.live),
    );
    this.rowNames = h("div.row-names", { translate: "no", "aria-hidden": "true" });
    this.colNames = h("div.col-names", { translate: "no", "aria-hidden": "true" });
    this.sums = h("div.row-sums", { translate: "no" });
    this.pager = h("div.pager");
    this.element = h(
      "div.matrix",
      h("div.frame", h("div"), this.colNames, h("div"), this.rowNames, this.field, this.sums),
      this.pager,
    );
    this.observer = new ResizeObserver(() => this.layout());
    this.observer.observe(this.element);
  }

  /** Fit the cells to the width there is, and draw. */
  layout() {
    const { sheet } = this;
    const width = this.element.clientWidth;
    if (!width) return;
    const named = sheet.colLabels !== null;
    const { least, most } = named ? NAMED : PLAIN;
    const z = zoom();
    const beside = this.#namesWidth() + (this.options.sums ? 62 * z : 2);
    const room = Math.max(40, width - beside);
    this.page = Math.max(1, Math.min(sheet.cols, Math.floor(room / (least * z))));
    this.first = Math.min(this.first, Math.max(0, sheet.cols - this.page));
    this.shown = Math.min(this.page, sheet.cols - this.first);
    this.wide = Math.min((this.options.most ?? most) * z, room / this.page);
    if (this.wide > 4) this.wide = Math.floor(this.wide);
    const square = named && sheet.rowLabels !== null;
    this.tall = square
      ? Math.max(Math.round(16 * z), this.wide)
      : Math.round((sheet.rowLabels ? 16 : Math.max(3, Math.min(12, 200 / sheet.rows))) * z);
    this.#names();
    this.draw();
  }

  #namesWidth() {
    const { rowLabels } = this.sheet;
    if (!rowLabels) return 0;
    const longest = Math.max(...rowLabels.map((label) => [...label].length));
    return Math.min(100, 10 + 7.8 * longest) * zoom();
  }

  #names() {
    const { sheet } = this;
    /** @param {string} label @param {string} axis @param {number} i */
    const name = (label, axis, i) => h("span", { data: { side: sideOf(axis) ?? "", index: i } }, label);
    this.rowNames.replaceChildren(...(sheet.rowLabels ?? []).map((label, i) => name(label, sheet.rowAxis, i)));
    this.rowNames.style.width = `${this.#namesWidth()}px`;
    this.rowNames.style.setProperty("--tall", `${this.tall}px`);
    this.colNames.style.setProperty("--wide", `${this.wide}px`);
    const labels = sheet.colLabels?.slice(this.first, this.first + this.shown) ?? [];
    this.colNames.replaceChildren(...labels.map((label, j) => name(label, sheet.colAxis, this.first + j)));
    this.colNames.classList.toggle("none", labels.length === 0);
    if (this.options.sums) {
      this.sums.style.setProperty("--tall", `${this.tall}px`);
      /** @param {number} i */
      const total = (i) => Array.from({ length: sheet.cols }, (_, j) => sheet.at(i, j)).reduce((a, b) => a + b, 0);
      this.sums.replaceChildren(...Array.from({ length: sheet.rows }, (_, i) => h("span", fixed(total(i), 4))));
    }
    this.#pages();
  }

  #pages() {
    const { sheet, first, page } = this;
    const before = first > 0 ? Math.max(0, first - page) : -1;
    const after = first + page < sheet.cols ? Math.min(first + page, sheet.cols - page) : -1;
    const turn = (/** @type {number} */ to) => this.turn(to);
    const pages = () => pager(sheet.cols, first, first + this.shown - 1, [before, after], turn, sheet.name);
    fill(this.pager, page < sheet.cols && pages());
  }

  /** @param {number} first */
  turn(first) {
    const key = focusedKey();
    this.first = first;
    this.cursor[1] = Math.max(first, Math.min(first + this.page - 1, this.cursor[1]));
    this.layout();
    if (key && !focusedKey()) /** @type {HTMLElement | null} */ (this.pager.querySelector("button:enabled"))?.focus();
  }

  draw() {
    const { sheet, wide, tall, shown, first } = this;
    if (!wide) return;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [shown * wide, sheet.rows * tall];
    for (const canvas of [this.cells, this.over]) {
      canvas.width = Math.max(1, Math.round(width * ratio));
      canvas.height = Math.max(1, Math.round(height * ratio));
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const ctx = contextOf(this.cells);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const gap = wide >= 7 && tall >= 7 ? 1 : 0;
    if (gap) {
      for (let i = 0; i < sheet.rows; i++) {
        for (let j = 0; j < shown; j++) this.#cell(ctx, i, first + j, [j * wide, i * tall, wide - gap, tall - gap]);
      }
    } else {
      ctx.imageSmoothingEnabled = false;
      ctx.drawImage(sheetCanvas(sheet, first, shown), 0, 0, width, height);
    }
    this.#overlay();
  }

  /** @param {CanvasRenderingContext2D} ctx @param {number} i @param {number} j @param {Box} box */
  #cell(ctx, i, j, box) {
    const { sheet } = this;
    const value = sheet.at(i, j);
    if (sheet.masked(i, j)) return hatch(ctx, box);
    if (!Number.isFinite(value)) return markNonFinite(ctx, box, value);
    ctx.fillStyle = `rgb(${colourOf(value, sheet.high, sheet.sequential, sheet.hue).join(" ")})`;
    ctx.fillRect(...box);
  }

  #overlay() {
    const ratio = window.devicePixelRatio || 1;
    const ctx = contextOf(this.over);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, this.over.width, this.over.height);
    ctx.strokeStyle = cssColour("accent");
    ctx.lineJoin = "round";
    /** @param {number | null} row @param {number | null} col @param {number} weight */
    const outline = (row, col, weight) => {
      const { wide, tall, first, shown, sheet } = this;
      const left = col === null ? 0 : (col - first) * wide;
      const top = row === null ? 0 : row * tall;
      const width = col === null ? shown * wide : wide;
      const height = row === null ? sheet.rows * tall : tall;
      if (col !== null && (col < first || col >= first + shown)) return;
      ctx.lineWidth = weight;
      const grow = width < 5 ? 1 : 0;
      ctx.strokeRect(left - grow + 0.5, top + 0.5, Math.max(2, width + 2 * grow - 2), Math.max(2, height - 2));
    };
    for (const { row, col } of this.highlighted) outline(row, col, 1.5);
    if (this.active) outline(this.cursor[0], this.cursor[1], 2.5);
    this.#lightNames();
  }

  #lightNames() {
    const lit = this.active ? [...this.highlighted, { row: this.cursor[0], col: this.cursor[1] }] : this.highlighted;
    const rows = new Set(lit.map((one) => one.row));
    const cols = new Set(lit.map((one) => one.col));
    const [rowNames, colNames] = [[...this.rowNames.children], [...this.colNames.children]];
    for (const [i, name] of rowNames.entries()) name.classList.toggle("lit", rows.has(i));
    for (const [j, name] of colNames.entries()) name.classList.toggle("lit", cols.has(this.first + j));
  }

  /** Outline the cells that another cell was made of. @param {Area[]} areas */
  highlight(areas) {
    this.highlighted = areas.filter(
      (one) => one.name === this.sheet.name && (one.head === null || one.head === this.sheet.head),
    );
    if (this.wide) this.#overlay();
  }

  /** Put the cursor on a cell, as a lock does. @param {number} i @param {number} j */
  place(i, j) {
    this.cursor = [i, j];
    this.active = true;
    this.#reveal();
  }

  clear() {
    if (!this.active) return;
    this.active = false;
    if (this.wide) this.#overlay();
  }

  #reveal() {
    const [i, j] = this.cursor;
    if (this.page && (j < this.first || j >= this.first + this.page)) {
      this.first = Math.min(this.sheet.cols - this.page, j - (j % this.page));
      this.layout();
    } else if (this.wide) {
      this.#overlay();
    }
    const { sheet } = this;
    this.live.setAttribute("aria-rowindex", String(i + 1));
    this.live.setAttribute("aria-colindex", String(j + 1));
    const places = [placeName(sheet.rowAxis, i, sheet.rowLabels), placeName(sheet.colAxis, j, sheet.colLabels)];
    const masked = sheet.masked(i, j) ? ` (${t("matrix.masked")})` : "";
    this.live.textContent = `${places.join(", ")}: ${show(sheet.at(i, j))}${masked}`;
  }

  /** The tokens that a cell's row and column stand for. @param {number} i @param {number} j */
  #tokensAt(i, j) {
    const sides = [sideOf(this.sheet.rowAxis), sideOf(this.sheet.colAxis)];
    return sides.flatMap((side, n) => (side ? [`${side}:${[i, j][n]}`] : []));
  }

  currentCell() {
    const [i, j] = this.cursor;
    return { name: this.sheet.name, index: this.sheet.index(i, j), tokens: this.#tokensAt(i, j), matrix: this };
  }

  #show() {
    this.active = true;
    this.#reveal();
    this.hooks.preview(this.currentCell());
  }

  #leave() {
    if (document.activeElement === this.field) return;
    this.clear();
    this.hooks.preview(null);
  }

  /** @param {MouseEvent} event @param {boolean} click */
  #point(event, click) {
    const box = this.cells.getBoundingClientRect();
    const i = Math.floor((event.clientY - box.top) / this.tall);
    const j = this.first + Math.floor((event.clientX - box.left) / this.wide);
    if (i < 0 || j < this.first || i >= this.sheet.rows || j >= this.first + this.shown) return;
    const moved = !this.active || i !== this.cursor[0] || j !== this.cursor[1];
    this.cursor = [i, j];
    if (moved) this.#show();
    if (click) this.hooks.lock(this.currentCell());
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Escape") return this.hooks.release();
    const next = stepInGrid(event.key, this.cursor, this.sheet.rows, this.sheet.cols);
    const lock = event.key === "Enter" || event.key === " ";
    if (!next && !lock) return;
    event.preventDefault();
    if (lock) return this.hooks.lock(this.currentCell());
    this.cursor = next ?? this.cursor;
    this.#show();
  }
}

/**
 * A name for a row or column, for a reader who cannot see the label.
 * @param {string} axis @param {number} i @param {string[] | null} labels
 */
export function placeName(axis, i, labels) {
  const word = t(`axis.${axis.split(":")[0]}`);
  return labels ? `${word} ${i} \u201c${labels[i]}\u201d` : `${word} ${i}`;
}

/**
 * Which columns are shown, and how to go to those before and after; a place that is none of them cannot be gone to.
 * @param {number} cols @param {number} first @param {number} last
 * @param {[number, number]} beside   the first columns of the pages before and after
 * @param {(to: number) => void} turn @param {string} key
 */
export function pager(cols, first, last, [before, after], turn, key) {
  /** @param {number} to @param {string} mark @param {"before" | "after"} way */
  const page = (to, mark, way) =>
    button(mark, () => turn(to), {
      "aria-label": t(`matrix.${way}`),
      disabled: to < 0 || to >= cols,
      data: { key: `${way}:${key}` },
    });
  const shown = t("matrix.columns", { from: whole(first), to: whole(last), all: whole(cols) });
  return [page(before, "\u2039", "before"), h("span", shown), page(after, "\u203a", "after")];
}
