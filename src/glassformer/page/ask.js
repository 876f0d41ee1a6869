// The top of the page: the sentence, what becomes of it, and its tokens on both sides.

import { button, h, onKeys, raw, rove } from "./dom.js";
import { t } from "./language.js";
import { show, whole } from "./number.js";
import { NEED_SERVER, VIEWS } from "./state.js";
import { nameChange } from "./view_whatif.js";

// Milliseconds of rest in typing before the model is asked: longer than between a quick typist's letters,
// and longer yet where answers take their time.
const PAUSE = { least: 140, most: 400 };

const NAMED = 8; // words that a warning names

/** What the model is for, in the page's language: the names of its languages, what its sentences are about. */
export function cardOf(app) {
  const about = app.model?.about ?? {};
  const name = (code) =>
    code ? new Intl.DisplayNames([app.lang], { type: "language", fallback: "code" }).of(code) : "";
  return {
    source: name(about.source),
    target: name(about.target),
    purpose: (app.lang === "zh" && about.purpose_zh) || about.purpose || "",
  };
}

/** A sentence on one line. */
export const plain = (text) => text.replace(/\s+/g, " ").trim();

export function drawTop(app, place) {
  const { model } = app;
  const card = cardOf(app);
  const dark = document.documentElement.dataset.theme === "dark";
  const languages = h(
    "div.choice.small",
    { role: "group", "aria-label": t("language") },
    [
      ["en", "EN"],
      ["zh", "中文"],
    ].map(([lang, label]) =>
      button(raw(label, { lang: lang === "zh" ? "zh-Hans" : "en" }), () => app.go({ lang }), {
        "aria-pressed": app.lang === lang ? "true" : "false",
        data: { key: `lang:${lang}`, lang },
      }),
    ),
  );
  place.replaceChildren(
    h("div.brand", raw("glassformer", { class: "wordmark" }), h("span.tagline", t("tagline"))),
    h("span.spring"),
    model &&
      h(
        "span.model-name",
        raw(model.model.name),
        card.source && card.target && ` \u00b7 ${card.source} \u2192 ${card.target}`,
        h("span.faint", " \u00b7 ", t("parameters", { n: whole(model.model.parameters) })),
      ),
    button(t("tour"), () => app.tour.start(), { class: "quiet", data: { key: "tour" } }),
    languages,
    button(
      h("span", { class: `theme-mark ${dark ? "sun" : "moon"}`, "aria-hidden": "true" }),
      () => app.go({ theme: dark ? "light" : "dark" }, { replace: true }),
      {
        class: "icon",
        "aria-label": `${t("theme")}: ${t(dark ? "theme.dark" : "theme.light")}`,
        data: { key: "theme" },
      },
    ),
  );
}

/** The views of this page. */
function viewsOf(app) {
  return app.source.live ? VIEWS : VIEWS.filter((view) => !NEED_SERVER.includes(view));
}

export function drawTabs(app, place) {
  place.setAttribute("aria-label", t("views"));
  const folded = app.state.fold === "1";
  const fold = button(
    h("span", { class: `fold-mark${folded ? " folded" : ""}`, "aria-hidden": "true" }),
    () => app.go({ fold: folded ? "" : "1" }, { replace: true }),
    {
      class: "icon fold",
      "aria-expanded": String(!folded),
      "aria-controls": "ask",
      "aria-label": t(folded ? "fold.open" : "fold.close"),
      title: t(folded ? "fold.open" : "fold.close"),
      data: { key: "fold" },
    },
  );
  const list = h(
    "div.tabs",
    { role: "tablist" },
    viewsOf(app).map((view) =>
      button(t(`view.${view}`), () => app.go({ view }), {
        role: "tab",
        id: `tab-${view}`,
        "aria-selected": view === app.state.view ? "true" : "false",
        "aria-controls": "view",
        tabindex: view === app.state.view ? "0" : "-1",
        data: { key: `tab:${view}`, view },
      }),
    ),
  );
  rove(list, "button", (tab) => app.go({ view: tab.dataset.view }));
  place.replaceChildren(h("div.tabs-row", list, fold));
  const chosen = list.querySelector("[aria-selected=true]");
  if (chosen && list.scrollWidth > list.clientWidth)
    list.scrollLeft = chosen.offsetLeft - list.clientWidth / 2 + chosen.offsetWidth / 2;
}

/** The field that is typed into stays one and the same element, or typing would lose its place. */
export class Ask {
  constructor(app, place) {
    this.app = app;
    this.timer = 0;
    this.pause = PAUSE.least;
    this.since = 0;
    this.typing = false;
    this.input = h("textarea", {
      id: "sentence",
      rows: 1,
      spellcheck: "false",
      autocomplete: "off",
      maxlength: 2000,
      data: { key: "sentence" },
      on: {
        input: () => {
          this.#grow();
          this.#soon();
        },
        keydown: onKeys(["Enter"], () => this.#now()),
        focus: () => {
          this.typing = false;
        },
      },
    });
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
      h("div.source", this.label, this.input),
      h("div.arrow", { "aria-hidden": "true" }),
      h("div.target", h("div.target-head", this.outputLabel, this.facts), this.output),
    );
    place.replaceChildren(this.pair, this.work, this.tokens, this.settings, this.notices);
    window.addEventListener("resize", () => this.#grow());
  }

  #grow() {
    this.input.style.height = "auto";
    this.input.style.height = `${this.input.scrollHeight}px`;
  }

  /** What the field says. */
  get text() {
    return plain(this.input.value);
  }

  #soon() {
    clearTimeout(this.timer);
    this.app.fresh();
    this.timer = setTimeout(() => this.#now(), this.text ? this.pause : 0);
  }

  #now() {
    clearTimeout(this.timer);
    const { text } = this;
    if (text === this.app.state.text) return;
    // The first change of a visit to the field makes a step that Back can undo; the letters after it do not.
    const replace = this.typing;
    if (text) this.typing = true;
    const changes = this.app.state.changes.filter((one) => one.kind !== "swap_token" && one.kind !== "prefix");
    this.app.go({ text, changes, prefix: [], cell: [], step: 0, token: "" }, { replace });
  }

  busy(on) {
    const now = performance.now();
    if (on) this.since = now;
    else if (!this.work.hidden) this.pause = Math.max(PAUSE.least, Math.min(PAUSE.most, now - this.since));
    this.work.hidden = !on;
  }

  draw() {
    const { app, input } = this;
    const { state, run, source } = app;
    const card = cardOf(app);
    this.label.replaceChildren(
      t(card.source ? "ask.sentenceIn" : "ask.sentence", card),
      card.purpose ? ` \u00b7 ${card.purpose}` : "",
    );
    input.placeholder = t(card.purpose ? "ask.placeholderOf" : "ask.placeholder", card);
    input.readOnly = !source.live;
    if (document.activeElement !== input && input.value !== state.text) input.value = state.text;
    const longest = Math.max(state.text.length, run?.manifest.output?.text.length ?? 0);
    this.pair.dataset.size = longest <= 24 ? "large" : longest <= 60 ? "middle" : "small";
    this.#grow();
    this.work.setAttribute("aria-label", t("ask.working"));
    this.#settings();
    if (!run) {
      for (const place of [this.output, this.facts, this.tokens]) place.replaceChildren();
      return;
    }
    const { manifest } = run;
    const writes = manifest.output !== null && manifest.output !== undefined;
    this.outputLabel.textContent = writes
      ? t(
          manifest.model.kind === "decoder-only" ? "ask.continuation" : card.target ? "ask.outputIn" : "ask.output",
          card,
        )
      : "";
    this.output.textContent = writes ? manifest.output.text : "";
    this.facts.replaceChildren(
      ...(writes
        ? [
            h(
              "span.faint",
              t("decode.score"),
              " ",
              raw(manifest.output.score === null ? "\u2014" : show(manifest.output.score)),
            ),
            manifest.output.finished ? "" : h("span.faint", ` \u00b7 ${t("ask.unfinished")}`),
          ]
        : []),
    );
    this.#tokenRows(manifest);
  }

  #settings() {
    const { app } = this;
    const { state, source, model } = app;
    if (!source.live) return this.settings.replaceChildren(h("span.faint", t("ask.embedded")));
    const limits = model?.limits ?? { beam: 8, padding: 8 };
    const counter = (name, least, most) => {
      const set = (value) => app.go({ [name]: value, step: 0, cell: [] });
      const what = t(`ask.${name}`);
      return h(
        "span.counter",
        { role: "group", "aria-label": what },
        h("span.label", what),
        button("\u2212", () => set(Math.max(least, state[name] - 1)), {
          "aria-label": t("ask.less", { what }),
          disabled: state[name] <= least,
          data: { key: `${name}-less` },
        }),
        h("output", { translate: "no", data: { testid: name } }, String(state[name])),
        button("+", () => set(Math.min(most, state[name] + 1)), {
          "aria-label": t("ask.more", { what }),
          disabled: state[name] >= most,
          data: { key: `${name}-more` },
        }),
      );
    };
    const examples = (model?.examples ?? []).map((text) =>
      button(
        raw(text),
        () => {
          this.input.value = text;
          app.go({ text, changes: [], prefix: [], cell: [], step: 0, token: "" });
        },
        { class: "example", data: { key: `example:${text}` } },
      ),
    );
    return this.settings.replaceChildren(
      examples.length ? h("div.examples", h("span.label", t("ask.examples")), examples) : "",
      h("span.spring"),
      counter("beam", 1, limits.beam),
      counter("padding", 0, limits.padding),
    );
  }

  #tokenRows(manifest) {
    const { app } = this;
    const token = (side, piece, i, padding) =>
      button(
        piece,
        () =>
          app.state.view === "flow"
            ? app.go({ token: app.state.token === `${side}:${i}` ? "" : `${side}:${i}` }, { replace: true })
            : app.go({ view: "flow", token: `${side}:${i}` }),
        {
          class: `token ${side}${padding ? " padding" : ""}`,
          translate: "no",
          title: t("ask.follow"),
          tabindex: i ? "-1" : "0",
          "aria-pressed": String(app.state.token === `${side}:${i}`),
          data: { side, index: i, key: `token:${side}:${i}` },
        },
      );
    const row = (side, label, pieces, real) => {
      const tokens = h(
        "span.tokens",
        { role: "group", "aria-label": label },
        pieces.map((piece, i) => token(side, piece, i, real && !real[i])),
      );
      rove(tokens, "button");
      return h("div.token-row", { data: { testid: `tokens-${side}` } }, h("span.label", label), tokens);
    };
    const rows = [];
    if (manifest.model.encoder_layers)
      rows.push(row("src", t("ask.source"), manifest.source.pieces, manifest.source.real));
    if (manifest.model.decoder_layers) rows.push(row("tgt", t("ask.target"), manifest.target.pieces, null));
    this.tokens.replaceChildren(...rows);
  }

  /** What the server had to say besides: limits that were met, changes in force, what went wrong. */
  notice(error) {
    const { app } = this;
    const { run, state } = app;
    const found = [];
    if (error) found.push(h("div.notice.error", { role: "alert", data: { testid: "error" } }, tellError(error)));
    const unfamiliar = run?.manifest.unfamiliar ?? [];
    if (unfamiliar.length) {
      const card = cardOf(app);
      const words = unfamiliar.slice(0, NAMED).join(", ") + (unfamiliar.length > NAMED ? ", \u2026" : "");
      found.push(
        h(
          "div.notice",
          { data: { testid: "unfamiliar" } },
          h("span", t(card.purpose ? "ask.unfamiliarOf" : "ask.unfamiliar", card), " ", raw(words)),
        ),
      );
    }
    if (app.said) found.push(h("div.notice", app.said));
    for (const [name, { asked, used }] of Object.entries(run?.manifest.capped ?? {}))
      found.push(h("div.notice", { data: { testid: "capped" } }, t(`capped.${name}`, { asked, used })));
    const changes = app.source.live ? state.changes : (run?.manifest.changes ?? []);
    if (changes.length && run && state.view !== "whatif") {
      found.push(
        h(
          "div.notice.changed",
          { data: { testid: "in-force" } },
          h("span", t("whatif.inForce"), " ", changes.map((one) => nameChange(app.before, one)).join("; ")),
          app.source.live &&
            button(t("whatif.see"), () => app.go({ view: "whatif" }), { class: "quiet", data: { key: "see" } }),
          app.source.live &&
            button(t("whatif.reset"), () => app.go({ changes: [] }), { class: "quiet", data: { key: "reset-notice" } }),
        ),
      );
    }
    if (run?.manifest.one_pass === false && !["decode", "cache", "labs"].includes(state.view))
      found.push(h("div.notice", { data: { testid: "last-step" } }, t("pass.last")));
    this.notices.replaceChildren(...found);
  }
}

const KNOWN_ERRORS = new Set(["empty", "long", "long_text", "offline", "busy", "no_weights"]);

function tellError(error) {
  if (KNOWN_ERRORS.has(error.code)) return t(`error.${error.code}`, error.values ?? {});
  const page = error.status === undefined;
  return [t(page ? "error.page" : "error.refused"), " ", raw([error.message, error.hint].filter(Boolean).join(" "))];
}
