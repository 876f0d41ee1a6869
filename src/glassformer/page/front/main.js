// The page that translates: its state, its parts, and what connects them.

import { find, grow, h } from "../dom.js";
import { isAbort, Refusal } from "../request.js";
import { drawBar, drawFoot, drawTop } from "./controls.js";
import { Files } from "./files.js";
import { browserLanguage, formatNumber, LANG_TAGS, LanguagePairs, languageName, setLanguage, t } from "./language.js";
import { Lines } from "./lines.js";
import { AlternativesMenu } from "./menu.js";
import { Server } from "./server.js";
import { SourcePane } from "./source.js";
import { isLookState, readKey, readState, writeKey, writeState } from "./state.js";
import { TargetPane } from "./target.js";
import { WordLinks } from "./word_links.js";

const PAUSE = 250; // milliseconds without typing, before a request
const MAX_DETECT = 2000; // characters
const MIN_CONFIDENCE = 2; // percent; even a single word of a served language has more

export class TranslatePage {
  constructor() {
    this.state = readState();
    this.server = new Server();
    this.server.key = readKey();
    this.pairs = new LanguagePairs([]);
    this.keyNeeded = false;
    this.detected = "";
    this.unsure = false;
    /** @type {unknown} */
    this.error = null;
    this.copied = false;
    this.timer = 0;
    this.retry = 0;
    /** @type {AbortController | null} */
    this.abort = null; // of the translation that is under way
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.lines = new Lines(this.server);
    this.files = new Files(this);
    this.source = new SourcePane(this);
    this.target = new TargetPane(this);
    this.menu = new AlternativesMenu(this);
    this.wordLinks = new WordLinks(this);
    this.status = h("p.unseen", { role: "status" });
    this.place = {
      top: find("#top"),
      bar: h("div.bar"),
      below: h("div.below"),
      beside: h("div.below"),
      notice: h("div.notices"),
      foot: find("#foot"),
    };
    this.heading = h("h1.unseen");
    find("#page").replaceChildren(
      this.heading,
      this.place.bar,
      this.place.notice,
      h(
        "div.panes",
        h("section.pane.from", this.source.field, this.place.below),
        h("section.pane.to", this.target.box, this.place.beside),
      ),
      this.files.input,
      this.files.list,
      this.status,
      this.menu.box,
    );
    this.dark.addEventListener("change", () => this.draw());
    window.addEventListener("resize", () => grow(this.source.input));
    window.addEventListener("hashchange", () => this.#onHash());
    document.addEventListener("keydown", (event) => this.#onKey(event));
  }

  /** @returns {Promise<void>} */
  async start() {
    this.source.set(this.state.q);
    this.draw();
    try {
      const [languages, settings] = await Promise.all([this.server.languages(), this.server.settings()]);
      this.pairs = new LanguagePairs(languages);
      this.keyNeeded = settings.keyRequired;
      this.files.offer(settings);
    } catch (error) {
      return this.fail(error, () => this.start());
    }
    this.draw();
    this.source.input.focus();
    if (!this.keyNeeded || this.server.key) await this.translate();
  }

  get lang() {
    return this.state.lang || browserLanguage();
  }

  /** The chosen or detected language of the text, or "auto". */
  get from() {
    return this.pairs.has(this.state.from) ? this.state.from : this.detected || "auto";
  }

  /** The target: the chosen one if possible. */
  get to() {
    return this.pairs.target(this.from, this.state.to, LANG_TAGS[this.lang]);
  }

  get canSwap() {
    return this.from !== "auto" && this.pairs.translates(this.to, this.from);
  }

  /** Choose a language; if the other side has it, swap. @param {"from" | "to"} side @param {string} code */
  choose(side, code) {
    const { state, from, to } = this;
    if (state[side] === code) return;
    if (side === "from" && code === to) this.update({ from: code, to: from === "auto" ? "" : from });
    else if (side === "to" && code === state.from) this.update({ from: to, to: code });
    else this.update({ [side]: code });
  }

  /** Change the state and the address. @param {Partial<FrontState>} patch */
  update(patch) {
    const { to } = this;
    Object.assign(this.state, patch);
    if ("from" in patch) this.detected = "";
    writeState(this.state);
    this.draw();
    // The default target depends on the language of the page.
    if ("from" in patch || this.to !== to) this.translate();
  }

  #onHash() {
    if (isLookState(location.hash)) return location.replace(`look${location.hash}`);
    const { q, ...rest } = readState();
    if (q !== this.source.input.value) this.source.set(q);
    this.update(rest);
    return this.translate();
  }

  onInput() {
    clearTimeout(this.timer);
    this.copied = false;
    this.state.q = this.source.input.value;
    writeState(this.state);
    document.documentElement.toggleAttribute("data-stale", true);
    this.timer = setTimeout(() => this.translate(), this.state.q ? PAUSE : 0);
  }

  async translate() {
    clearTimeout(this.timer);
    clearTimeout(this.retry);
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    this.error = null;
    this.menu.close(false);
    const { state, lines } = this;
    state.q = this.source.input.value;
    writeState(state);
    try {
      if (!this.pairs.has(state.from)) {
        const words = state.q.slice(0, MAX_DETECT);
        const found = /\p{L}/u.test(words) ? await this.server.detect(words, abort.signal) : null;
        this.detected = found?.language ?? "";
        this.unsure = found !== null && found.confidence < MIN_CONFIDENCE;
      }
      lines.set(state.q, this.from, this.to);
      this.draw();
      await lines.translate(abort.signal, () => this.progress());
    } catch (error) {
      if (!isAbort(error)) this.fail(error, () => this.translate());
      return;
    }
    this.abort = null;
    this.draw();
    this.announce(t("done"));
  }

  /** Translate the translation back. */
  swap() {
    const { from, to, state, lines } = this;
    if (!this.canSwap) return;
    const text = lines.done === lines.total ? lines.text : state.q;
    Object.assign(state, { from: to, to: from });
    this.detected = "";
    this.source.replace(text);
    this.translate();
  }

  clear() {
    this.source.replace("");
    this.onInput();
  }

  async copy() {
    const { text } = this.lines;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // There is no clipboard over plain HTTP from another machine.
      const held = h("textarea.unseen", { readonly: true });
      held.value = text;
      document.body.append(held);
      held.select();
      document.execCommand("copy");
      held.remove();
    }
    this.copied = true;
    this.draw();
    this.announce(t("copied"));
  }

  /** @param {string} key */
  setKey(key) {
    this.server.key = key.trim();
    writeKey(this.server.key);
    this.translate();
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const { altKey, shiftKey, ctrlKey, metaKey, code } = event;
    if (!altKey || !shiftKey || ctrlKey || metaKey) return;
    /** @type {Record<string, () => unknown>} */
    const acts = { KeyS: () => this.swap(), KeyC: () => this.copy(), KeyX: () => this.clear() };
    if (!(code in acts)) return;
    event.preventDefault();
    acts[code]();
  }

  /** @param {unknown} error */
  errorText(error) {
    if (!(error instanceof Refusal)) return t("error.page", { why: error instanceof Error ? error.message : error });
    if (error.status === 0) return t("error.offline");
    if (error.status === 403) return t(this.server.key ? "error.wrongKey" : "error.noKey");
    if (error.status === 429 || error.status === 503) return t("error.busy", { n: formatNumber(error.after || 1) });
    if (error.status === 413) return t("error.large");
    return t("error.refused", { why: [error.message, error.hint].filter(Boolean).join("; ") });
  }

  /** @param {unknown} error @param {() => unknown} [again]  called when the server may be back */
  fail(error, again) {
    this.error = error;
    this.abort = null;
    if (error instanceof Refusal) {
      if (error.status === 403) this.keyNeeded = true;
      else if (again && (error.after || error.status === 0))
        this.retry = setTimeout(again, 1000 * Math.min(60, error.after || 3));
    } else console.error(error);
    this.draw();
  }

  /** @param {string} text */
  announce(text) {
    this.status.textContent = text;
  }

  draw() {
    const root = document.documentElement;
    setLanguage(this.lang);
    root.lang = LANG_TAGS[this.lang];
    root.dataset.theme = this.state.theme || (this.dark.matches ? "dark" : "light");
    root.toggleAttribute("data-stale", this.abort !== null && this.lines.done < this.lines.total);
    const from = this.from === "auto" ? "" : languageName(this.from);
    document.title = from ? `${from} \u2192 ${languageName(this.to)} \u00b7 glassformer` : t("title");
    this.heading.textContent = t("heading");
    drawTop(this, this.place.top);
    drawBar(this, this.place.bar);
    this.source.draw();
    this.progress();
    grow(this.source.input);
  }

  /** Draw only what changes during a translation, because the text may be long. */
  progress() {
    drawFoot(this);
    this.target.draw();
    const size = Math.max(this.state.q.length, this.lines.text.length);
    const { dataset } = find(".panes");
    const wanted = size <= 120 ? "large" : size <= 500 ? "middle" : "small";
    if (dataset.size === wanted) return;
    dataset.size = wanted;
    grow(this.source.input);
  }
}

if (isLookState(location.hash)) location.replace(`look${location.hash}`);
else new TranslatePage().start();
