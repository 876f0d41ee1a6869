// What if: take a part away, or put another in its place, and see what the model says then.

import { button, code, columnHead, h, line, numberCell, raw, rect, svg, table, toggle } from "./dom.js";
import { t } from "./language.js";
import { fixed, show, unit } from "./number.js";
import { attentionsOf, hasHeads, layerCount, STACKS, sheetOf, withMasks } from "./tensors.js";

/**
 * The value to compare: the value that a change has set, else the attention of the layer the page looks at.
 * @param {App} app
 */
function comparedName(app) {
  const set = [...app.run.entries.values()].find(
    (entry) => entry.op.kind === "replaced" && app.before?.has(entry.name),
  );
  if (set) return set.name;
  const all = attentionsOf(app.run);
  const own = all.filter((one) => one.layer === app.state.layer);
  const cross = own.find((one) => one.attention === "cross_attention");
  const near = cross ?? own[0] ?? all.find((one) => app.state.layer.startsWith(one.stack)) ?? all[0];
  return near?.name ?? null;
}

/** @type {Painter} */
export const whatif = {
  names(app) {
    const name = comparedName(app);
    return name ? withMasks(app.run, [name]) : [];
  },

  async prepare(app) {
    const name = comparedName(app);
    if (app.before && name && app.before.has(name)) await app.before.need(withMasks(app.before, [name]));
  },

  draw(app) {
    const { state, before, difference } = app;
    const empty = h("div.empty", h("p.big-hint", t("whatif.choose")), h("p.faint", t("whatif.chooseSays")));
    const result = before && difference ? outcome(before, app.run, difference) : empty;
    return h(
      "section.view",
      app.heading("whatif"),
      h(
        "div.whatif",
        h("div.controls", changeControls(app)),
        h("div.outcome", activeChanges(app), result, before && state.changes.length > 0 && pictures(app, before)),
      ),
    );
  },
};

/** @param {Run} before @param {Run} after @param {Difference} difference */
function outcome(before, after, difference) {
  const writes = difference.forced.length > 0;
  const changed = difference.same_output ? "" : " changed";
  /** @param {"before" | "after"} which @param {Run} run */
  const side = (which, run) =>
    h(
      "div",
      { class: `side ${which}${which === "after" ? changed : ""}` },
      h("span.label", t(`whatif.${which}`)),
      raw(difference[`output_${which}`] || "\u2014", { class: "said", data: { testid: `output-${which}` } }),
      writes && h("span.faint", t("whatif.total"), " ", raw(show(difference[`total_${which}`]))),
      h("span.faint", t("run"), " ", code(run.id, { data: { testid: `run-${which}` } })),
    );
  return h(
    "div.plate",
    h("div.sides", side("before", before), side("after", after)),
    h("p", { class: `verdict${changed}` }, t(!writes ? "whatif.none" : changed ? "whatif.changed" : "whatif.same")),
    writes && differences(difference),
  );
}

/** @param {Difference} difference */
function differences({ forced, total_before: before, total_after: after }) {
  const most = Math.max(1e-6, ...forced.map((one) => Math.abs(one.difference ?? 0)));
  const num = { class: "num" };
  const head = [
    columnHead(t("decode.piece")),
    ["whatif.before", "whatif.after", "whatif.change"].map((name) => columnHead(t(name), num)),
    h("th.bar-cell"),
  ];
  const rows = forced.map((one) => {
    const change = printedChange(one.before, one.after);
    return h(
      "tr",
      h("td", raw(one.piece)),
      numberCell(show(one.before)),
      numberCell(show(one.after)),
      numberCell(change, { data: { difference: one.difference } }),
      h("td.bar-cell", changeBar(change === "0" ? 0 : (one.difference ?? 0) / most)),
    );
  });
  const foot = [
    h("th", { scope: "row" }, t("whatif.sum")),
    numberCell(show(before)),
    numberCell(show(after)),
    numberCell(printedChange(before, after), { data: { testid: "total-difference" } }),
    h("td.bar-cell"),
  ];
  const attributes = { class: "numbers differences", data: { testid: "differences" } };
  const title = h("h3", t("whatif.difference"));
  return h("div", title, h("p.lede", t("whatif.differenceSays")), table(attributes, { head, rows, foot }));
}

/**
 * The difference of two printed numbers, to no more digits than they have.
 * @param {number | null} before @param {number | null} after
 */
function printedChange(before, after) {
  if (before === null || after === null) return "\u2014";
  const finest = Math.min(unit(show(before)), unit(show(after)));
  const change = after - before;
  if (Math.abs(change) < finest / 2) return "0";
  const text = unit(show(change)) < finest ? fixed(change, -Math.log10(finest)) : show(change);
  return change > 0 && text !== "0" ? `+${text}` : text;
}

/** A bar that leans left for less likely, right for likelier; none where nothing has changed. @param {number} by */
function changeBar(by) {
  const long = Math.max(0.5, 48 * Math.min(1, Math.abs(by)));
  const bar = rect([by < 0 ? 50 - long : 50, 2, long, 6], { class: by < 0 ? "less" : "more" });
  const attributes = { viewBox: "0 0 100 10", "aria-hidden": "true", preserveAspectRatio: "none" };
  return svg("svg.slant", attributes, line([50, 0], [50, 10], { class: "axis" }), by !== 0 && bar);
}

/** The compared value in both runs. @param {App} app @param {Run} before */
function pictures(app, before) {
  const { run } = app;
  const name = comparedName(app);
  if (!name || ![before, run].every((one) => one.has(name) && one.isLoaded(name))) return null;
  const { op } = run.entry(name);
  const head = op.kind === "replaced" && "head" in op.by ? op.by.head : app.state.head;
  /** @type {MatrixHooks} */
  const hooks = {
    preview: (cell) => app.highlight(cell?.tokens ?? []),
    lock: (cell) => app.go({ view: "cell", tensor: cell.name, cell: cell.index }),
    release() {},
  };
  const { high } = sheetOf(before, name, head);
  /** @param {"before" | "after"} which @param {Run} one */
  const picture = (which, one) => {
    const title = t(`whatif.${which}`);
    const matrix = app.inspector.matrix({ ...sheetOf(one, name, head), high }, { title }, hooks);
    return h("div", h("h4", title), matrix.element);
  };
  const shown = hasHeads(run.entry(name)) ? t("flow.head", { n: head }) : "";
  return h(
    "div.plate",
    h("h3", t("whatif.pattern")),
    h("p.lede", code(name), " \u00b7 ", shown),
    h("div.two", picture("before", before), picture("after", run)),
  );
}

/** @param {Change} change */
const keyOf = (change) => JSON.stringify(change);

/** A change in words; `run` is the one before it. @param {Run | null} run @param {Change} change */
export function nameChange(run, change) {
  const stack = "stack" in change && change.stack ? t(`stack.${change.stack}`) : "";
  switch (change.kind) {
    case "remove_mask":
      return t(`change.remove_mask.${change.mask}`);
    case "remove_cross":
      return t(change.layer === null ? "change.remove_cross.all" : "change.remove_cross", { ...change });
    case "remove_positions":
      return t(stack ? "change.remove_positions" : "change.remove_positions.all", { stack });
    case "swap_token": {
      const old = run?.manifest.source.pieces[change.position] ?? `#${change.position}`;
      return t("change.swap_token", { old, piece: change.piece ?? `#${change.id}` });
    }
    case "prefix": {
      const pieces = change.pieces ?? change.ids?.map((id) => `#${id}`) ?? [];
      return t("change.prefix", { pieces: pieces.join(" ") });
    }
    case "remove_head": {
      const attention = change.attention ? t(`attention.${change.attention}`) : "";
      return t("change.remove_head", { ...change, stack, attention });
    }
    default:
      return t(`change.${change.kind}`, { ...change, stack });
  }
}

/** A switch that makes a change and takes it back. @param {App} app @param {Change} change @param {Child} label */
function switchFor(app, change, label) {
  const key = keyOf(change);
  const { changes } = app.state;
  const others = changes.filter((one) => keyOf(one) !== key);
  const on = others.length < changes.length;
  return toggle(label, on, () => app.go({ changes: on ? others : [...changes, change] }), {
    data: { key, change: key },
    "aria-label": nameChange(app.run, change),
  });
}

/** Put a change, or none, in the place of others of its kind. @param {App} app @param {Change["kind"]} kind */
function replaceKind(app, kind, /** @type {Change | null} */ change) {
  const others = app.state.changes.filter((one) => one.kind !== kind);
  app.go({ changes: change ? [...others, change] : others });
}

/** Every change there is to make. @param {App} app */
function changeControls(app) {
  const original = app.before ?? app.run;
  const { model } = app.run.manifest;
  const stacks = STACKS.filter((stack) => layerCount(model, stack));
  const heads = attentionsOf(original).map(({ stack, i, attention, heads: count }) => {
    const place = { stack, layer: i, attention: attention.replace("_attention", "") };
    const switches = Array.from({ length: count }, (_, head) =>
      switchFor(app, { kind: "remove_head", ...place, head }, String(head)),
    );
    const name = h("span", { class: `stamp-name ${stack}` }, t(`grid.${stack}.${attention}`, { n: i }));
    return h("div.head-row", name, h("div.choice.tight", switches));
  });
  const layers = stacks.flatMap((stack) =>
    Array.from({ length: layerCount(model, stack) }, (_, layer) =>
      switchFor(app, { kind: "remove_layer", stack, layer }, `${t(`stack.${stack}`)} ${layer}`),
    ),
  );
  const inputs = [
    model.task !== "image" && tokenForm(app, original),
    model.kind !== "encoder-only" && prefixForm(app),
    temperatureSlider(app),
  ];
  return [
    group("whatif.heads", heads),
    group("whatif.layers", h("div.choice", layers)),
    group("whatif.parts", h("div.choice", partSwitches(app, model, stacks))),
    group("whatif.input", inputs),
  ];
}

/** @param {App} app @param {Model} model @param {Stack[]} stacks */
function partSwitches(app, model, stacks) {
  const ofStacks = stacks.map((stack) => {
    const label = t("whatif.positionsOf", { stack: t(`stack.${stack}`) });
    return switchFor(app, { kind: "remove_positions", stack }, label);
  });
  const scale = [t("whatif.scale"), " ", raw("1/\u221ad")];
  return [
    model.decoder_layers > 0 && switchFor(app, { kind: "remove_mask", mask: "causal" }, t("whatif.causal")),
    model.task !== "image" && switchFor(app, { kind: "remove_mask", mask: "padding" }, t("whatif.padding")),
    model.kind === "encoder-decoder" && switchFor(app, { kind: "remove_cross", layer: null }, t("attention.cross")),
    model.positions !== "none" && switchFor(app, { kind: "remove_positions", stack: null }, t("whatif.positions")),
    model.positions !== "none" && stacks.length > 1 && ofStacks,
    model.score_scale !== 1 && switchFor(app, { kind: "remove_scale" }, scale),
  ];
}

/** @param {string} title @param {Child} content */
function group(title, content) {
  return h("fieldset", h("legend", t(title)), content);
}

/** A line to fill in. @param {string} title @param {string} key @param {() => void} apply @param {Child} fields */
function form(title, key, apply, fields) {
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    apply();
  };
  const send = h("button", { type: "submit", data: { key } }, t("whatif.apply"));
  return h("form.inline", { on: { submit } }, h("span.label", t(title)), fields, send);
}

/** @param {string} label @param {string} placeholder @param {Attributes} attributes */
function textField(label, placeholder, attributes) {
  return h("input", { type: "text", "aria-label": t(label), placeholder: t(placeholder), ...attributes });
}

/** @param {App} app @param {Run} original */
function tokenForm(app, original) {
  const data = { key: "swap-piece", testid: "swap-piece" };
  const { mask } = original.manifest.model;
  const field = textField("whatif.piece", "whatif.piece", { class: "short", maxlength: 40, value: mask, data });
  const options = original.manifest.source.pieces.map((one, i) => h("option", { value: i }, `${i} ${one}`));
  const attributes = { "aria-label": t("whatif.token"), translate: "no", data: { key: "swap-at", testid: "swap-at" } };
  const which = h("select", attributes, options);
  const apply = () => {
    const [position, piece] = [Number(which.value), field.value];
    if (piece) replaceKind(app, "swap_token", { kind: "swap_token", position, piece });
  };
  return form("whatif.swap", "swap", apply, [which, raw("\u2192"), field]);
}

/** @param {App} app */
function prefixForm(app) {
  const data = { key: "prefix", testid: "prefix-pieces" };
  const field = textField("whatif.begin", "whatif.pieces", { maxlength: 200, data });
  const apply = () => {
    const pieces = field.value.split(" ").filter(Boolean);
    replaceKind(app, "prefix", pieces.length ? { kind: "prefix", pieces } : null);
  };
  return form("whatif.begin", "begin", apply, field);
}

/** @param {App} app */
function temperatureSlider(app) {
  const now = app.state.changes.find((one) => one.kind === "temperature")?.value ?? 1;
  const read = h("output", { translate: "no" }, fixed(now, 1));
  const range = { type: "range", min: 0.2, max: 3, step: 0.1, value: now };
  const slide = h("input", { ...range, "aria-label": t("whatif.temperature"), data: { key: "temperature" } });
  slide.addEventListener("input", () => {
    read.textContent = fixed(Number(slide.value), 1);
  });
  slide.addEventListener("change", () => {
    const value = Number(slide.value);
    replaceKind(app, "temperature", value === 1 ? null : { kind: "temperature", value });
  });
  return h("div.inline", h("span.label", t("whatif.temperature")), slide, read);
}

/** The changes that hold now, each with a way to take it back. @param {App} app */
function activeChanges(app) {
  const { changes } = app.state;
  if (!changes.length) return null;
  const chips = changes.map((change) => {
    const name = nameChange(app.before ?? app.run, change);
    const undo = button("\u00d7", () => app.go({ changes: changes.filter((one) => one !== change) }), {
      "aria-label": t("whatif.undo", { change: name }),
      data: { key: `undo:${keyOf(change)}` },
    });
    return h("span.chip", h("span", name), undo);
  });
  const reset = { class: "solid", data: { key: "reset", testid: "reset" } };
  const resetButton = button(t("whatif.reset"), () => app.go({ changes: [] }), reset);
  return h("div.in-force", chips, resetButton);
}
