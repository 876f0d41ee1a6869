// From which language into which: what the models of this page can do, and the way from one to another.

import { fill, h, raw, toggle } from "./dom.js";
import { t } from "./language.js";

/** What a language is called in the page's own; its code where nobody knows. @param {Frame} app @param {string} code */
export function nameOf(app, code) {
  return code ? (new Intl.DisplayNames([app.lang], { type: "language", fallback: "code" }).of(code) ?? code) : "";
}

/** With the model's name, where another goes the same way. @param {Frame} app @param {Direction} direction */
function titleOf(app, { source, target, model }) {
  const same = app.model?.directions.filter((one) => one.source === source && one.target === target) ?? [];
  const whose = same.length > 1 ? ` (${model})` : "";
  return `${nameOf(app, source) || t("direction.any")} \u2192 ${nameOf(app, target)}${whose}`;
}

/**
 * The directions to choose from, and what the model is; nothing where there is no choice.
 * @param {Frame} app
 * @param {HTMLElement} place
 */
export function drawDirections(app, place) {
  const { model } = app;
  place.hidden = !model || model.directions.length < 2;
  if (!model || place.hidden) return;
  const { direction } = app.state;
  const asked = model.directions.some((one) => one.name === direction) ? direction : model.direction;
  const choices = model.directions.map((one) =>
    toggle(raw(titleOf(app, one)), one.name === asked, () => turn(app, one), {
      data: { key: `direction:${one.name}`, direction: one.name },
    }),
  );
  fill(
    place,
    h("div.choice.small", { role: "group", "aria-label": t("direction") }, choices),
    h("p.faint", { data: { testid: "about" } }, raw(model.model.name), " ", sayModel(app, model)),
  );
}

/** @param {Frame} app @param {ServerFacts} model */
function sayModel(app, { model, about, directions }) {
  const own = directions.filter((one) => one.model === model.name);
  const names = [...new Set(own.flatMap(({ source, target }) => [source, target]))].filter(Boolean);
  const languages = new Intl.ListFormat(app.lang, { type: "conjunction" }).format(names.map((one) => nameOf(app, one)));
  const both = names.length === 2 && own.length === 2;
  const purpose = (app.lang === "zh" && about.purpose_zh) || about.purpose;
  return [
    t(both ? "direction.both" : "direction.among", { languages }),
    purpose && t("direction.purpose", { purpose }),
  ];
}

/**
 * Go another way: on with the same sentence where it is in the language, back with its translation where that is, and
 * else with the first example.
 * @param {Frame} app
 * @param {Direction} next
 */
async function turn(app, next) {
  const { model: before, run } = app;
  const now = before?.directions.find((one) => one.name === before.direction);
  if (!now || now.name === next.name) return;
  app.sentence.busy(true);
  let facts;
  try {
    facts = await app.source.model(next.name);
  } catch (error) {
    app.sentence.busy(false);
    return app.fail(error);
  }
  const stays = next.source === now.source && app.state.text;
  const turned = next.source === now.target && run?.manifest.output?.text;
  const text = stays || turned || (facts.examples[0]?.text ?? "");
  app.sentence.input.value = text;
  await app.go({ direction: next.name, text, changes: [], prefix: [], cell: [], step: 0, token: "" });
  const values = { model: next.model, target: nameOf(app, next.target), tag: app.run?.manifest.source.pieces[0] ?? "" };
  const told = app.run?.manifest.source.tag ? [t("direction.tag", values)] : [];
  app.say(
    [
      t(next.model === now.model ? "direction.same" : "direction.other", values),
      ...told,
      ...(turned && !stays ? [t("direction.turned")] : []),
    ].join(app.lang === "zh" ? "" : " "),
  );
}
