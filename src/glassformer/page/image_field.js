// An image for the model to read: drawn by hand or read from a file. The address holds its pixels.

import { button, h } from "./dom.js";
import { contextOf, pixelCanvas } from "./heatmap.js";
import { t } from "./language.js";
import { Refusal } from "./request.js";

const MARK = "pixels:"; // as glassformer.deploy.server.requests reads it

/** @param {Uint8Array} bytes */
const encode = (bytes) => MARK + btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join(""));

/** The image encoded in a text, or a black one. @param {string} text @param {Model} model */
function decode(text, { image_size: size, channels }) {
  const blank = new Uint8Array((size ?? 1) ** 2 * channels);
  try {
    const bytes = Uint8Array.from(atob(text.slice(MARK.length)), (letter) => letter.charCodeAt(0));
    return text.startsWith(MARK) && bytes.length === blank.length ? bytes : blank;
  } catch {
    return blank;
  }
}

/** What a page without an example opens on: an image to draw on. @param {Model} model */
export const blankImage = (model) => encode(decode("", model));

/** The pad to draw on, and the way to a file. @param {Page} app @param {Model} model */
export function imageField(app, model) {
  const size = model.image_size ?? 1;
  const bytes = decode(app.state.text, model);
  const paint = () =>
    pixelCanvas(size, size, (y, x) => {
      const at = (y * size + x) * model.channels;
      return [0, 1, 2].map((one) => bytes[at + (model.channels === 3 ? one : 0)]);
    });
  const pad = h("canvas.pad", { width: size, height: size, role: "img", "aria-label": t("ask.sentence") });
  const show = () => contextOf(pad).drawImage(paint(), 0, 0);
  show();
  const submit = () => app.go({ text: encode(bytes), cell: [], token: "" });
  /** Light where the pointer is, half as much beside it. @param {PointerEvent} event */
  const draw = (event) => {
    if (!event.buttons) return;
    const box = pad.getBoundingClientRect();
    const [x, y] = [((event.clientX - box.left) / box.width) * size, ((event.clientY - box.top) / box.height) * size];
    const reach = Math.max(1, size / 12);
    for (let i = 0; i < size * size; i++) {
      const apart = Math.hypot((i % size) + 0.5 - x, Math.floor(i / size) + 0.5 - y) / reach;
      const light = apart < 0.6 ? 255 : apart < 1.1 ? 128 : 0;
      for (let c = 0; c < model.channels; c++) {
        bytes[i * model.channels + c] = Math.max(bytes[i * model.channels + c], light);
      }
    }
    show();
  };
  pad.addEventListener("pointerdown", (event) => {
    pad.setPointerCapture(event.pointerId);
    draw(event);
  });
  pad.addEventListener("pointermove", draw);
  pad.addEventListener("pointerup", submit);
  const clear = () => {
    bytes.fill(0);
    return submit();
  };
  const file = h("input", { type: "file", accept: "image/*", class: "unseen", data: { key: "file", testid: "file" } });
  file.addEventListener("change", async () => {
    const [chosen] = file.files ?? [];
    if (!chosen) return;
    try {
      bytes.set(await readImage(chosen, model));
    } catch {
      return app.showError(new Refusal(0, "image", ""));
    }
    await submit();
  });
  const choose = h("label.button", t("ask.file"), file);
  const clearButton = button(t("ask.clear"), clear, { data: { key: "clear" } });
  return h("div.picture-field", pad, h("div.picture-ways", h("p.faint", t("ask.draw")), choose, clearButton));
}

/** The pixels of a file's image, in the model's size and channels. @param {File} file @param {Model} model */
async function readImage(file, { image_size, channels }) {
  const size = image_size ?? 1;
  const picture = await createImageBitmap(file, { resizeWidth: size, resizeHeight: size, resizeQuality: "high" });
  const ctx = contextOf(h("canvas", { width: size, height: size }));
  ctx.drawImage(picture, 0, 0);
  const { data } = ctx.getImageData(0, 0, size, size);
  const found = new Uint8Array(size * size * channels);
  for (let i = 0; i < size * size; i++) {
    const [red, green, blue] = data.subarray(4 * i, 4 * i + 3);
    if (channels === 3) found.set([red, green, blue], 3 * i);
    else found[i] = Math.round(0.299 * red + 0.587 * green + 0.114 * blue);
  }
  return found;
}
