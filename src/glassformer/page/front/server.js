// What is asked of the server that this page came from.

/** Why there is no answer: the status, what was said, and after how many seconds to ask again. */
export class Refused extends Error {
  /** @param {number} status @param {string} message @param {number} [after] */
  constructor(status, message, after = 0) {
    super(message);
    this.status = status;
    this.after = after;
  }
}

/** @param {unknown} error */
export const isAbort = (error) => error instanceof DOMException && error.name === "AbortError";

/** @param {string} address @param {RequestInit} [options] */
async function request(address, options) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Refused(0, "", 3);
  }
  if (answer.ok) return answer;
  let said = "";
  try {
    const { error } = await answer.json();
    said = typeof error === "string" ? error : [error.message, error.hint].filter(Boolean).join("; ");
  } catch {
    // Not ours: a proxy's page, say. The status has to do.
  }
  throw new Refused(answer.status, said, Number(answer.headers.get("Retry-After")) || 0);
}

export class Server {
  key = "";

  /** @param {string} address */
  async #get(address) {
    return (await request(address)).json();
  }

  /** @param {string} address @param {object} body @param {AbortSignal} [signal] */
  async #post(address, body, signal) {
    const asked = this.key ? { ...body, api_key: this.key } : body;
    const headers = { "Content-Type": "application/json" };
    const answer = await request(address, { method: "POST", headers, body: JSON.stringify(asked), signal });
    return answer.json();
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
