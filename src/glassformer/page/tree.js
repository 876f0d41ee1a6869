// The beam as columns of candidates, the best on top; a line leads from each to the one it continues.

import { button, focusOnly, h, onKeys, svg, zoom } from "./dom.js";
import { t } from "./language.js";
import { show } from "./number.js";
import { curve, label, rect, shorten } from "./shapes.js";

const [TALL, GAP, TOP] = [40, 22, 26];
const WIDE = { least: 92, most: 168 };

/** As wide as the window lets so many columns be. @param {number} columns */
function widthOf(columns) {
  return Math.max(WIDE.least, Math.min(WIDE.most, (window.innerWidth / zoom() - 150) / columns - GAP));
}

/** The way from the start to a node, the start left out. @param {BeamNode[]} nodes @param {BeamNode} node */
export function pathTo(nodes, node) {
  const path = [];
  for (let at = node; at.parent !== null; at = nodes[at.parent]) path.unshift(at);
  return path;
}

/**
 * The tree as far as the best branch goes; a search that went on after it has more to show on request.
 * @param {BeamNode[]} nodes
 * @param {TreeHooks} hooks
 */
export function beamTree(nodes, hooks) {
  const end = Math.max(...nodes.filter((node) => node.winner).map((node) => node.step));
  const later = Math.max(...nodes.map((node) => node.step)) - end;
  const best = nodes.filter((node) => node.step <= end);
  const frame = h("div.scroll", { data: { testid: "tree" } }, grown(best, hooks));
  requestAnimationFrame(() => {
    frame.scrollLeft = Math.max(0, (hooks.step - 1) * (widthOf(end + 2) + GAP) * zoom());
  });
  if (later <= 0) return frame;
  const showAll = () => {
    frame.replaceChildren(grown(nodes, hooks));
    more.remove();
  };
  const more = button(t("decode.later", { n: later }), showAll, { class: "link", data: { key: "tree-later" } });
  return h("div", frame, more);
}

/** @param {BeamNode[]} nodes @param {TreeHooks} hooks */
function grown(nodes, hooks) {
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
 * @param {BeamNode} node
 * @param {number} x
 * @param {number} y
 * @param {number} wide
 * @param {boolean} stop   whether the tab key stops here
 * @param {TreeHooks} hooks
 */
function box(node, x, y, wide, stop, { chosen, preview }) {
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
      data: {
        id: node.id,
        state: node.state,
        winner: node.winner ? "yes" : "no",
        token: node.token,
        key: `node:${node.id}`,
      },
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
 * @param {string} key
 * @param {BeamNode} node
 * @param {Map<number, BeamNode[]>} columns
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
