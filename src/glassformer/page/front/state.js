// The state of the page: in its address for links, in the browser's storage for the next visit.

const MAX_IN_ADDRESS = 1500; // characters; a longer text is only in the browser's storage
const DRAFT = "glassformer.draft";
const KEY = "glassformer.key";
const PREFERENCES = "glassformer.taste"; // language, theme and target

/** @type {{[K in keyof FrontState]: (text: string) => FrontState[K]}} */
const PARSERS = {
  from: (text) => (/^[\w-]{1,12}$/.test(text) ? text : ""), // "": detect it
  to: (text) => (/^[\w-]{1,12}$/.test(text) ? text : ""),
  q: (text) => text,
  lang: (text) => (text === "en" || text === "de" || text === "zh" ? text : ""),
  theme: (text) => (text === "light" || text === "dark" ? text : ""),
};

/** Whether an address belongs to the page that looks inside. @param {string} hash */
export function isLookState(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  return ["text", "view", "direction"].some((name) => given.has(name));
}

/** @param {string} text @returns {FrontState} */
function parse(text) {
  const given = new URLSearchParams(text);
  const parts = Object.entries(PARSERS).map(([name, one]) => [name, one(given.get(name) ?? "")]);
  return Object.fromEntries(parts);
}

/** The part of an address after `#`. @param {Record<string, unknown>} state */
export function toHash(state) {
  const given = Object.entries(state).filter(([, value]) => value);
  return given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&");
}

/** The state of the address, completed by the last visit. */
export function readState() {
  const given = Object.entries(parse(location.hash.replace(/^#/, ""))).filter(([, value]) => value);
  /** @type {FrontState} */
  const state = { ...parse(load(localStorage, PREFERENCES)), ...Object.fromEntries(given) };
  state.q ||= load(sessionStorage, DRAFT) || load(localStorage, DRAFT);
  return state;
}

/** @param {FrontState} state */
export function writeState(state) {
  const { q, ...preferences } = state;
  store(localStorage, PREFERENCES, toHash(preferences));
  store(sessionStorage, DRAFT, q);
  store(localStorage, DRAFT, q);
  history.replaceState(null, "", `#${toHash({ ...state, q: q.length <= MAX_IN_ADDRESS ? q : "" })}`);
}

/** The key for the server; it is forgotten with the window. */
export const readKey = () => load(sessionStorage, KEY);
/** @param {string} key */
export const writeKey = (key) => store(sessionStorage, KEY, key);

/** @param {Storage} storage @param {string} name */
function load(storage, name) {
  try {
    return storage.getItem(name) ?? "";
  } catch {
    return ""; // storage is forbidden
  }
}

/** @param {Storage} storage @param {string} name @param {string} text */
function store(storage, name, text) {
  try {
    storage.setItem(name, text);
  } catch {
    // Storage is full or forbidden, and the page works without.
  }
}
