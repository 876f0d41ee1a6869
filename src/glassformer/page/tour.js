// A short guided tour: seven stops, each with the part of the page it speaks of.

import { button, h } from "./dom.js";
import { aboutText } from "./header.js";
import { t } from "./language.js";
import { viewsOf } from "./state.js";

/** The last word of each names what is said there. @type {{view: View, at: string, says: string}[]} */
const STOPS = [
  { view: "flow", at: ".source", says: "sentence" },
  { view: "flow", at: ".flow, .looking", says: "flow" },
  { view: "block", at: ".overview", says: "block" },
  { view: "cell", at: ".cell-equation", says: "cell" },
  { view: "decode", at: ".tree-plate", says: "decode" },
  { view: "answer", at: ".answer", says: "answer" },
  { view: "whatif", at: ".controls fieldset", says: "whatif" },
  { view: "trace", at: ".catalogue", says: "trace" },
];

export class Tour {
  /** @param {Page} app */
  constructor(app) {
    this.app = app;
    this.at = -1;
    /** @type {HTMLElement | null} */
    this.back = null; // what had the focus
    /** @type {HTMLElement | null} */
    this.box = null;
  }

  get #stops() {
    return STOPS.filter((stop) => viewsOf(this.app.task).includes(stop.view));
  }

  get open() {
    return this.at >= 0;
  }

  start() {
    if (this.open) return this.close();
    this.back = /** @type {HTMLElement | null} */ (document.activeElement);
    this.at = 0;
    return this.#go();
  }

  close() {
    this.at = -1;
    this.box?.remove();
    this.box = null;
    this.#mark(null);
    this.back?.focus();
  }

  async #go() {
    const stop = this.#stops[this.at];
    if (this.app.state.view !== stop.view) await this.app.go({ view: stop.view });
    if (!this.open) return;
    this.draw();
    const place = document.querySelector(stop.at);
    this.#mark(place);
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    place?.scrollIntoView({ block: "center", behavior: still ? "auto" : "smooth" });
  }

  /** @param {Element | null} place */
  #mark(place) {
    for (const one of document.querySelectorAll(".toured")) one.classList.remove("toured");
    place?.classList.add("toured");
  }

  /** @param {number} by */
  #step(by) {
    const next = this.at + by;
    if (next >= this.#stops.length) return this.close();
    this.at = Math.max(0, next);
    return this.#go();
  }

  /** Draw the box anew; the language may have changed. */
  draw() {
    if (!this.open) return;
    this.box?.remove();
    const last = this.at === this.#stops.length - 1;
    const dots = this.#stops.map((_, i) => h("i", { class: i === this.at ? "on" : null }));
    const next = button(t(last ? "tour.done" : "tour.next"), () => this.#step(1), {
      class: "solid",
      data: { key: "tour-next" },
    });
    this.box = h(
      "div.tour",
      {
        role: "dialog",
        "aria-label": t("tour.label", { n: this.at + 1, all: this.#stops.length }),
        on: {
          keydown: (event) => {
            if (event.key === "Escape") this.close();
            else if (event.key === "ArrowRight") this.#step(1);
            else if (event.key === "ArrowLeft") this.#step(-1);
          },
        },
      },
      h("div.tour-dots", { "aria-hidden": "true" }, dots),
      h("p", t(`tour.${this.#stops[this.at].says}`), this.at === 0 && ` ${aboutText(this.app)}`),
      h(
        "div.tour-buttons",
        button(t("tour.close"), () => this.close(), { class: "quiet" }),
        h("span.spring"),
        this.at > 0 && button(t("tour.back"), () => this.#step(-1), { class: "quiet" }),
        next,
      ),
    );
    document.body.append(this.box);
    next.focus({ preventScroll: true });
  }
}
