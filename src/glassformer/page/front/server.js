// What is asked of the server that this page came from.

import { post, request } from "../request.js";

export class Server {
  key = "";

  /** @param {string} address */
  async #get(address) {
    return (await request(address)).json();
  }

  /** @param {string} address @param {object} body @param {AbortSignal} [signal] */
  #post(address, body, signal) {
    return post(address, this.key ? { ...body, api_key: this.key } : body, signal);
  }

  /** @returns {Promise<Spoken[]>} */
  languages() {
    return this.#get("languages");
  }

  /** @returns {Promise<Settings>} */
  settings() {
    return this.#get("frontend/settings");
  }

  /**
   * The likeliest language of a text, and how sure that is, in percent.
   * @param {string} q
   * @param {AbortSignal} signal
   * @returns {Promise<{language: string, confidence: number}>}
   */
  async detect(q, signal) {
    return (await this.#post("detect", { q }, signal))[0];
  }

  /**
   * @param {string[]} q
   * @param {string} source
   * @param {string} target
   * @param {AbortSignal} signal
   * @returns {Promise<string[]>}
   */
  async translate(q, source, target, signal) {
    return (await this.#post("translate", { q, source, target }, signal)).translatedText;
  }

  /**
   * @param {string} q
   * @param {string} source
   * @param {string} target
   * @param {(string | null)[]} chosen
   * @returns {Promise<Told>}
   */
  words(q, source, target, chosen) {
    return this.#post("api/words", { q, source, target, chosen });
  }

  /**
   * @param {string} direction
   * @param {string} text
   * @param {string} prefix
   * @returns {Promise<{texts: string[], free: string[]}>}
   */
  alternatives(direction, text, prefix) {
    return this.#post("api/alternatives", { direction, text, prefix });
  }

  /**
   * A file's translation, by its address here.
   * @param {File} file
   * @param {string} source
   * @param {string} target
   * @param {AbortSignal} signal
   */
  async file(file, source, target, signal) {
    const body = new FormData();
    for (const [name, value] of Object.entries({ source, target, api_key: this.key })) if (value) body.set(name, value);
    body.set("file", file);
    const answer = await request("translate_file", { method: "POST", body, signal });
    // The server may know itself by another name than the one in our address.
    const made = new URL((await answer.json()).translatedFileUrl, location.href);
    return made.pathname + made.search;
  }
}
