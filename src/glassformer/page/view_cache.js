// Cache: what is kept from step to step, what that spares, and that it changes nothing.

import { h, raw, svg } from "./dom.js";
import { t } from "./language.js";
import { show, whole } from "./number.js";
import { slider } from "./view_decode.js";

export const cache = {
  names: () => [],

  draw(app) {
    const { run, state } = app;
    const { cache: kept, source, target } = run.manifest;
    if (!kept?.steps?.length) return h("section.view", app.heading("cache", null, t("cache.none")));
    const at = Math.min(state.step, kept.steps.length - 1);
    const step = kept.steps[at];
    const total = (key) => kept.steps.slice(0, at + 1).reduce((sum, one) => sum + one[key], 0);
    const [spent, without] = [total("with"), total("without")];
    return h(
      "section.view",
      app.heading("cache", null, t(kept.used ? "says.cache" : "cache.unused")),
      slider(app, kept.steps, at),
      h(
        "div.figures",
        figure(t("cache.with"), whole(spent), t("cache.ops")),
        figure(t("cache.without"), whole(without), t("cache.ops")),
        figure(t("cache.saved"), `${(without / spent).toFixed(2)}\u00d7`, t("cache.less")),
        figure(
          t(kept.equal ? "cache.equal" : "cache.unequal"),
          show(kept.max_difference, 2),
          t("cache.difference"),
          "max-difference",
        ),
      ),
      h(
        "div.two",
        h(
          "div.plate",
          h("h3", t("cache.self")),
          h("p.lede", t("cache.selfSays")),
          bands(step.self, kept.steps.at(-1).self, target.pieces, "tgt", at),
        ),
        step.cross.some(Boolean) &&
          h(
            "div.plate",
            h("h3", t("cache.cross")),
            h("p.lede", t("cache.crossSays")),
            bands(step.cross, step.cross, source.pieces, "src"),
          ),
      ),
      h("div.plate", h("h3", t("cache.work")), h("p.lede", t("cache.workSays")), work(kept.steps, at)),
    );
  },
};

function figure(label, number, unit, testid) {
  return h(
    "div.figure-box",
    h("span.label", label),
    raw(number, { class: "big", data: { testid: testid ?? "" } }),
    h("span.faint", unit),
  );
}

/** A band a layer: a pair of key and value for every token that is kept, outlines for those still to come. */
function bands(lengths, most, pieces, side) {
  return h(
    "div.bands",
    { data: { testid: `cache-${side}` } },
    lengths.map((length, layer) =>
      h(
        "div.band",
        { data: { layer, length } },
        h("span.band-name", t("cache.layer", { n: layer })),
        h(
          "div.band-cells",
          Array.from({ length: most[layer] }, (_, i) => {
            const state = i >= length ? "coming" : i === length - 1 && side === "tgt" ? "fresh" : "held";
            return h(
              "span",
              { class: `kv ${state}`, title: `${i}: ${pieces[i] ?? ""}`, translate: "no" },
              h("i.k"),
              h("i.v"),
              raw(pieces[i] ?? ""),
            );
          }),
        ),
        h("span.band-count", t("cache.held", { n: length })),
      ),
    ),
  );
}

/** Bars of each step's work: the whole pass behind, the cached step before it. */
function work(steps, at) {
  const [width, height, foot] = [Math.max(300, Math.min(720, window.innerWidth - 70)), 190, 22];
  const most = Math.max(...steps.map((step) => step.without));
  const each = (width - 4) / steps.length;
  const tall = (value) => (value / most) * (height - foot - 8);
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    class: "chart",
    role: "img",
    "aria-label": t("cache.work"),
  });
  steps.forEach((step, i) => {
    const x = 2 + i * each;
    const wide = Math.min(40, each * 0.7);
    const left = x + (each - wide) / 2;
    picture.append(
      svg(
        "g",
        { class: i === at ? "now" : i > at ? "later" : null },
        svg("title", { translate: "no" }, `${i + 1}: ${whole(step.with)} / ${whole(step.without)}`),
        svg("rect", {
          x: left,
          y: height - foot - tall(step.without),
          width: wide,
          height: tall(step.without),
          rx: 3,
          class: "work-without",
        }),
        svg("rect", {
          x: left,
          y: height - foot - tall(step.with),
          width: wide,
          height: tall(step.with),
          rx: 3,
          class: "work-with",
        }),
        i % Math.ceil(steps.length / 24) === 0 &&
          svg("text", { x: x + each / 2, y: height - 6, class: "tick", translate: "no" }, String(i + 1)),
      ),
    );
  });
  return h(
    "div",
    picture,
    h("p.key", h("span", h("i.swatch.with"), t("cache.with")), h("span", h("i.swatch.without"), t("cache.without"))),
  );
}
