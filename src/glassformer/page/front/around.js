// What stands around the two texts: the top, the languages, what can be done, what went wrong.

import { button, fill, focusedKey, h, raw, refocus, svg, toggle } from "../dom.js";
import { LANGUAGES, nameOf, t, WRITTEN, whole } from "./language.js";

const MANY = 5; // languages, more than a row of buttons holds

/** Drawn with one line, on a field of 24 by 24. */
const MARKS = {
  swap: "M7 4 3 8l4 4M3 8h14M17 12l4 4-4 4M21 16H7",
  clear: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  done: "M4 12l5 5L20 6",
  file: "M12 16V4M7 9l5-5 5 5M4 16v4h16v-4",
  look: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
};

/** @param {keyof typeof MARKS} name */
export const mark = (name) =>
  svg("svg.mark", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: MARKS[name] }));

/** Fill a place anew, and leave the focus where it was. @param {HTMLElement} place @param {Child[]} children */
function refill(place, ...children) {
  const focused = place.contains(document.activeElement) ? focusedKey() : null;
  fill(place, ...children);
  refocus(focused);
}

/** @param {Front} app @param {HTMLElement} place */
export function drawTop(app, place) {
  const dark = document.documentElement.dataset.theme === "dark";
  const names = { en: "EN", de: "DE", zh: "中文" };
  refill(
    place,
    h("div.brand", raw("glassformer", { class: "wordmark" })),
    h("span.spring"),
    h(
      "a.button.quiet",
      { href: `look#lang=${app.lang === "zh" ? "zh" : "en"}`, "aria-label": t("top.look"), data: { key: "to-look" } },
      mark("look"),
      h("span.broad", t("top.look")),
    ),
    h(
      "div.choice.small",
      { role: "group", "aria-label": t("language") },
      LANGUAGES.map((lang) =>
        toggle(raw(names[lang], { lang: WRITTEN[lang] }), app.lang === lang, () => app.go({ lang }), {
          data: { key: `lang:${lang}`, lang },
        }),
      ),
    ),
    button(h("span.theme-mark", { "aria-hidden": "true" }), () => app.go({ theme: dark ? "light" : "dark" }), {
      class: "icon",
      "aria-label": `${t("theme")}: ${t(dark ? "theme.dark" : "theme.light")}`,
      data: { key: "theme" },
    }),
  );
}

/** @param {Front} app @param {HTMLElement} place */
export function drawBar(app, place) {
  const { state, ways, detected, from, to } = app;
  const auto = detected ? t("detected", { language: nameOf(detected) }) : t("detect");
  const chosen = { from: ways.known(state.from) ? state.from : "", to };
  /** @param {"from" | "to"} side @param {string} code */
  const off = (side, code) => side === "to" && !ways.leads(from, code) && state.from !== code;
  /** @param {"from" | "to"} side */
  const choice = (side) => {
    const codes = side === "from" ? ["", ...ways.codes] : ways.codes;
    const name = (/** @type {string} */ code) => (code ? nameOf(code) : auto);
    const buttons = codes.map((code) =>
      toggle(name(code), chosen[side] === code, () => app.choose(side, code), {
        disabled: off(side, code),
        data: { key: `${side}:${code}`, [side]: code },
      }),
    );
    // Where there is no room for buttons, the same as a list that opens.
    const list = h(
      "select.narrow",
      {
        "aria-label": t(side),
        data: { key: `${side}-list`, testid: `${side}-list` },
        on: { change: (event) => app.choose(side, /** @type {HTMLSelectElement} */ (event.target).value) },
      },
      codes.map((code) =>
        h("option", { value: code, selected: chosen[side] === code, disabled: off(side, code) }, name(code)),
      ),
    );
    return [h("div.choice.broad", { role: "group", "aria-label": t(side) }, buttons), list];
  };
  place.toggleAttribute("data-many", ways.codes.length > MANY);
  refill(
    place,
    choice("from"),
    button(mark("swap"), () => app.swap(), {
      class: "icon swap",
      "aria-label": t("swap"),
      title: `${t("swap")} (Alt+Shift+S)`,
      disabled: !app.turns,
      data: { key: "swap" },
    }),
    choice("to"),
  );
}

/** What is below the two texts, and what there is to say. @param {Front} app */
export function drawFoot(app) {
  const { lines, state, place, files } = app;
  const some = state.q.trim() !== "";
  const { all, done } = lines;
  refill(
    place.below,
    files.offered &&
      button([mark("file"), t("file.choose")], () => files.choose(), { class: "quiet", data: { key: "file" } }),
    h("span.spring"),
    some && h("span.faint", t("characters", { n: whole([...state.q].length) })),
    some &&
      button(mark("clear"), () => app.clear(), {
        class: "icon",
        "aria-label": t("clear"),
        title: `${t("clear")} (Alt+Shift+X)`,
        data: { key: "clear" },
      }),
  );
  refill(
    place.beside,
    app.abort && done < all && progress(done, all),
    h("span.spring"),
    done > 0 &&
      button([mark("look"), t("look")], () => app.words.inside(), {
        class: "quiet",
        title: t("look.says"),
        data: { key: "look" },
      }),
    done > 0 &&
      button([mark(app.copied ? "done" : "copy"), t(app.copied ? "copied" : "copy")], () => app.copy(), {
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
      h("div.notice", { role: "status", data: { testid: "unsure" } }, t("unsure", { language: nameOf(app.detected) })),
    app.error ? h("div.notice.error", { role: "alert", data: { testid: "error" } }, app.tell(app.error)) : null,
  );
  refill(place.foot, h("p.faint", t("foot")), h("p.faint.keys", t("keys")));
}

/** @param {number} done @param {number} all */
function progress(done, all) {
  const says = t("progress", { done: whole(done), all: whole(all) });
  return h(
    "span.progress",
    { data: { testid: "progress" } },
    h("progress", { value: done, max: all, "aria-label": says }),
    all > 1 && h("span.faint", says),
  );
}

/** @param {Front} app */
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
