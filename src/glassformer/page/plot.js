// A lab's figure, drawn from its data: lines, points, bars or a heat map, read by pointer or by arrow keys.

import { colourOf } from "./colour.js";
import { h, raw, svg, zoom } from "./dom.js";
import { t } from "./language.js";
import { brief, show } from "./number.js";

const COLOURS = ["encoder", "accent", "k", "v", "q", "decoder"];
const MANY = 12; // names along an axis of which some may be left out
const INSET = { right: 14, top: 12, bottom: 26 };
const LETTER = 7.2; // the width of a letter of a tick, in pixels; a Chinese sign counts as two

/** Every panel of a figure, each as wide as its place. */
export function figure(app, data) {
  return h(
    "figure.lab-figure",
    { data: { testid: "lab-figure" } },
    h(
      "div.plots",
      data.panels.map((panel, i) => panelOf(app, panel, i)),
    ),
    data.caption && h("figcaption.caption", data.caption),
  );
}

function panelOf(app, panel, n) {
  const reading = h("output.reading", { translate: "no", "aria-live": "polite" });
  const place = h("div.plot");
  const heat = panel.heat.length > 0;
  const colours = coloursOf(panel.series);
  const cursor = { at: null };
  const hint = () =>
    reading.replaceChildren(h("span.faint", { translate: "yes" }, t(heat ? "labs.readHeat" : "labs.read")));
  let width = 0;
  const draw = () => {
    const wide = Math.max(240, Math.floor(place.clientWidth / zoom() || 560));
    if (wide === width) return;
    width = wide;
    const drawn = (heat ? heatMap : series)(panel, wide, colours);
    const move = (at) => {
      cursor.at = at;
      drawn.mark(at);
      if (at === null) hint();
      else reading.replaceChildren(...drawn.say(at));
    };
    const focused = place.contains(document.activeElement);
    drawn.picture.setAttribute("tabindex", "0");
    drawn.picture.setAttribute("role", "group");
    drawn.picture.setAttribute("aria-label", `${panel.title}. ${t(heat ? "labs.readHeat" : "labs.read")}`);
    drawn.picture.dataset.key = `plot:${n}`;
    drawn.picture.addEventListener("pointermove", (event) => {
      const box = drawn.picture.getBoundingClientRect();
      move(
        drawn.near(
          ((event.clientX - box.left) / box.width) * wide,
          ((event.clientY - box.top) / box.height) * drawn.tall,
        ),
      );
    });
    drawn.picture.addEventListener("pointerleave", () => document.activeElement !== drawn.picture && move(null));
    drawn.picture.addEventListener("blur", () => move(null));
    drawn.picture.addEventListener("focus", () => cursor.at ?? move(drawn.first));
    drawn.picture.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return move(null);
      const next = drawn.step(cursor.at ?? drawn.first, event.key);
      if (next === undefined) return;
      event.preventDefault();
      move(next);
    });
    place.replaceChildren(drawn.picture);
    if (focused) drawn.picture.focus({ preventScroll: true });
    move(null);
  };
  app.resized(place, draw);
  return h(
    "div.panel",
    { data: { panel: n } },
    h("h4", panel.title),
    h("p.axis-name", heat ? "\u2193 " : "\u2191 ", panel.y),
    place,
    h("p.axis-name.x", panel.x, " \u2192"),
    panel.series.length > 1 &&
      h(
        "ul.series-names",
        panel.series.map((one, i) => h("li", swatch(one, colours[i]), one.name)),
      ),
    reading,
  );
}

/** Measurements in turn; a single reference in grey; as many predictions as measurements like those they belong to. */
function coloursOf(list) {
  const dashed = list.filter((one) => one.dashed).length;
  const count = { true: 0, false: 0 };
  return list.map((one) => {
    const n = count[one.dashed]++;
    if (one.dashed && dashed === 1) return "soft";
    return COLOURS[(n + (one.dashed && !isPaired(list) ? list.length - dashed : 0)) % COLOURS.length];
  });
}

/** Two or more measurements, each with a prediction. */
function isPaired(list) {
  const dashed = list.filter((one) => one.dashed).length;
  return dashed > 1 && 2 * dashed === list.length;
}

function swatch(one, colour) {
  const style = { stroke: `var(--${colour})`, fill: one.dashed ? "none" : `var(--${colour})` };
  return svg(
    "svg",
    { viewBox: "0 0 26 12", class: "series-mark", "aria-hidden": "true" },
    one.kind === "bars"
      ? svg("rect", { x: 4, y: 1.5, width: 18, height: 9, style, "stroke-dasharray": one.dashed ? "3 2" : null })
      : one.kind === "points"
        ? svg("circle", { cx: 13, cy: 6, r: 3.5, style })
        : svg("line", {
            x1: 1,
            x2: 25,
            y1: 6,
            y2: 6,
            style,
            "stroke-width": 2.2,
            "stroke-dasharray": one.dashed ? "5 3" : null,
          }),
  );
}

const fine = (value, log) => value !== null && (value > 0 || !log);

/** A value's place, and the ticks: round numbers, or on a logarithmic axis those few that were met. */
function scaleOf(values, log, from, to, { zero = false, met = null, room = 0 } = {}) {
  let [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [log ? 1 : 0, log ? 10 : 1];
  if (zero && !log) [low, high] = [Math.min(0, low), Math.max(0, high)];
  if (low === high)
    [low, high] = log ? [low / 2, high * 2] : [low - (Math.abs(low) / 10 || 1), high + (Math.abs(high) / 10 || 1)];
  const f = log ? Math.log10 : (value) => value;
  let [a, b] = [f(low), f(high)];
  const spare = (b - a) * room;
  [a, b] = [zero && !log && low === 0 ? a : a - spare, zero && !log && high === 0 ? b : b + spare];
  const place = (value) => from + ((f(value) - a) / (b - a)) * (to - from);
  const most = Math.max(2, Math.floor(Math.abs(to - from) / (from > to ? 44 : 64)));
  return { place, ticks: log ? logTicks(a, b, most, met) : ticks(a, b, most, met?.every(Number.isInteger)) };
}

/** Round numbers; whole ones where only such were met: there is no layer 1.5. */
function ticks(a, b, most, whole = false) {
  const rough = (b - a) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(
    whole ? 1 : 0,
    power * (whole && power < 10 ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10]).find((one) => one * power >= rough),
  );
  const found = [];
  for (let n = Math.ceil(a / step - 1e-9); n * step <= b + 1e-9 * step; n++) found.push(n * step);
  return found;
}

function logTicks(a, b, most, met) {
  if (met && met.length > 1 && met.length <= most && met.every((one, i) => i === 0 || one / met[i - 1] > 1.4))
    return met;
  const each = Math.ceil((b - a) / most) || 1;
  const found = [];
  for (let n = Math.floor(a); n <= Math.ceil(b); n++) {
    for (const one of b - a < 2 ? [1, 2, 5] : [1])
      if (n % each === 0 && Math.log10(one) + n >= a - 1e-9 && Math.log10(one) + n <= b + 1e-9)
        found.push(one * 10 ** n);
  }
  return found;
}

const lettersOf = (text) => [...text].reduce((sum, one) => sum + (one.codePointAt(0) > 0x2e80 ? 2 : 1), 0);

/** Names below the plot: a few slanted where they would touch, of many some left out. */
function names(list, x, y, room) {
  const longest = Math.max(...list.map(lettersOf)) * LETTER + 8;
  const every = list.length > MANY ? Math.ceil(longest / room) : 1;
  const shown = list.map((name, i) => ({ name, i })).filter(({ i }) => i % every === 0);
  const slanted = longest > room * every;
  const tall = slanted ? Math.min(120, 14 + 0.6 * longest) : INSET.bottom;
  return {
    tall,
    draw: () =>
      shown.map(({ name, i }) =>
        svg(
          "text",
          {
            x: x(i),
            y: y() + 16,
            class: slanted ? "tick end" : "tick",
            translate: "no",
            transform: slanted ? `rotate(-35 ${x(i)} ${y() + 12})` : null,
          },
          name,
        ),
      ),
  };
}

function series(panel, width, colours) {
  const { log_x: logX, log_y: logY } = panel;
  const drawn = panel.series.map((one) => one.x.map((x, i) => ({ x, y: one.y[i] })).filter(({ x }) => fine(x, logX)));
  const xs = [...new Set(drawn.flat().map(({ x }) => x))].sort((a, b) => a - b);
  const ys = drawn
    .flat()
    .map(({ y }) => y)
    .filter((y) => fine(y, logY));
  const bars = panel.series.filter((one) => one.kind === "bars");
  const gap = xs.slice(1).reduce((least, x, i) => Math.min(least, x - xs[i]), Infinity);
  const step = Number.isFinite(gap) ? gap : 1;
  const spread = bars.length ? [xs[0] - step / 2, xs.at(-1) + step / 2, ...xs] : xs;
  const yTicks = scaleOf(ys, logY, 200, 0, { zero: bars.length > 0, room: 0.05 }).ticks;
  const left = 14 + LETTER * Math.max(2, ...yTicks.map((one) => brief(one).length));
  const x = scaleOf(spread, logX && !bars.length, left, width - INSET.right, { met: xs, room: bars.length ? 0 : 0.02 });
  const named = panel.ticks.length
    ? names(panel.ticks, x.place, () => tall - bottom, (width - left - INSET.right) / panel.ticks.length)
    : null;
  const bottom = named?.tall ?? INSET.bottom;
  const tall = Math.round(Math.min(300, 170 + width / 5)) + bottom;
  const y = scaleOf(ys, logY, tall - bottom, INSET.top, { zero: bars.length > 0, room: 0.05 });
  const floor = logY ? tall - bottom : y.place(0);
  const each = (Math.abs(x.place((xs[0] ?? 0) + step) - x.place(xs[0] ?? 0)) * 0.8) / (bars.length || 1);

  // A measurement that its prediction lies upon is drawn broad and faint, so that both are seen.
  const broad = isPaired(panel.series) ? " broad" : "";
  const mark = (points, one, i) => {
    const style = { stroke: `var(--${colours[i]})` };
    const shown = points.filter((point) => fine(point.y, logY));
    if (one.kind === "bars") {
      const shift = each * (bars.indexOf(one) - (bars.length - 1) / 2);
      return shown.map((point) =>
        svg("rect", {
          x: x.place(point.x) + shift - 0.46 * each,
          width: 0.92 * each,
          y: Math.min(floor, y.place(point.y)),
          height: Math.max(0.5, Math.abs(floor - y.place(point.y))),
          class: `bar-mark${one.dashed ? " dashed" : ""}`,
          style: { ...style, fill: one.dashed ? "none" : `var(--${colours[i]})` },
          data: { x: point.x, y: point.y },
        }),
      );
    }
    const dots = one.kind === "points" || (!one.dashed && !broad && shown.length <= 24);
    const circles = dots
      ? shown.map((point) =>
          svg("circle", {
            cx: x.place(point.x),
            cy: y.place(point.y),
            r: one.kind === "points" ? 3.6 : 2.8,
            style: { ...style, fill: one.dashed ? "var(--card)" : `var(--${colours[i]})` },
            data: { x: point.x, y: point.y },
          }),
        )
      : [];
    if (one.kind === "points") return circles;
    let pen = "M";
    const path = points
      .map((point) => {
        if (!fine(point.y, logY)) {
          pen = "M";
          return "";
        }
        const part = `${pen}${x.place(point.x).toFixed(1)} ${y.place(point.y).toFixed(1)}`;
        pen = "L";
        return part;
      })
      .join("");
    return [svg("path", { d: path, class: `curve${one.dashed ? " dashed" : broad}`, style }), ...circles];
  };
  const line = svg("line", { y1: INSET.top, y2: tall - bottom, class: "marker", visibility: "hidden" });
  const dots = panel.series.map((_, i) =>
    svg("circle", { r: 4.5, class: "marker-dot", visibility: "hidden", style: { fill: `var(--${colours[i]})` } }),
  );
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${width} ${tall}`, class: "chart plot-picture" },
    y.ticks.map((one) => [
      svg("line", { x1: left, x2: width - INSET.right, y1: y.place(one), y2: y.place(one), class: "rule" }),
      svg("text", { x: left - 7, y: y.place(one) + 4, class: "tick end", translate: "no" }, brief(one)),
    ]),
    svg("line", {
      x1: left,
      x2: width - INSET.right,
      y1: bars.length ? floor : tall - bottom,
      y2: bars.length ? floor : tall - bottom,
      class: "axis",
    }),
    named
      ? named.draw()
      : x.ticks.map((one) =>
          svg("text", { x: x.place(one), y: tall - bottom + 18, class: "tick", translate: "no" }, brief(one)),
        ),
    line,
    panel.series.map((one, i) => svg("g", { data: { series: i } }, mark(drawn[i], one, i))),
    dots,
  );
  const at = (n) => drawn.map((points) => points.find((point) => point.x === xs[n]));
  return {
    picture,
    tall,
    first: 0,
    near: (px) =>
      xs.reduce((best, one, n) => (Math.abs(x.place(one) - px) < Math.abs(x.place(xs[best]) - px) ? n : best), 0),
    step: (n, key) =>
      ({ ArrowRight: Math.min(xs.length - 1, n + 1), ArrowLeft: Math.max(0, n - 1), Home: 0, End: xs.length - 1 })[key],
    mark(n) {
      line.setAttribute("visibility", n === null || bars.length ? "hidden" : "visible");
      for (const bar of picture.querySelectorAll(".bar-mark"))
        bar.classList.toggle("on", n !== null && Number(bar.dataset.x) === xs[n]);
      if (n !== null) for (const end of ["x1", "x2"]) line.setAttribute(end, x.place(xs[n]));
      (n === null ? panel.series.map(() => null) : at(n)).forEach((point, i) => {
        const there = point && fine(point.y, logY) && panel.series[i].kind !== "bars";
        dots[i].setAttribute("visibility", there ? "visible" : "hidden");
        if (!there) return;
        dots[i].setAttribute("cx", x.place(point.x));
        dots[i].setAttribute("cy", y.place(point.y));
      });
    },
    say: (n) => [
      raw(panel.ticks[xs[n]] ?? brief(xs[n]), { class: "value" }),
      ...at(n).flatMap((point, i) =>
        point
          ? [
              h(
                "span.value",
                { data: { series: i } },
                h("i.dot", { style: { background: `var(--${colours[i]})` } }),
                panel.series.length > 1 && h("span", { translate: "yes" }, panel.series[i].name, " "),
                raw(point.y === null ? "\u2013" : show(point.y), { class: "read-value" }),
              ),
            ]
          : [],
      ),
    ],
  };
}

function heatMap(panel, width) {
  const { heat } = panel;
  const [rows, cols] = [heat.length, Math.max(...heat.map((row) => row.length))];
  const seen = heat.flat().filter((value) => value !== null);
  const [least, most] = seen.length ? [Math.min(...seen), Math.max(...seen)] : [0, 1];
  const signed = least < 0 && most > 0;
  const [low, high] = signed
    ? [-Math.max(-least, most), Math.max(-least, most)]
    : [least, most === least ? least + 1 : most];
  const channels = (value) =>
    signed ? colourOf(value, high, false, "encoder") : colourOf(value - low, high - low, true, "encoder");
  const paint = (value) => `rgb(${channels(value).join(" ")})`;
  const every = Math.ceil(rows / 32);
  const left =
    14 + Math.min(120, LETTER * Math.max(2, ...(panel.rows.length ? panel.rows : [String(rows)]).map(lettersOf)));
  const [wide, high1] = [(width - left - INSET.right) / cols, Math.max(8, Math.min(34, 420 / rows))];
  const x = (j) => left + (j + 0.5) * wide;
  const bottomOf = INSET.top + rows * high1;
  const columns = panel.ticks.length ? panel.ticks : Array.from({ length: cols }, (_, j) => String(j));
  const named = names(columns, x, () => bottomOf, wide);
  const key = 34;
  const tall = bottomOf + named.tall + key;
  const frame = svg("rect", { width: wide, height: high1, class: "heat-frame", visibility: "hidden" });
  const shades = Array.from({ length: 32 }, (_, n) =>
    svg("rect", {
      x: left + n * 5,
      y: tall - 22,
      width: 5.5,
      height: 8,
      fill: paint(low + ((n + 0.5) / 32) * (high - low)),
    }),
  );
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${width} ${tall}`, class: "chart plot-picture" },
    heat.flatMap((row, i) =>
      row.map((value, j) =>
        svg("rect", {
          x: left + j * wide,
          y: INSET.top + i * high1,
          width: wide + 0.3,
          height: high1 + 0.3,
          fill: value === null ? "none" : paint(value),
          data: { row: i, column: j },
        }),
      ),
    ),
    Array.from({ length: rows }, (_, i) =>
      i % every
        ? null
        : svg(
            "text",
            { x: left - 7, y: INSET.top + (i + 0.5) * high1 + 4, class: "tick end", translate: "no" },
            panel.rows[i] ?? String(i),
          ),
    ),
    named.draw(),
    shades,
    svg("text", { x: left, y: tall - 2, class: "tick start", translate: "no" }, brief(low, 3)),
    svg("text", { x: left + 160, y: tall - 2, class: "tick end", translate: "no" }, brief(high, 3)),
    frame,
  );
  const within = (n, size) => Math.max(0, Math.min(size - 1, n));
  return {
    picture,
    tall,
    first: [0, 0],
    near: (px, py) => [
      within(Math.floor((py - INSET.top) / high1), rows),
      within(Math.floor((px - left) / wide), cols),
    ],
    step([i, j], pressed) {
      const by = {
        ArrowRight: [0, 1],
        ArrowLeft: [0, -1],
        ArrowDown: [1, 0],
        ArrowUp: [-1, 0],
        Home: [0, -j],
        End: [0, cols],
      }[pressed];
      return by && [within(i + by[0], rows), within(j + by[1], cols)];
    },
    mark(at) {
      frame.setAttribute("visibility", at ? "visible" : "hidden");
      if (!at) return;
      frame.setAttribute("x", left + at[1] * wide);
      frame.setAttribute("y", INSET.top + at[0] * high1);
    },
    say: ([i, j]) => {
      const value = heat[i][j] ?? null;
      return [
        raw(`${panel.rows[i] ?? i}, ${columns[j]}`, { class: "value" }),
        raw(value === null ? "\u2013" : show(value), { class: "value read-value" }),
      ];
    },
  };
}
