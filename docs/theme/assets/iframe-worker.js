/* Search from file://, where browsers refuse workers: the worker's script runs in a hidden frame instead. */
if (location.protocol === "file:") {
  // The name is what the search script looks for to find its language files.
  window.IFrameWorker = window.Worker = class extends EventTarget {
    #ready;
    #frame = document.createElement("iframe");

    constructor(url) {
      super();
      const script = new URL(url, document.baseURI).href;
      this.#frame.hidden = true;
      this.#ready = new Promise((done) => this.#frame.addEventListener("load", done, { once: true }));
      this.#frame.srcdoc = "<!doctype html><title>worker</title>";
      const attach = () => document.body.append(this.#frame);
      if (document.body) attach();
      else addEventListener("DOMContentLoaded", attach);
      this.#ready = this.#ready.then(async () => {
        const inside = this.#frame.contentWindow;
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        inside.importScripts = async (...scripts) => {
          for (const one of scripts) await this.#load(one);
        };
        await this.#load(script);
      });
    }

    #load(src) {
      const page = this.#frame.contentDocument;
      return new Promise((loaded, failed) => {
        const script = Object.assign(page.createElement("script"), { src, onload: loaded, onerror: failed });
        page.head.append(script);
      });
    }

    postMessage(data) {
      this.#ready.then(() => {
        const inside = this.#frame.contentWindow;
        inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      });
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
