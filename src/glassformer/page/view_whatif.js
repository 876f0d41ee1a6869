// What if: take a part away, or put another in its place, and see what the model says then.

import { button, code, h, raw, svg } from "./dom.js";
import { t } from "./language.js";
import { Matrix } from "./matrix.js";
import { fixed, show, unit } from "./number.js";
import { attentionsOf, hasHeads, sheetOf, withMasks } from "./tensors.js";

const key = (change) => JSON.stringify(change);

/** A change in words; `run` is the one before it. */
export function nameChange(run, change) {
  const place = {
    ...change,
    stack: change.stack ? t(`stack.${change.stack}`) : "",
    attention: change.attention ? t(`attention.${change.attention}`) : "",
  };
  if (change.kind === "remove_mask") return t(`change.remove_mask.${change.mask}`);
  if (change.kind === "remove_cross" && change.layer === null) return t("change.remove_cross.all");
  if (change.kind === "remove_positions" && !change.stack) return t("change.remove_positions.all");
  if (change.kind === "swap_token")
    Object.assign(place, {
      old: run?.manifest.source.pieces[change.position] ?? `#${change.position}`,
      piece: change.piece ?? `#${change.id}`,
    });
  if (change.kind === "prefix") place.pieces = (change.pieces ?? change.ids.map((id) => `#${id}`)).join(" ");
  return t(`change.${change.kind}`, place);
}

/** What is compared: the value that a change has set, else the attention of the layer the page looks at. */
function compared(app) {
  const set = [...app.run.entries.values()].find(
    (entry) => entry.op.kind === "replaced" && app.before?.has(entry.name),
  );
  if (set) return set.name;
  const all = attentionsOf(app.run);
  const [stack] = app.state.layer.split(".");
  const own = all.filter((one) => one.layer === app.state.layer);
  return (
    (
      own.find((one) => one.attention === "cross_attention") ??
      own[0] ??
      all.find((one) => one.stack === stack) ??
      all[0]
    )?.name ?? null
  );
}

export const whatif = {
  names(app) {
    const name = compared(app);
    return name ? withMasks(app.run, [name]) : [];
  },

  async prepare(app) {
    const name = compared(app);
    if (app.before && name && app.before.has(name)) await app.before.need(withMasks(app.before, [name]));
  },

  draw(app) {
    const { state, before } = app;
    return h(
      "section.view",
      app.heading("whatif"),
      h(
        "div.whatif",
        h("div.controls", controls(app)),
        h(
          "div.outcome",
          inForce(app),
          before && app.difference
            ? outcome(app)
            : h("div.empty", h("p.big-hint", t("whatif.choose")), h("p.faint", t("whatif.chooseSays"))),
          before && state.changes.length > 0 && pictures(app),
        ),
      ),
    );
  },
};

function toggle(app, change) {
  const { changes } = app.state;
  const has = changes.some((one) => key(one) === key(change));
  app.go({ changes: has ? changes.filter((one) => key(one) !== key(change)) : [...changes, change] });
}

/** Put a change in the place of others of its kind. */
function only(app, change, kind) {
  app.go({ changes: [...app.state.changes.filter((one) => one.kind !== kind), ...(change ? [change] : [])] });
}

function switchFor(app, change, label, attributes = {}) {
  const on = app.state.changes.some((one) => key(one) === key(change));
  return button(label, () => toggle(app, change), {
    "aria-pressed": on ? "true" : "false",
    data: { key: key(change), change: key(change) },
    "aria-label": nameChange(app.run, change),
    ...attributes,
  });
}

function controls(app) {
  const { run } = app;
  const { model } = run.manifest;
  const original = app.before ?? run;
  const stacks = ["encoder", "decoder"].filter((stack) => model[`${stack}_layers`]);
  const heads = attentionsOf(original).map(({ stack, i, attention, heads: count }) =>
    h(
      "div.head-row",
      h("span", { class: `stamp-name ${stack}` }, t(`grid.${stack}.${attention}`, { n: i })),
      h(
        "div.choice.tight",
        Array.from({ length: count }, (_, head) =>
          switchFor(
            app,
            { kind: "remove_head", stack, layer: i, attention: attention.replace("_attention", ""), head },
            String(head),
          ),
        ),
      ),
    ),
  );
  const layers = stacks.flatMap((stack) =>
    Array.from({ length: model[`${stack}_layers`] }, (_, layer) =>
      switchFor(app, { kind: "remove_layer", stack, layer }, `${t(`stack.${stack}`)} ${layer}`),
    ),
  );
  const parts = [];
  if (model.decoder_layers) parts.push(switchFor(app, { kind: "remove_mask", mask: "causal" }, t("whatif.causal")));
  parts.push(switchFor(app, { kind: "remove_mask", mask: "padding" }, t("whatif.padding")));
  if (model.kind === "encoder-decoder")
    parts.push(switchFor(app, { kind: "remove_cross", layer: null }, t("whatif.cross")));
  if (model.positions !== "none") {
    parts.push(switchFor(app, { kind: "remove_positions", stack: null }, t("whatif.positions")));
    if (stacks.length > 1)
      parts.push(
        ...stacks.map((stack) =>
          switchFor(app, { kind: "remove_positions", stack }, t("whatif.positionsOf", { stack: t(`stack.${stack}`) })),
        ),
      );
  }
  if (model.score_scale !== 1)
    parts.push(switchFor(app, { kind: "remove_scale" }, [t("whatif.scale"), " ", raw("1/\u221ad")]));
  return [
    group("whatif.heads", heads),
    group("whatif.layers", h("div.choice", layers)),
    group("whatif.parts", h("div.choice", parts)),
    group("whatif.input", [
      swap(app, original),
      model.kind === "encoder-only" ? null : beginning(app),
      temperature(app),
    ]),
  ];
}

function group(title, content) {
  return h("fieldset", h("legend", t(title)), content);
}

function swap(app, original) {
  const { source } = original.manifest;
  const piece = h("input", {
    type: "text",
    "aria-label": t("whatif.piece"),
    placeholder: t("whatif.piece"),
    class: "short",
    maxlength: 40,
    data: { key: "swap-piece", testid: "swap-piece" },
  });
  const which = h(
    "select",
    { "aria-label": t("whatif.token"), translate: "no", data: { key: "swap-at", testid: "swap-at" } },
    source.pieces.map((one, i) => h("option", { value: i }, `${i} ${one}`)),
  );
  const apply = (event) => {
    event.preventDefault();
    if (piece.value) only(app, { kind: "swap_token", position: Number(which.value), piece: piece.value }, "swap_token");
  };
  return h(
    "form.inline",
    { on: { submit: apply } },
    h("span.label", t("whatif.swap")),
    which,
    raw("\u2192"),
    piece,
    h("button", { type: "submit", data: { key: "swap" } }, t("whatif.apply")),
  );
}

function beginning(app) {
  const words = h("input", {
    type: "text",
    "aria-label": t("whatif.begin"),
    placeholder: t("whatif.pieces"),
    maxlength: 200,
    data: { key: "prefix", testid: "prefix-pieces" },
  });
  const apply = (event) => {
    event.preventDefault();
    const pieces = words.value.split(" ").filter(Boolean);
    only(app, pieces.length ? { kind: "prefix", pieces } : null, "prefix");
  };
  return h(
    "form.inline",
    { on: { submit: apply } },
    h("span.label", t("whatif.begin")),
    words,
    h("button", { type: "submit", data: { key: "begin" } }, t("whatif.apply")),
  );
}

function temperature(app) {
  const now = app.state.changes.find((one) => one.kind === "temperature")?.value ?? 1;
  const read = h("output", { translate: "no" }, fixed(now, 1));
  const slide = h("input", {
    type: "range",
    min: 0.2,
    max: 3,
    step: 0.1,
    value: now,
    "aria-label": t("whatif.temperature"),
    data: { key: "temperature" },
    on: {
      input: () => {
        read.textContent = fixed(Number(slide.value), 1);
      },
      change: () =>
        only(
          app,
          Number(slide.value) === 1 ? null : { kind: "temperature", value: Number(slide.value) },
          "temperature",
        ),
    },
  });
  return h("div.inline", h("span.label", t("whatif.temperature")), slide, read);
}

/** The changes that hold now, each with a way to take it back. */
function inForce(app) {
  const { state, before, run } = app;
  if (!state.changes.length) return null;
  return h(
    "div.in-force",
    state.changes.map((change) =>
      h(
        "span.chip",
        h("span", { translate: null }, nameChange(before ?? run, change)),
        button("\u00d7", () => app.go({ changes: state.changes.filter((one) => one !== change) }), {
          "aria-label": t("whatif.undo", { change: nameChange(before ?? run, change) }),
          data: { key: `undo:${key(change)}` },
        }),
      ),
    ),
    button(t("whatif.reset"), () => app.go({ changes: [] }), {
      class: "solid",
      data: { key: "reset", testid: "reset" },
    }),
  );
}

function outcome(app) {
  const { before, run, difference } = app;
  const writes = difference.output_before !== null;
  const changed = difference.same_output ? "" : " changed";
  const side = (which, one, text, total) =>
    h(
      "div",
      { class: `side ${which}${which === "after" ? changed : ""}` },
      h("span.label", t(`whatif.${which}`)),
      raw(text || "\u2014", { class: "said", data: { testid: `output-${which}` } }),
      writes && h("span.faint", t("whatif.total"), " ", raw(show(total))),
      h("span.faint", t("whatif.run"), " ", code(one.id, { data: { testid: `run-${which}` } })),
    );
  return h(
    "div.plate",
    h(
      "div.sides",
      side("before", before, difference.output_before, difference.total_before),
      side("after", run, difference.output_after, difference.total_after),
    ),
    h("p", { class: `verdict${changed}` }, t(!writes ? "whatif.none" : changed ? "whatif.changed" : "whatif.same")),
    writes && table(difference),
  );
}

function table({ forced, total_before: before, total_after: after }) {
  const most = Math.max(1e-6, ...forced.map((one) => Math.abs(one.difference)).filter(Number.isFinite));
  return h(
    "div",
    h("h3", t("whatif.difference")),
    h("p.lede", t("whatif.differenceSays")),
    h(
      "div.scroll",
      h(
        "table.numbers.differences",
        { data: { testid: "differences" } },
        h(
          "thead",
          h(
            "tr",
            h("th", { scope: "col" }, t("decode.piece")),
            h("th", { scope: "col", class: "num" }, t("whatif.before")),
            h("th", { scope: "col", class: "num" }, t("whatif.after")),
            h("th", { scope: "col", class: "num" }, t("whatif.change")),
            h("th.bar-cell"),
          ),
        ),
        h(
          "tbody",
          forced.map((one) =>
            h(
              "tr",
              h("td", raw(one.piece)),
              h("td.num", raw(show(one.before))),
              h("td.num", raw(show(one.after))),
              h("td.num", { data: { difference: one.difference } }, raw(apart(one.before, one.after))),
              h("td.bar-cell", slant(apart(one.before, one.after) === "0" ? 0 : one.difference / most)),
            ),
          ),
        ),
        h(
          "tfoot",
          h(
            "tr",
            h("th", { scope: "row" }, t("whatif.sum")),
            h("td.num", raw(show(before))),
            h("td.num", raw(show(after))),
            h("td.num", { data: { testid: "total-difference" } }, raw(apart(before, after))),
            h("td.bar-cell"),
          ),
        ),
      ),
    ),
  );
}

/** The difference of two printed numbers, to no more digits than they have. */
function apart(before, after) {
  if (!Number.isFinite(before) || !Number.isFinite(after)) return "\u2014";
  const finest = Math.min(unit(show(before)), unit(show(after)));
  const change = after - before;
  const text =
    Math.abs(change) < finest / 2
      ? "0"
      : unit(show(change)) < finest
        ? fixed(change, -Math.log10(finest))
        : show(change);
  return change > 0 && text !== "0" ? `+${text}` : text;
}

/** A bar that leans left for less likely, right for likelier; none where nothing has changed. */
function slant(share) {
  const long = Math.max(0.5, 48 * Math.min(1, Math.abs(share)));
  return svg(
    "svg",
    { viewBox: "0 0 100 10", class: "slant", "aria-hidden": "true", preserveAspectRatio: "none" },
    svg("line", { x1: 50, x2: 50, y1: 0, y2: 10, class: "axis" }),
    share === 0
      ? null
      : svg("rect", {
          x: share < 0 ? 50 - long : 50,
          y: 2,
          width: long,
          height: 6,
          class: share < 0 ? "less" : "more",
        }),
  );
}

function pictures(app) {
  const name = compared(app);
  const head = app.run.entry(name).op.by?.head ?? app.state.head;
  const drawn = [
    ["before", app.before],
    ["after", app.run],
  ].filter(([, run]) => name && run.has(name) && run.isLoaded(name));
  if (drawn.length < 2) return null;
  const quiet = {
    preview: (cell) => app.light(cell?.tokens ?? []),
    lock: (cell) => app.go({ view: "cell", tensor: cell.name, cell: cell.index }),
    release() {},
  };
  return h(
    "div.plate",
    h("h3", t("whatif.pattern")),
    h("p.lede", code(name), " \u00b7 ", hasHeads(app.run.entry(name)) ? t("flow.head", { n: head }) : ""),
    h(
      "div.two",
      drawn.map(([which, run]) => {
        const matrix = app.inspector.watch(
          new Matrix({ ...sheetOf(run, name, head), high: sheetOf(app.before, name, head).high }, quiet, {
            title: t(`whatif.${which}`),
          }),
        );
        return h("div", h("h4", t(`whatif.${which}`)), matrix.element);
      }),
    ),
  );
}
