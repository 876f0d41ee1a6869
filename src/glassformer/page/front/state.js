// What the page remembers: in its address what a link should show, in the browser what was typed.

const LONGEST = 1500; // characters that an address holds; a longer text is kept in the browser alone
const DRAFT = "glassformer.draft";
const KEY = "glassformer.key";
const TASTE = "glassformer.taste"; // language, theme and target, for the next visit

/** @type {{[K in keyof FrontState]: (text: string) => FrontState[K]}} */
const READ = {
  from: (text) => (/^[\w-]{1,12}$/.test(text) ? text : ""), // "": it is found out
  to: (text) => (/^[\w-]{1,12}$/.test(text) ? text : ""),
  q: (text) => text,
  lang: (text) => (text === "en" || text === "de" || text === "zh" ? text : ""),
  theme: (text) => (text === "light" || text === "dark" ? text : ""),
};

/** Whether an address is one of the page that looks inside: there, a sentence is `text`. @param {string} hash */
export function isOfLook(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  return ["text", "view", "direction"].some((name) => given.has(name));
}

/** @param {string} text @returns {FrontState} */
function read(text) {
  const given = new URLSearchParams(text);
  const parts = Object.entries(READ).map(([name, one]) => [name, one(given.get(name) ?? "")]);
  return Object.fromEntries(parts);
}

/** @param {Partial<FrontState>} state */
function write(state) {
  const given = Object.entries(state).filter(([, value]) => value);
  return given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
}

/** What the address says, and where it says nothing, what was so the last time. */
export function readState() {
  const asked = read(location.hash.replace(/^#/, ""));
  const before = read(kept(localStorage, TASTE));
  const state = { ...asked };
  for (const name of /** @type {const} */ (["from", "to", "lang", "theme"]))
    if (!asked[name]) Object.assign(state, { [name]: before[name] });
  state.q ||= kept(sessionStorage, DRAFT) || kept(localStorage, DRAFT);
  return state;
}

/** @param {FrontState} state */
export function writeState(state) {
  const { q, ...taste } = state;
  keep(localStorage, TASTE, write(taste));
  keep(sessionStorage, DRAFT, q);
  keep(localStorage, DRAFT, q);
  history.replaceState(null, "", `#${write({ ...state, q: q.length <= LONGEST ? q : "" })}`);
}

/** The key for the server; it is forgotten with the window. */
export const readKey = () => kept(sessionStorage, KEY);
/** @param {string} key */
export const writeKey = (key) => keep(sessionStorage, KEY, key);

/** @param {Storage} storage @param {string} name */
function kept(storage, name) {
  try {
    return storage.getItem(name) ?? "";
  } catch {
    return ""; // the browser keeps nothing for us
  }
}

/** @param {Storage} storage @param {string} name @param {string} text */
function keep(storage, name, text) {
  try {
    storage.setItem(name, text);
  } catch {
    // Full, or forbidden: the page works without.
  }
}
