// Elements in one call. Styles go through the object model, so that the page's content policy can forbid inline styles.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element: its tag with the classes it always has, `p.lede`, then attributes if it has any, then what is in it.
 * Among the attributes, `on` holds listeners, `style` and `data` objects; null, undefined or false leaves one out.
 * @param {string} tag
 * @param {...any} content
 * @returns {any}
 */
export function h(tag, ...content) {
  const [name, ...classes] = tag.split(".");
  return dress(document.createElement(name), classes, content);
}

/**
 * An SVG element, told as an HTML element is.
 * @param {string} tag
 * @param {...any} content
 * @returns {any}
 */
export function svg(tag, ...content) {
  const [name, ...classes] = tag.split(".");
  return dress(document.createElementNS(SVG, name), classes, content);
}

function dress(element, classes, content) {
  if (classes.length) element.setAttribute("class", classes.join(" "));
  const [attributes, children] = content[0]?.constructor === Object ? [content[0], content.slice(1)] : [{}, content];
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name === "data") for (const [key, one] of Object.entries(value)) element.dataset[key] = one;
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(element, child);
    else if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** Text that belongs to the model or to the person typing: never translated, by us or by a browser. */
export function raw(text, attributes = {}) {
  return h("span", { translate: "no", ...attributes }, text);
}

/** A short name of a value or a file, in the face of code. */
export function code(text, attributes = {}) {
  return h("code", { translate: "no", ...attributes }, text);
}

/** A button with a label; `attributes` as for `h`. */
export function button(label, click, attributes = {}) {
  return h("button", { type: "button", ...attributes, on: { click, ...(attributes.on ?? {}) } }, label);
}

/** A listener that acts on these keys. */
export function onKeys(keys, act) {
  return (event) => {
    if (!keys.includes(event.key)) return;
    event.preventDefault();
    act();
  };
}

/** Give one of `items` the tab stop and the focus. */
export function focusOnly(items, chosen) {
  for (const item of items) item.setAttribute("tabindex", item === chosen ? "0" : "-1");
  chosen.focus();
}

/** Move a single tab stop among `items` with the arrow keys, Home and End. */
export function rove(container, selector, moved = null) {
  container.addEventListener("keydown", (event) => {
    const items = [...container.querySelectorAll(selector)];
    const at = items.indexOf(document.activeElement);
    if (at < 0) return;
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    let next = at;
    if (event.key in steps) next = (at + steps[event.key] + items.length) % items.length;
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = items.length - 1;
    else return;
    event.preventDefault();
    focusOnly(items, items[next]);
    if (moved) moved(items[next]);
  });
}

/** How much larger than usual everything is shown: sizes in pictures are given for letters of 16 pixels. */
export function zoom() {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
}

/** True where the person has asked for less movement. */
export function still() {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}
