// Image: what the model reads, cut into the squares it reads, and where each place of it looks.

import { answerBars } from "./chart.js";
import { button, h, label, line, onKeys, rect, svg, toggle } from "./dom.js";
import { shares } from "./flow_picture.js";
import { pixelCanvas } from "./heatmap.js";
import { t } from "./language.js";
import { percent } from "./number.js";
import { attentionsOf } from "./tensors.js";
import { stampGrid } from "./view_block.js";
import { chooser } from "./view_flow.js";

const MOST = 600_000; // bytes of attention that are fetched before the first picture; the rest is drawn when it comes
const WIDE = 480; // the width of a picture, in units of its own
const ROOMY = 40; // the width of a square that has room for a number

/** The place whose attention is shown: the whole image, unless a square has been chosen. @param {App} app */
const placeOf = (app) => (app.state.token.startsWith("src:") ? Number(app.state.token.slice(4)) : 0);

/** The layer that is looked at. @param {App} app */
const shownOf = (app) => attentionsOf(app.run).find((one) => one.layer === app.state.layer) ?? attentionsOf(app.run)[0];

/** @type {Painter} */
export const image = {
  names(app) {
    const all = attentionsOf(app.run);
    const size = all.reduce((total, one) => total + app.run.entry(one.name).bytes, 0);
    const shown = size > MOST ? [shownOf(app)].filter(Boolean) : all;
    return ["encoder.embedding.pixels", ...shown.map((one) => one.name)];
  },

  draw(app) {
    const { answer } = app.run.manifest;
    const shown = shownOf(app);
    const head = app.flowHead === null ? t("flow.meanOf") : t("flow.head", { n: app.flowHead });
    return h(
      "section.view",
      app.heading("flow", shown && h("div.bar", layers(app, shown), chooser(app, shown))),
      h(
        "div.looking",
        h("div.plate", h("h3", t("image.given")), picture(app, null), h("p.caption", t("image.givenSays"))),
        shown &&
          h("div.plate", lookHeading(app, shown), picture(app, shown), h("p.caption", t("image.caption", { head }))),
        h(
          "div.plate.answer",
          h("h3", t("head.answer")),
          answer?.places.map((place) => answerBars(place)),
        ),
      ),
      stamps(app),
    );
  },
};

/** @param {App} app @param {AttentionPlace} shown */
function layers(app, shown) {
  const choices = attentionsOf(app.run).map(({ layer, i }) =>
    toggle(String(i), layer === shown.layer, () => app.go({ layer }), {
      "aria-label": t("flow.block.encoder", { n: i }),
      data: { key: `image-layer:${i}` },
    }),
  );
  const group = { role: "group", "aria-label": t("block.layer") };
  return h("div.bar", h("span.label", t("block.layer")), h("div.choice", group, choices));
}

/**
 * The share that the chosen place gives each place.
 * @param {App} app @param {string} name
 * @param {number | null} head   null: the mean of all
 */
function sharesOf(app, name, head) {
  const share = shares(app.run, name, head);
  return Array.from({ length: app.run.entry(name).shape[1] }, (_, j) => share(placeOf(app), j));
}

/**
 * Who looks, and what of it no square shows: the share of the place of the whole.
 * @param {App} app @param {AttentionPlace} shown
 */
function lookHeading(app, shown) {
  const from = placeOf(app);
  const { pieces } = app.run.manifest.source;
  const place = from ? t("image.square", { place: pieces[from] }) : t("image.whole");
  const share = percent(sharesOf(app, shown.name, app.flowHead)[0]);
  return h(
    "p.looks",
    { data: { testid: "looks" } },
    h("strong", t("image.of", { place })),
    " ",
    h("span.faint", t(from ? "image.first" : "image.own", { share })),
    from > 0 && button(t("image.back"), () => look(app, 0), { class: "quiet small", data: { key: "image-back" } }),
  );
}

/** @param {App} app @param {number} place */
function look(app, place) {
  return app.go({ token: place && place !== placeOf(app) ? `src:${place}` : "" }, { replace: true });
}

/** How many squares a row of the image has. @param {Run} run */
function squaresAcross({ manifest: { model } }) {
  return (model.image_size ?? 1) / (model.patch_size ?? 1);
}

/** The image itself: the numbers that the model reads, put back where they were. @param {Run} run */
function imageCanvas(run) {
  const { image_size: size, patch_size: patch, channels } = run.manifest.model;
  const values = run.values("encoder.embedding.pixels");
  const { low, high } = run.entry("encoder.embedding.pixels");
  const [wide, side] = [size ?? 1, patch ?? 1];
  const [least, span] = [low ?? 0, (high ?? 0) - (low ?? 0) || 1];
  const across = wide / side;
  return pixelCanvas(wide, wide, (y, x) => {
    const square = Math.floor(y / side) * across + Math.floor(x / side);
    const inside = (y % side) * side + (x % side);
    const at = (/** @type {number} */ channel) => values[(square * channels + channel) * side * side + inside];
    return [0, 1, 2].map((one) => Math.round((255 * (at(channels === 3 ? one : 0) - least)) / span));
  });
}

/**
 * The image in its squares; with an attention, how much of it each of them gets.
 * @param {App} app @param {AttentionPlace | null} shown
 */
function picture(app, shown) {
  const { run } = app;
  const across = squaresAcross(run);
  const each = WIDE / across;
  const given = shown ? sharesOf(app, shown.name, app.flowHead) : [];
  const most = Math.max(...given.slice(1), 1e-9);
  const squares = Array.from({ length: across * across }, (_, i) => {
    const [x, y, place] = [(i % across) * each, Math.floor(i / across) * each, i + 1];
    const name = t("image.square", { place: run.manifest.source.pieces[place] });
    const says = shown ? `${name}: ${percent(given[place])}` : name;
    const choose = () => look(app, place);
    const chosen = place === placeOf(app);
    return svg(
      "g",
      {
        class: `square${chosen ? " chosen" : ""}`,
        role: "button",
        tabindex: "0",
        "aria-label": says,
        "aria-pressed": String(chosen),
        data: { place, share: given[place] ?? "", key: `square:${shown ? "looks" : "given"}:${place}` },
        on: { click: choose, keydown: onKeys(["Enter", " "], choose) },
      },
      svg("title", says),
      rect([x, y, each, each], { "fill-opacity": shown ? ((0.85 * given[place]) / most).toFixed(3) : 0 }),
      shown &&
        each >= ROOMY &&
        label([x + each / 2, y + each / 2 + 6], (100 * given[place]).toFixed(1), { class: "share" }),
    );
  });
  const lines = Array.from({ length: across - 1 }, (_, i) => (i + 1) * each).flatMap((at) => [
    line([at, 0], [at, WIDE], { class: "cut" }),
    line([0, at], [WIDE, at], { class: "cut" }),
  ]);
  const image = { href: imageCanvas(run).toDataURL(), x: 0, y: 0, width: WIDE, height: WIDE };
  const attributes = {
    viewBox: `0 0 ${WIDE} ${WIDE}`,
    role: "group",
    "aria-label": t(shown ? "head.flow" : "image.given"),
  };
  const kind = shown ? "looks" : "given";
  return svg("svg", { class: `squares ${kind}`, ...attributes }, svg("image", image), lines, squares);
}

/** Where each head looks from the same place. @param {App} app */
function stamps(app) {
  const { run } = app;
  const late = attentionsOf(run).filter((one) => !run.isLoaded(one.name));
  const place = h("div");
  if (late.length) {
    const drawLate = () => place.replaceWith(stamps(app));
    run.need(late.map((one) => one.name)).then(drawLate, () => {}); // the picture stands without them
    return place;
  }
  const across = squaresAcross(run);
  return stampGrid(app, "image.heads", "image.headsHint", app.flowHead, {
    nameOf: (one) => t("flow.block.encoder", { n: one.i }),
    draw({ name }, head) {
      const given = sharesOf(app, name, head);
      const most = Math.max(...given.slice(1), 1e-9);
      /** @param {number} i @param {number} j */
      const light = (i, j) => Array(3).fill(Math.round((255 * given[1 + i * across + j]) / most));
      return pixelCanvas(across, across, light, { class: "stamp", "aria-hidden": "true" });
    },
    choose({ layer }, head) {
      app.flowHead = head;
      return layer === app.state.layer ? app.redraw() : app.go({ layer });
    },
  });
}
