// Decode: the output token by token, what else was likely, and the tree of what the beam tried.

import { exact, number, power, quotient, settle } from "./algebra.js";
import { bar } from "./chart.js";
import { button, h, raw } from "./dom.js";
import { t } from "./language.js";
import { percent, show } from "./number.js";
import { beamTree, pathTo } from "./tree.js";

export const decode = {
  names: () => [],

  draw(app) {
    const { run, state, source } = app;
    const { steps, beam, target, options } = run.manifest;
    if (!steps?.length) return h("section.view", app.heading("decode", null, t("decode.none")));
    const at = Math.min(state.step, steps.length - 1);
    const step = steps[at];
    const told = h("div.node-told", { "aria-live": "polite" });
    const continued = (node) => {
      if (node.state !== "pruned") return app.go({ step: Math.max(0, node.step) });
      if (!source.live) return app.say(t("embedded.server"));
      return app.go({ prefix: pathTo(beam.nodes, node), step: node.step, cell: [] });
    };
    const preview = (node) => told.replaceChildren(...tellNode(node, beam));
    if (beam) preview(beam.nodes.find((node) => node.winner && node.step === at) ?? beam.nodes[0]);
    const start = target.pieces.length - steps.length;
    return h(
      "section.view",
      app.heading("decode"),
      options.prefix?.length ? prefixNote(app) : null,
      slider(app, steps, at),
      h(
        "div.two",
        h(
          "div.plate",
          h("h3", t("decode.reads")),
          h(
            "p.reading-so-far",
            target.pieces
              .slice(0, start + at + 1)
              .map((piece, i) => raw(piece, { class: "token tgt", data: { index: i } })),
          ),
          h("h3", t("decode.next")),
          h(
            "ol.bars",
            { data: { testid: "top" } },
            candidates(step).map((one) =>
              bar({
                label: one.piece,
                share: one.probability,
                figure: percent(one.probability),
                more: show(one.log_probability),
                chosen: one.id === step.chosen,
              }),
            ),
          ),
          h("p.caption", t("decode.columns")),
        ),
        h("div.plate", h("h3", t("decode.sum")), sumSoFar(steps, at, options.length_penalty)),
      ),
      beam &&
        h(
          "div.plate.tree-plate",
          h("div.plate-head", h("h3", t("decode.tree")), key()),
          h("p.lede", t(beam.size > 1 ? "decode.treeSays" : "decode.greedySays", { n: beam.size })),
          beamTree(beam.nodes, { step: at, chosen: continued, preview }),
          told,
        ),
    );
  },
};

/** The step that is looked at, and how to go to another. */
export function slider(app, steps, at) {
  const move = (to) => app.go({ step: Math.max(0, Math.min(steps.length - 1, to)) }, { replace: true });
  return h(
    "div.stepper",
    button("\u2039", () => move(at - 1), {
      "aria-label": t("decode.back"),
      disabled: at === 0,
      data: { key: "step-back" },
    }),
    h("input", {
      type: "range",
      min: 0,
      max: steps.length - 1,
      value: at,
      "aria-label": t("decode.step"),
      "aria-valuetext": t("decode.at", { n: at + 1, all: steps.length }),
      data: { key: "step", testid: "step" },
      on: { input: (event) => move(Number(event.target.value)) },
    }),
    button("\u203a", () => move(at + 1), {
      "aria-label": t("decode.forward"),
      disabled: at === steps.length - 1,
      data: { key: "step-on" },
    }),
    h("span.label", { data: { testid: "step-of" } }, t("decode.at", { n: at + 1, all: steps.length })),
  );
}

function prefixNote(app) {
  const { options, output } = app.run.manifest;
  const pieces = (output?.pieces ?? []).slice(0, options.prefix.length);
  return h(
    "div.notice",
    { role: "status", data: { testid: "prefix" } },
    h(
      "span",
      t("decode.prefix"),
      " ",
      pieces.map((piece) => raw(piece, { class: "token tgt" })),
    ),
    app.source.live &&
      button(
        t("decode.free"),
        () => app.go({ prefix: [], step: 0, changes: app.state.changes.filter((one) => one.kind !== "prefix") }),
        { class: "quiet", data: { key: "free" } },
      ),
  );
}

/** The likeliest tokens of a step, and the one chosen where it is not among them. */
export function candidates(step) {
  if (step.top.some((one) => one.id === step.chosen) || step.forced) return step.top;
  const own = step.chosen_log_probability;
  return [...step.top, { id: step.chosen, piece: step.piece, probability: Math.exp(own), log_probability: own }];
}

/** The score as the rule says it: the sum of log-probabilities over a power of the length. */
function sumSoFar(steps, at, penalty) {
  const rows = steps.map((step, i) =>
    h(
      "tr",
      { class: i === at ? "now" : i > at ? "later" : null },
      h("td", raw(String(i + 1))),
      h("td", raw(step.piece)),
      h("td.num", raw(show(step.chosen_log_probability))),
      h("td.num", raw(show(step.total))),
    ),
  );
  const { total, forced } = steps[at];
  return h(
    "div",
    h(
      "div.scroll.short",
      h(
        "table.numbers",
        h(
          "thead",
          h(
            "tr",
            ["decode.step", "decode.piece", "decode.log", "decode.total"].map((name, i) =>
              h("th", { scope: "col", class: i > 1 ? "num" : null }, t(name)),
            ),
          ),
        ),
        h("tbody", rows),
      ),
    ),
    forced && h("p.caption", t("decode.forced")),
    rule(total, at + 1, penalty, total / (at + 1) ** penalty),
  );
}

function rule(total, length, penalty, score) {
  const { pieces, result, holds } = settle(quotient(number(total), power(exact(length), exact(penalty))), score);
  return h(
    "div.rule",
    { data: { testid: "score-rule" } },
    h("p.op", t("decode.rule")),
    h(
      "div.equation",
      pieces.map((piece) => raw(piece.text, { class: piece.kind === "sign" ? "sign" : "figure" })),
      raw(holds ? " = " : " \u2248 ", { class: "sign equals" }),
      raw(result, { class: "figure result" }),
    ),
  );
}

function tellNode(node, beam) {
  if (node.step < 0) return [h("p.faint", t("decode.root"))];
  return [
    h(
      "p",
      pathPieces(beam.nodes, node).map((piece) => raw(piece, { class: "token tgt" })),
      " ",
      h("span", { class: `state ${node.state}` }, t(`state.${node.state}`)),
      node.winner && h("span.state.winner", t("state.winner")),
      node.state === "pruned" && h("span.faint", ` ${t("decode.click")}`),
    ),
    rule(node.total, node.step + 1, beam.length_penalty, node.score),
  ];
}

function pathPieces(nodes, node) {
  const pieces = [];
  for (let at = node; at.parent !== null; at = nodes[at.parent]) pieces.unshift(at.piece);
  return pieces;
}

function key() {
  return h(
    "div.key",
    ["winner", "kept", "finished", "pruned"].map((state) =>
      h("span", { class: `state ${state}` }, t(`state.${state}`)),
    ),
  );
}
