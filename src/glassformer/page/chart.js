// Small charts in SVG: lines over a whole-numbered axis with a marker, bars.

import { fill, h, line, move, raw, svg, label as text, zoom } from "./dom.js";
import { fixed, percent, show } from "./number.js";

const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [240, 52, 12, 14, 26]; // with the space around the lines

/**
 * Lines over offsets, with a slider that reads them.
 * @param {Curve[]} curves
 * @param {{label: string, say: (x: number) => string, key: string}} options
 */
export function lines(curves, { label, say, key }) {
  const points = curves.flatMap((one) => one.points);
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [low, high] = [Math.min(0, ...ys), Math.max(0, ...ys)];
  const width = Math.max(300, Math.min(640, window.innerWidth / zoom() - 70));
  /** @param {number} value */
  const x = (value) => LEFT + ((value - left) / (right - left || 1)) * (width - LEFT - RIGHT);
  /** @param {number} value */
  const y = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low || 1)) * (HEIGHT - TOP - BOTTOM);
  const ticks = [left, Math.round(left / 2), 0, Math.round(right / 2), right].filter((n) => n >= left && n <= right);
  const marker = svg("line.marker", { y1: TOP, y2: HEIGHT - BOTTOM });
  const dots = curves.map((one) => svg("circle.marker-dot", { r: 4, fill: `var(--${one.colour})` }));
  const rules = [...new Set([low, 0, high])].map((value) => [
    line([LEFT, y(value)], [width - RIGHT, y(value)], { class: value === 0 ? "axis" : "rule" }),
    text([LEFT - 8, y(value) + 4], show(value, 3), { class: "tick end" }),
  ]);
  const drawn = curves.map((one) => {
    const path = one.points.map((point) => `${x(point.x).toFixed(1)},${y(point.y).toFixed(1)}`).join(" ");
    return svg("polyline.curve", { points: path, stroke: `var(--${one.colour})` });
  });
  const chart = svg(
    "svg.chart",
    { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label },
    rules,
    [...new Set(ticks)].map((tick) => text([x(tick), HEIGHT - 6], fixed(tick, 0), { class: "tick" })),
    drawn,
    marker,
    dots,
  );
  const reading = h("output.reading", { translate: "no" });
  const value = Math.max(left, Math.min(right, 1));
  const range = { type: "range", min: left, max: right, step: 1, value };
  const slide = h("input", { ...range, "aria-label": label, data: { key } });
  const read = () => {
    const at = Number(slide.value);
    move(marker, { x1: x(at), x2: x(at) });
    const values = curves.map(({ name, colour, points }, i) => {
      const point = points.find((each) => each.x === at);
      move(dots[i], point ? { visibility: "visible", cx: x(at), cy: y(point.y) } : { visibility: "hidden" });
      const dot = h("i.dot", { style: { background: `var(--${colour})` } });
      return point && h("span.value", curves.length > 1 && [dot, `${name} `], show(point.y));
    });
    fill(reading, say(at), " ", values);
    slide.setAttribute("aria-valuetext", reading.textContent);
  };
  slide.addEventListener("input", read);
  read();
  return h("div.chart-box", chart, slide, reading);
}

/** The likeliest for a place of an answer. @param {AnswerPlace} place @param {number} [count] */
export const answerBars = ({ position, top }, count) => candidateBars(top.slice(0, count), top[0].id, { position });

/**
 * Candidates as bars as long as they are probable.
 * @param {Candidate[]} top
 * @param {number} chosen   by its id
 * @param {Record<string, Value>} [data]
 */
export function candidateBars(top, chosen, data = {}) {
  const rows = top.map(({ id, piece, probability, log_probability: log }) =>
    h(
      "li",
      { class: `bar-row${id === chosen ? " chosen" : ""}` },
      raw(piece, { class: "bar-label" }),
      h("span.bar-track", h("span.bar-fill", { style: { width: `${(100 * probability).toFixed(2)}%` } })),
      raw(percent(probability), { class: "bar-figure" }),
      raw(show(log), { class: "bar-more" }),
    ),
  );
  return h("ol.bars", { data: { testid: "top", ...data } }, rows);
}
