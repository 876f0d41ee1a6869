// The picture of the flow: the streams of both stacks with their blocks, the ribbons of cross-attention between them.

import { curve, label, line, onKeys, rect, roomOf, shorten, svg } from "./dom.js";
import { colourOf, pixelCanvas } from "./heatmap.js";
import { t } from "./language.js";
import { percent } from "./number.js";
import { blockName, sheetOf } from "./tensors.js";
import { candidates } from "./view_decode.js";

export const TOP = 58; // above the first token's line
export const FOOT = 14; // below the last one's
const FAINT = 0.03; // a share below this is not drawn
const LETTER = 7.6; // the width of a letter, in pixels

/**
 * The share that query i gives key j: of one head, or the mean of all where none is chosen or there are fewer.
 * @param {Run} run @param {string} name @param {number | null} chosen
 */
export function shares(run, name, chosen) {
  const [heads, rows, cols] = run.entry(name).shape;
  const head = chosen === null || chosen < heads ? chosen : null;
  const values = run.values(name);
  return (/** @type {number} */ i, /** @type {number} */ j) => {
    if (head !== null) return values[(head * rows + i) * cols + j];
    let total = 0;
    for (let k = 0; k < heads; k++) total += values[(k * rows + i) * cols + j];
    return total / heads;
  };
}

/**
 * The middle of a token's line, the lines centred in the height there is.
 * @param {number} rows @param {number} height @param {number} row
 */
function lineAt(rows, height, row) {
  const start = TOP + (height - TOP - FOOT - rows * row) / 2;
  return (/** @type {number} */ i) => start + (i + 0.5) * row;
}

/** A token's letters, in the room they have. @param {string} piece @param {number} room */
const fitToken = (piece, room) => shorten(piece, Math.max(2, Math.floor((room - 10) / LETTER)));

/**
 * A token by its line, at the end of its place; all of the place can be pointed at, not its letters alone.
 * @param {{side: Side, index: number, piece: string, className: string}} token
 * @param {{x: number, y: number, width: number, row: number, at: number}} place   at: where the letters stand
 */
function drawToken({ side, index, piece, className }, { x, y, width, row, at }) {
  const data = { side, index };
  return [
    rect([x, y - row / 2, width, row], { class: "piece-place", data }),
    label([at, y + 4], fitToken(piece, width), { class: className, data }),
  ];
}

/**
 * One stack: its tokens, its blocks with the threads of self-attention, the stream between them.
 * @param {App} app @param {{stack: Stack, names: string[], pieces: string[], real: boolean[], side: Side}} drawn
 * @param {FlowBox} place
 */
export function drawStack(app, { stack, names, pieces, real, side }, { x, width, height, row }) {
  const { run } = app;
  const y = lineAt(pieces.length, height, row);
  const group = svg("g", { class: `stack ${stack}` });
  const named = Math.min(100, width * 0.24, 16 + 8 * Math.max(...pieces.map(roomOf)));
  const ends = nextTokens(run, stack, pieces.length);
  const longest = Math.max(0, ...ends.map((end) => roomOf(end.piece)));
  const wished = Math.max(width * 0.24, Math.min(width * 0.36, 68 + LETTER * longest));
  const writes = ends.length ? Math.min(168, Math.max(116, wished)) : 0;
  const count = names.length - 1;
  const strip = Math.max(6, Math.min(34, (width - named - writes) * (count > 3 ? 0.03 : 0.06)));
  const wide = count ? (width - named - writes - (count + 1) * (strip + 12)) / count : 0;
  group.append(svg("text", { x: x + 2, y: 20, class: "stack-name" }, t(`flow.${stack}`)));
  pieces.forEach((piece, index) => {
    const token = { side, index, piece, className: `piece${real[index] === false ? " padding" : ""}` };
    group.append(
      line([x + named, y(index)], [x + width - writes, y(index)], { class: "thread" }),
      ...drawToken(token, { x, y: y(index), width: named, row, at: x + named - 8 }),
    );
  });
  let at = x + named + 4;
  names.forEach((name, n) => {
    if (run.isLoaded(name)) group.append(drawStrip(run, name, at, y(0) - row / 4, strip, row));
    at += strip + 6;
    if (n === count) return;
    group.append(drawBlock(app, stack, n, { at, wide, y, rows: pieces.length, row }));
    at += wide + 6;
  });
  group.append(...drawNextTokens(ends, x + width - writes, writes, y));
  return group;
}

/**
 * The vectors themselves, one coloured strip a token: a single picture with clear rows between the strips.
 * @param {Run} run @param {string} name @param {number} x @param {number} y @param {number} width @param {number} row
 */
function drawStrip(run, name, x, y, width, row) {
  const sheet = sheetOf(run, name, 0);
  const colour = (/** @type {number} */ i, /** @type {number} */ j) =>
    i % 2 ? null : colourOf(sheet.at(i / 2, j), sheet.high * 0.7, false, sheet.hue);
  const canvas = pixelCanvas(Math.min(sheet.cols, 64), 2 * sheet.rows, colour);
  const place = { x, y, width, height: row * sheet.rows, preserveAspectRatio: "none" };
  return svg("image.strip", { href: canvas.toDataURL(), ...place, "aria-hidden": "true" });
}

/**
 * @param {App} app @param {Stack} stack @param {number} n
 * @param {{at: number, wide: number, y: (i: number) => number, rows: number, row: number}} place
 */
function drawBlock(app, stack, n, { at, wide, y, rows, row }) {
  const { run, state } = app;
  const layer = `${stack}.${n}`;
  const [top, bottom] = [y(0) - row / 2, y(rows - 1) + row / 2];
  const open = () => app.go({ view: "block", layer });
  const name = t(`flow.block.${stack}`, { n });
  const title = t("flow.open", { name });
  const block = svg(
    "g",
    {
      class: `block${state.layer === layer ? " chosen" : ""}`,
      role: "button",
      tabindex: "0",
      "aria-label": title,
      data: { layer, key: `flow:${layer}` },
      on: { click: open, keydown: onKeys(["Enter", " "], open) },
    },
    svg("title", title),
    rect([at, top, wide, bottom - top], { rx: 6, class: "case" }),
  );
  const pattern = `${blockName(layer)}.self_attention.pattern`;
  if (run.has(pattern) && run.isLoaded(pattern)) {
    block.append(...drawThreads(shares(run, pattern, app.flowHead), stack, at + 1, at + wide - 1, y, rows));
  }
  block.append(svg("text", { x: at + wide / 2, y: top - 10, class: "block-name" }, wide > 70 ? name : String(n)));
  return block;
}

/**
 * Who looks at whom within a block.
 * @param {(i: number, j: number) => number} share @param {Stack} stack @param {number} left @param {number} right
 * @param {(i: number) => number} y @param {number} rows
 */
function drawThreads(share, stack, left, right, y, rows) {
  const side = stack === "encoder" ? "src" : "tgt";
  const drawn = [];
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < rows; j++) {
      const weight = share(i, j);
      if (weight < FAINT) continue;
      const thread = svg("path.weave", {
        d: `M${left} ${y(j)}${curve([left, y(j)], [right, y(i)])}`,
        "stroke-width": (0.6 + 4 * weight).toFixed(2),
        "stroke-opacity": (0.08 + 0.62 * weight).toFixed(3),
        data: { from: `${side}:${j}`, to: `${side}:${i}` },
      });
      drawn.push(thread);
    }
  }
  return drawn;
}

/**
 * What comes of a stack's lines: the token that each writes next, or what an answer puts first.
 * @param {Run} run @param {Stack} stack @param {number} rows
 */
function nextTokens(run, stack, rows) {
  const { steps, answer } = run.manifest;
  if (stack === "encoder") return answer?.places.map(({ position, top }) => ({ row: position, ...top[0] })) ?? [];
  const prompt = rows - steps.length; // lines that were read before the first word was written
  return steps.map((step, n) => {
    const forced = { piece: step.piece, probability: 1 };
    return { row: prompt + n, ...(candidates(step).find((one) => one.id === step.chosen) ?? forced) };
  });
}

/**
 * What lines end in, and how sure the model is.
 * @param {{row: number, piece: string, probability: number}[]} ends @param {number} x @param {number} width
 * @param {(i: number) => number} y
 */
function drawNextTokens(ends, x, width, y) {
  const [left, bar] = [x + 10, width - 14];
  return ends.flatMap(({ row, piece, probability }) => {
    const at = y(row);
    return [
      rect([left, at + 7, bar, 2.5], { rx: 1, class: "sure-of" }),
      rect([left, at + 7, Math.max(1, bar * probability), 2.5], { rx: 1, class: "sure" }),
      label([left, at + 2], fitToken(piece, width - 56), { class: "written" }),
      label([left + bar, at + 2], percent(probability), { class: "chance" }),
    ];
  });
}

/**
 * Who the decoder looks at: ribbons as wide as the share that each target token gives each source token.
 * @param {App} app
 * @param {string} pattern   of the cross-attention
 * @param {FlowBox} place
 */
export function drawRibbons(app, pattern, { x, width, height, row, alone }) {
  const { source, target } = app.run.manifest;
  const [from, to] = [lineAt(source.pieces.length, height, row), lineAt(target.pieces.length, height, row)];
  const share = shares(app.run, pattern, app.flowHead);
  const inset = alone ? Math.min(110, width * 0.28) : 6;
  const [left, right] = [x + inset, x + width - inset];
  const stops = ["from", "to"].map((end, i) => svg("stop", { offset: i, class: `ribbon-${end}` }));
  const ends = { id: "ribbon", gradientUnits: "userSpaceOnUse", x1: left, x2: right };
  const title = { x: alone ? x + 2 : (left + right) / 2, y: 20, class: `stack-name${alone ? "" : " middle"}` };
  const group = svg(
    "g.ribbons",
    { data: { testid: "ribbons" } },
    svg("defs", svg("linearGradient", ends, stops)),
    svg("text", title, t("part.cross")),
  );
  target.pieces.forEach((piece, i) => {
    let top = to(i) - row * 0.36;
    source.pieces.forEach((read, j) => {
      const weight = share(i, j);
      const [thick, thin, a] = [weight * row * 0.72, 0.5 + 3 * weight, from(j)];
      top += thick;
      if (weight < FAINT) return;
      const there = curve([left, a - thin], [right, top - thick]);
      const back = curve([right, top], [left, a + thin]);
      const attributes = {
        d: `M${left} ${a - thin}${there}L${right} ${top}${back}Z`,
        fill: "url(#ribbon)",
        "fill-opacity": (0.16 + 0.5 * weight).toFixed(3),
        data: { from: `src:${j}`, to: `tgt:${i}` },
      };
      const says = svg("title", { translate: "no" }, `${piece} \u2190 ${read}: ${weight.toFixed(3)}`);
      group.append(svg("path.ribbon", attributes, says));
    });
  });
  if (!alone) return group;
  source.pieces.forEach((piece, index) => {
    const token = { side: /** @type {Side} */ ("src"), index, piece, className: "piece" };
    group.append(...drawToken(token, { x, y: from(index), width: inset, row, at: left - 8 }));
  });
  target.pieces.forEach((piece, index) => {
    const token = { side: /** @type {Side} */ ("tgt"), index, piece, className: "piece start" };
    group.append(...drawToken(token, { x: right, y: to(index), width: inset, row, at: right + 8 }));
  });
  return group;
}
