// The views by their names, and what stands in their place where there is nothing to show.

import { h } from "./dom.js";
import { aboutText } from "./header.js";
import { t } from "./language.js";
import { answer } from "./view_answer.js";
import { block } from "./view_block.js";
import { cache } from "./view_cache.js";
import { cell } from "./view_cell.js";
import { decode } from "./view_decode.js";
import { flow } from "./view_flow.js";
import { image } from "./view_image.js";
import { labs } from "./view_labs.js";
import { positions } from "./view_positions.js";
import { trace } from "./view_trace.js";
import { whatif } from "./view_whatif.js";

/** @type {Record<View, Painter>} */
const PAINTERS = { flow, block, cell, positions, decode, answer, cache, whatif, trace, labs };

/** What draws a view: an image shows where it goes by itself. @param {View} view @param {Task} task */
export const painterOf = (view, task) => (view === "flow" && task === "image" ? image : PAINTERS[view]);

/**
 * In place of a view where there is no run to look at; what is amiss stands under the sentence.
 * @type {Painter}
 */
export const emptyView = {
  draw: (app) =>
    h(
      "section.view",
      h(
        "div.empty",
        { data: { testid: app.error ? "refused" : "empty" } },
        app.error
          ? h("p.big-hint", t("none.refused"))
          : [h("p.big-hint", t("none.empty")), h("p.faint", aboutText(app), " ", t("none.emptySays"))],
      ),
    ),
};
