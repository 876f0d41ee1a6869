// Elements and shapes in one call. Styles go through the object model: the content policy can then forbid inline ones.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element: its tag with the classes it always has, `p.lede`, then attributes if it has any, then what is in it.
 * Among the attributes, `on` holds listeners, `style` and `data` objects; null, undefined or false leaves one out.
 * @template {string} T
 * @param {T} tag @param {...(Attributes | Child)} content @returns {HtmlOf<T>}
 */
export function h(tag, ...content) {
  const [name, ...classes] = tag.split(".");
  return /** @type {HtmlOf<T>} */ (dress(document.createElement(name), classes, content));
}

/**
 * An SVG element, told as an HTML element is.
 * @template {string} T
 * @param {T} tag @param {...(Attributes | Child)} content @returns {SvgOf<T>}
 */
export function svg(tag, ...content) {
  const [name, ...classes] = tag.split(".");
  return /** @type {SvgOf<T>} */ (dress(document.createElementNS(SVG, name), classes, content));
}

/** @param {unknown} given @returns {given is Attributes} */
const isAttributes = (given) => given instanceof Object && given.constructor === Object;

/** @param {Element} element @param {string[]} classes @param {(Attributes | Child)[]} content */
function dress(element, classes, content) {
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const one of content) {
    if (isAttributes(one)) setAttributes(/** @type {HTMLElement | SVGElement} */ (element), one);
    else add(element, one);
  }
  return element;
}

/** @param {HTMLElement | SVGElement} element @param {Attributes} attributes */
function setAttributes(element, { on = {}, style = {}, data = {}, ...plain }) {
  for (const [type, listener] of Object.entries(on)) {
    element.addEventListener(type, /** @type {EventListener} */ (listener));
  }
  for (const [name, value] of Object.entries(style)) element.style.setProperty(name, value);
  for (const [name, value] of Object.entries(data)) element.dataset[name] = String(value);
  for (const [name, value] of Object.entries(plain)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "value" && "value" in element) element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** @param {Element} element @param {Child} child */
function add(element, child) {
  if (Array.isArray(child)) for (const one of child) add(element, one);
  else if (child !== null && child !== undefined && child !== false) element.append(child);
}

/** Put this into an element, in the place of what it held. @param {Element} element @param {Child[]} children */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
}

/**
 * Text that belongs to the model or to the person typing: never translated, by us or by a browser.
 * @param {string} text @param {Attributes} [attributes]
 */
export function raw(text, attributes = {}) {
  return h("span", { translate: "no", ...attributes }, text);
}

/** A short name of a value or a file, in the face of code. @param {string} text @param {Attributes} [attributes] */
export function code(text, attributes = {}) {
  return h("code", { translate: "no", ...attributes }, text);
}

/**
 * A button with a label; `attributes` as for `h`.
 * @param {Child} label @param {() => unknown} click @param {Attributes} [attributes]
 */
export function button(label, click, attributes = {}) {
  return h("button", { type: "button", ...attributes, on: { click } }, label);
}

/**
 * A button that is pressed or not.
 * @param {Child} label @param {boolean} on @param {() => unknown} click @param {Attributes} [attributes]
 */
export function toggle(label, on, click, attributes = {}) {
  return button(label, click, { "aria-pressed": String(on), ...attributes });
}

/**
 * The languages of a page, the chosen one pressed.
 * @template {string} T
 * @param {string} label @param {Record<T, string>} names @param {T} chosen @param {(lang: T) => unknown} choose
 */
export function languageButtons(label, names, chosen, choose) {
  const langs = /** @type {T[]} */ (Object.keys(names));
  const buttons = langs.map((lang) =>
    toggle(raw(names[lang], { lang: lang === "zh" ? "zh-Hans" : lang }), lang === chosen, () => choose(lang), {
      data: { key: `lang:${lang}`, lang },
    }),
  );
  return h("div.choice.small", { role: "group", "aria-label": label }, buttons);
}

/** The switch between light and dark. @param {string} label @param {() => unknown} click */
export function themeButton(label, click) {
  const mark = h("span.theme-mark", { "aria-hidden": "true" });
  return button(mark, click, { class: "icon", "aria-label": label, data: { key: "theme" } });
}

/**
 * A table of numbers; where there is no room for it, it scrolls.
 * @param {Attributes} attributes @param {{head?: Child[], rows: Child[], foot?: Child[], short?: boolean}} parts
 */
export function table(attributes, { head, rows, foot, short = false }) {
  const parts = [head && h("thead", h("tr", head)), h("tbody", rows), foot && h("tfoot", h("tr", foot))];
  return h(short ? "div.scroll.short" : "div.scroll", h("table", { class: "numbers", ...attributes }, parts));
}

/** The head of a column. @param {string} text @param {Attributes} [attributes] */
export const columnHead = (text, attributes = {}) => h("th", { scope: "col", ...attributes }, text);

/** A cell with a number. @param {string} text @param {Attributes} [attributes] */
export const numberCell = (text, attributes = {}) => h("td.num", attributes, raw(text));

/** An element that the page always has. @param {string} selector */
export function find(selector) {
  const element = document.querySelector(selector);
  if (!(element instanceof HTMLElement)) throw new Error(`the page has no ${selector}`);
  return element;
}

/** @param {string} selector */
export function findAll(selector) {
  return /** @type {NodeListOf<HTMLElement | SVGElement>} */ (document.querySelectorAll(selector));
}

/** Make a field as high as what is written in it. @param {HTMLTextAreaElement} field */
export function grow(field) {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/** A listener that acts on these keys. @param {string[]} keys @param {() => unknown} act */
export function onKeys(keys, act) {
  return (/** @type {KeyboardEvent} */ event) => {
    if (!keys.includes(event.key)) return;
    event.preventDefault();
    act();
  };
}

/**
 * Give one of `items` the tab stop and the focus.
 * @template {HTMLElement | SVGElement} T
 * @param {T[]} items @param {T} chosen
 */
export function focusOnly(items, chosen) {
  for (const item of items) item.setAttribute("tabindex", item === chosen ? "0" : "-1");
  chosen.focus();
}

/** @type {Record<string, number>} */
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/**
 * Move a single tab stop among the buttons of a container with the arrow keys, Home and End.
 * @param {HTMLElement} container @param {(button: HTMLElement | SVGElement) => void} [moved]
 */
export function rove(container, moved) {
  container.addEventListener("keydown", (event) => {
    const found = [...container.querySelectorAll("button, g[role=button]")];
    const items = /** @type {(HTMLElement | SVGElement)[]} */ (found);
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    if (at < 0) return;
    let next = at;
    if (event.key in STEPS) next = (at + STEPS[event.key] + items.length) % items.length;
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = items.length - 1;
    else return;
    event.preventDefault();
    focusOnly(items, items[next]);
    moved?.(items[next]);
  });
}

/**
 * The cell that a key leads to from another, if it is one that leads anywhere.
 * @param {string} key @param {[number, number]} at @param {number} rows @param {number} cols
 * @returns {[number, number] | null}
 */
export function stepInGrid(key, [i, j], rows, cols) {
  /** @type {Record<string, [number, number]>} */
  const cells = {
    ArrowUp: [i - 1, j],
    ArrowDown: [i + 1, j],
    ArrowLeft: [i, j - 1],
    ArrowRight: [i, j + 1],
    Home: [i, 0],
    End: [i, cols - 1],
    PageUp: [i, j - 16],
    PageDown: [i, j + 16],
  };
  if (!(key in cells)) return null;
  const [row, col] = cells[key];
  return [Math.max(0, Math.min(rows - 1, row)), Math.max(0, Math.min(cols - 1, col))];
}

/** The key of what has the focus; it finds its like when the view is drawn anew. */
export function focusedKey() {
  return document.activeElement?.getAttribute("data-key") ?? null;
}

/** Give the focus to what has the key that had it before, if something has. @param {string | null} key */
export function refocus(key) {
  if (!key || focusedKey() === key) return;
  /** @type {HTMLElement | SVGElement | null} */
  const again = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  again?.focus({ preventScroll: true });
}

/** How much larger than usual everything is shown: sizes in pictures are given for letters of 16 pixels. */
export function zoom() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
}

/** @param {Box} box @param {Attributes} [attributes] */
export function rect([x, y, width, height], attributes = {}) {
  return svg("rect", { x, y, width, height, ...attributes });
}

/** @param {Spot} from @param {Spot} to @param {Attributes} [attributes] */
export function line([x1, y1], [x2, y2], attributes = {}) {
  return svg("line", { x1, y1, x2, y2, ...attributes });
}

/** @param {Spot} at @param {string} text @param {Attributes} [attributes] */
export function label([x, y], text, attributes = {}) {
  return svg("text", { x, y, translate: "no", ...attributes }, text);
}

/** The way on from one point to another, level at both ends. @param {Spot} from @param {Spot} to */
export function curve([x1, y1], [x2, y2]) {
  const middle = (x1 + x2) / 2;
  return `C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}

/** @param {SVGElement} shape @param {Record<string, string | number>} attributes */
export function move(shape, attributes) {
  for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, String(value));
}

const WIDE = /[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]/;

/** How much room a text takes, in letters; a character of Chinese takes that of almost two. @param {string} text */
export function roomOf(text) {
  return [...text].reduce((sum, letter) => sum + (WIDE.test(letter) ? 1.75 : 1), 0);
}

/** A text in the room of so many letters at most. @param {string} text @param {number} most */
export function shorten(text, most) {
  if (roomOf(text) <= most) return text;
  const letters = [...text];
  while (letters.length > 1 && roomOf(letters.join("")) > most - 1) letters.pop();
  return `${letters.join("")}\u2026`;
}
