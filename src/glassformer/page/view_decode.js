// Decode: the output token by token, what else was likely, and the tree of what the beam tried.

import { equationOf, exact, number, power, quotient } from "./algebra.js";
import { candidateBars } from "./chart.js";
import {
  button,
  columnHead,
  curve,
  fill,
  focusOnly,
  h,
  label,
  numberCell,
  onKeys,
  raw,
  rect,
  shorten,
  svg,
  table,
  zoom,
} from "./dom.js";
import { t } from "./language.js";
import { show } from "./number.js";

/** @type {Painter} */
export const decode = {
  draw(app) {
    const { run, state } = app;
    const { steps, beam, target, options } = run.manifest;
    if (!steps.length) return h("section.view", app.heading("decode", null, t("decode.none")));
    const at = Math.min(state.step, steps.length - 1);
    const step = steps[at];
    const start = target.pieces.length - steps.length;
    const read = target.pieces
      .slice(0, start + at + 1)
      .map((piece, i) => raw(piece, { class: "token tgt", data: { index: i } }));
    return h(
      "section.view",
      app.heading("decode"),
      options.prefix.length > 0 && prefixNote(app),
      slider(app, steps.length, at),
      h(
        "div.two",
        h(
          "div.plate",
          h("h3", t("decode.reads")),
          h("p.reading-so-far", read),
          h("h3", t("decode.next")),
          candidateBars(candidates(step), step.chosen),
          h("p.caption", t("decode.columns")),
        ),
        h("div.plate", h("h3", t("decode.sum")), sumSoFar(steps, at, options.length_penalty)),
      ),
      beam && treePlate(app, beam, at),
    );
  },
};

/** @param {App} app @param {NonNullable<Manifest["beam"]>} beam @param {number} step */
function treePlate(app, beam, step) {
  const { nodes, size } = beam;
  const states = ["winner", "kept", "finished", "pruned"].map(stateName);
  const details = h("div.node-details", { "aria-live": "polite" });
  /** @param {BeamNode} node */
  const chosen = (node) => {
    if (node.state !== "pruned") return app.go({ step: Math.max(0, node.step) });
    if (!app.source.live) return app.announce(t("error.needs_server"));
    return app.go({ prefix: pathTo(nodes, node).map((one) => one.token), step: node.step, cell: [] });
  };
  /** @param {BeamNode} node */
  const preview = (node) => fill(details, describeNode(node, beam));
  preview(nodes.find((node) => node.winner && node.step === step) ?? nodes[0]);
  return h(
    "div.plate.tree-plate",
    h("div.plate-head", h("h3", t("decode.tree")), h("div.key", states)),
    h("p.lede", t(size > 1 ? "decode.treeSays" : "decode.greedySays", { n: size })),
    beamTree(nodes, { step, chosen, preview }),
    details,
  );
}

/** @param {string} state */
const stateName = (state) => h("span", { class: `state ${state}` }, t(`state.${state}`));

/** The step that is looked at, and how to go to another. @param {App} app @param {number} count @param {number} at */
export function slider(app, count, at) {
  /** @param {number} to */
  const move = (to) => app.go({ step: Math.max(0, Math.min(count - 1, to)) }, { replace: true });
  const says = t("decode.at", { n: at + 1, all: count });
  const range = { type: "range", min: 0, max: count - 1, value: at };
  const words = { "aria-label": t("decode.step"), "aria-valuetext": says };
  const input = h("input", { ...range, ...words, data: { key: "step", testid: "step" } });
  input.addEventListener("input", () => move(Number(input.value)));
  const back = { "aria-label": t("decode.back"), disabled: at === 0, data: { key: "step-back" } };
  const on = { "aria-label": t("decode.forward"), disabled: at === count - 1, data: { key: "step-on" } };
  return h(
    "div.stepper",
    button("\u2039", () => move(at - 1), back),
    input,
    button("\u203a", () => move(at + 1), on),
    h("span.label", { data: { testid: "step-of" } }, says),
  );
}

/** @param {App} app */
function prefixNote(app) {
  const { options, output } = app.run.manifest;
  const pieces = (output?.pieces ?? []).slice(0, options.prefix.length);
  const words = pieces.map((piece) => raw(piece, { class: "token tgt" }));
  const free = () => app.go({ prefix: [], step: 0, changes: app.state.changes.filter((one) => one.kind !== "prefix") });
  return h(
    "div.notice",
    { role: "status", data: { testid: "prefix" } },
    h("span", t("decode.prefix"), " ", words),
    app.source.live && button(t("decode.free"), free, { class: "quiet", data: { key: "free" } }),
  );
}

/** The likeliest tokens of a step, and the one chosen where it is not among them. @param {Step} step */
export function candidates(step) {
  if (step.top.some((one) => one.id === step.chosen) || step.forced) return step.top;
  const own = step.chosen_log_probability;
  return [...step.top, { id: step.chosen, piece: step.piece, probability: Math.exp(own), log_probability: own }];
}

/**
 * The score as the rule says it: the sum of log-probabilities over a power of the length.
 * @param {Step[]} steps @param {number} at @param {number} penalty
 */
function sumSoFar(steps, at, penalty) {
  const rows = steps.map((step, i) =>
    h(
      "tr",
      { class: i === at ? "now" : i > at ? "later" : null },
      h("td", raw(String(i + 1))),
      h("td", raw(step.piece)),
      numberCell(show(step.chosen_log_probability)),
      numberCell(show(step.total)),
    ),
  );
  const words = ["decode.step", "decode.piece"].map((name) => columnHead(t(name)));
  const numbers = ["decode.log", "decode.total"].map((name) => columnHead(t(name), { class: "num" }));
  const { total, forced } = steps[at];
  return h(
    "div",
    table({}, { head: [words, numbers], rows, short: true }),
    forced && h("p.caption", t("decode.forced")),
    rule(total, at + 1, penalty, total / (at + 1) ** penalty),
  );
}

/** @param {number} total @param {number} length @param {number} penalty @param {number} score */
function rule(total, length, penalty, score) {
  const { pieces, result, holds } = equationOf(quotient(number(total), power(exact(length), exact(penalty))), score);
  const terms = pieces.map((piece) => raw(piece.text, { class: piece.kind === "sign" ? "sign" : "figure" }));
  const equals = raw(holds ? " = " : " \u2248 ", { class: "sign equals" });
  return h(
    "div.rule",
    { data: { testid: "score-rule" } },
    h("p.op", t("decode.rule")),
    h("div.equation", terms, equals, raw(result, { class: "figure result" })),
  );
}

/** @param {BeamNode} node @param {NonNullable<Manifest["beam"]>} beam @returns {Child} */
function describeNode(node, beam) {
  if (node.step < 0) return h("p.faint", t("decode.root"));
  const pieces = pathTo(beam.nodes, node).map((one) => raw(one.piece, { class: "token tgt" }));
  const winner = node.winner && stateName("winner");
  const click = node.state === "pruned" && h("span.faint", ` ${t("decode.click")}`);
  return [
    h("p", pieces, " ", stateName(node.state), winner, click),
    rule(node.total, node.step + 1, beam.length_penalty, node.score),
  ];
}

const [TALL, GAP, TOP] = [40, 22, 26];
const WIDE = { least: 92, most: 168 };

/** As wide as the window lets so many columns be. @param {number} columns */
function widthOf(columns) {
  return Math.max(WIDE.least, Math.min(WIDE.most, (window.innerWidth / zoom() - 150) / columns - GAP));
}

/** The way from the start to a node, the start left out. @param {BeamNode[]} nodes @param {BeamNode} node */
function pathTo(nodes, node) {
  const path = [];
  for (let at = node; at.parent !== null; at = nodes[at.parent]) path.unshift(at);
  return path;
}

/**
 * The tree as far as the best branch goes; a search that went on after it has more to show on request.
 * @param {BeamNode[]} nodes @param {TreeHooks} hooks
 */
function beamTree(nodes, hooks) {
  const end = Math.max(...nodes.filter((node) => node.winner).map((node) => node.step));
  const later = Math.max(...nodes.map((node) => node.step)) - end;
  const best = nodes.filter((node) => node.step <= end);
  const frame = h("div.scroll", { data: { testid: "tree" } }, drawTree(best, hooks));
  requestAnimationFrame(() => {
    frame.scrollLeft = Math.max(0, (hooks.step - 1) * (widthOf(end + 2) + GAP) * zoom());
  });
  if (later <= 0) return frame;
  const showAll = () => {
    frame.replaceChildren(drawTree(nodes, hooks));
    more.remove();
  };
  const more = button(t("decode.later", { n: later }), showAll, { class: "link", data: { key: "tree-later" } });
  return h("div", frame, more);
}

/** @param {BeamNode[]} nodes @param {TreeHooks} hooks */
function drawTree(nodes, hooks) {
  /** @type {Map<number, BeamNode[]>} */
  const columns = new Map();
  for (const node of nodes) columns.set(node.step, [...columnOf(columns, node.step), node]);
  for (const column of columns.values()) column.sort((a, b) => b.total - a.total);
  const first = Math.min(...columns.keys());
  const wide = widthOf(columns.size);
  const rows = Math.max(...[...columns.values()].map((column) => column.length));
  /** @param {number} step */
  const left = (step) => (step - first) * (wide + GAP) + 2;
  /** @param {BeamNode} node */
  const y = (node) => TOP + columnOf(columns, node.step).indexOf(node) * (TALL + 8);
  const width = columns.size * (wide + GAP);
  const height = TOP + rows * (TALL + 8) + 4;
  const picture = svg("svg.tree", {
    width: width * zoom(),
    height: height * zoom(),
    viewBox: `0 0 ${width} ${height}`,
    role: "tree",
    "aria-label": t("decode.tree"),
  });
  for (const at of columns.keys()) {
    if (at < 0) continue;
    const now = at === hooks.step ? " now" : "";
    picture.append(
      rect([left(at) - GAP / 2, 0, wide + GAP, height], { class: `column${now}` }),
      label([left(at) - 2 + wide / 2, 14], String(at + 1), { class: "tick" }),
    );
  }
  const byId = new Map(nodes.map((node) => [node.id, node]));
  for (const node of nodes) {
    const parent = byId.get(node.parent ?? -1);
    if (!parent) continue;
    const [x1, y1, x2, y2] = [left(parent.step) + wide, y(parent) + TALL / 2, left(node.step), y(node) + TALL / 2];
    const winner = node.winner ? " winner" : "";
    picture.append(
      svg("path", { d: `M${x1} ${y1}${curve([x1, y1], [x2, y2])}`, class: `branch ${node.state}${winner}` }),
    );
  }
  const start = nodes.find((node) => node.winner && node.step === hooks.step) ?? nodes[0];
  const boxes = new Map(nodes.map((node) => [node, box(node, left(node.step), y(node), wide, node === start, hooks)]));
  picture.append(...boxes.values());
  picture.addEventListener("keydown", (event) => {
    const here = nodes.find((node) => boxes.get(node) === document.activeElement);
    const next = here && nextNode(event.key, here, columns, byId);
    const target = next && boxes.get(next);
    if (!target) return;
    event.preventDefault();
    focusOnly([...boxes.values()], target);
  });
  return picture;
}

/** @param {Map<number, BeamNode[]>} columns @param {number} step */
const columnOf = (columns, step) => columns.get(step) ?? [];

/**
 * @param {BeamNode} node @param {number} x @param {number} y @param {number} wide
 * @param {boolean} stop   whether the tab key stops here
 * @param {TreeHooks} hooks
 */
function box(node, x, y, wide, stop, { chosen, preview }) {
  const { id, state, token } = node;
  const piece = shorten(node.piece, Math.floor((wide - 18) / 7.6));
  const winner = node.winner ? `, ${t("state.winner")}` : "";
  const says = `${node.piece}, ${t(`state.${node.state}`)}${winner}, ${t("decode.score")} ${show(node.score)}`;
  return svg(
    "g",
    {
      class: `node ${node.state}${node.winner ? " winner" : ""}`,
      role: "treeitem",
      tabindex: stop ? "0" : "-1",
      "aria-label": says,
      data: { id, state, token, winner: node.winner ? "yes" : "no", key: `node:${id}` },
      on: {
        click: () => chosen(node),
        pointerenter: () => preview(node),
        focus: () => preview(node),
        keydown: onKeys(["Enter", " "], () => chosen(node)),
      },
    },
    svg("title", says),
    rect([x, y, wide, TALL], { rx: 7 }),
    label([x + 9, y + 17], piece, { class: "node-piece" }),
    label([x + 9, y + 32], node.step < 0 ? "" : show(node.score, 3), { class: "node-score" }),
  );
}

/**
 * The node that an arrow key leads to.
 * @param {string} key @param {BeamNode} node @param {Map<number, BeamNode[]>} columns
 * @param {Map<number, BeamNode>} byId
 */
function nextNode(key, node, columns, byId) {
  const column = columnOf(columns, node.step);
  const after = columnOf(columns, node.step + 1);
  if (key === "ArrowUp") return column[column.indexOf(node) - 1];
  if (key === "ArrowDown") return column[column.indexOf(node) + 1];
  if (key === "ArrowLeft") return byId.get(node.parent ?? -1);
  return key === "ArrowRight" ? (after.find((one) => one.parent === node.id) ?? after[0]) : undefined;
}
