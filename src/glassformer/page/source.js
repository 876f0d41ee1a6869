// Where the numbers come from: the server, a range of bytes at a time, the file of a saved run, or a model in the page.

import { LocalSource } from "./local_source.js";
import { post, Refusal, request } from "./request.js";
import { Run } from "./run.js";

/** @param {string} address @param {number} from @param {number} to */
async function bytes(address, from, to) {
  const answer = await request(address, { headers: { Range: `bytes=${from}-${to - 1}` } });
  const buffer = await answer.arrayBuffer();
  return answer.status === 206 ? buffer : buffer.slice(from, to);
}

/** The server that this page came from. */
export class ServerSource {
  /** Whether it can be asked for another run. @type {true} */
  live = true;
  /** @type {true} */
  server = true;
  /** @type {Map<string, Promise<ServerFacts>>} */
  #facts = new Map();

  /** @param {string} address @returns {Promise<ServerFacts>} */
  #ask(address) {
    let facts = this.#facts.get(address);
    if (!facts) {
      facts = request(address).then((answer) => answer.json());
      facts.catch(() => this.#facts.delete(address));
      this.#facts.set(address, facts);
    }
    return facts;
  }

  /** What is shown of a direction; of the first where none has that name. @param {string} direction */
  async model(direction) {
    const first = await this.#ask("api/model");
    const other = direction !== first.direction && first.directions.some((one) => one.name === direction);
    return other ? this.#ask(`api/model?direction=${direction}`) : first;
  }

  /**
   * One run, or with changes the run before them too.
   * @param {State} state @param {AbortSignal} signal @returns {Promise<Answer>}
   */
  async run(state, signal) {
    const { direction } = await this.model(state.direction);
    const asked = { text: state.text, beam: state.beam, padding: state.padding, direction };
    if (state.changes.length === 0) {
      const manifest = await post("api/trace", { ...asked, prefix: state.prefix }, signal);
      return { run: new Run(manifest, this, direction), before: null, difference: null };
    }
    const changes = state.prefix.length ? [...state.changes, { kind: "prefix", ids: state.prefix }] : state.changes;
    const { before, after, difference, capped } = await post("api/whatif", { ...asked, changes }, signal);
    return {
      run: new Run({ ...after, capped }, this, direction),
      before: new Run(before, this, direction),
      difference,
    };
  }

  /** @param {string} run @param {number} from @param {number} to */
  async values(run, from, to) {
    try {
      return await bytes(`api/runs/${run}/blob`, from, to);
    } catch (error) {
      if (error instanceof Refusal && error.status === 404) error.code = "forgotten";
      throw error;
    }
  }

  /** @param {number} from @param {number} to @param {string} direction */
  weights(from, to, direction) {
    return bytes(`api/weights?direction=${direction}`, from, to);
  }

  /** @param {string} direction @param {Language} lang @returns {Promise<Record<Drawing, string>>} */
  schematics(direction, lang) {
    return request(`api/schematics?direction=${direction}&lang=${lang}`).then((answer) => answer.json());
  }

  /** @param {Language} lang @returns {Promise<{labs: Lab[], kept: LabReport[], running: LabRun | null}>} */
  labs(lang) {
    return request(`api/labs?lang=${lang}`).then((answer) => answer.json());
  }

  /**
   * What a lab found; the server runs it if it has not yet.
   * @param {string} name @param {number} seed @param {Language} lang @returns {Promise<LabReport>}
   */
  async lab(name, seed, lang) {
    const { running } = await this.labs(lang);
    // Asked for all the same it would refuse, and a refusal is an error in the browser's console.
    if (running && (running.name !== name || running.seed !== seed)) {
      throw new Refusal(409, "lab_busy", "", "", { ...running });
    }
    return post(`api/labs/${name}`, { seed, lang });
  }

  /** The address of a run to keep. @param {string} run @param {"json" | "export"} kind */
  exported(run, kind) {
    return `api/runs/${run}/${kind}`;
  }
}

/** @param {string} base64 */
function decode(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)).buffer;
}

/** One run inside the page's own file. */
export class EmbeddedSource {
  /** @type {false} */
  live = false;
  /** @type {false} */
  server = false;

  /** @param {NonNullable<typeof window.GLASSFORMER_EMBEDDED>} held */
  constructor({ manifest, blob, weights, schematics }) {
    this.manifest = manifest;
    this.drawn = schematics;
    this.blob = decode(blob);
    this.stored = weights ? decode(weights) : null;
  }

  /** @returns {Promise<ServerFacts>} */
  async model() {
    const { model, about } = this.manifest;
    return { model, about, limits: null, examples: [], direction: "", directions: [] };
  }

  /** @returns {Promise<Answer>} */
  async run() {
    return { run: new Run(this.manifest, this, ""), before: null, difference: null };
  }

  /** @param {string} _direction @param {Language} lang */
  async schematics(_direction, lang) {
    return this.drawn[lang];
  }

  /** @param {string} _run @param {number} from @param {number} to */
  async values(_run, from, to) {
    return this.blob.slice(from, to);
  }

  /** @param {number} from @param {number} to */
  async weights(from, to) {
    if (!this.stored) throw new Refusal(0, "no_weights", "This file holds no weights.");
    return this.stored.slice(from, to);
  }
}

/** The numbers' home: a model beside this page, this file itself of a saved run, or the server. @returns {Source} */
export function findSource() {
  if (window.GLASSFORMER_MODEL) return new LocalSource(window.GLASSFORMER_MODEL);
  return window.GLASSFORMER_EMBEDDED ? new EmbeddedSource(window.GLASSFORMER_EMBEDDED) : new ServerSource();
}
