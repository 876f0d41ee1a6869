// The sentence, what becomes of it, its tokens on both sides, and what there is to say about it.

import { button, fill, grow, h, onKeys, raw, rove, toggle } from "./dom.js";
import { drawDirections, keepsLanguage, languageName, modelCard } from "./header.js";
import { imageField } from "./image_field.js";
import { errorText, t } from "./language.js";
import { show } from "./number.js";
import { nameChange } from "./view_whatif.js";

// Milliseconds of rest in typing before the model is asked: longer than between a quick typist's letters,
// and longer yet where answers take their time.
const PAUSE = { least: 140, most: 400 };

const MOST_TOKENS = 100; // of what is read; more of them, the squares of an image, say nothing by their names
const NAMED = 8; // words that a warning names

/** A sentence on one line. @param {string} text */
export const plain = (text) => text.replace(/\s+/g, " ").trim();

/** The field that is typed into stays one and the same element, or typing would lose its place. */
export class InputPanel {
  /** @param {Page} app @param {HTMLElement} place */
  constructor(app, place) {
    this.app = app;
    this.timer = 0;
    this.pause = PAUSE.least;
    this.since = 0;
    this.typing = false;
    this.field = h("textarea", {
      id: "sentence",
      rows: 1,
      spellcheck: "false",
      autocomplete: "off",
      maxlength: 2000,
      data: { key: "sentence" },
      on: {
        input: () => {
          grow(this.field);
          this.#schedule();
        },
        keydown: onKeys(["Enter"], () => this.#submit()),
        focus: () => {
          this.typing = false;
        },
      },
    });
    this.way = h("div.way");
    this.picture = h("div"); // in place of the field, where an image is read
    this.label = h("label", { for: "sentence", class: "label" });
    this.output = h("div.said", { translate: "no", data: { testid: "output" } });
    this.outputLabel = h("span.label");
    this.facts = h("div.said-facts");
    this.tokens = h("div.token-rows");
    this.settings = h("div.settings");
    this.notices = h("div.notices", { role: "status" });
    this.work = h("div.working", { role: "progressbar", hidden: true });
    this.pair = h(
      "div.pair",
      h("div.source", this.label, this.field, this.picture),
      h("div.arrow", { "aria-hidden": "true" }),
      h("div.target", h("div.target-head", this.outputLabel, this.facts), this.output),
    );
    place.replaceChildren(this.way, this.pair, this.work, this.tokens, this.settings, this.notices);
    window.addEventListener("resize", () => grow(this.field));
  }

  /** What the field says. */
  get text() {
    return plain(this.field.value);
  }

  #schedule() {
    clearTimeout(this.timer);
    this.app.updateStale();
    this.timer = setTimeout(() => this.#submit(), this.text ? this.pause : 0);
  }

  #submit() {
    clearTimeout(this.timer);
    const { text } = this;
    if (text === this.app.state.text) return;
    // The first change of a visit to the field makes a step that Back can undo; the letters after it do not.
    const replace = this.typing;
    if (text) this.typing = true;
    const changes = this.app.state.changes.filter((one) => one.kind !== "swap_token" && one.kind !== "prefix");
    this.app.go({ text, changes, prefix: [], cell: [], step: 0, token: "" }, { replace });
  }

  /** @param {boolean} on */
  setBusy(on) {
    const now = performance.now();
    if (on) this.since = now;
    else if (!this.work.hidden) this.pause = Math.max(PAUSE.least, Math.min(PAUSE.most, now - this.since));
    this.work.hidden = !on;
  }

  draw() {
    const { app, field } = this;
    const { state, run, source } = app;
    const card = modelCard(app);
    drawDirections(app, this.way);
    this.label.replaceChildren(
      card.source || t("ask.sentence"),
      card.purpose && this.way.hidden ? ` \u00b7 ${card.purpose}` : "",
    );
    field.placeholder = t(card.purpose ? "ask.placeholderOf" : "ask.placeholder", card);
    field.readOnly = !source.live;
    if (document.activeElement !== field && field.value !== state.text) field.value = state.text;
    const image = app.task === "image" && source.live && app.model;
    field.hidden = !!image;
    fill(this.picture, image && imageField(app, image.model));
    const longest = image ? 0 : Math.max(state.text.length, run?.manifest.output?.text.length ?? 0);
    this.pair.dataset.size = longest <= 24 ? "large" : longest <= 60 ? "middle" : "small";
    grow(this.field);
    this.work.setAttribute("aria-label", t("ask.working"));
    this.#settings();
    if (!run) {
      for (const place of [this.output, this.facts, this.tokens]) place.replaceChildren();
      return;
    }
    const { manifest } = run;
    const { output, answer, model } = manifest;
    const gaps = answer?.kind === "fill" && !answer.masked;
    this.outputLabel.textContent = card.target || t(keepsLanguage(app) ? "ask.writes" : "ask.output");
    this.output.textContent = output?.text ?? answer?.text ?? "";
    const likely = answer?.places[0]?.top[0];
    fill(
      this.facts,
      output && h("span.faint", t("decode.score"), " ", raw(show(output.score))),
      output && !output.finished && h("span.faint", ` \u00b7 ${t("ask.unfinished")}`),
      !gaps && likely && h("span.faint", t("ask.certain"), " ", raw(show(likely.probability))),
      gaps && model.mask && h("span.faint", t("ask.noGap", { mask: model.mask })),
    );
    this.#tokenRows(manifest);
  }

  #settings() {
    const { app } = this;
    const { state, source, model } = app;
    if (!source.live) return fill(this.settings, h("span.faint", t("ask.embedded")));
    const limits = model?.limits ?? { beam: 8, padding: 8 };
    /** @param {"beam" | "padding"} name @param {number} least @param {number} most */
    const counter = (name, least, most) => {
      const what = t(`ask.${name}`);
      const now = state[name];
      /** @param {string} mark @param {number} value @param {"less" | "more"} way */
      const change = (mark, value, way) =>
        button(mark, () => app.go({ [name]: value, step: 0, cell: [] }), {
          "aria-label": t(`ask.${way}`, { what }),
          disabled: way === "less" ? value < least : value > most,
          data: { key: `${name}-${way}` },
        });
      return h(
        "span.counter",
        { role: "group", "aria-label": what },
        h("span.label", what),
        change("\u2212", now - 1, "less"),
        h("output", { translate: "no", data: { testid: name } }, String(now)),
        change("+", now + 1, "more"),
      );
    };
    /** @param {Example} one @param {"label" | "look"} what */
    const localizedField = (one, what) => (app.lang === "zh" && one[`${what}_zh`]) || one[what];
    const examples = (model?.examples ?? []).map((one) =>
      toggle(
        localizedField(one, "label") || raw(one.text),
        one.text === state.text,
        () => {
          this.field.value = one.text;
          app.go({ text: one.text, changes: [], prefix: [], cell: [], step: 0, token: "" });
        },
        { class: "example", title: localizedField(one, "label") && one.text, data: { key: `example:${one.text}` } },
      ),
    );
    const shown = model?.examples.find((one) => one.text === state.text);
    fill(
      this.settings,
      examples.length > 0 && h("div.examples", h("span.label", t("ask.examples")), examples),
      h("span.spring"),
      ["translate", "continue"].includes(app.task) && counter("beam", 1, limits.beam),
      app.task !== "image" && counter("padding", 0, limits.padding),
      !source.server && h("p.look", { data: { testid: "in-page" } }, t("ask.local")),
      shown?.look &&
        h("p.look", { data: { testid: "look" } }, h("span.label", t("ask.look")), " ", localizedField(shown, "look")),
    );
  }

  /** @param {Manifest} manifest */
  #tokenRows(manifest) {
    const { app } = this;
    const { tag } = manifest.source;
    const tells = tag ? t("ask.tag", { target: languageName(app, tag) }) : "";
    /** @param {Side} side @param {string} piece @param {number} i @param {boolean} padding */
    const token = (side, piece, i, padding) => {
      const key = `${side}:${i}`;
      const tag = tells && key === "src:0";
      const follow = () =>
        app.state.view === "flow"
          ? app.go({ token: app.state.token === key ? "" : key }, { replace: true }) // as it is by then
          : app.go({ view: "flow", token: key });
      return toggle(piece, app.state.token === key, follow, {
        class: `token ${side}${padding ? " padding" : ""}${tag ? " tag" : ""}`,
        translate: "no",
        title: tag ? tells : t("ask.follow"),
        tabindex: i ? "-1" : "0",
        data: { side, index: i, key: `token:${key}` },
      });
    };
    /** @param {Side} side @param {string} label @param {string[]} pieces @param {boolean[]} [real] */
    const row = (side, label, pieces, real) => {
      const tokens = h(
        "span.tokens",
        { role: "group", "aria-label": label },
        pieces.map((piece, i) => token(side, piece, i, real?.[i] === false)),
      );
      rove(tokens);
      return h("div.token-row", { data: { testid: `tokens-${side}` } }, h("span.label", label), tokens);
    };
    const rows = [];
    if (manifest.model.encoder_layers && manifest.source.pieces.length <= MOST_TOKENS)
      rows.push(row("src", t("ask.source"), manifest.source.pieces, manifest.source.real));
    if (manifest.model.decoder_layers) rows.push(row("tgt", t("ask.target"), manifest.target.pieces));
    this.tokens.replaceChildren(...rows);
  }

  /**
   * Notices: what went wrong, unfamiliar words, limits that were met, changes in force.
   * @param {unknown} error
   */
  drawNotices(error) {
    const { app } = this;
    const { run, state } = app;
    const { unfamiliar = [], capped = {}, one_pass: onePass } = run?.manifest ?? {};
    const card = modelCard(app);
    const words = unfamiliar.slice(0, NAMED).join(", ") + (unfamiliar.length > NAMED ? ", \u2026" : "");
    const changes = app.source.live ? state.changes : (run?.manifest.changes ?? []);
    /** @param {string} testid @param {...Child} content */
    const notice = (testid, ...content) => h("div.notice", { data: { testid } }, content);
    /** @param {string} key @param {string} name @param {Partial<State>} patch */
    const action = (key, name, patch) => button(t(name), () => app.go(patch), { class: "quiet", data: { key } });
    fill(
      this.notices,
      Boolean(error) && h("div.notice.error", { role: "alert", data: { testid: "error" } }, errorText(error)),
      words &&
        notice("unfamiliar", h("span", t(card.purpose ? "ask.unfamiliarOf" : "ask.unfamiliar", card), " ", raw(words))),
      app.message && notice("message", app.message),
      Object.entries(capped).map(([name, { asked, used }]) => notice("capped", t(`capped.${name}`, { asked, used }))),
      run &&
        changes.length > 0 &&
        state.view !== "whatif" &&
        h(
          "div.notice.changed",
          { data: { testid: "in-force" } },
          h("span", t("whatif.inForce"), " ", changes.map((one) => nameChange(app.before, one)).join("; ")),
          app.source.live && [
            action("see", "whatif.see", { view: "whatif" }),
            action("reset-notice", "whatif.reset", { changes: [] }),
          ],
        ),
      onePass === false && !["decode", "cache", "labs"].includes(state.view) && notice("last-step", t("pass.last")),
    );
  }
}
