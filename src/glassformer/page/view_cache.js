// Cache: what is kept from step to step, what that spares, and that it changes nothing.

import { h, label, raw, rect, svg } from "./dom.js";
import { t } from "./language.js";
import { show, whole } from "./number.js";
import { slider } from "./view_decode.js";

/** @type {Painter} */
export const cache = {
  draw(app) {
    const { run, state } = app;
    const { cache: kept, source, target } = run.manifest;
    if (!kept?.steps.length) return h("section.view", app.heading("cache", null, t("cache.none")));
    const { steps } = kept;
    const at = Math.min(state.step, steps.length - 1);
    const step = steps[at];
    /** @param {"with" | "without"} key */
    const total = (key) => steps.slice(0, at + 1).reduce((sum, one) => sum + one[key], 0);
    const [spent, without] = [total("with"), total("without")];
    const difference = { data: { testid: "max-difference" } };
    const equal = kept.equal ? "cache.equal" : "cache.unequal";
    const most = steps[steps.length - 1].self;
    return h(
      "section.view",
      app.heading("cache", null, t(kept.used ? "says.cache" : "cache.unused")),
      slider(app, steps.length, at),
      h(
        "div.figures",
        figure("cache.with", whole(spent), "cache.ops"),
        figure("cache.without", whole(without), "cache.ops"),
        figure("cache.saved", `${(without / spent).toFixed(2)}\u00d7`, "cache.less"),
        figure(equal, show(kept.max_difference, 2), "cache.difference", difference),
      ),
      h(
        "div.two",
        plate("part.self", "cache.selfSays", bands(step.self, most, target.pieces, "tgt")),
        step.cross.some(Boolean) &&
          plate("part.cross", "cache.crossSays", bands(step.cross, step.cross, source.pieces, "src")),
      ),
      plate("cache.work", "cache.workSays", work(steps, at)),
    );
  },
};

/** @param {string} title @param {string} says @param {Child} content */
function plate(title, says, content) {
  return h("div.plate", h("h3", t(title)), h("p.lede", t(says)), content);
}

/** @param {string} title @param {string} number @param {string} unit @param {Attributes} [attributes] */
function figure(title, number, unit, attributes = {}) {
  const big = raw(number, { class: "big", ...attributes });
  return h("div.figure-box", h("span.label", t(title)), big, h("span.faint", t(unit)));
}

/**
 * A band a layer: a pair of key and value for every token that is kept, outlines for those still to come.
 * @param {number[]} lengths @param {number[]} most @param {string[]} pieces @param {Side} side
 */
function bands(lengths, most, pieces, side) {
  const rows = lengths.map((length, layer) => {
    const cells = Array.from({ length: most[layer] }, (_, i) => {
      const piece = pieces[i] ?? "";
      const state = i >= length ? "coming" : i === length - 1 && side === "tgt" ? "fresh" : "held";
      const attributes = { class: `kv ${state}`, title: `${i}: ${piece}`, translate: "no" };
      return h("span", attributes, h("i.k"), h("i.v"), raw(piece));
    });
    const name = h("span.band-name", t("cache.layer", { n: layer }));
    const count = h("span.band-count", t("cache.held", { n: length }));
    return h("div.band", { data: { layer, length } }, name, h("div.band-cells", cells), count);
  });
  return h("div.bands", { data: { testid: `cache-${side}` } }, rows);
}

/**
 * Bars of each step's work: the whole pass behind, the cached step before it.
 * @param {CacheStep[]} steps @param {number} at
 */
function work(steps, at) {
  const [width, height, foot] = [Math.max(300, Math.min(720, window.innerWidth - 70)), 190, 22];
  const most = Math.max(...steps.map((step) => step.without));
  const each = (width - 4) / steps.length;
  const wide = Math.min(40, each * 0.7);
  const bars = steps.map((step, i) => {
    const x = 2 + i * each;
    const bar = (/** @type {"with" | "without"} */ kind) => {
      const tall = (step[kind] / most) * (height - foot - 8);
      return rect([x + (each - wide) / 2, height - foot - tall, wide, tall], { rx: 3, class: `work-${kind}` });
    };
    return svg(
      "g",
      { class: i === at ? "now" : i > at ? "later" : null },
      svg("title", { translate: "no" }, `${i + 1}: ${whole(step.with)} / ${whole(step.without)}`),
      bar("without"),
      bar("with"),
      i % Math.ceil(steps.length / 24) === 0 && label([x + each / 2, height - 6], String(i + 1), { class: "tick" }),
    );
  });
  const attributes = { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": t("cache.work") };
  const key = ["with", "without"].map((kind) => h("span", h("i", { class: `swatch ${kind}` }), t(`cache.${kind}`)));
  return h("div", svg("svg.chart", attributes, bars), h("p.key", key));
}
