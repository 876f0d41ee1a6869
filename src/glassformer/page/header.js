// The header of the page: its name, language and theme, the tabs, the directions, what the model is for.

import { button, fill, h, languageButtons, raw, rove, themeButton, toggle } from "./dom.js";
import { t } from "./language.js";
import { whole } from "./number.js";
import { NEED_SERVER, viewsOf } from "./state.js";

/** Whether texts are mended in their own language, and not translated. @param {Page} app */
export function keepsLanguage(app) {
  const about = app.model?.about;
  return app.task === "translate" && Boolean(about?.source) && about?.source === about?.target;
}

/**
 * What the model is for, in the page's language: the names of its languages, what its sentences are about.
 * @param {Page} app
 */
export function modelCard(app) {
  /** @type {Partial<About>} */
  const about = app.model?.about ?? {};
  const translates = app.task === "translate" && !keepsLanguage(app);
  return {
    source: translates ? languageName(app, about.source ?? "") : "",
    target: translates ? languageName(app, about.target ?? "") : "",
    purpose: (app.lang === "zh" && about.purpose_zh) || about.purpose || "",
  };
}

/** What the model has learnt, as a sentence; nothing where it does not say. @param {Page} app */
export function aboutText(app) {
  const card = modelCard(app);
  return card.purpose ? t(card.source && card.target ? "about.languages" : "about.purpose", card) : "";
}

/** @param {Page} app @param {HTMLElement} place */
export function drawTop(app, place) {
  const { model } = app;
  const card = modelCard(app);
  const dark = document.documentElement.dataset.theme === "dark";
  const theme = `${t("theme")}: ${t(dark ? "theme.dark" : "theme.light")}`;
  fill(
    place,
    h("div.brand", raw("glassformer", { class: "wordmark" }), h("span.tagline", t("tagline"))),
    h("span.spring"),
    model &&
      h(
        "span.model-name",
        raw(model.model.name),
        card.source && card.target && ` \u00b7 ${card.source} \u2192 ${card.target}`,
        h("span.faint", " \u00b7 ", t("parameters", { n: whole(model.model.parameters) })),
      ),
    model?.translates &&
      h(
        "a.button.quiet",
        { href: "text", "aria-label": t("translate"), data: { key: "translate" } },
        "\u2190",
        h("span.back", t("translate")),
      ),
    button(t("tour"), () => app.tour.start(), { class: "quiet", data: { key: "tour" } }),
    languageButtons(t("language"), { en: "EN", zh: "中文" }, app.lang, (lang) => app.go({ lang })),
    themeButton(theme, () => app.go({ theme: dark ? "light" : "dark" }, { replace: true })),
  );
}

/** The views of this page. @param {Page} app */
function shownViews(app) {
  const views = viewsOf(app.task);
  return app.source.server ? views : views.filter((view) => !NEED_SERVER.includes(view));
}

/** @param {Page} app @param {HTMLElement} place */
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
    shownViews(app).map((view) =>
      button(t(`view.${view}`), () => app.go({ view }), {
        role: "tab",
        id: `tab-${view}`,
        "aria-selected": String(view === app.state.view),
        "aria-controls": "view",
        tabindex: view === app.state.view ? "0" : "-1",
        data: { key: `tab:${view}`, view },
      }),
    ),
  );
  rove(list, (tab) => app.go({ view: /** @type {View} */ (tab.dataset.view) }));
  place.replaceChildren(h("div.tabs-row", list, fold));
  /** @type {HTMLElement | null} */
  const chosen = list.querySelector("[aria-selected=true]");
  if (chosen && list.scrollWidth > list.clientWidth) {
    list.scrollLeft = chosen.offsetLeft - list.clientWidth / 2 + chosen.offsetWidth / 2;
  }
}

/** A language's name in the language of the page, or its code. @param {Page} app @param {string} code */
export function languageName(app, code) {
  return code ? (new Intl.DisplayNames([app.lang], { type: "language", fallback: "code" }).of(code) ?? code) : "";
}

/** Both languages, and the model where two share them. @param {Page} app @param {Direction} direction */
function directionLabel(app, { source, target, model }) {
  const same = app.model?.directions.filter((one) => one.source === source && one.target === target) ?? [];
  const whose = same.length > 1 ? ` (${model})` : "";
  return `${languageName(app, source) || t("direction.any")} \u2192 ${languageName(app, target)}${whose}`;
}

/**
 * The directions to choose from, and what the model is; nothing where there is no choice.
 * @param {Page} app @param {HTMLElement} place
 */
export function drawDirections(app, place) {
  const { model } = app;
  place.hidden = !model || model.directions.length < 2;
  if (!model || place.hidden) return;
  const { direction } = app.state;
  const asked = model.directions.some((one) => one.name === direction) ? direction : model.direction;
  const choices = model.directions.map((one) =>
    toggle(raw(directionLabel(app, one)), one.name === asked, () => switchDirection(app, one), {
      data: { key: `direction:${one.name}`, direction: one.name },
    }),
  );
  fill(
    place,
    h("div.choice.small", { role: "group", "aria-label": t("direction") }, choices),
    h("p.faint", { data: { testid: "about" } }, raw(model.model.name), " ", describeModel(app, model)),
  );
}

/** @param {Page} app @param {ServerFacts} model */
function describeModel(app, { model, directions }) {
  const own = directions.filter((one) => one.model === model.name);
  const names = [...new Set(own.flatMap(({ source, target }) => [source, target]))].filter(Boolean);
  const languages = new Intl.ListFormat(app.lang, { type: "conjunction" }).format(
    names.map((one) => languageName(app, one)),
  );
  const both = names.length === 2 && own.length === 2;
  const { purpose } = modelCard(app);
  return [
    t(both ? "direction.both" : "direction.among", { languages }),
    purpose && t("direction.purpose", { purpose }),
  ];
}

/**
 * Switch to another direction: with the same sentence if its language fits, else with its translation if that fits,
 * else with the first example.
 * @param {Page} app @param {Direction} next
 */
async function switchDirection(app, next) {
  const { model: before, run } = app;
  const now = before?.directions.find((one) => one.name === before.direction);
  if (!now || now.name === next.name) return;
  app.inputPanel.setBusy(true);
  let facts;
  try {
    facts = await app.source.model(next.name);
  } catch (error) {
    app.inputPanel.setBusy(false);
    return app.showError(error);
  }
  const stays = next.source === now.source && app.state.text;
  const turned = next.source === now.target && run?.manifest.output?.text;
  const text = stays || turned || (facts.examples[0]?.text ?? "");
  app.inputPanel.field.value = text;
  await app.go({ direction: next.name, text, changes: [], prefix: [], cell: [], step: 0, token: "" });
  const { tag, pieces } = app.run?.manifest.source ?? { tag: null, pieces: [] };
  const values = { model: next.model, target: languageName(app, next.target), tag: pieces[0] };
  const sentences = [
    t(next.model === now.model ? "direction.same" : "direction.other", values),
    tag && t("direction.tag", values),
    turned && !stays && t("direction.turned"),
  ];
  app.announce(sentences.filter(Boolean).join(app.lang === "zh" ? "" : " "));
}
