// Small charts in SVG: lines over a whole-numbered axis with a marker, bars.

import { h, raw, svg, zoom } from "./dom.js";
import { fixed, show } from "./number.js";

/**
 * Lines over offsets, with a slider that reads them.
 * @param {{name: string, colour: string, points: {x: number, y: number}[]}[]} series
 * @param {{label: string, say: (x: number) => string, key: string}} options
 */
export function lines(series, { label, say, key }) {
  const all = series.flatMap((one) => one.points);
  const xs = all.map((point) => point.x);
  const ys = all.map((point) => point.y);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [low, high] = [Math.min(0, ...ys), Math.max(0, ...ys)];
  const [width, height, inset] = [
    Math.max(300, Math.min(640, window.innerWidth / zoom() - 70)),
    240,
    { left: 52, right: 12, top: 14, bottom: 26 },
  ];
  const x = (value) => inset.left + ((value - left) / (right - left || 1)) * (width - inset.left - inset.right);
  const y = (value) =>
    height - inset.bottom - ((value - low) / (high - low || 1)) * (height - inset.top - inset.bottom);
  const ticks = [left, Math.round(left / 2), 0, Math.round(right / 2), right].filter(
    (tick, i, list) => list.indexOf(tick) === i && tick >= left && tick <= right,
  );
  const marker = svg("line", { y1: inset.top, y2: height - inset.bottom, class: "marker" });
  const dots = series.map((one) => svg("circle", { r: 4, class: "marker-dot", fill: `var(--${one.colour})` }));
  const chart = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label },
    [low, 0, high]
      .filter((value, i, list) => list.indexOf(value) === i)
      .map((value) => [
        svg("line", {
          x1: inset.left,
          x2: width - inset.right,
          y1: y(value),
          y2: y(value),
          class: value === 0 ? "axis" : "rule",
        }),
        svg("text", { x: inset.left - 8, y: y(value) + 4, class: "tick end", translate: "no" }, show(value, 3)),
      ]),
    ticks.map((tick) => svg("text", { x: x(tick), y: height - 6, class: "tick", translate: "no" }, fixed(tick, 0))),
    series.map((one) =>
      svg("polyline", {
        points: one.points.map((point) => `${x(point.x).toFixed(1)},${y(point.y).toFixed(1)}`).join(" "),
        class: "curve",
        stroke: `var(--${one.colour})`,
      }),
    ),
    marker,
    dots,
  );
  const read = h("output.reading", { translate: "no" });
  const slide = h("input", {
    type: "range",
    min: left,
    max: right,
    step: 1,
    value: Math.max(left, Math.min(right, 1)),
    "aria-label": label,
    data: { key },
  });
  const move = () => {
    const at = Number(slide.value);
    marker.setAttribute("x1", x(at));
    marker.setAttribute("x2", x(at));
    series.forEach((one, i) => {
      const point = one.points.find((each) => each.x === at);
      dots[i].setAttribute("visibility", point ? "visible" : "hidden");
      if (point) {
        dots[i].setAttribute("cx", x(at));
        dots[i].setAttribute("cy", y(point.y));
      }
    });
    const values = series
      .map((one) => ({ one, point: one.points.find((each) => each.x === at) }))
      .filter(({ point }) => point);
    read.replaceChildren(
      say(at),
      " ",
      ...values.map(({ one, point }) =>
        h(
          "span.value",
          series.length > 1 && h("i.dot", { style: { background: `var(--${one.colour})` } }),
          series.length > 1 ? `${one.name} ` : "",
          show(point.y),
        ),
      ),
    );
    slide.setAttribute("aria-valuetext", read.textContent);
  };
  slide.addEventListener("input", move);
  move();
  return h("div.chart-box", chart, slide, read);
}

/** One bar of a list: a label, a length, a number. */
export function bar({ label, share, figure, more, chosen, mark }) {
  return h(
    "li",
    { class: `bar-row${chosen ? " chosen" : ""}` },
    raw(label, { class: "bar-label" }),
    h("span.bar-track", h("span.bar-fill", { style: { width: `${(100 * share).toFixed(2)}%` } })),
    raw(figure, { class: "bar-figure" }),
    more && raw(more, { class: "bar-more" }),
    mark ?? null,
  );
}
