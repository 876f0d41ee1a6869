// Answer: what a model that writes nothing makes of what it read: what would fill its gaps, or a label for the whole.

import { answerBars } from "./chart.js";
import { h, raw } from "./dom.js";
import { t } from "./language.js";

const FEW = 3; // candidates of a place that is no gap

/** @type {Painter} */
export const answer = {
  draw(app) {
    const { answer: found, model } = app.run.manifest;
    const gaps = found?.kind === "fill";
    const none = gaps && !found.masked && t(model.mask ? "answer.none" : "answer.noneIds", { mask: model.mask });
    return h(
      "section.view",
      app.heading("answer"),
      none && h("div.notice", { data: { testid: "no-gap" } }, none),
      h(
        "div.answer",
        found?.places.map((place) =>
          h(
            "div.plate",
            gaps && h("h3", t("answer.place", { n: place.position }), " ", raw(place.piece, { class: "token src" })),
            answerBars(place, gaps && !found.masked ? FEW : place.top.length),
          ),
        ),
      ),
      h("p.caption", t("answer.columns")),
    );
  },
};
