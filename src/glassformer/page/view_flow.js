// Flow: every token a line, from the source through the encoder, along the ribbons of cross-attention, through the
// decoder to the word it writes.

import { button, focusOnly, h, rove, svg, zoom } from "./dom.js";
import { drawRibbons, drawStack, FOOT, TOP } from "./flow_picture.js";
import { t } from "./language.js";
import { schematicPanel } from "./schematics.js";
import { attentionsOf, layerCount } from "./tensors.js";

const MOST = 600_000; // bytes that are fetched before the first picture; the rest is drawn when it comes

/** The layer whose cross-attention is drawn: the one the page looks at, else the last. @param {App} app */
function crossLayer(app) {
  const cross = attentionsOf(app.run).filter((one) => one.attention === "cross_attention");
  return cross.find((one) => one.layer === app.state.layer) ?? cross.at(-1) ?? null;
}

/** The values that flow through a stack, block by block. @param {Run} run @param {Stack} stack */
function streams(run, stack) {
  const blocks = Array.from({ length: layerCount(run.manifest.model, stack) }, (_, i) => `${stack}.blocks.${i}`);
  return [`${stack}.embedding`, ...blocks].filter((name) => run.has(name));
}

/**
 * What the picture shows, the most telling first: ribbons, the ends of both streams, threads, the streams between.
 * @param {App} app
 */
function shownNames(app) {
  const { run } = app;
  const cross = crossLayer(app);
  const [encoder, decoder] = [streams(run, "encoder"), streams(run, "decoder")];
  const ends = [encoder, decoder].flatMap((names) => [...names.slice(0, 1), ...names.slice(-1)]);
  const threads = attentionsOf(run)
    .filter((one) => one.attention === "self_attention")
    .map((one) => one.name);
  return [...new Set([...(cross ? [cross.name] : []), ...ends, ...threads, ...encoder, ...decoder])];
}

/** @type {Painter} */
export const flow = {
  names(app) {
    let size = 0;
    return shownNames(app).filter((name, i) => {
      size += app.run.entry(name).bytes;
      return i === 0 || size <= MOST;
    });
  },

  draw(app) {
    const { run } = app;
    const cross = crossLayer(app);
    const picture = h("div.flow", { data: { testid: "flow" } });
    const head = app.flowHead === null ? t("flow.meanOf") : t("flow.head", { n: app.flowHead });
    let width = 0;
    const redraw = () => {
      const now = picture.clientWidth;
      if (!now || now === width) return;
      width = now;
      const drawn = drawFlow(app, cross, width / zoom());
      picture.replaceChildren(...drawn);
      followTokens(app, drawn);
    };
    app.onResize(picture, redraw);
    const drawRest = () => {
      width = 0;
      if (picture.isConnected) redraw();
    };
    const rest = shownNames(app).filter((name) => !run.isLoaded(name));
    if (rest.length) run.need(rest).then(drawRest, () => {}); // the picture stands without it
    return h(
      "section.view",
      app.heading("flow", chooser(app, cross ?? attentionsOf(run)[0])),
      picture,
      h("p.caption", t("flow.caption", { head })),
      schematicPanel(app),
    );
  },
};

/** Which head's threads and ribbons: the mean of all, or one. @param {App} app @param {AttentionPlace} [shown] */
export function chooser(app, shown) {
  if (!shown) return null;
  /** @param {number | null} head */
  const pick = (head) => {
    const chosen = app.flowHead === head;
    const choose = () => {
      app.flowHead = head;
      app.redraw();
    };
    return button(head === null ? t("flow.mean") : String(head), choose, {
      role: "radio",
      "aria-checked": String(chosen),
      tabindex: chosen ? "0" : "-1",
      "aria-label": head === null ? t("flow.mean") : t("flow.head", { n: head }),
      data: { key: `flow-head:${head}` },
    });
  };
  const buttons = [null, ...Array(shown.heads).keys()].map(pick);
  const heads = h("div.choice", { role: "radiogroup", "aria-label": t("flow.heads") }, buttons);
  rove(heads);
  return h("div.bar", h("span.label", t("flow.ribbons", { layer: shown.i })), heads);
}

/**
 * One picture where there is room for all beside each other, else one for each part.
 * @param {App} app @param {AttentionPlace | null} cross @param {number} width
 */
function drawFlow(app, cross, width) {
  const { run } = app;
  const { source, target, model } = run.manifest;
  const [encoder, decoder] = [streams(run, "encoder"), streams(run, "decoder")];
  const most = Math.max(source.pieces.length, target.pieces.length);
  const row = rowHeight(most);
  const blocks = encoder.length + decoder.length;
  const between = cross ? Math.max(130, Math.min(260, width * 0.17)) : 0;
  const words = blocks > 8 ? 2.8 : 1.8; // the share of what is written, which thin blocks would leave no room for
  const share = (width - between) / (blocks + words + 0.6);
  const real = model.kind === "decoder-only" ? source.real : [];
  /** @type {{name: string, rows: number, width: number, draw: (place: FlowBox) => SVGElement}[]} */
  const parts = [];
  if (encoder.length) {
    const drawn = { names: encoder, pieces: source.pieces, real: source.real };
    parts.push({
      name: "encoder",
      rows: source.pieces.length,
      width: share * (encoder.length + (decoder.length ? 0.6 : words)),
      draw: (place) => drawStack(app, { stack: "encoder", side: "src", ...drawn }, place),
    });
  }
  if (cross)
    parts.push({ name: "cross", rows: most, width: between, draw: (place) => drawRibbons(app, cross.name, place) });
  if (decoder.length) {
    const drawn = { names: decoder, pieces: target.pieces, real };
    parts.push({
      name: "decoder",
      rows: target.pieces.length,
      width: share * (decoder.length + words),
      draw: (place) => drawStack(app, { stack: "decoder", side: "tgt", ...drawn }, place),
    });
  }
  /** @param {number} rows */
  const heightOf = (rows) => TOP + rows * row + FOOT;
  if (width >= 760 + 40 * Math.max(0, blocks - 6)) {
    const height = Math.max(...parts.filter((part) => part.name !== "cross").map((part) => heightOf(part.rows)));
    const picture = frame(width, height, t("view.flow"));
    let x = 0;
    for (const part of parts) {
      picture.append(part.draw({ x, width: part.width, height, row, alone: false }));
      x += part.width;
    }
    return [picture];
  }
  return parts.map((part) => {
    const height = heightOf(part.rows);
    const picture = frame(width, height, t(`flow.${part.name}`));
    picture.append(part.draw({ x: 0, width, height, row, alone: true }));
    return picture;
  });
}

/** @param {number} width @param {number} height @param {string} label */
function frame(width, height, label) {
  const size = { viewBox: `0 0 ${width} ${height}`, width: width * zoom(), height: height * zoom() };
  return svg("svg.flow-picture", { ...size, role: "group", "aria-label": label });
}

/** Few tokens stand wide apart, many close together. @param {number} rows */
function rowHeight(rows) {
  return rows <= 7 ? 42 : rows <= 12 ? 32 : rows <= 24 ? 26 : 20;
}

/** The key of the token under the pointer, or of that which a ribbon leads to. @param {MouseEvent} event */
function pointedAt(event) {
  const target = /** @type {Element} */ (event.target);
  const token = /** @type {SVGElement | null} */ (target.closest(".piece, .piece-place"));
  const ribbon = /** @type {SVGElement | null} */ (target.closest(".ribbon"));
  return token ? keyOf(token) : (ribbon?.dataset.to ?? null);
}

/** @param {SVGElement} token */
const keyOf = (token) => `${token.dataset.side}:${token.dataset.index}`;

/**
 * A token under the pointer keeps its own threads and ribbons, the others step back; a click holds it so.
 * @param {App} app @param {SVGElement[]} pictures
 */
function followTokens(app, pictures) {
  const [lines, tokens] = ["[data-to]", ".piece"].map((selector) =>
    pictures.flatMap((one) => /** @type {SVGElement[]} */ ([...one.querySelectorAll(selector)])),
  );
  const held = () => app.state.token || null;
  /** @param {string | null} wanted */
  const show = (wanted) => {
    const key = wanted ?? held();
    const lit = key === null ? [] : [key];
    for (const picture of pictures) picture.classList.toggle("asking", key !== null);
    for (const line of lines) {
      const { from = "", to = "" } = line.dataset;
      const on = key === from || key === to;
      line.classList.toggle("on", on);
      if (on && line.classList.contains("ribbon")) lit.push(from, to);
    }
    app.highlight(lit);
  };
  const mark = () => {
    for (const token of tokens) token.toggleAttribute("data-locked", keyOf(token) === held());
    show(null);
  };
  /** @param {string | null} key */
  const hold = (key) => {
    if (key === null) return;
    app.toggleToken(key);
    mark();
  };
  for (const picture of pictures) {
    picture.addEventListener("pointerover", (event) => show(pointedAt(event)));
    picture.addEventListener("pointerleave", () => show(null));
    picture.addEventListener("click", (event) => hold(pointedAt(event)));
  }
  for (const side of ["src", "tgt"]) {
    const own = tokens.filter((token) => token.dataset.side === side);
    own.forEach((token, i) => {
      token.setAttribute("tabindex", i ? "-1" : "0");
      token.addEventListener("focus", () => show(keyOf(token)));
      token.addEventListener("blur", () => show(null));
      token.addEventListener("keydown", (event) => {
        if (event.key === "Escape") return hold(held());
        if (event.key === "Enter" || event.key === " ") hold(keyOf(token));
        else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
          focusOnly(own, own[i + (event.key === "ArrowDown" ? 1 : -1)] ?? token);
        } else return;
        event.preventDefault();
      });
    });
  }
  if (held()) mark();
}
