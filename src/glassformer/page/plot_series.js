// A panel of a lab's figure as lines, points or bars over one pair of axes.

import { drawable, INSET, LETTER, namesBelow, scaleOf } from "./axes.js";
import { h, raw, svg } from "./dom.js";
import { brief, show } from "./number.js";
import { label, line, move, rect } from "./svg.js";

/** Two or more measurements, each with a prediction. @param {Series[]} series */
export function isPaired(series) {
  const dashed = series.filter((one) => one.dashed).length;
  return dashed > 1 && 2 * dashed === series.length;
}

/** @typedef {{x: number, y: number | null}} Point */

/** @param {Panel} panel @param {number} width @param {string[]} colours @returns {Plot<number>} */
export function seriesPlot(panel, width, colours) {
  const { log_x: logX, log_y: logY, series } = panel;
  const drawn = series.map((one) => one.x.flatMap((x, i) => (drawable(x, logX) ? [{ x, y: one.y[i] }] : [])));
  const points = drawn.flat();
  const xs = [...new Set(points.map(({ x }) => x))].sort((a, b) => a - b);
  const ends = series.flatMap((one) => [...one.low, ...one.high]);
  const ys = [...points.map(({ y }) => y), ...ends].filter((y) => drawable(y, logY));
  const bars = series.filter((one) => one.kind === "bars");
  const gap = xs.slice(1).reduce((least, x, i) => Math.min(least, x - xs[i]), Infinity);
  const step = Number.isFinite(gap) ? gap : 1;
  const reach = bars.length ? [xs[0] - step / 2, xs[xs.length - 1] + step / 2, ...xs] : xs;
  const yOptions = { zero: bars.length > 0, room: 0.05 };
  const yTicks = scaleOf(ys, logY, 200, 0, yOptions).ticks;
  const left = 14 + LETTER * Math.max(2, ...yTicks.map((one) => brief(one).length));
  const right = width - INSET.right;
  const x = scaleOf(reach, logX && !bars.length, left, right, { met: xs, room: bars.length ? 0 : 0.02 });
  const named = panel.ticks.length ? namesBelow(panel.ticks, x.place, (right - left) / panel.ticks.length) : null;
  const tall = Math.round(Math.min(300, 170 + width / 5)) + (named?.tall ?? INSET.bottom);
  const bottom = tall - (named?.tall ?? INSET.bottom);
  const y = scaleOf(ys, logY, bottom, INSET.top, yOptions);
  const floor = logY ? bottom : y.place(0);
  const each = (Math.abs(x.place((xs[0] ?? 0) + step) - x.place(xs[0] ?? 0)) * 0.8) / (bars.length || 1);

  /** The interval of each mean, as a band or as whiskers. @param {Series} one @param {string} colour */
  const spreadOf = (one, colour, shift = 0) => {
    if (!one.low.length) return null;
    const there = one.x.flatMap((at, i) => {
      const [low, high] = [one.low[i], one.high[i]];
      return drawable(at, logX) && drawable(low, logY) && drawable(high, logY) ? [{ at, low, high }] : [];
    });
    if (one.kind === "line") {
      const corners = [
        ...there.map(({ at, high }) => [at, high]),
        ...there.map(({ at, low }) => [at, low]).reverse(),
      ].map(([at, end]) => `${x.place(at).toFixed(1)} ${y.place(end).toFixed(1)}`);
      return corners.length > 2 && svg("path", { d: `M${corners.join("L")}Z`, class: "band", style: { fill: colour } });
    }
    return there.map(({ at, low, high }) => {
      const middle = x.place(at) + shift;
      return line([middle, y.place(low)], [middle, y.place(high)], { class: "whisker", style: { stroke: colour } });
    });
  };
  /** @param {Series} one @param {Point[]} shown @param {string} colour */
  const drawBars = (one, shown, colour) => {
    const shift = each * (bars.indexOf(one) - (bars.length - 1) / 2);
    const whiskers = spreadOf(one, "var(--ink)", shift);
    const drawnBars = shown.map((point) => {
      const at = y.place(point.y ?? NaN);
      return rect(
        [x.place(point.x) + shift - 0.46 * each, Math.min(floor, at), 0.92 * each, Math.max(0.5, Math.abs(floor - at))],
        {
          class: `bar-mark${one.dashed ? " dashed" : ""}`,
          style: { stroke: colour, fill: one.dashed ? "none" : colour },
          data: { x: point.x, y: point.y },
        },
      );
    });
    return [drawnBars, whiskers];
  };
  // A measurement that its prediction lies upon is drawn broad and faint, so that both are seen.
  const broad = isPaired(series) ? " broad" : "";
  /** @param {Series} one @param {number} i */
  const marks = (one, i) => {
    const colour = `var(--${colours[i]})`;
    const shown = drawn[i].filter((point) => drawable(point.y, logY));
    if (one.kind === "bars") return drawBars(one, shown, colour);
    const dotted = one.kind === "points" || (!one.dashed && !broad && shown.length <= 24);
    const dots = shown.map((point) =>
      svg("circle", {
        cx: x.place(point.x),
        cy: y.place(point.y ?? NaN),
        r: one.kind === "points" ? 3.6 : 2.8,
        style: { stroke: colour, fill: one.dashed ? "var(--card)" : colour },
        data: { x: point.x, y: point.y },
      }),
    );
    const spread = spreadOf(one, colour);
    if (one.kind === "points") return [dots, spread];
    const path = pathOf(drawn[i], x.place, (value) => (drawable(value, logY) ? y.place(value) : null));
    const style = { stroke: colour };
    return [spread, svg("path", { d: path, class: `curve${one.dashed ? " dashed" : broad}`, style }), dotted && dots];
  };
  const marker = svg("line.marker", { y1: INSET.top, y2: bottom, visibility: "hidden" });
  const dots = colours.map((colour) =>
    svg("circle.marker-dot", { r: 4.5, visibility: "hidden", style: { fill: `var(--${colour})` } }),
  );
  const rules = y.ticks.map((one) => [
    line([left, y.place(one)], [right, y.place(one)], { class: "rule" }),
    label([left - 7, y.place(one) + 4], brief(one), { class: "tick end" }),
  ]);
  const base = bars.length ? floor : bottom;
  const ticks = x.ticks.map((one) => label([x.place(one), bottom + 18], brief(one), { class: "tick" }));
  const picture = svg(
    "svg.chart.plot-picture",
    { viewBox: `0 0 ${width} ${tall}` },
    rules,
    line([left, base], [right, base], { class: "axis" }),
    named ? named.draw(bottom) : ticks,
    marker,
    series.map((one, i) => svg("g", { data: { series: i } }, marks(one, i))),
    dots,
  );
  /** @param {number} n */
  const pointsAt = (n) => drawn.map((one) => one.find((point) => point.x === xs[n]));
  return {
    picture,
    tall,
    first: 0,
    near: (px) =>
      xs.reduce((best, one, n) => (Math.abs(x.place(one) - px) < Math.abs(x.place(xs[best]) - px) ? n : best), 0),
    step: (n, key) => {
      if (key === "ArrowRight") return Math.min(xs.length - 1, n + 1);
      if (key === "ArrowLeft") return Math.max(0, n - 1);
      return key === "Home" ? 0 : key === "End" ? xs.length - 1 : null;
    },
    mark(n) {
      move(marker, { visibility: n === null || bars.length ? "hidden" : "visible" });
      if (n !== null) move(marker, { x1: x.place(xs[n]), x2: x.place(xs[n]) });
      for (const bar of /** @type {NodeListOf<SVGElement>} */ (picture.querySelectorAll(".bar-mark"))) {
        bar.classList.toggle("on", n !== null && Number(bar.dataset.x) === xs[n]);
      }
      const points = n === null ? [] : pointsAt(n);
      dots.forEach((dot, i) => {
        const point = points[i];
        const value = series[i].kind !== "bars" && point ? point.y : null;
        const there = point && drawable(value, logY);
        move(
          dot,
          there ? { visibility: "visible", cx: x.place(point.x), cy: y.place(value) } : { visibility: "hidden" },
        );
      });
    },
    say(n) {
      const values = pointsAt(n).map((point, i) => {
        const dot = h("i.dot", { style: { background: `var(--${colours[i]})` } });
        const name = series.length > 1 && h("span", { translate: "yes" }, series[i].name, " ");
        const value = point && raw(point.y === null ? "\u2013" : show(point.y), { class: "read-value" });
        return value && h("span.value", { data: { series: i } }, dot, name, value);
      });
      return [raw(panel.ticks[xs[n]] ?? brief(xs[n]), { class: "value" }), values];
    },
  };
}

/**
 * A line through the points, broken where one cannot be drawn.
 * @param {Point[]} points
 * @param {(x: number) => number} x
 * @param {(y: number | null) => number | null} y
 */
function pathOf(points, x, y) {
  let pen = "M";
  const parts = points.map((point) => {
    const at = y(point.y);
    const part = at === null ? "" : `${pen}${x(point.x).toFixed(1)} ${at.toFixed(1)}`;
    pen = at === null ? "M" : "L";
    return part;
  });
  return parts.join("");
}
