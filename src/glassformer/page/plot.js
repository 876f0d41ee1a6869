// A lab's figure, drawn from its data: lines, points, bars or a heat map, read by pointer or by arrow keys.

import { fill, h, svg, zoom } from "./dom.js";
import { t } from "./language.js";
import { heatMap } from "./plot_heat.js";
import { isPaired, seriesPlot } from "./plot_series.js";
import { line, rect } from "./svg.js";

const COLOURS = ["encoder", "accent", "k", "v", "q", "decoder"];

/** Every panel of a figure, each as wide as its place. @param {App} app @param {Figure} data */
export function figure(app, data) {
  const panels = data.panels.map((panel, n) => panelOf(app, panel, n));
  const caption = data.caption && h("figcaption.caption", data.caption);
  return h("figure.lab-figure", { data: { testid: "lab-figure" } }, h("div.plots", panels), caption);
}

/** @param {App} app @param {Panel} panel @param {number} n */
function panelOf(app, panel, n) {
  const reading = h("output.reading", { translate: "no", "aria-live": "polite" });
  const place = h("div.plot");
  const heat = panel.heat.length > 0;
  const hint = t(heat ? "labs.readHeat" : "labs.read");
  const colours = coloursOf(panel.series);
  let width = 0;
  /**
   * @template At
   * @param {Plot<At>} plot
   */
  const show = (plot) => {
    const { picture } = plot;
    /** @type {At | null} */
    let cursor = null;
    const move = (/** @type {At | null} */ at) => {
      cursor = at;
      plot.mark(at);
      fill(reading, at === null ? h("span.faint", { translate: "yes" }, hint) : plot.say(at));
    };
    const focused = place.contains(document.activeElement);
    picture.setAttribute("tabindex", "0");
    picture.setAttribute("role", "group");
    picture.setAttribute("aria-label", `${panel.title}. ${hint}`);
    picture.dataset.key = `plot:${n}`;
    picture.addEventListener("pointermove", (event) => {
      const box = picture.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * width;
      move(plot.near(x, ((event.clientY - box.top) / box.height) * plot.tall));
    });
    picture.addEventListener("pointerleave", () => document.activeElement !== picture && move(null));
    picture.addEventListener("blur", () => move(null));
    picture.addEventListener("focus", () => cursor ?? move(plot.first));
    picture.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return move(null);
      const next = plot.step(cursor ?? plot.first, event.key);
      if (next === null) return;
      event.preventDefault();
      move(next);
    });
    place.replaceChildren(picture);
    if (focused) picture.focus({ preventScroll: true });
    move(null);
  };
  app.resized(place, () => {
    const wide = Math.max(240, Math.floor(place.clientWidth / zoom() || 560));
    if (wide === width) return;
    width = wide;
    if (heat) show(heatMap(panel, wide));
    else show(seriesPlot(panel, wide, colours));
  });
  const names = panel.series.map((one, i) => h("li", swatch(one, colours[i]), one.name));
  return h(
    "div.panel",
    { data: { panel: n } },
    h("h4", panel.title),
    h("p.axis-name", heat ? "\u2193 " : "\u2191 ", panel.y),
    place,
    h("p.axis-name.x", panel.x, " \u2192"),
    names.length > 1 && h("ul.series-names", names),
    reading,
  );
}

/**
 * Measurements in turn; a single reference in grey; as many predictions as measurements like those they belong to.
 * @param {Series[]} list
 */
function coloursOf(list) {
  const dashed = list.filter((one) => one.dashed);
  const solid = list.filter((one) => !one.dashed);
  return list.map((one) => {
    if (!one.dashed) return COLOURS[solid.indexOf(one) % COLOURS.length];
    if (dashed.length === 1) return "soft";
    return COLOURS[(dashed.indexOf(one) + (isPaired(list) ? 0 : solid.length)) % COLOURS.length];
  });
}

/** @param {Series} one @param {string} colour */
function swatch(one, colour) {
  const paint = `var(--${colour})`;
  const style = { stroke: paint, fill: one.dashed ? "none" : paint };
  /** @param {string} dashes */
  const dashed = (dashes) => (one.dashed ? dashes : null);
  const marks = {
    bars: () => rect([4, 1.5, 18, 9], { style, "stroke-dasharray": dashed("3 2") }),
    points: () => svg("circle", { cx: 13, cy: 6, r: 3.5, style }),
    line: () => line([1, 6], [25, 6], { style, "stroke-width": 2.2, "stroke-dasharray": dashed("5 3") }),
  };
  return svg("svg.series-mark", { viewBox: "0 0 26 12", "aria-hidden": "true" }, marks[one.kind]());
}
