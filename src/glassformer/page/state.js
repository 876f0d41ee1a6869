// The whole state of the page, in the part of the address after #: a link shows what its sender saw.

import { layersOf } from "./tensors.js";

/** @type {View[]} */
const VIEWS = ["flow", "block", "cell", "positions", "decode", "cache", "whatif", "trace", "labs"];

/** What runs the model, and so is not in a saved page. @type {View[]} */
export const NEED_SERVER = ["whatif", "labs"];

/**
 * The views of a model by what it does: one that writes nothing has an answer in place of the decoding.
 * @param {Task} task
 */
export function viewsOf(task) {
  if (task === "translate" || task === "continue") return VIEWS;
  return VIEWS.filter((view) => view !== "cache").map((view) => (view === "decode" ? "answer" : view));
}

/** How the model is put together: glassformer.explain.schematic. @type {Drawing[]} */
export const DRAWINGS = ["model", "encoder-layer", "decoder-layer", "attention", "masks"];

/** @param {string} text */
const count = (text) => (/^\d{1,6}$/.test(text) ? Number(text) : 0);
/** @param {string} text */
const counts = (text) => (/^\d{1,6}(\.\d{1,6})*$/.test(text) ? text.split(".").map(Number) : []);

/**
 * Each part of the state from its text in the address; no text gives what it is to begin with.
 * @type {{[K in keyof State]: (text: string) => State[K]}}
 */
const READ = {
  text: (text) => text,
  direction: (text) => (/^[\w-]{1,40}$/.test(text) ? text : ""),
  beam: (text) => Math.max(1, count(text)),
  padding: count,
  prefix: counts,
  view: (text) => [...VIEWS, ...viewsOf("fill")].find((view) => view === text) ?? "flow",
  layer: (text) => (/^(encoder|decoder)\.\d{1,3}$/.test(text) ? text : ""),
  head: count,
  tensor: (text) => text,
  cell: counts,
  step: count,
  lang: (text) => (text === "en" || text === "zh" ? text : ""),
  theme: (text) => (text === "light" || text === "dark" ? text : ""),
  token: (text) => (/^(src|tgt):\d{1,4}$/.test(text) ? text : ""),
  fold: (text) => (text === "1" ? text : ""),
  drawing: (text) => DRAWINGS.find((drawing) => drawing === text) ?? "",
  changes: readChanges,
  lab: (text) => (/^[a-z_-]{1,40}$/.test(text) ? text : ""),
  seed: (text) => (/^\d{1,9}$/.test(text) ? Number(text) : 0),
};

/** @param {string} text @returns {Change[]} */
function readChanges(text) {
  try {
    const changes = JSON.parse(text);
    return Array.isArray(changes) ? changes.filter((one) => one && typeof one === "object") : [];
  } catch {
    return [];
  }
}

/** @param {string} hash */
export function readAddress(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const parts = Object.entries(READ).map(([name, read]) => [name, read(given.get(name) ?? "")]);
  return /** @type {State} */ (Object.fromEntries(parts));
}

/** @param {State} state */
export function writeAddress(state) {
  const defaults = readAddress("");
  const keys = /** @type {(keyof State)[]} */ (Object.keys(READ));
  const pairs = keys
    .filter((key) => !same(state[key], defaults[key]))
    .map((key) => {
      const value = state[key];
      const text = key === "changes" ? JSON.stringify(value) : Array.isArray(value) ? value.join(".") : String(value);
      return `${key}=${encodeURIComponent(text)}`;
    });
  return `#${pairs.join("&")}`;
}

/** @param {unknown} a @param {unknown} b */
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/**
 * What asks the model for another run; all other parts of the state only look at one.
 * @param {State} a @param {State} b
 */
export function sameRun(a, b) {
  const keys = /** @type {const} */ (["text", "direction", "beam", "padding", "prefix", "changes"]);
  return keys.every((key) => same(a[key], b[key]));
}

/** Keep the state within what a run has. @param {State} state @param {Run} run @param {boolean} server */
export function clampState(state, run, server) {
  const { model, source, target } = run.manifest;
  const lacks = !viewsOf(model.task).includes(state.view) || (NEED_SERVER.includes(state.view) && !server);
  if (lacks) state.view = "flow";
  const layers = layersOf(model);
  if (!layers.includes(state.layer)) state.layer = layers.at(-1) ?? "";
  const heads = state.layer.startsWith("decoder") ? (model.decoder_heads ?? model.heads) : model.heads;
  if (state.head >= heads) state.head = 0;
  const [side, place] = state.token.split(":");
  if (Number(place) >= (side === "src" ? source : target).pieces.length) state.token = "";
}
