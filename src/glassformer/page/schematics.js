// Drawings of how the model is put together: each part leads to the view that shows it and to its chapter.

import { button, code, fill, focusOnly, h, onKeys, raw, rove, toggle } from "./dom.js";
import { t } from "./language.js";
import { DRAWINGS, NEED_SERVER } from "./state.js";

/** A plate that opens on the drawing which the address names; only an encoder-decoder has them. @param {App} app */
export function schematicPanel(app) {
  const { model } = app.run.manifest;
  if (!model.encoder_layers || !model.decoder_layers) return null;
  const picture = h("div.drawing");
  const details = h("div.part-details", { "aria-live": "polite", data: { testid: "part" } });
  const kinds = h("div.choice", { role: "group", "aria-label": t("drawing.kinds") });
  /** @param {Drawing} kind */
  const show = async (kind) => {
    fill(kinds, DRAWINGS.map(chooser));
    fill(details, h("p.hint", t("drawing.choose")));
    const drawn = await app.source.schematics(app.run.direction, app.lang);
    if (kind === app.state.drawing) picture.replaceChildren(makeInteractive(app, drawn[kind], details));
  };
  /** @param {Drawing} kind */
  const chooser = (kind) =>
    toggle(t(`drawing.${kind}`), kind === app.state.drawing, () => go(kind), {
      data: { key: `drawing:${kind}`, kind },
    });
  /** @param {State["drawing"]} drawing */
  const go = (drawing) => {
    app.go({ drawing }, { replace: true, quiet: true });
    if (drawing) show(drawing).catch((error) => app.showError(error));
  };
  const plate = h(
    "details.drawings",
    { open: app.state.drawing !== "", data: { testid: "drawings" } },
    h("summary", { data: { key: "drawings" } }, t("drawing.title"), h("span.faint", t("drawing.hint"))),
    kinds,
    h("div.drawing-and-part", picture, details),
  );
  plate.addEventListener("toggle", () => {
    if (plate.open !== (app.state.drawing !== "")) go(plate.open ? "model" : "");
  });
  if (app.state.drawing) go(app.state.drawing);
  return plate;
}

/** The drawing with parts that can be chosen. @param {App} app @param {string} text @param {HTMLElement} details */
function makeInteractive(app, text, details) {
  const drawn = document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
  const title = drawn.querySelector("title");
  drawn.setAttribute("role", "group");
  drawn.setAttribute("aria-label", title?.textContent ?? "");
  title?.remove(); // it would be said of every part that is pointed at
  const parts = /** @type {SVGElement[]} */ ([...drawn.querySelectorAll("[data-part]")]);
  /** @param {SVGElement} part */
  const choose = (part) => {
    for (const one of parts) one.classList.toggle("chosen", one === part);
    focusOnly(parts, part);
    fill(details, describePart(app, part));
  };
  for (const [i, part] of parts.entries()) {
    const { name, titled, shape } = labels(part);
    part.setAttribute("role", "button");
    part.setAttribute("tabindex", i ? "-1" : "0");
    part.setAttribute("aria-label", [titled, name, shape].filter(Boolean).join(", "));
    part.addEventListener("click", () => choose(part));
    const onEnter = onKeys(["Enter", " "], () => choose(part));
    part.addEventListener("keydown", onEnter);
  }
  rove(drawn);
  return drawn;
}

/** What a part says of itself. @param {SVGElement} part */
function labels(part) {
  const words = [...part.querySelectorAll("text")].map((one) => one.textContent ?? "");
  return {
    name: part.dataset.part ?? "",
    titled: part.querySelector(".title")?.textContent ?? "",
    shape: words.find((one) => /^\(.*\)$/.test(one)) ?? "",
  };
}

/** A part's name, and links to its view and its chapter. @param {App} app @param {SVGElement} part */
function describePart(app, part) {
  const { name, titled, shape } = labels(part);
  const view = /** @type {View | undefined} */ (part.dataset.view);
  const chapter = part.dataset.chapter ?? "";
  const there = view && (app.source.server || !NEED_SERVER.includes(view));
  const n = Number(chapter.slice(0, 2));
  return [
    h("h3", titled || (name.endsWith("+") ? t("drawing.sum") : name)),
    h("p", code(name), shape && raw(` ${shape}`, { class: "faint" })),
    h(
      "div.bar",
      there &&
        button(t("drawing.open", { view: t(`view.${view}`) }), () => openPart(app, view, name), { data: { view } }),
      app.model?.handbook
        ? h("a.button", { href: `handbook/${app.lang}/${chapter}.html`, target: "_blank" }, t("drawing.chapter", { n }))
        : h("span", t("drawing.chapter", { n }), " ", code(`docs/${app.lang}/${chapter}.md`)),
    ),
    !view && h("p.hint", t("drawing.unseen")),
  ];
}

/**
 * The view of a part, of the layer that the page looks at if it is of the same stack.
 * @param {App} app @param {View} view @param {string} part
 */
async function openPart(app, view, part) {
  const stack = part.split(".")[0];
  const [chosen, i] = app.state.layer.split(".");
  const layer = stack === chosen ? i : "0";
  const name = part.replace(/\.blocks\.\d+/, `.blocks.${layer}`).replace(/\.?\+$/, "");
  const inLayer = /\.blocks\./.test(part) ? { layer: `${stack}.${layer}` } : {};
  const tensor = view === "cell" && app.run.has(name) ? { tensor: name, cell: [] } : {};
  await app.go({ view, ...inLayer, ...tensor });
  document.getElementById(`stage-${name}`)?.scrollIntoView({ block: "start" });
}
