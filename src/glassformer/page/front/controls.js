// The controls around the two texts, and the messages.

import { button, fill, focusedKey, h, languageButtons, raw, refocus, svg, themeButton, toggle } from "../dom.js";
import { formatNumber, languageName, t } from "./language.js";

const MAX_BUTTONS = 5; // languages in a row of buttons

/** Paths on a grid of 24 by 24. */
const ICONS = {
  swap: "M7 4 3 8l4 4M3 8h14M17 12l4 4-4 4M21 16H7",
  clear: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  done: "M4 12l5 5L20 6",
  file: "M12 16V4M7 9l5-5 5 5M4 16v4h16v-4",
  look: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
};

/** @param {keyof typeof ICONS} name */
export const icon = (name) =>
  svg("svg.mark", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));

/** Replace the content of a place, but keep the focus. @param {HTMLElement} place @param {Child[]} children */
function refill(place, ...children) {
  const focused = place.contains(document.activeElement) ? focusedKey() : null;
  fill(place, ...children);
  refocus(focused);
}

/** @param {TranslatePage} app @param {HTMLElement} place */
export function drawTop(app, place) {
  const dark = document.documentElement.dataset.theme === "dark";
  refill(
    place,
    h("div.brand", raw("glassformer", { class: "wordmark" })),
    h("span.spring"),
    h(
      "a.button.quiet",
      { href: `look#lang=${app.lang === "zh" ? "zh" : "en"}`, "aria-label": t("top.look"), data: { key: "to-look" } },
      icon("look"),
      h("span.broad", t("top.look")),
    ),
    languageButtons(t("language"), { en: "EN", de: "DE", zh: "中文" }, app.lang, (lang) => app.update({ lang })),
    themeButton(`${t("theme")}: ${t(dark ? "theme.dark" : "theme.light")}`, () =>
      app.update({ theme: dark ? "light" : "dark" }),
    ),
  );
}

/** @param {TranslatePage} app @param {HTMLElement} place */
export function drawBar(app, place) {
  const { state, pairs, detected, from, to } = app;
  const auto = detected ? t("detected", { language: languageName(detected) }) : t("detect");
  const chosen = { from: pairs.has(state.from) ? state.from : "", to };
  /** @param {"from" | "to"} side @param {string} code */
  const isDisabled = (side, code) => side === "to" && !pairs.translates(from, code) && state.from !== code;
  /** @param {"from" | "to"} side */
  const choice = (side) => {
    const codes = side === "from" ? ["", ...pairs.codes] : pairs.codes;
    const name = (/** @type {string} */ code) => (code ? languageName(code) : auto);
    const buttons = codes.map((code) =>
      toggle(name(code), chosen[side] === code, () => app.choose(side, code), {
        disabled: isDisabled(side, code),
        data: { key: `${side}:${code}`, [side]: code },
      }),
    );
    // On narrow screens, a list replaces the buttons.
    const list = h(
      "select.narrow",
      {
        "aria-label": t(side),
        data: { key: `${side}-list`, testid: `${side}-list` },
        on: { change: (event) => app.choose(side, /** @type {HTMLSelectElement} */ (event.target).value) },
      },
      codes.map((code) =>
        h("option", { value: code, selected: chosen[side] === code, disabled: isDisabled(side, code) }, name(code)),
      ),
    );
    return [h("div.choice.broad", { role: "group", "aria-label": t(side) }, buttons), list];
  };
  place.toggleAttribute("data-many", pairs.codes.length > MAX_BUTTONS);
  refill(
    place,
    choice("from"),
    button(icon("swap"), () => app.swap(), {
      class: "icon swap",
      "aria-label": t("swap"),
      title: `${t("swap")} (Alt+Shift+S)`,
      disabled: !app.canSwap,
      data: { key: "swap" },
    }),
    choice("to"),
  );
}

/** The rows below the two texts, and the notices. @param {TranslatePage} app */
export function drawFoot(app) {
  const { lines, state, place, files } = app;
  const some = state.q.trim() !== "";
  const { total, done } = lines;
  refill(
    place.below,
    files.offered &&
      button([icon("file"), t("file.choose")], () => files.input.click(), { class: "quiet", data: { key: "file" } }),
    h("span.spring"),
    some && h("span.faint", t("characters", { n: formatNumber([...state.q].length) })),
    some &&
      button(icon("clear"), () => app.clear(), {
        class: "icon",
        "aria-label": t("clear"),
        title: `${t("clear")} (Alt+Shift+X)`,
        data: { key: "clear" },
      }),
  );
  refill(
    place.beside,
    app.abort && done < total && progress(done, total),
    h("span.spring"),
    done > 0 &&
      button([icon("look"), t("look")], () => app.wordLinks.openLook(), {
        class: "quiet",
        title: t("look.says"),
        data: { key: "look" },
      }),
    done > 0 &&
      button([icon(app.copied ? "done" : "copy"), t(app.copied ? "copied" : "copy")], () => app.copy(), {
        class: "quiet",
        title: "Alt+Shift+C",
        data: { key: "copy" },
      }),
  );
  refill(
    place.notice,
    app.keyNeeded && keyField(app),
    app.unsure &&
      app.detected &&
      h(
        "div.notice",
        { role: "status", data: { testid: "unsure" } },
        t("unsure", { language: languageName(app.detected) }),
      ),
    app.error ? h("div.notice.error", { role: "alert", data: { testid: "error" } }, app.errorText(app.error)) : null,
  );
  refill(place.foot, h("p.faint", t("foot")), h("p.faint.keys", t("keys")));
}

/** @param {number} done @param {number} total */
function progress(done, total) {
  const says = t("progress", { done: formatNumber(done), all: formatNumber(total) });
  return h(
    "span.progress",
    { data: { testid: "progress" } },
    h("progress", { value: done, max: total, "aria-label": says }),
    total > 1 && h("span.faint", says),
  );
}

/** @param {TranslatePage} app */
function keyField(app) {
  const input = h("input", {
    id: "key",
    type: "password",
    autocomplete: "current-password",
    data: { key: "key" },
    on: { change: ({ target }) => app.setKey(/** @type {HTMLInputElement} */ (target).value) },
  });
  input.value = app.server.key;
  return h("div.notice", h("label", { for: "key" }, t("key")), input, h("span.faint", t("key.says")));
}
