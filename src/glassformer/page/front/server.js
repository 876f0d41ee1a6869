// The requests of this page to its server.

import { post, request } from "../request.js";

/** @param {string} address */
const get = async (address) => (await request(address)).json();

export class Server {
  key = "";

  /** @param {string} address @param {object} body @param {AbortSignal} [signal] */
  #post(address, body, signal) {
    return post(address, this.key ? { ...body, api_key: this.key } : body, signal);
  }

  /** @type {() => Promise<ServedLanguage[]>} */
  languages = () => get("languages");

  /** @type {() => Promise<Settings>} */
  settings = () => get("frontend/settings");

  /** With a confidence in percent.
   * @type {(q: string, signal: AbortSignal) => Promise<{language: string, confidence: number}>} */
  detect = async (q, signal) => (await this.#post("detect", { q }, signal))[0];

  /** @type {(q: string[], source: string, target: string, signal: AbortSignal) => Promise<string[]>} */
  translate = async (q, source, target, signal) =>
    (await this.#post("translate", { q, source, target }, signal)).translatedText;

  /** @type {(q: string, source: string, target: string, chosen: (string | null)[]) => Promise<Alignment>} */
  words = (q, source, target, chosen) => this.#post("api/words", { q, source, target, chosen });

  /** @type {(direction: string, text: string, prefix: string) => Promise<{texts: string[], free: string[]}>} */
  alternatives = (direction, text, prefix) => this.#post("api/alternatives", { direction, text, prefix });

  /** The address of the translated file.
   * @type {(file: File, source: string, target: string, signal: AbortSignal) => Promise<string>} */
  file = async (file, source, target, signal) => {
    const body = new FormData();
    for (const [name, value] of Object.entries({ source, target, api_key: this.key })) if (value) body.set(name, value);
    body.set("file", file);
    const answer = await request("translate_file", { method: "POST", body, signal });
    // The server may know itself by another host name than the one in our address.
    const made = new URL((await answer.json()).translatedFileUrl, location.href);
    return made.pathname + made.search;
  };
}
