// The page: a state in the address, a run of the model, and the view that shows it.

import { code, find, findAll, focusedKey, h, refocus, zoom } from "./dom.js";
import { drawTabs, drawTop } from "./header.js";
import { clearColours } from "./heatmap.js";
import { blankImage } from "./image_field.js";
import { InputPanel, plain } from "./input_panel.js";
import { Inspector } from "./inspector.js";
import { setLanguage, setTask, t } from "./language.js";
import { Refusal } from "./request.js";
import { findSource } from "./source.js";
import { clampState, readAddress, sameRun, writeAddress } from "./state.js";
import { fits, rowAndColumn } from "./tensors.js";
import { Tour } from "./tour.js";
import { emptyView, painterOf } from "./views.js";

/** The page as a view sees it: without a run, only views that need none are drawn. @param {Page} page */
const loaded = (page) => /** @type {App} */ (page);

export class Page {
  constructor() {
    this.source = findSource();
    this.state = readAddress(location.hash);
    /** @type {Run | null} */
    this.run = null; // what is shown, and nothing where the sentence is empty or was refused
    /** @type {State | null} */
    this.shownState = null; // the state that `run` answers
    /** @type {unknown} */
    this.error = null; // why there is none
    /** @type {Run | null} */
    this.before = null; // the run without the what-if changes
    /** @type {Difference | null} */
    this.difference = null;
    /** @type {ServerFacts | null} */
    this.model = null;
    this.message = "";
    /** @type {number | null} */
    this.flowHead = null; // null: the mean of all heads
    /** @type {Sheet | null} */
    this.positionTable = null;
    /** @type {import("./view_labs.js").LabStore | undefined} */
    this.labs = undefined;
    this.search = "";
    this.column = 0;
    this.redraws = 0;
    /** @type {ResizeObserver[]} */
    this.observers = [];
    /** @type {AbortController | null} */
    this.abort = null;
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.place = {
      top: find("#top"),
      ask: find("#ask"),
      tabs: find("#tabs"),
      view: find("#view"),
      foot: find("#foot"),
    };
    this.#applyPreferences();
    this.inputPanel = new InputPanel(this, this.place.ask);
    this.inspector = new Inspector(this);
    this.tour = new Tour(this);
    this.dark.addEventListener("change", () => {
      this.#applyPreferences();
      this.redraw();
    });
    window.addEventListener("popstate", () => this.#onPopState());
    let size = zoom();
    window.addEventListener("resize", () => {
      if (size === zoom()) return;
      size = zoom();
      this.redraw();
    });
    find(".skip").addEventListener("click", (event) => {
      event.preventDefault();
      this.place.view.focus();
    });
  }

  get lang() {
    return this.state.lang || (navigator.language?.toLowerCase().startsWith("zh") ? "zh" : "en");
  }

  /** Language and theme, before anything is drawn. */
  #applyPreferences() {
    setLanguage(this.lang);
    const root = document.documentElement;
    root.lang = this.lang === "zh" ? "zh-Hans" : "en";
    root.dataset.theme = this.state.theme || (this.dark.matches ? "dark" : "light");
    root.toggleAttribute("data-fold", this.state.fold === "1");
    document.title = t("title");
    find(".skip").textContent = t("skip");
    clearColours();
  }

  async start() {
    this.drawSurroundings();
    try {
      this.model = await this.source.model(this.state.direction);
    } catch (error) {
      return this.showError(error);
    }
    if (!this.source.live) {
      const { text, options } = this.source.manifest;
      this.state = { ...this.state, text, beam: options.beam, padding: options.padding, prefix: [], changes: [] };
    } else if (!this.state.text) {
      const { examples, model } = this.model;
      const none = model.task === "image" ? blankImage(model) : "";
      this.state = { ...this.state, text: examples[0]?.text ?? none };
    }
    history.replaceState(null, "", writeAddress(this.state));
    this.inputPanel.field.value ||= this.state.text;
    return this.load();
  }

  /**
   * Change the state, and show it.
   * @param {Partial<State>} patch
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
    return this.#update(old);
  }

  #onPopState() {
    const old = this.state;
    this.state = readAddress(location.hash);
    if (!this.state.text) this.state.text = old.text;
    this.inputPanel.field.value = this.state.text;
    return this.#update(old);
  }

  /** @param {State} old */
  #update(old) {
    this.message = "";
    if (old.lang !== this.state.lang || old.theme !== this.state.theme || old.fold !== this.state.fold)
      this.#applyPreferences();
    if (old.tensor !== this.state.tensor) this.column = 0;
    if (old.view !== this.state.view)
      this.tour.open || window.scrollTo({ top: Math.min(window.scrollY, this.place.tabs.offsetTop) });
    if (sameRun(old, this.state) || !this.source.live) return this.redraw();
    return this.load();
  }

  /** Load the run that the state names; a later call replaces an earlier one. */
  async load() {
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    const { state } = this;
    /** @type {Partial<Answer>} */
    let answer = {};
    let failure = null;
    let { model } = this;
    this.inputPanel.setBusy(true);
    this.updateStale();
    try {
      model = await this.source.model(state.direction);
      if (state.text) answer = await this.source.run(state, abort.signal);
    } catch (error) {
      failure = error;
    }
    if (abort !== this.abort) return;
    this.inputPanel.setBusy(false);
    const { run = null, before = null, difference = null } = answer;
    Object.assign(this, { model, run, before, difference, error: failure, shownState: state });
    if (failure && !(failure instanceof Refusal)) console.error(failure);
    await this.redraw();
  }

  /** Mark what is shown as stale while it belongs to another sentence or other settings. */
  updateStale() {
    const { shownState, inputPanel, source, state } = this;
    const fresh = !shownState || !source.live || (sameRun(shownState, state) && inputPanel.text === plain(state.text));
    document.documentElement.toggleAttribute("data-stale", !fresh);
    this.place.view.setAttribute("aria-busy", String(!fresh));
  }

  /** What the model does. @returns {Task} */
  get task() {
    return this.run?.manifest.model.task ?? this.model?.model.task ?? "translate";
  }

  async redraw() {
    const turn = ++this.redraws;
    setTask(this.task);
    if (this.run) clampState(this.state, this.run, this.source.server);
    const painter = this.run || this.state.view === "labs" ? painterOf(this.state.view, this.task) : emptyView;
    try {
      await this.run?.need(painter.names?.(loaded(this)) ?? []);
      await painter.prepare?.(loaded(this));
    } catch (error) {
      if (turn === this.redraws) this.showError(error);
      return;
    }
    if (turn !== this.redraws) return;
    const focused = focusedKey();
    for (const observer of this.observers) observer.disconnect();
    this.observers = [];
    this.inspector.reset();
    this.drawSurroundings();
    try {
      this.place.view.replaceChildren(painter.draw(loaded(this)));
    } catch (error) {
      return this.showError(error);
    }
    this.place.view.setAttribute("aria-labelledby", `tab-${this.state.view}`);
    this.place.view.dataset.run = this.run?.id ?? "";
    this.place.view.dataset.view = this.state.view;
    refocus(focused);
    if (painter.shown) painter.shown(loaded(this));
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
    this.inspector.relock(matrix, ...rowAndColumn(at));
  }

  /** Draw all that is around the view. @param {unknown} [error] */
  drawSurroundings(error = this.error) {
    drawTop(this, this.place.top);
    drawTabs(this, this.place.tabs);
    this.inputPanel.draw();
    this.inputPanel.drawNotices(error);
    this.updateStale();
    this.place.foot.replaceChildren(
      h("p", t("footer")),
      h("p.faint", t("help.keys"), this.run && [" ", t("run"), " ", code(this.run.id, { data: { testid: "run" } })]),
    );
    this.tour.draw();
  }

  /**
   * What went wrong while a view was drawn, in place of the view.
   * @param {unknown} error @returns {void | Promise<void>}
   */
  showError(error) {
    if (!(error instanceof Refusal)) console.error(error);
    else if (error.code === "forgotten") return this.load();
    this.place.view.replaceChildren();
    return this.drawSurroundings(error);
  }

  /** @param {string} text */
  announce(text) {
    this.message = text;
    this.inputPanel.drawNotices(this.error);
  }

  /** Follow a token, or let it go if it is the one. @param {string} token */
  toggleToken(token) {
    this.go({ token: token === this.state.token ? "" : token }, { replace: true, quiet: true });
    for (const one of findAll(".token-rows .token")) {
      one.setAttribute("aria-pressed", String(`${one.dataset.side}:${one.dataset.index}` === this.state.token));
    }
  }

  /** Highlight tokens wherever they are shown. @param {string[]} keys */
  highlight(keys) {
    for (const token of findAll(".token-rows .token, .flow .piece")) {
      token.classList.toggle("lit", keys.includes(`${token.dataset.side}:${token.dataset.index}`));
    }
  }

  /** @param {View} view @param {Child} [beside] @param {string} [says] */
  heading(view, beside = null, says = t(`says.${view}`)) {
    return h("header.view-head", h("div.view-title", h("h2", t(`head.${view}`)), h("p.lede", says)), beside);
  }

  /**
   * Call `draw` now and whenever the element's width changes, until the view is replaced.
   * @param {HTMLElement} element @param {() => void} draw
   */
  onResize(element, draw) {
    const observer = new ResizeObserver(draw);
    observer.observe(element);
    this.observers.push(observer);
  }
}

new Page().start();
