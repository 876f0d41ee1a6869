// The beam as columns of candidates, the best on top; a line leads from each to the one it continues.

import { button, h, onKeys, svg, zoom } from "./dom.js";
import { t } from "./language.js";
import { show } from "./number.js";

const [TALL, GAP, TOP] = [40, 22, 26];
const WIDE = { least: 92, most: 168 };

/** As wide as the window lets so many columns be. */
function widthOf(columns) {
  return Math.max(WIDE.least, Math.min(WIDE.most, (window.innerWidth / zoom() - 150) / columns - GAP));
}

/** The ids on the way from the start to a node, the start left out. */
export function pathTo(nodes, node) {
  const ids = [];
  for (let at = node; at.parent !== null; at = nodes[at.parent]) ids.unshift(at.token);
  return ids;
}

/**
 * The tree as far as the best branch goes; a search that went on after it has more to show on request.
 * @param {any[]} nodes
 * @param {{step: number, chosen: (node: any) => void, preview: (node: any) => void}} hooks
 */
export function beamTree(nodes, hooks) {
  const end = Math.max(...nodes.filter((node) => node.winner).map((node) => node.step));
  const later = Math.max(...nodes.map((node) => node.step)) - end;
  const frame = h(
    "div.scroll",
    { data: { testid: "tree" } },
    grown(
      nodes.filter((node) => node.step <= end),
      hooks,
    ),
  );
  requestAnimationFrame(() => {
    frame.scrollLeft = Math.max(0, (hooks.step - 1) * (widthOf(end + 2) + GAP) * zoom());
  });
  if (later <= 0) return frame;
  const more = button(
    t("decode.later", { n: later }),
    () => {
      frame.replaceChildren(grown(nodes, hooks));
      more.remove();
    },
    { class: "link", data: { key: "tree-later" } },
  );
  return h("div", frame, more);
}

function grown(nodes, { step, chosen, preview }) {
  const columns = new Map();
  for (const node of nodes) columns.set(node.step, [...(columns.get(node.step) ?? []), node]);
  for (const column of columns.values()) column.sort((a, b) => b.total - a.total);
  const first = Math.min(...columns.keys());
  const wide = widthOf(columns.size);
  const rows = Math.max(...[...columns.values()].map((column) => column.length));
  const x = (node) => (node.step - first) * (wide + GAP) + 2;
  const y = (node) => TOP + columns.get(node.step).indexOf(node) * (TALL + 8);
  const width = columns.size * (wide + GAP);
  const height = TOP + rows * (TALL + 8) + 4;
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const picture = svg("svg", {
    width: width * zoom(),
    height: height * zoom(),
    viewBox: `0 0 ${width} ${height}`,
    class: "tree",
    role: "tree",
    "aria-label": t("decode.tree"),
  });
  for (const [at] of columns) {
    if (at < 0) continue;
    picture.append(
      svg("rect", {
        x: (at - first) * (wide + GAP) - GAP / 2 + 2,
        y: 0,
        width: wide + GAP,
        height,
        class: `column${at === step ? " now" : ""}`,
      }),
      svg("text", { x: (at - first) * (wide + GAP) + wide / 2, y: 14, class: "tick", translate: "no" }, String(at + 1)),
    );
  }
  for (const node of nodes) {
    if (node.parent === null) continue;
    const parent = byId.get(node.parent);
    const [x1, y1, x2, y2] = [x(parent) + wide, y(parent) + TALL / 2, x(node), y(node) + TALL / 2];
    const middle = (x1 + x2) / 2;
    picture.append(
      svg("path", {
        d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`,
        class: `branch ${node.state}${node.winner ? " winner" : ""}`,
      }),
    );
  }
  const start = nodes.find((node) => node.winner && node.step === step) ?? nodes[0];
  for (const node of nodes) picture.append(box(node, x(node), y(node), wide, node === start, { chosen, preview }));
  picture.addEventListener("keydown", (event) => walk(event, picture, columns, byId));
  return picture;
}

function box(node, x, y, wide, stop, { chosen, preview }) {
  const letters = [...node.piece];
  const most = Math.floor((wide - 18) / 7.6);
  const piece = letters.length > most ? `${letters.slice(0, most - 1).join("")}\u2026` : node.piece;
  const state = t(`state.${node.state}`);
  const winner = node.winner ? `, ${t("state.winner")}` : "";
  const says = `${node.piece}, ${state}${winner}, ${t("decode.score")} ${show(node.score)}`;
  return svg(
    "g",
    {
      class: `node ${node.state}${node.winner ? " winner" : ""}`,
      role: "treeitem",
      tabindex: stop ? "0" : "-1",
      "aria-label": says,
      "data-id": node.id,
      "data-state": node.state,
      "data-winner": node.winner ? "yes" : "no",
      "data-token": node.token,
      "data-key": `node:${node.id}`,
      on: {
        click: () => chosen(node),
        pointerenter: () => preview(node),
        focus: () => preview(node),
        keydown: onKeys(["Enter", " "], () => chosen(node)),
      },
    },
    svg("title", says),
    svg("rect", { x, y, width: wide, height: TALL, rx: 7 }),
    svg("text", { x: x + 9, y: y + 17, class: "node-piece", translate: "no" }, piece),
    svg(
      "text",
      { x: x + 9, y: y + 32, class: "node-score", translate: "no" },
      node.step < 0 ? "" : show(node.score, 3),
    ),
  );
}

function walk(event, picture, columns, byId) {
  const here = document.activeElement?.dataset?.id;
  if (here === undefined) return;
  const node = byId.get(Number(here));
  const column = columns.get(node.step);
  const children = (columns.get(node.step + 1) ?? []).filter((one) => one.parent === node.id);
  const next = {
    ArrowUp: column[column.indexOf(node) - 1],
    ArrowDown: column[column.indexOf(node) + 1],
    ArrowLeft: byId.get(node.parent),
    ArrowRight: children[0] ?? (columns.get(node.step + 1) ?? [])[0],
  }[event.key];
  if (!next) return;
  event.preventDefault();
  for (const one of picture.querySelectorAll(".node"))
    one.setAttribute("tabindex", Number(one.dataset.id) === next.id ? "0" : "-1");
  picture.querySelector(`[data-id="${next.id}"]`).focus();
}
