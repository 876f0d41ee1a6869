// The page: a state in the address, a run of the model, and the view that shows it.

import { Ask, cardOf, drawTabs, drawTop, plain } from "./ask.js";
import { repaint } from "./colour.js";
import { code, h, zoom } from "./dom.js";
import { Inspector } from "./inspector.js";
import { setLanguage, t } from "./language.js";
import { findSource } from "./source.js";
import { NEED_SERVER, readAddress, sameRun, writeAddress } from "./state.js";
import { fits, hasHeads, layersOf } from "./tensors.js";
import { Tour } from "./tour.js";
import { block } from "./view_block.js";
import { cache } from "./view_cache.js";
import { cell } from "./view_cell.js";
import { decode } from "./view_decode.js";
import { flow } from "./view_flow.js";
import { labs } from "./view_labs.js";
import { positions } from "./view_positions.js";
import { trace } from "./view_trace.js";
import { whatif } from "./view_whatif.js";

const PAINTERS = { flow, block, cell, positions, decode, cache, whatif, trace, labs };

/** What the model has learnt, as a sentence before others; nothing where it does not say. */
function toldOf(app) {
  const card = cardOf(app);
  return card.purpose ? `${t(card.source && card.target ? "about.languages" : "about.purpose", card)} ` : "";
}

/** In place of a view where there is no run to look at; what is amiss stands under the sentence. */
const nothing = {
  names: () => [],
  draw: (app) =>
    h(
      "section.view",
      h(
        "div.empty",
        { data: { testid: app.error ? "refused" : "empty" } },
        app.error
          ? h("p.big-hint", t("none.refused"))
          : [h("p.big-hint", t("none.empty")), h("p.faint", toldOf(app), t("none.emptySays"))],
      ),
    ),
};

class App {
  constructor() {
    this.source = findSource();
    this.state = readAddress(location.hash);
    this.run = null; // what is shown, and nothing where the sentence is empty or was refused
    this.asked = null; // the state that it answers
    this.error = null; // why there is none
    this.before = null; // the run without the what-if changes
    this.difference = null;
    this.model = null;
    this.said = "";
    this.flowHead = null; // null: the mean of all heads
    this.search = "";
    this.column = 0;
    this.turn = 0;
    this.watched = [];
    this.abort = null;
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.place = Object.fromEntries(
      ["top", "ask", "tabs", "view", "foot"].map((id) => [id, document.getElementById(id)]),
    );
    this.#dress();
    this.ask = new Ask(this, this.place.ask);
    this.inspector = new Inspector(this);
    this.tour = new Tour(this);
    this.dark.addEventListener("change", () => {
      this.#dress();
      this.redraw();
    });
    window.addEventListener("popstate", () => this.#moved());
    let size = zoom();
    window.addEventListener("resize", () => {
      if (size === zoom()) return;
      size = zoom();
      this.redraw();
    });
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault();
      this.place.view.focus();
    });
  }

  get lang() {
    return this.state.lang || (navigator.language?.toLowerCase().startsWith("zh") ? "zh" : "en");
  }

  /** Language and theme, before anything is drawn. */
  #dress() {
    setLanguage(this.lang);
    const root = document.documentElement;
    root.lang = this.lang === "zh" ? "zh-Hans" : "en";
    root.dataset.theme = this.state.theme || (this.dark.matches ? "dark" : "light");
    root.toggleAttribute("data-fold", this.state.fold === "1");
    document.title = t("title");
    document.querySelector(".skip").textContent = t("skip");
    repaint();
  }

  async start() {
    this.frame();
    try {
      this.model = await this.source.model();
    } catch (error) {
      return this.fail(error);
    }
    if (!this.source.live)
      this.state = {
        ...this.state,
        text: this.source.manifest.text,
        beam: this.source.manifest.options?.beam ?? 1,
        padding: this.source.manifest.options?.padding ?? 0,
        prefix: [],
        changes: [],
      };
    else if (!this.state.text) this.state = { ...this.state, text: this.model.examples[0] ?? "" };
    history.replaceState(null, "", writeAddress(this.state));
    this.ask.input.value ||= this.state.text;
    return this.load();
  }

  /**
   * Change the state, and show it.
   * @param {Partial<import("./state.js").State>} patch
   * @param {{replace?: boolean, quiet?: boolean}} [how]  replace: no new entry for Back; quiet: nothing to redraw
   */
  go(patch, { replace = false, quiet = false } = {}) {
    const old = this.state;
    this.state = { ...old, ...patch };
    const address = writeAddress(this.state);
    // An emptied field is on its way to another sentence: the address keeps the last one.
    if (this.state.text && address !== writeAddress(old))
      history[replace ? "replaceState" : "pushState"](null, "", address);
    if (quiet) return Promise.resolve();
    return this.#follow(old);
  }

  #moved() {
    const old = this.state;
    this.state = readAddress(location.hash);
    if (!this.state.text) this.state.text = old.text;
    this.ask.input.value = this.state.text;
    return this.#follow(old);
  }

  #follow(old) {
    this.said = "";
    if (old.lang !== this.state.lang || old.theme !== this.state.theme || old.fold !== this.state.fold) this.#dress();
    if (old.tensor !== this.state.tensor) this.column = 0;
    if (old.view !== this.state.view)
      this.tour.open || window.scrollTo({ top: Math.min(window.scrollY, this.place.tabs.offsetTop) });
    if (sameRun(old, this.state) || !this.source.live) return this.redraw();
    return this.load();
  }

  /** Ask for the run that the state names; what is asked for later overtakes it. */
  async load() {
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    const { state } = this;
    let found = { run: null, before: null, difference: null, error: null };
    if (state.text) {
      this.ask.busy(true);
      this.fresh();
      try {
        found = { ...found, ...(await this.source.run(state, abort.signal)) };
      } catch (error) {
        found.error = error;
      }
      if (abort !== this.abort) return;
    }
    this.ask.busy(false);
    Object.assign(this, found, { asked: state });
    if (this.error && this.error.status === undefined) console.error(this.error);
    await this.redraw();
  }

  /** Whether what is shown belongs to the sentence and its settings; what does not steps back. */
  fresh() {
    const { asked, ask, source, state } = this;
    const fresh = !asked || !source.live || (sameRun(asked, state) && ask.text === plain(state.text));
    document.documentElement.toggleAttribute("data-stale", !fresh);
    this.place.view.setAttribute("aria-busy", String(!fresh));
  }

  /** Keep the state within what this run has. */
  #settle() {
    if (NEED_SERVER.includes(this.state.view) && !this.source.live) this.state.view = "flow";
    const { model } = this.run.manifest;
    const layers = layersOf(model);
    const last = layers.findLast((layer) => layer.startsWith("decoder")) ?? layers[0] ?? "";
    if (!layers.includes(this.state.layer)) this.state.layer = last;
    const heads = this.state.layer.startsWith("decoder") ? (model.decoder_heads ?? model.heads) : model.heads;
    if (this.state.head >= heads) this.state.head = 0;
    const [side, place] = this.state.token.split(":");
    if (place >= this.run.manifest[side === "src" ? "source" : "target"].pieces.length) this.state.token = "";
    const { tensor, cell: at } = this.state;
    if (at.length && this.run.has(tensor) && hasHeads(this.run.entry(tensor)) && fits(this.run.entry(tensor).shape, at))
      this.state.head = Math.max(this.state.head, 0);
  }

  async redraw() {
    const turn = ++this.turn;
    if (this.run) this.#settle();
    const painter = this.run || this.state.view === "labs" ? PAINTERS[this.state.view] : nothing;
    try {
      await this.run?.need(painter.names(this));
      await painter.prepare?.(this);
    } catch (error) {
      if (turn === this.turn) this.fail(error);
      return;
    }
    if (turn !== this.turn) return;
    const focused = document.activeElement?.dataset?.key;
    for (const observer of this.watched) observer.disconnect();
    this.watched = [];
    this.inspector.begin();
    this.frame();
    try {
      this.place.view.replaceChildren(painter.draw(this));
    } catch (error) {
      return this.fail(error);
    }
    this.place.view.setAttribute("aria-labelledby", `tab-${this.state.view}`);
    this.place.view.dataset.run = this.run?.id ?? "";
    this.place.view.dataset.view = this.state.view;
    if (focused && document.activeElement?.dataset?.key !== focused)
      document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    if (painter.shown) painter.shown(this);
    else this.#relock();
  }

  /** The lock that the address names, if its matrix is on the page. */
  #relock() {
    const { tensor, cell: at } = this.state;
    if (!this.run) return;
    const matrix = this.inspector.matrices.find(
      (one) => one.sheet.name === tensor && (one.sheet.head === null || one.sheet.head === at[0]),
    );
    if (!matrix || !fits(this.run.entry(tensor).shape, at)) return;
    const [i, j] = at.length > 1 ? at.slice(-2) : [0, at[0]];
    matrix.place(i, j);
    this.inspector.locked = { name: tensor, index: at, tokens: matrix.tokensAt(i, j), matrix };
    this.inspector.preview(this.inspector.locked);
  }

  /** What stands around the view. */
  frame(error = this.error) {
    drawTop(this, this.place.top);
    drawTabs(this, this.place.tabs);
    this.ask.draw();
    this.ask.notice(error);
    this.fresh();
    this.place.foot.replaceChildren(
      h("p", t("footer")),
      h("p.faint", t("help.keys"), this.run && [" ", t("run"), " ", code(this.run.id, { data: { testid: "run" } })]),
    );
    this.tour.draw();
  }

  /** What went wrong while a view was drawn, in place of the view. */
  fail(error) {
    if (error.code === "forgotten") return this.load();
    if (error.status === undefined) console.error(error);
    this.place.view.replaceChildren();
    return this.frame(error);
  }

  say(text) {
    this.said = text;
    this.ask.notice(this.error);
  }

  /** Follow a token, or let it go if it is the one. */
  hold(token) {
    this.go({ token: token === this.state.token ? "" : token }, { replace: true, quiet: true });
    for (const one of document.querySelectorAll(".token-rows .token"))
      one.setAttribute("aria-pressed", String(`${one.dataset.side}:${one.dataset.index}` === this.state.token));
  }

  /** Light tokens wherever they stand. */
  light(tokens) {
    const keys = new Set(tokens.map(({ side, index }) => `${side}:${index}`));
    for (const token of document.querySelectorAll(".token-rows .token, .flow .piece"))
      token.classList.toggle("lit", keys.has(`${token.dataset.side}:${token.dataset.index}`));
  }

  heading(view, beside = null, says = t(`says.${view}`)) {
    return h("header.view-head", h("div.view-title", h("h2", t(`head.${view}`)), h("p.lede", says)), beside);
  }

  inspectorAside() {
    return h("aside.inspector", { "aria-live": "polite" }, this.inspector.panel);
  }

  /** Call `draw` now and whenever the element's width changes, until the view is replaced. */
  resized(element, draw) {
    const observer = new ResizeObserver(draw);
    observer.observe(element);
    this.watched.push(observer);
  }
}

new App().start();
