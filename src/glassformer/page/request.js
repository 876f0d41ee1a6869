// Asking the server that this page came from.

/** What the server says when it refuses, or what kept it from answering. */
export class Refusal extends Error {
  /**
   * @param {number} status @param {string} code @param {string} message @param {string} [hint]
   * @param {Record<string, Value>} [values]
   * @param {number} [after]   seconds after which to ask again
   */
  constructor(status, code, message, hint = "", values = {}, after = 0) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.values = values;
    this.after = after;
  }
}

/** @param {unknown} error */
export const isAbort = (error) => error instanceof DOMException && error.name === "AbortError";

/** @param {string} address @param {RequestInit} [options] */
export async function request(address, options = {}) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Refusal(0, "offline", "The server does not answer.");
  }
  if (answer.ok) return answer;
  let said = { code: "", message: `HTTP ${answer.status}`, hint: "", values: {} };
  try {
    const { error } = await answer.json();
    said = { ...said, ...(typeof error === "string" ? { message: error } : error) };
  } catch {
    // Not ours: a proxy's page, say. The status has to do.
  }
  const after = Number(answer.headers.get("Retry-After")) || 0;
  throw new Refusal(answer.status, said.code, said.message, said.hint, said.values, after);
}

/** @param {string} address @param {object} body @param {AbortSignal} [signal] */
export function post(address, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return request(address, { method: "POST", headers, body: JSON.stringify(body), signal }).then((answer) =>
    answer.json(),
  );
}
