// Files to translate: dropped on the page or chosen.

import { button, fill, h, raw } from "../dom.js";
import { isAbort } from "../request.js";
import { icon } from "./controls.js";
import { languageName, t } from "./language.js";

export class Files {
  /** @param {TranslatePage} app */
  constructor(app) {
    this.app = app;
    /** @type {string[]} */
    this.kinds = []; // file extensions, with their dot
    this.list = h("ul.files", { "aria-live": "polite" });
    this.input = h("input", {
      type: "file",
      class: "unseen",
      tabindex: "-1",
      multiple: true,
      "aria-hidden": "true",
      data: { testid: "file" },
      on: {
        change: () => {
          this.#addAll(this.input.files);
          this.input.value = "";
        },
      },
    });
    const setOver = (/** @type {boolean} */ on) => document.documentElement.toggleAttribute("data-over", on);
    window.addEventListener("dragover", (event) => {
      if (!this.offered || !event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(true);
    });
    window.addEventListener("dragleave", (event) => event.relatedTarget || setOver(false));
    window.addEventListener("drop", (event) => {
      setOver(false);
      if (!this.offered || !event.dataTransfer?.files.length) return;
      event.preventDefault();
      this.#addAll(event.dataTransfer.files);
    });
  }

  get offered() {
    return this.kinds.length > 0;
  }

  /** @param {Settings} settings */
  offer({ filesTranslation, supportedFilesFormat }) {
    this.kinds = filesTranslation ? supportedFilesFormat.map((one) => (one.startsWith(".") ? one : `.${one}`)) : [];
    this.input.accept = this.kinds.join(",");
  }

  /** @param {FileList | null} files */
  #addAll(files) {
    for (const file of files ?? []) this.#translate(file);
  }

  /** @param {File} file */
  async #translate(file) {
    const { app } = this;
    const abort = new AbortController();
    const target = app.to;
    const dot = Math.max(0, file.name.lastIndexOf("."));
    const name = `${file.name.slice(0, dot)}_${target}${file.name.slice(dot)}`; // as the server calls it
    const row = h("li.file", { data: { testid: "file-row" } });
    /** @param {string} state @param {Child[]} rest */
    const show = (state, ...rest) => {
      row.dataset.state = state;
      fill(row, h("span.file-name", raw(file.name), h("span.faint", ` \u2192 ${languageName(target)}`)), rest);
    };
    const remove = button(icon("clear"), () => row.remove(), { class: "icon", "aria-label": t("file.away") });
    this.list.append(row);
    if (!this.kinds.includes(file.name.slice(dot).toLowerCase())) {
      return show("refused", h("span", t("file.kind", { kinds: this.kinds.join(" ") })), remove);
    }
    show(
      "working",
      h("span.faint", t("file.working")),
      button(
        t("file.stop"),
        () => {
          abort.abort();
          row.remove();
        },
        { class: "quiet small" },
      ),
    );
    try {
      const href = await app.server.file(file, app.state.from || "auto", target, abort.signal);
      show(
        "done",
        h("a.button", { href, download: name, data: { testid: "download" } }, t("file.save", { name })),
        remove,
      );
    } catch (error) {
      if (!isAbort(error)) show("refused", h("span", app.errorText(error)), remove);
    }
  }
}
