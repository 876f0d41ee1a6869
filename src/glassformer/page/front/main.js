// The page that translates: what is typed, from which language into which, and what becomes of it.

import { find, grow, h } from "../dom.js";
import { isAbort, Refusal } from "../request.js";
import { drawBar, drawFoot, drawTop } from "./around.js";
import { Files } from "./files.js";
import { nameOf, preferred, setLanguage, t, WRITTEN, whole } from "./language.js";
import { Lines } from "./lines.js";
import { Menu } from "./menu.js";
import { Server } from "./server.js";
import { SourcePane } from "./source.js";
import { isOfLook, readKey, readState, writeKey, writeState } from "./state.js";
import { TargetPane } from "./target.js";
import { Ways } from "./ways.js";
import { Words } from "./words.js";

const PAUSE = 250; // milliseconds of rest in typing before the server is asked
const MOST_TO_DETECT = 2000; // characters
const UNSURE = 2; // percent: a text in a language that is here is surer, be it of one word

export class Front {
  constructor() {
    this.state = readState();
    this.server = new Server();
    this.server.key = readKey();
    this.ways = new Ways([]);
    this.keyNeeded = false;
    this.detected = "";
    this.unsure = false;
    /** @type {unknown} */
    this.error = null;
    this.copied = false;
    this.timer = 0;
    this.again = 0;
    /** @type {AbortController | null} */
    this.abort = null; // of the translation that is under way
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.lines = new Lines(this.server);
    this.files = new Files(this);
    this.source = new SourcePane(this);
    this.target = new TargetPane(this);
    this.menu = new Menu(this);
    this.words = new Words(this);
    this.said = h("p.unseen", { role: "status" });
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
      this.said,
      this.menu.box,
    );
    this.dark.addEventListener("change", () => this.draw());
    window.addEventListener("resize", () => grow(this.source.input));
    window.addEventListener("hashchange", () => this.#moved());
    document.addEventListener("keydown", (event) => this.#pressed(event));
  }

  /** @returns {Promise<void>} */
  async start() {
    this.source.set(this.state.q);
    this.draw();
    try {
      const [languages, settings] = await Promise.all([this.server.languages(), this.server.settings()]);
      this.ways = new Ways(languages);
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
    return this.state.lang || preferred();
  }

  /** The language that the text is in, as far as it is known: a code, or "auto". */
  get from() {
    return this.ways.known(this.state.from) ? this.state.from : this.detected || "auto";
  }

  /** The language to translate into: what was chosen where that can be, else what suits. */
  get to() {
    return this.ways.target(this.from, this.state.to, WRITTEN[this.lang]);
  }

  /** Whether it can go back from the translation. */
  get turns() {
    return this.from !== "auto" && this.ways.leads(this.to, this.from);
  }

  /**
   * A language for one side; where the other has it, that takes what this one had.
   * @param {"from" | "to"} side
   * @param {string} code
   */
  choose(side, code) {
    const { state, from, to } = this;
    if (state[side] === code) return;
    if (side === "from" && code === to) this.go({ from: code, to: from === "auto" ? "" : from });
    else if (side === "to" && code === state.from) this.go({ from: to, to: code });
    else this.go({ [side]: code });
  }

  /** Change what the address holds. @param {Partial<FrontState>} patch */
  go(patch) {
    const { to } = this;
    Object.assign(this.state, patch);
    if ("from" in patch) this.detected = "";
    writeState(this.state);
    this.draw();
    // Another language of the page may mean another one to translate into.
    if ("from" in patch || this.to !== to) this.translate();
  }

  #moved() {
    if (isOfLook(location.hash)) return location.replace(`look${location.hash}`);
    const { q, ...rest } = readState();
    if (q !== this.source.input.value) this.source.set(q);
    this.go(rest);
    return this.translate();
  }

  typed() {
    clearTimeout(this.timer);
    this.copied = false;
    this.state.q = this.source.input.value;
    writeState(this.state);
    document.documentElement.toggleAttribute("data-stale", true);
    this.timer = setTimeout(() => this.translate(), this.state.q ? PAUSE : 0);
  }

  async translate() {
    clearTimeout(this.timer);
    clearTimeout(this.again);
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    this.error = null;
    this.menu.close(false);
    const { state, lines } = this;
    state.q = this.source.input.value;
    writeState(state);
    try {
      if (!this.ways.known(state.from)) {
        const words = state.q.slice(0, MOST_TO_DETECT);
        const found = /\p{L}/u.test(words) ? await this.server.detect(words, abort.signal) : null;
        this.detected = found?.language ?? "";
        this.unsure = found !== null && found.confidence < UNSURE;
      }
      lines.set(state.q, this.from, this.to);
      this.draw();
      await lines.fetch(abort.signal, () => this.progress());
    } catch (error) {
      if (!isAbort(error)) this.fail(error, () => this.translate());
      return;
    }
    this.abort = null;
    this.draw();
    this.say(t("done"));
  }

  /** Put the translation in the place of the text, and turn round. */
  swap() {
    const { from, to, state, lines } = this;
    if (!this.turns) return;
    const text = lines.done === lines.all ? lines.text : state.q;
    Object.assign(state, { from: to, to: from });
    this.detected = "";
    this.source.replace(text);
    this.translate();
  }

  clear() {
    this.source.replace("");
    this.typed();
  }

  async copy() {
    const { text } = this.lines;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Not over plain HTTP from another machine: by hand.
      const held = h("textarea.unseen", { readonly: true });
      held.value = text;
      document.body.append(held);
      held.select();
      document.execCommand("copy");
      held.remove();
    }
    this.copied = true;
    this.draw();
    this.say(t("copied"));
  }

  /** @param {string} key */
  setKey(key) {
    this.server.key = key.trim();
    writeKey(this.server.key);
    this.translate();
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    const { altKey, shiftKey, ctrlKey, metaKey, code } = event;
    if (!altKey || !shiftKey || ctrlKey || metaKey) return;
    /** @type {Record<string, () => unknown>} */
    const acts = { KeyS: () => this.swap(), KeyC: () => this.copy(), KeyX: () => this.clear() };
    if (!(code in acts)) return;
    event.preventDefault();
    acts[code]();
  }

  /** What went wrong, in words. @param {unknown} error */
  tell(error) {
    if (!(error instanceof Refusal)) return t("error.page", { why: error instanceof Error ? error.message : error });
    if (error.status === 0) return t("error.offline");
    if (error.status === 403) return t(this.server.key ? "error.wrongKey" : "error.noKey");
    if (error.status === 429 || error.status === 503) return t("error.busy", { n: whole(error.after || 1) });
    if (error.status === 413) return t("error.large");
    return t("error.refused", { why: [error.message, error.hint].filter(Boolean).join("; ") });
  }

  /** @param {unknown} error @param {() => unknown} [again]  what to do when the server may be there again */
  fail(error, again) {
    this.error = error;
    this.abort = null;
    if (error instanceof Refusal) {
      if (error.status === 403) this.keyNeeded = true;
      else if (again && (error.after || error.status === 0))
        this.again = setTimeout(again, 1000 * Math.min(60, error.after || 3));
    } else console.error(error);
    this.draw();
  }

  /** @param {string} text */
  say(text) {
    this.said.textContent = text;
  }

  draw() {
    const root = document.documentElement;
    setLanguage(this.lang);
    root.lang = WRITTEN[this.lang];
    root.dataset.theme = this.state.theme || (this.dark.matches ? "dark" : "light");
    root.toggleAttribute("data-stale", this.abort !== null && this.lines.done < this.lines.all);
    const from = this.from === "auto" ? "" : nameOf(this.from);
    document.title = from ? `${from} \u2192 ${nameOf(this.to)} \u00b7 glassformer` : t("title");
    this.heading.textContent = t("heading");
    drawTop(this, this.place.top);
    drawBar(this, this.place.bar);
    this.source.draw();
    this.progress();
    grow(this.source.input);
  }

  /** What changes while a text is being translated, and no more: it may be long. */
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

if (isOfLook(location.hash)) location.replace(`look${location.hash}`);
else new Front().start();
