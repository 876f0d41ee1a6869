// What-if changes: their names, the switches that make them, the way to take them back.

import { button, h, raw, toggle } from "./dom.js";
import { t } from "./language.js";
import { fixed } from "./number.js";
import { attentionsOf, layerCount, STACKS } from "./tensors.js";

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
function only(app, kind, /** @type {Change | null} */ change) {
  const others = app.state.changes.filter((one) => one.kind !== kind);
  app.go({ changes: change ? [...others, change] : others });
}

/** Every change there is to make. @param {App} app */
export function changeControls(app) {
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
    model.task !== "image" && swap(app, original),
    model.kind !== "encoder-only" && beginning(app),
    temperature(app),
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
function swap(app, original) {
  const data = { key: "swap-piece", testid: "swap-piece" };
  const { mask } = original.manifest.model;
  const field = textField("whatif.piece", "whatif.piece", { class: "short", maxlength: 40, value: mask, data });
  const options = original.manifest.source.pieces.map((one, i) => h("option", { value: i }, `${i} ${one}`));
  const attributes = { "aria-label": t("whatif.token"), translate: "no", data: { key: "swap-at", testid: "swap-at" } };
  const which = h("select", attributes, options);
  const apply = () => {
    const [position, piece] = [Number(which.value), field.value];
    if (piece) only(app, "swap_token", { kind: "swap_token", position, piece });
  };
  return form("whatif.swap", "swap", apply, [which, raw("\u2192"), field]);
}

/** @param {App} app */
function beginning(app) {
  const data = { key: "prefix", testid: "prefix-pieces" };
  const field = textField("whatif.begin", "whatif.pieces", { maxlength: 200, data });
  const apply = () => {
    const pieces = field.value.split(" ").filter(Boolean);
    only(app, "prefix", pieces.length ? { kind: "prefix", pieces } : null);
  };
  return form("whatif.begin", "begin", apply, field);
}

/** @param {App} app */
function temperature(app) {
  const now = app.state.changes.find((one) => one.kind === "temperature")?.value ?? 1;
  const read = h("output", { translate: "no" }, fixed(now, 1));
  const range = { type: "range", min: 0.2, max: 3, step: 0.1, value: now };
  const slide = h("input", { ...range, "aria-label": t("whatif.temperature"), data: { key: "temperature" } });
  slide.addEventListener("input", () => {
    read.textContent = fixed(Number(slide.value), 1);
  });
  slide.addEventListener("change", () => {
    const value = Number(slide.value);
    only(app, "temperature", value === 1 ? null : { kind: "temperature", value });
  });
  return h("div.inline", h("span.label", t("whatif.temperature")), slide, read);
}

/** The changes that hold now, each with a way to take it back. @param {App} app */
export function inForce(app) {
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
  return h(
    "div.in-force",
    chips,
    button(t("whatif.reset"), () => app.go({ changes: [] }), reset),
  );
}
