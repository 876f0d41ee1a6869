// Labs: what is said of Transformers, each claim run on the server as an experiment with a verdict.

import { button, code, h, raw } from "./dom.js";
import { t } from "./language.js";
import { brief, fixed, show } from "./number.js";
import { figure } from "./plot.js";

const KINDS = { holds: "holds", "holds with limits": "limited", "does not hold": "fails" };
const keyOf = (name, seed, lang) => `${name} ${seed} ${lang}`;

/** What this page knows of the labs: the list, what was found, what is running. */
class Shelf {
  lists = new Map(); // by language
  found = new Map(); // by lab, seed and language
  verdicts = new Map(); // by lab and seed
  running = null; // {name, seed, since}
  refused = null; // {name, error}
  timer = 0;
  scrolled = 0; // of the list, which every drawing makes anew
  opened = ""; // the lab whose beginning has been brought into sight
  announced = h("p.unseen", { role: "status" });
}

const shelfOf = (app) => (app.labs ??= new Shelf());

export const labs = {
  names: () => [],

  /** The list, and what the server has kept of the lab that is open. */
  async prepare(app) {
    const { lang, state } = app;
    const shelf = shelfOf(app);
    if (!shelf.lists.has(lang)) {
      const { labs: list, kept, running } = await app.source.labs(lang);
      shelf.lists.set(lang, list);
      for (const { name, seed, verdict } of kept) shelf.verdicts.set(`${name} ${seed}`, verdict);
      // A lab that this page has set going before it was loaded again: wait for it.
      if (running && !shelf.running && running.name === state.lab && running.seed === state.seed)
        start(app, running.name, running.seed);
    }
    if (!shelf.lists.get(lang).some(({ name }) => name === state.lab)) state.lab = "";
    const known = shelf.verdicts.has(`${state.lab} ${state.seed}`);
    if (known && !shelf.found.has(keyOf(state.lab, state.seed, lang))) await fetchOne(app, state.lab, state.seed);
  },

  draw(app) {
    const { lang, state } = app;
    const shelf = shelfOf(app);
    const list = shelf.lists.get(lang);
    const open = list.find(({ name }) => name === state.lab);
    return h(
      "section.view",
      app.heading("labs"),
      shelf.announced,
      h(
        "div",
        { class: `labs${open ? " open" : ""}` },
        h(
          "ol.lab-list",
          {
            "aria-label": t("labs.list"),
            on: {
              scroll: (event) => {
                shelf.scrolled = event.target.scrollTop;
              },
            },
          },
          list.map((one) => item(app, one, one === open)),
        ),
        open
          ? detail(app, open)
          : h("div.empty.lab-empty", h("p.big-hint", t("labs.choose")), h("p.faint", t("labs.chooseSays"))),
      ),
    );
  },

  shown(app) {
    const shelf = shelfOf(app);
    document.querySelector(".lab-list").scrollTop = shelf.scrolled;
    const moved = shelf.opened !== app.state.lab;
    shelf.opened = app.state.lab;
    const beginning = document.querySelector(".lab");
    if (moved && beginning && beginning.getBoundingClientRect().top < 60) beginning.scrollIntoView();
  },
};

function item(app, lab, open) {
  const shelf = shelfOf(app);
  const verdict = shelf.verdicts.get(`${lab.name} ${app.state.seed}`);
  const busy = shelf.running?.name === lab.name;
  return h(
    "li",
    button(
      [
        h("span.lab-title", lab.title),
        verdict ? badge(verdict) : busy ? h("span.badge.running", t("labs.running")) : null,
        h("span.lab-claim", lab.claim),
      ],
      () => app.go({ lab: lab.name }),
      { class: "lab-item", "aria-pressed": open ? "true" : "false", data: { key: `lab:${lab.name}`, lab: lab.name } },
    ),
  );
}

function badge(verdict, attributes = {}) {
  return h("span", { class: `badge ${KINDS[verdict]}`, ...attributes }, t(`verdict.${KINDS[verdict]}`));
}

function detail(app, lab) {
  const { state, lang } = app;
  const shelf = shelfOf(app);
  const found = shelf.found.get(keyOf(lab.name, state.seed, lang));
  const refused = shelf.refused?.name === lab.name ? shelf.refused.error : null;
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
      found && badge(found.verdict, { data: { testid: "lab-verdict", verdict: found.verdict } }),
    ),
    h("p.lab-says", lab.claim),
    h("div.two", part("labs.prediction", lab.prediction), found && part("labs.measured", found.summary)),
    controls(app, lab, found),
    refused && h("p.notice.error", { role: "alert", data: { testid: "lab-error" } }, refusal(refused)),
    found && [figure(app, found.figure), checks(found), numbers(found)],
    part("labs.change", lab.change),
    found &&
      h(
        "p.caption",
        code(`glassformer lab ${found.name} --seed ${found.seed}`),
        " \u00b7 ",
        t("labs.took", { n: fixed(found.seconds, 1) }),
      ),
  );
}

function part(title, text) {
  return h("div.lab-part", h("h4", t(title)), h("p.lede", text));
}

function controls(app, lab, found) {
  const { state } = app;
  const { running } = shelfOf(app);
  const own = running?.name === lab.name && running.seed === state.seed;
  const seed = h("input", {
    type: "text",
    inputmode: "numeric",
    class: "seed",
    value: String(state.seed),
    maxlength: 9,
    "aria-label": t("labs.seed"),
    data: { key: "lab-seed", testid: "lab-seed" },
  });
  const asked = () => (/^\d{1,9}$/.test(seed.value.trim()) ? Number(seed.value.trim()) : null);
  const go = async () => {
    const wanted = asked();
    seed.toggleAttribute("aria-invalid", wanted === null);
    if (wanted === null) return seed.focus();
    if (shelfOf(app).running) return undefined;
    if (wanted !== state.seed) await app.go({ seed: wanted });
    return start(app, lab.name, wanted);
  };
  seed.addEventListener("keydown", (event) => event.key === "Enter" && go());
  return h(
    "div.lab-controls",
    // Not `disabled`, which would take the focus away from whoever pressed it.
    button(t(own ? "labs.running" : found ? "labs.again" : "labs.run"), go, {
      class: "solid",
      "aria-disabled": running ? "true" : null,
      data: { key: "lab-run", testid: "lab-run" },
    }),
    h("label.inline-label", h("span.label", t("labs.seed")), seed),
    own
      ? h(
          "span.lab-progress",
          h("progress", { "aria-label": t("labs.running") }),
          h("span.faint", { data: { elapsed: "" } }),
        )
      : running
        ? h("span.faint", t("labs.wait", { name: titleOf(app, running.name) }))
        : null,
  );
}

function titleOf(app, name) {
  return (
    shelfOf(app)
      .lists.get(app.lang)
      .find((one) => one.name === name)?.title ?? name
  );
}

function refusal(error) {
  if (error.code === "lab_busy") return t("error.lab_busy", error.values);
  if (error.code === "offline") return t("error.offline");
  return [t("labs.failed"), " ", raw(error.message)];
}

async function fetchOne(app, name, seed) {
  const { lang } = app;
  const shelf = shelfOf(app);
  const found = await app.source.lab(name, seed, lang);
  shelf.found.set(keyOf(name, seed, lang), found);
  shelf.verdicts.set(`${name} ${seed}`, found.verdict);
  return found;
}

/** Run a lab on the server; the page stays as usable as before. */
async function start(app, name, seed) {
  const shelf = shelfOf(app);
  const since = performance.now();
  shelf.running = { name, seed, since };
  shelf.refused = null;
  shelf.announced.textContent = "";
  const tick = () => {
    const place = document.querySelector("[data-elapsed]");
    if (place) place.textContent = t("labs.took", { n: fixed((performance.now() - since) / 1000, 0) });
  };
  shelf.timer = setInterval(tick, 250);
  refresh(app);
  let told = "";
  try {
    const found = await fetchOne(app, name, seed);
    told = `${found.title}: ${t(`verdict.${KINDS[found.verdict]}`)}`;
  } catch (error) {
    shelf.refused = { name, error };
  } finally {
    clearInterval(shelf.timer);
    shelf.running = null;
  }
  await refresh(app);
  shelf.announced.textContent = told;
}

/** Draw again, if the labs are what is looked at. */
function refresh(app) {
  return app.state.view === "labs" ? app.redraw() : Promise.resolve();
}

function checks(found) {
  const limit = ({ low, high }) => {
    const [least, most] = [number(low), number(high)];
    if (least === most) return `= ${brief(least)}`;
    if (Number.isFinite(least) && Number.isFinite(most))
      return t("labs.between", { low: brief(least), high: brief(most) });
    return Number.isFinite(least) ? `\u2265 ${brief(least)}` : `\u2264 ${brief(most)}`;
  };
  return h(
    "div.plate",
    h("h4", t("labs.checks")),
    h("p.caption", t("labs.checksSay")),
    h(
      "div.scroll",
      h(
        "table.numbers.lab-checks",
        { data: { testid: "lab-checks" } },
        h(
          "thead",
          h(
            "tr",
            h("th"),
            h("th"),
            h("th", { scope: "col", class: "num" }, t("labs.value")),
            h("th", { scope: "col", class: "num" }, t("labs.bounds")),
          ),
        ),
        h(
          "tbody",
          found.checks.map((check) =>
            h(
              "tr",
              { data: { passed: check.passed } },
              h(
                "td",
                {
                  class: `check-mark ${check.passed ? "holds" : "fails"}`,
                  "aria-label": t(check.passed ? "labs.passed" : "labs.notPassed"),
                },
                check.passed ? "\u2713" : "\u2717",
              ),
              h("td.words", check.text, check.extent && h("span.faint", " \u00b7 ", t("labs.extent"))),
              h("td.num", raw(show(number(check.value)))),
              h("td.num", raw(limit(check))),
            ),
          ),
        ),
      ),
    ),
  );
}

function numbers(found) {
  return h(
    "div.plate",
    h("h4", t("labs.numbers")),
    h(
      "div.scroll",
      h(
        "table.numbers",
        { data: { testid: "lab-numbers" } },
        h(
          "tbody",
          Object.entries(found.numbers).map(([name, value]) =>
            h("tr", h("td.words", name), h("td.num", raw(show(number(value))))),
          ),
        ),
      ),
    ),
  );
}

/** JSON has no infinity; the server sends its name. */
function number(value) {
  return typeof value === "number" ? value : ({ inf: Infinity, "-inf": -Infinity }[value] ?? NaN);
}
