// Labs: what is said of Transformers, each claim run on the server as an experiment with a verdict.

import { button, code, columnHead, h, numberCell, table, toggle } from "./dom.js";
import { errorText, t } from "./language.js";
import { brief, fixed, show } from "./number.js";

/** @type {Record<Verdict, string>} */
const KINDS = { holds: "holds", "holds with limits": "limited", "does not hold": "fails", "not decided": "open" };
/** @param {string} name @param {number} seed @param {Language} lang */
const keyOf = (name, seed, lang) => `${name} ${seed} ${lang}`;

/** The labs as this page has them: the list, the reports, the lab that is running. */
export class LabStore {
  /** @type {Map<Language, Lab[]>} */
  lists = new Map();
  /** @type {Map<string, LabReport>} */
  reports = new Map(); // by lab, seed and language
  /** @type {Map<string, Verdict>} */
  verdicts = new Map(); // by lab and seed
  /** @type {LabRun | null} */
  running = null;
  /** @type {{name: string, error: unknown} | null} */
  refused = null;
  timer = 0;
  scrolled = 0; // of the list, which every drawing makes anew
  opened = ""; // the lab whose beginning has been brought into sight
  announced = h("p.unseen", { role: "status" });
}

/** @param {App} app */
const storeOf = (app) => (app.labs ??= new LabStore());

/** @param {App} app */
const listOf = (app) => storeOf(app).lists.get(app.lang) ?? [];

/** This view needs one. @param {App} app */
const serverOf = (app) => /** @type {import("./source.js").ServerSource} */ (app.source);

/** @type {Painter} */
export const labs = {
  /** The list, and what the server has kept of the lab that is open. */
  async prepare(app) {
    const { lang, state } = app;
    const store = storeOf(app);
    if (!store.lists.has(lang)) {
      const { labs: list, kept, running } = await serverOf(app).labs(lang);
      store.lists.set(lang, list);
      for (const { name, seed, verdict } of kept) store.verdicts.set(`${name} ${seed}`, verdict);
      // A lab that this page has set going before it was loaded again: wait for it.
      if (running && !store.running && running.name === state.lab && running.seed === state.seed)
        start(app, running.name, running.seed);
    }
    if (!listOf(app).some(({ name }) => name === state.lab)) state.lab = "";
    const known = store.verdicts.has(`${state.lab} ${state.seed}`);
    if (known && !store.reports.has(keyOf(state.lab, state.seed, lang))) await fetchOne(app, state.lab, state.seed);
  },

  draw(app) {
    const store = storeOf(app);
    const list = listOf(app);
    const open = list.find(({ name }) => name === app.state.lab);
    const items = list.map((one) => item(app, one, one === open));
    const names = h("ol.lab-list", { "aria-label": t("labs.list") }, items);
    names.addEventListener("scroll", () => {
      store.scrolled = names.scrollTop;
    });
    const empty = h("div.empty.lab-empty", h("p.big-hint", t("labs.choose")), h("p.faint", t("labs.chooseSays")));
    const content = h("div", { class: `labs${open ? " open" : ""}` }, names, open ? detail(app, open) : empty);
    return h("section.view", app.heading("labs"), store.announced, content);
  },

  shown(app) {
    const store = storeOf(app);
    const list = document.querySelector(".lab-list");
    if (list) list.scrollTop = store.scrolled;
    const moved = store.opened !== app.state.lab;
    store.opened = app.state.lab;
    const beginning = document.querySelector(".lab");
    if (moved && beginning && beginning.getBoundingClientRect().top < 60) beginning.scrollIntoView();
  },
};

/** @param {App} app @param {Lab} lab @param {boolean} open */
function item(app, lab, open) {
  const store = storeOf(app);
  const verdict = store.verdicts.get(`${lab.name} ${app.state.seed}`);
  const busy = store.running?.name === lab.name;
  return h(
    "li",
    toggle(
      [
        h("span.lab-title", lab.title),
        verdict ? badge(verdict) : busy ? h("span.badge.running", t("labs.running")) : null,
        h("span.lab-claim", lab.claim),
      ],
      open,
      () => app.go({ lab: lab.name }),
      { class: "lab-item", data: { key: `lab:${lab.name}`, lab: lab.name } },
    ),
  );
}

/** @param {Verdict} verdict @param {Attributes} [attributes] */
function badge(verdict, attributes = {}) {
  return h("span", { class: `badge ${KINDS[verdict]}`, ...attributes }, t(`verdict.${KINDS[verdict]}`));
}

/** @param {App} app @param {Lab} lab */
function detail(app, lab) {
  const { state, lang } = app;
  const store = storeOf(app);
  const report = store.reports.get(keyOf(lab.name, state.seed, lang));
  const refused = store.refused?.name === lab.name ? store.refused.error : null;
  return h(
    "article.lab",
    { data: { testid: "lab", lab: lab.name } },
    button(["\u2190 ", t("labs.all")], () => app.go({ lab: "" }), {
      class: "quiet lab-back",
      data: { key: "lab-back" },
    }),
    h(
      "h3.lab-head",
      lab.title,
      report && badge(report.verdict, { data: { testid: "lab-verdict", verdict: report.verdict } }),
    ),
    h("p.lab-says", lab.claim),
    h("div.two", part("labs.prediction", lab.prediction), report && part("labs.measured", report.summary)),
    controls(app, lab, report),
    refused !== null &&
      h("p.notice.error", { role: "alert", data: { testid: "lab-error" } }, errorText(refused, "labs.failed")),
    report && [figure(report), checks(report), numbers(report)],
    part("labs.change", lab.change),
    report &&
      h(
        "p.caption",
        code(`glassformer lab ${report.name} --seed ${report.seed} --seeds ${report.seeds.length}`),
        " \u00b7 ",
        t("labs.took", { n: fixed(report.seconds, 1) }),
      ),
  );
}

/** @param {string} title @param {string} text */
function part(title, text) {
  return h("div.lab-part", h("h4", t(title)), h("p.lede", text));
}

/** @param {App} app @param {Lab} lab @param {LabReport} [report] */
function controls(app, lab, report) {
  const { state } = app;
  const { running } = storeOf(app);
  const own = running?.name === lab.name && running.seed === state.seed;
  const seed = h("input", {
    type: "text",
    inputmode: "numeric",
    class: "seed",
    value: String(state.seed),
    pattern: "[0-9]{1,9}",
    required: true,
    "aria-label": t("labs.seed"),
    data: { key: "lab-seed", testid: "lab-seed" },
  });
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (storeOf(app).running) return;
    const wanted = Number(seed.value);
    if (wanted !== state.seed) await app.go({ seed: wanted });
    start(app, lab.name, wanted);
  };
  return h(
    "form.lab-controls",
    { on: { submit } },
    // Not `disabled`, which would take the focus away from whoever pressed it.
    h(
      "button.solid",
      { type: "submit", "aria-disabled": running ? "true" : null, data: { key: "lab-run", testid: "lab-run" } },
      t(own ? "labs.running" : report ? "labs.again" : "labs.run"),
    ),
    h("label.inline-label", h("span.label", t("labs.seed")), seed),
    own
      ? h(
          "span.lab-progress",
          h("progress", { "aria-label": t("labs.running") }),
          h("span.faint", { data: { elapsed: "" } }),
        )
      : running
        ? h(
            "span.faint",
            t("labs.wait", { name: listOf(app).find((one) => one.name === running.name)?.title ?? running.name }),
          )
        : null,
  );
}

/** @param {App} app @param {string} name @param {number} seed */
async function fetchOne(app, name, seed) {
  const { lang } = app;
  const store = storeOf(app);
  const report = await serverOf(app).lab(name, seed, lang);
  store.reports.set(keyOf(name, seed, lang), report);
  store.verdicts.set(`${name} ${seed}`, report.verdict);
  return report;
}

/**
 * Run a lab on the server; the page stays as usable as before.
 * @param {App} app
 * @param {string} name
 * @param {number} seed
 */
async function start(app, name, seed) {
  const store = storeOf(app);
  const since = performance.now();
  store.running = { name, seed };
  store.refused = null;
  store.announced.textContent = "";
  const tick = () => {
    const place = document.querySelector("[data-elapsed]");
    if (place) place.textContent = t("labs.took", { n: fixed((performance.now() - since) / 1000, 0) });
  };
  store.timer = setInterval(tick, 250);
  refresh(app);
  let told = "";
  try {
    const report = await fetchOne(app, name, seed);
    told = `${report.title}: ${t(`verdict.${KINDS[report.verdict]}`)}`;
  } catch (error) {
    store.refused = { name, error };
  } finally {
    clearInterval(store.timer);
    store.running = null;
  }
  await refresh(app);
  store.announced.textContent = told;
}

/** Draw again, if the labs are what is looked at. @param {App} app */
function refresh(app) {
  return app.state.view === "labs" ? app.redraw() : Promise.resolve();
}

/** @type {Record<Check["outcome"], [string, string, string]>} */
const OUTCOMES = {
  passed: ["\u2713", "holds", "labs.passed"],
  failed: ["\u2717", "fails", "labs.notPassed"],
  open: ["?", "open", "labs.open"],
};

/** The figure as the server has drawn it, or what the server lacks to draw it. @param {LabReport} report */
function figure({ figure: { caption, panels }, svg }) {
  if (svg === null) return h("p.notice", t("labs.noFigure"), " ", code("pip install 'glassformer[plot]'"));
  const dark = document.documentElement.dataset.theme === "dark";
  // A picture follows the system's theme, and has to follow the page's.
  const themed = svg.replace("(prefers-color-scheme:dark)", dark ? "all" : "not all");
  const src = `data:image/svg+xml,${encodeURIComponent(themed)}`;
  const alt = panels.map(({ title }) => title).join("; ");
  return h(
    "figure.lab-figure",
    { data: { testid: "lab-figure" } },
    h("div.plate.lab-picture", { tabindex: 0 }, h("img", { src, alt })),
    caption && h("figcaption.caption", caption),
  );
}

/** @param {LabReport} report */
function checks(report) {
  /** @param {Check} check */
  const limit = ({ low, high }) => {
    const [least, most] = [number(low), number(high)];
    if (least === most) return `= ${brief(least)}`;
    if (!Number.isFinite(least)) return `\u2264 ${brief(most)}`;
    if (!Number.isFinite(most)) return `\u2265 ${brief(least)}`;
    return t("labs.between", { low: brief(least), high: brief(most) });
  };
  const rows = report.checks.map((check) => {
    const [sign, kind, words] = OUTCOMES[check.outcome];
    const mark = { class: `check-mark ${kind}`, "aria-label": t(words) };
    return h(
      "tr",
      { data: { passed: check.passed } },
      h("td", mark, sign),
      h("td.words", check.text, check.extent && h("span.faint", " \u00b7 ", t("labs.extent"))),
      numberCell(meanOf(check.value, check)),
      numberCell(limit(check)),
    );
  });
  const num = { class: "num" };
  const head = [h("th"), h("th"), columnHead(t("labs.value"), num), columnHead(t("labs.bounds"), num)];
  const attributes = { class: "numbers lab-checks", data: { testid: "lab-checks" } };
  return h(
    "div.plate",
    h("h4", t("labs.checks")),
    h("p.caption", t("labs.checksSay")),
    table(attributes, { head, rows }),
  );
}

/** @param {LabReport} report */
function numbers(report) {
  const rows = Object.entries(report.numbers).map(([name, value]) =>
    h("tr", h("td.words", name), numberCell(meanOf(value, report.spreads[name]))),
  );
  return h("div.plate", h("h4", t("labs.numbers")), table({ data: { testid: "lab-numbers" } }, { rows }));
}

/** A mean and half its interval, to the same place. @param {number | string} value @param {Spread} spread */
function meanOf(value, spread) {
  const mean = number(value);
  const half = number(spread.interval[1]) - mean;
  if (!(half > 0) || !Number.isFinite(half)) return show(mean);
  if (half < 1e-3 || half >= 1e5) return `${show(mean)} \u00b1 ${show(half, 2)}`;
  const decimals = Math.max(0, 1 - Math.floor(Math.log10(half)));
  return `${fixed(mean, decimals)} \u00b1 ${fixed(half, decimals)}`;
}

/** JSON has no infinity; the server sends its name. @param {number | string} value */
function number(value) {
  if (typeof value === "number") return value;
  return value === "inf" ? Infinity : value === "-inf" ? -Infinity : NaN;
}
