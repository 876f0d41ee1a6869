// A panel of a lab's figure as a matrix of colours: rows downwards, columns to the right.

import { INSET, LETTER, lettersOf, namesBelow } from "./axes.js";
import { raw, stepInGrid, svg } from "./dom.js";
import { colourOf } from "./heatmap.js";
import { brief, show } from "./number.js";
import { label, move, rect } from "./svg.js";

const KEY = { shades: 32, wide: 5, tall: 34 }; // the scale of colours below

/** @param {Panel} panel @param {number} width @returns {Plot<[number, number]>} */
export function heatMap({ heat, rows: rowNames, ticks }, width) {
  const [rows, cols] = [heat.length, Math.max(...heat.map((row) => row.length))];
  const seen = heat.flat().filter((value) => value !== null);
  const [least, most] = seen.length ? [Math.min(...seen), Math.max(...seen)] : [0, 1];
  const signed = least < 0 && most > 0;
  const high = signed ? Math.max(-least, most) : most === least ? least + 1 : most;
  const low = signed ? -high : least;
  /** @param {number} value */
  const paint = (value) => {
    const channels = signed
      ? colourOf(value, high, false, "encoder")
      : colourOf(value - low, high - low, true, "encoder");
    return `rgb(${channels.join(" ")})`;
  };
  const longest = Math.max(2, ...(rowNames.length ? rowNames : [String(rows)]).map(lettersOf));
  const left = 14 + Math.min(120, LETTER * longest);
  const [wide, cellTall] = [(width - left - INSET.right) / cols, Math.max(8, Math.min(34, 420 / rows))];
  const bottom = INSET.top + rows * cellTall;
  const columns = ticks.length ? ticks : Array.from({ length: cols }, (_, j) => String(j));
  const named = namesBelow(columns, (j) => left + (j + 0.5) * wide, wide);
  const tall = bottom + named.tall + KEY.tall;
  const frame = svg("rect.heat-frame", { width: wide, height: cellTall, visibility: "hidden" });
  const cells = heat.map((row, i) =>
    row.map((value, j) => {
      const attributes = { fill: value === null ? "none" : paint(value), data: { row: i, column: j } };
      return rect([left + j * wide, INSET.top + i * cellTall, wide + 0.3, cellTall + 0.3], attributes);
    }),
  );
  const every = Math.ceil(rows / 32);
  const names = heat.map((_, i) => {
    const middle = INSET.top + (i + 0.5) * cellTall;
    return i % every === 0 && label([left - 7, middle + 4], rowNames[i] ?? String(i), { class: "tick end" });
  });
  const shades = Array.from({ length: KEY.shades }, (_, n) => {
    const fill = paint(low + ((n + 0.5) / KEY.shades) * (high - low));
    return rect([left + n * KEY.wide, tall - 22, KEY.wide + 0.5, 8], { fill });
  });
  const picture = svg(
    "svg.chart.plot-picture",
    { viewBox: `0 0 ${width} ${tall}` },
    cells,
    names,
    named.draw(bottom),
    shades,
    label([left, tall - 2], brief(low, 3), { class: "tick start" }),
    label([left + KEY.shades * KEY.wide, tall - 2], brief(high, 3), { class: "tick end" }),
    frame,
  );
  /** @param {number} n @param {number} size */
  const within = (n, size) => Math.max(0, Math.min(size - 1, Math.floor(n)));
  return {
    picture,
    tall,
    first: [0, 0],
    near: (x, y) => [within((y - INSET.top) / cellTall, rows), within((x - left) / wide, cols)],
    step: (at, key) => stepInGrid(key, at, rows, cols),
    mark(at) {
      move(frame, { visibility: at ? "visible" : "hidden" });
      if (at) move(frame, { x: left + at[1] * wide, y: INSET.top + at[0] * cellTall });
    },
    say([i, j]) {
      const value = heat[i][j] ?? null;
      const place = raw(`${rowNames[i] ?? i}, ${columns[j]}`, { class: "value" });
      return [place, raw(value === null ? "\u2013" : show(value), { class: "value read-value" })];
    },
  };
}
