// Flow: every token a line, from the source through the encoder, along the ribbons of cross-attention, through the
// decoder to the word it writes.

import { colourOf } from "./colour.js";
import { button, h, onKeys, rove, svg, zoom } from "./dom.js";
import { follow } from "./follow.js";
import { t } from "./language.js";
import { percent } from "./number.js";
import { attentionsOf, blockName, sheetOf } from "./tensors.js";
import { candidates } from "./view_decode.js";

const TOP = 58;
const FAINT = 0.03; // a share below this is not drawn
const MOST = 600_000; // bytes that are fetched before the first picture; the rest is drawn when it comes

/** The layer whose cross-attention is drawn: the one the page looks at, else the last. */
function crossLayer(app) {
  const cross = attentionsOf(app.run).filter((one) => one.attention === "cross_attention");
  return cross.find((one) => one.layer === app.state.layer) ?? cross.at(-1) ?? null;
}

function streams(run, stack) {
  const { model } = run.manifest;
  const layers = stack === "encoder" ? model.encoder_layers : model.decoder_layers;
  return [`${stack}.embedding`, ...Array.from({ length: layers }, (_, i) => `${stack}.blocks.${i}`)].filter((name) =>
    run.has(name),
  );
}

/** What the picture shows, the most telling first: ribbons, the ends of both streams, threads, the streams between. */
function wanted(app) {
  const { run } = app;
  const cross = crossLayer(app);
  const [encoder, decoder] = [streams(run, "encoder"), streams(run, "decoder")];
  const ends = [encoder[0], encoder.at(-1), decoder[0], decoder.at(-1)].filter(Boolean);
  const threads = attentionsOf(run)
    .filter((one) => one.attention === "self_attention")
    .map((one) => one.name);
  return [...new Set([...(cross ? [cross.name] : []), ...ends, ...threads, ...encoder, ...decoder])];
}

/** The share that query i gives key j: of one head, or the mean of all where none is chosen or there are fewer. */
function shares(run, name, chosen) {
  const [heads, rows, cols] = run.entry(name).shape;
  const head = chosen === null || chosen < heads ? chosen : null;
  const values = run.values(name);
  return (i, j) => {
    if (head !== null) return values[(head * rows + i) * cols + j];
    let total = 0;
    for (let k = 0; k < heads; k++) total += values[(k * rows + i) * cols + j];
    return total / heads;
  };
}

export const flow = {
  names(app) {
    let size = 0;
    return wanted(app).filter((name, i) => {
      size += app.run.entry(name).bytes;
      return i === 0 || size <= MOST;
    });
  },

  draw(app) {
    const { run } = app;
    const cross = crossLayer(app);
    const picture = h("div.flow", { data: { testid: "flow" } });
    const root = h(
      "section.view",
      app.heading("flow", cross && chooser(app, cross), t(cross ? "says.flow" : "says.flow.one")),
      picture,
      h(
        "p.caption",
        t(cross ? "flow.caption" : "flow.captionOne", {
          head: app.flowHead === null ? t("flow.meanOf") : t("flow.head", { n: app.flowHead }),
        }),
      ),
    );
    const redraw = () => {
      const width = picture.clientWidth;
      if (!width || width === redraw.width) return;
      redraw.width = width;
      const drawn = compose(app, run, cross, width / zoom());
      picture.replaceChildren(...drawn);
      follow(app, drawn);
    };
    app.resized(picture, redraw);
    const rest = wanted(app).filter((name) => !run.isLoaded(name));
    if (rest.length) {
      run.need(rest).then(
        () => {
          redraw.width = 0;
          if (picture.isConnected) redraw();
        },
        () => {},
      ); // the picture stands without it
    }
    return root;
  },
};

/** Which head's threads and ribbons: the mean of all, or one. */
function chooser(app, cross) {
  const chosen = app.flowHead;
  const pick = (head) =>
    button(
      head === null ? t("flow.mean") : String(head),
      () => {
        app.flowHead = head;
        app.redraw();
      },
      {
        role: "radio",
        "aria-checked": chosen === head ? "true" : "false",
        tabindex: chosen === head ? "0" : "-1",
        "aria-label": head === null ? t("flow.mean") : t("flow.head", { n: head }),
        data: { key: `flow-head:${head}` },
      },
    );
  const heads = h(
    "div.choice",
    { role: "radiogroup", "aria-label": t("flow.heads") },
    pick(null),
    Array.from({ length: cross.heads }, (_, i) => pick(i)),
  );
  rove(heads, "button");
  return h("div.bar", h("span.label", t("flow.ribbons", { layer: cross.i })), heads);
}

function compose(app, run, cross, width) {
  const { source, target } = run.manifest;
  const encoder = streams(run, "encoder");
  const decoder = streams(run, "decoder");
  const parts = [];
  if (encoder.length)
    parts.push({
      draw: stack,
      key: "encoder",
      names: encoder,
      rows: source.pieces.length,
      labels: source.pieces,
      side: "src",
    });
  if (cross) parts.push({ draw: ribbons, key: "cross" });
  if (decoder.length)
    parts.push({
      draw: stack,
      key: "decoder",
      names: decoder,
      rows: target.pieces.length,
      labels: target.pieces,
      side: "tgt",
    });
  const row = rowHeight(Math.max(source.pieces.length, target.pieces.length));
  const height = (rows) => TOP + rows * row + 14;
  const tallest = Math.max(...parts.map((part) => (part.rows ? height(part.rows) : 0)));
  const blocks = encoder.length + decoder.length;
  if (width >= 760 + 40 * Math.max(0, blocks - 6)) {
    const between = cross ? Math.max(130, Math.min(260, width * 0.17)) : 0;
    const share = (width - between) / (blocks + 2.4);
    const widths = { encoder: share * (encoder.length + 0.6), cross: between, decoder: share * (decoder.length + 1.8) };
    const total = svg("svg", {
      viewBox: `0 0 ${width} ${tallest}`,
      width: width * zoom(),
      height: tallest * zoom(),
      class: "flow-picture",
      role: "group",
      "aria-label": t("view.flow"),
    });
    let x = 0;
    for (const part of parts) {
      total.append(part.draw(app, run, { ...part, x, width: widths[part.key], height: tallest, cross, row }));
      x += widths[part.key];
    }
    return [total];
  }
  return parts.map((part) => {
    const tall = part.rows ? height(part.rows) : height(Math.max(source.pieces.length, target.pieces.length));
    const one = svg("svg", {
      viewBox: `0 0 ${width} ${tall}`,
      width: width * zoom(),
      height: tall * zoom(),
      class: "flow-picture",
      role: "group",
      "aria-label": t(`flow.${part.key}`),
    });
    one.append(part.draw(app, run, { ...part, x: 0, width, height: tall, cross, row, alone: true }));
    return one;
  });
}

/** Few tokens stand wide apart, many close together. */
function rowHeight(rows) {
  return rows <= 7 ? 42 : rows <= 12 ? 32 : rows <= 24 ? 26 : 20;
}

/** The middle of a token's line, the lines centred in the height there is. */
function lineAt(rows, height, row) {
  const start = TOP + (height - TOP - 14 - rows * row) / 2;
  return (i) => start + (i + 0.5) * row;
}

/** One stack: its tokens, its blocks with the threads of self-attention, the stream between them. */
function stack(app, run, { key, names, rows, labels, side, x, width, height, row }) {
  const y = lineAt(rows, height, row);
  const group = svg("g", { class: `stack ${key}` });
  const label = Math.min(100, width * 0.24, 16 + 8 * Math.max(...labels.map((one) => [...one].length)));
  const writes = key === "decoder" ? Math.min(168, Math.max(116, width * 0.24)) : 0;
  const count = names.length - 1;
  const strip = Math.max(6, Math.min(34, (width - label - writes) * (count > 3 ? 0.03 : 0.06)));
  const block = count ? (width - label - writes - (count + 1) * (strip + 12)) / count : 0;
  group.append(svg("text", { x: x + 2, y: 20, class: "stack-name" }, t(`stack.${key}`)));
  labels.forEach((piece, i) => {
    const padding =
      (side === "src" || run.manifest.model.kind === "decoder-only") && run.manifest.source.real[i] === false;
    group.append(
      svg("line", { x1: x + label, x2: x + width - writes, y1: y(i), y2: y(i), class: "thread" }),
      piecePlace(x, label, y(i), row, side, i),
      svg(
        "text",
        {
          x: x + label - 8,
          y: y(i) + 4,
          class: `piece${padding ? " padding" : ""}`,
          translate: "no",
          "data-side": side,
          "data-index": i,
        },
        shorten(piece, label),
      ),
    );
  });
  let at = x + label + 4;
  names.forEach((name, n) => {
    if (run.isLoaded(name)) group.append(stripOf(run, name, at, strip, y, row));
    at += strip + 6;
    if (n < count) {
      group.append(blockOf(app, run, key, n, at, block, y, rows, row));
      at += block + 6;
    }
  });
  if (writes) group.append(...written(run, x + width - writes, writes, y, rows));
  return group;
}

/** All of a token's place can be pointed at, not its letters alone. */
function piecePlace(x, width, y, row, side, i) {
  return svg("rect", {
    x,
    y: y - row / 2,
    width,
    height: row,
    class: "piece-place",
    "data-side": side,
    "data-index": i,
  });
}

function shorten(piece, room) {
  const most = Math.max(2, Math.floor((room - 10) / 7.6));
  const letters = [...piece];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}\u2026` : piece;
}

/** The vectors themselves, one coloured strip a token: a single picture with clear rows between the strips. */
function stripOf(run, name, x, width, y, row) {
  const sheet = sheetOf(run, name, 0);
  const canvas = document.createElement("canvas");
  canvas.width = Math.min(sheet.cols, 64);
  canvas.height = 2 * sheet.rows;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(canvas.width, canvas.height);
  for (let i = 0; i < sheet.rows; i++) {
    for (let j = 0; j < canvas.width; j++) {
      const at = 4 * (2 * i * canvas.width + j);
      image.data.set([...colourOf(sheet.at(i, j), sheet.high * 0.7, false, sheet.hue), 255], at);
    }
  }
  pen.putImageData(image, 0, 0);
  const place = { x, y: y(0) - row / 4, width, height: row * sheet.rows };
  return svg("image", {
    href: canvas.toDataURL(),
    ...place,
    preserveAspectRatio: "none",
    class: "strip",
    "aria-hidden": "true",
  });
}

function blockOf(app, run, stackKey, n, x, width, y, rows, row) {
  const layer = `${stackKey}.${n}`;
  const [top, bottom] = [y(0) - row / 2, y(rows - 1) + row / 2];
  const open = () => app.go({ view: "block", layer });
  const name = t(`flow.block.${stackKey}`, { n });
  const box = svg(
    "g",
    {
      class: `block${app.state.layer === layer ? " chosen" : ""}`,
      role: "button",
      tabindex: "0",
      "aria-label": t("flow.open", { name }),
      "data-layer": layer,
      "data-key": `flow:${layer}`,
      on: {
        click: open,
        keydown: onKeys(["Enter", " "], open),
      },
    },
    svg("title", t("flow.open", { name })),
    svg("rect", { x, y: top, width, height: bottom - top, rx: 6, class: "case" }),
  );
  const pattern = `${blockName(layer)}.self_attention.pattern`;
  if (run.has(pattern) && run.isLoaded(pattern)) {
    const share = shares(run, pattern, app.flowHead);
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < rows; j++) {
        const weight = share(i, j);
        if (weight < FAINT) continue;
        box.append(
          svg("path", {
            d: curve(x + 1, y(j), x + width - 1, y(i)),
            class: "weave",
            "stroke-width": (0.6 + 4 * weight).toFixed(2),
            "stroke-opacity": (0.08 + 0.62 * weight).toFixed(3),
            "data-from": `${stackKey === "encoder" ? "src" : "tgt"}:${j}`,
            "data-to": `${stackKey === "encoder" ? "src" : "tgt"}:${i}`,
          }),
        );
      }
    }
  }
  box.append(svg("text", { x: x + width / 2, y: top - 10, class: "block-name" }, width > 70 ? name : String(n)));
  return box;
}

function curve(x1, y1, x2, y2) {
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}

/** What each line of the decoder writes next, and how sure it is. */
function written(run, x, width, y, rows) {
  const bar = width - 14;
  const { steps } = run.manifest;
  const prompt = rows - steps.length; // lines that were read before the first word was written
  return steps.flatMap((step, n) => {
    const i = prompt + n;
    const forced = { piece: step.piece, probability: 1 };
    const best = candidates(step).find((one) => one.id === step.chosen) ?? forced;
    return [
      svg("rect", { x: x + 10, y: y(i) + 7, width: bar, height: 2.5, rx: 1, class: "sure-of" }),
      svg("rect", {
        x: x + 10,
        y: y(i) + 7,
        width: Math.max(1, bar * best.probability),
        height: 2.5,
        rx: 1,
        class: "sure",
      }),
      svg("text", { x: x + 10, y: y(i) + 2, class: "written", translate: "no" }, shorten(best.piece, width - 56)),
      svg("text", { x: x + 10 + bar, y: y(i) + 2, class: "chance", translate: "no" }, percent(best.probability)),
    ];
  });
}

/** Who the decoder looks at: ribbons as wide as the share that each target token gives each source token. */
function ribbons(app, run, { x, width, height, cross, row, alone }) {
  const { source, target } = run.manifest;
  const [rows, cols] = [target.pieces.length, source.pieces.length];
  const [from, to] = [lineAt(cols, height, row), lineAt(rows, height, row)];
  const share = shares(run, cross.name, app.flowHead);
  const group = svg("g.ribbons", { "data-testid": "ribbons" });
  const inset = alone ? Math.min(110, width * 0.28) : 6;
  const [left, right] = [x + inset, x + width - inset];
  group.append(
    svg(
      "defs",
      svg(
        "linearGradient",
        { id: "ribbon", gradientUnits: "userSpaceOnUse", x1: left, x2: right },
        svg("stop", { offset: "0", class: "ribbon-from" }),
        svg("stop", { offset: "1", class: "ribbon-to" }),
      ),
    ),
  );
  group.append(
    svg(
      "text",
      { x: alone ? x + 2 : (left + right) / 2, y: 20, class: `stack-name${alone ? "" : " middle"}` },
      t("flow.cross"),
    ),
  );
  for (let i = 0; i < rows; i++) {
    let used = 0;
    for (let j = 0; j < cols; j++) {
      const weight = share(i, j);
      const thick = weight * row * 0.72;
      const top = to(i) - row * 0.36 + used;
      used += thick;
      if (weight < FAINT) continue;
      const thin = 0.5 + 3 * weight;
      const middle = (left + right) / 2;
      const a = from(j);
      const back = `L${right} ${top + thick}C${middle} ${top + thick} ${middle} ${a + thin} ${left} ${a + thin}`;
      group.append(
        svg(
          "path",
          {
            d: `M${left} ${a - thin}C${middle} ${a - thin} ${middle} ${top} ${right} ${top}${back}Z`,
            class: "ribbon",
            fill: "url(#ribbon)",
            "fill-opacity": (0.16 + 0.5 * weight).toFixed(3),
            "data-from": `src:${j}`,
            "data-to": `tgt:${i}`,
          },
          svg("title", { translate: "no" }, `${target.pieces[i]} \u2190 ${source.pieces[j]}: ${weight.toFixed(3)}`),
        ),
      );
    }
  }
  if (alone) {
    for (const [j, piece] of source.pieces.entries()) {
      group.append(
        piecePlace(x, inset, from(j), row, "src", j),
        svg(
          "text",
          { x: left - 8, y: from(j) + 4, class: "piece", translate: "no", "data-side": "src", "data-index": j },
          shorten(piece, inset),
        ),
      );
    }
    for (const [i, piece] of target.pieces.entries()) {
      group.append(
        piecePlace(right, inset, to(i), row, "tgt", i),
        svg(
          "text",
          { x: right + 8, y: to(i) + 4, class: "piece start", translate: "no", "data-side": "tgt", "data-index": i },
          shorten(piece, inset),
        ),
      );
    }
  }
  return group;
}
