// The whole state of the page, in the part of the address after #: a link shows what its sender saw.

/**
 * @typedef {Object} State
 * @property {string} text      the sentence
 * @property {number} beam
 * @property {number} padding   padding tokens after the sentence
 * @property {number[]} prefix  ids that the output must begin with
 * @property {string} view
 * @property {string} layer     "encoder.0", "decoder.1"
 * @property {number} head
 * @property {string} tensor    the name of a value
 * @property {number[]} cell    an index into it; empty where none is locked
 * @property {number} step      of the decoding
 * @property {string} lang      "en" or "zh"
 * @property {string} theme     "", "light" or "dark"
 * @property {string} token     "src:2", "tgt:0": the token that is followed; "" where none is
 * @property {string} fold      "1" where the head of the page is folded up
 * @property {Object[]} changes what-if changes in force
 * @property {string} lab       the lab that is open
 * @property {number} seed      of the lab
 */

export const VIEWS = ["flow", "block", "cell", "positions", "decode", "cache", "whatif", "trace", "labs"];

/** What runs the model, and so is not in a saved page. */
export const NEED_SERVER = ["whatif", "labs"];

const DEFAULTS = {
  text: "",
  beam: 1,
  padding: 0,
  prefix: [],
  view: "flow",
  layer: "",
  head: 0,
  tensor: "",
  cell: [],
  step: 0,
  lang: "",
  theme: "",
  token: "",
  fold: "",
  changes: [],
  lab: "",
  seed: 0,
};

const count = (text) => (/^\d{1,6}$/.test(text) ? Number(text) : 0);
const counts = (text) => (/^\d{1,6}(\.\d{1,6})*$/.test(text) ? text.split(".").map(Number) : []);

const READ = {
  text: (text) => text,
  beam: (text) => Math.max(1, count(text)),
  padding: count,
  prefix: counts,
  view: (text) => (VIEWS.includes(text) ? text : "flow"),
  layer: (text) => (/^(encoder|decoder)\.\d{1,3}$/.test(text) ? text : ""),
  head: count,
  tensor: (text) => text,
  cell: counts,
  step: count,
  lang: (text) => (text === "en" || text === "zh" ? text : ""),
  theme: (text) => (text === "light" || text === "dark" ? text : ""),
  token: (text) => (/^(src|tgt):\d{1,4}$/.test(text) ? text : ""),
  fold: (text) => (text === "1" ? text : ""),
  changes: readChanges,
  lab: (text) => (/^[a-z_-]{1,40}$/.test(text) ? text : ""),
  seed: (text) => (/^\d{1,9}$/.test(text) ? Number(text) : 0),
};

function readChanges(text) {
  try {
    const changes = JSON.parse(text);
    return Array.isArray(changes) ? changes.filter((one) => one && typeof one === "object") : [];
  } catch {
    return [];
  }
}

/** @returns {State} */
export function readAddress(hash) {
  const state = { ...DEFAULTS };
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (name in READ) state[name] = READ[name](text);
  }
  return state;
}

/** @param {State} state */
export function writeAddress(state) {
  const pairs = [];
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    const value = state[name];
    if (JSON.stringify(value) === JSON.stringify(usual)) continue;
    const text = name === "changes" ? JSON.stringify(value) : Array.isArray(value) ? value.join(".") : String(value);
    pairs.push(`${name}=${encodeURIComponent(text)}`);
  }
  return pairs.length ? `#${pairs.join("&")}` : "#";
}

/** What asks the model for another run; all other parts of the state only look at one. */
export function sameRun(a, b) {
  return ["text", "beam", "padding", "prefix", "changes"].every(
    (key) => JSON.stringify(a[key]) === JSON.stringify(b[key]),
  );
}
