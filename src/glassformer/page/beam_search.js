// Looking for the best target in a browser: the rules of glassformer.decode, the logits of the model's own graph.

/** Log-probabilities of logits, in double precision. @param {Float32Array} logits */
export function logProbabilities(logits) {
  let high = -Infinity;
  for (const value of logits) if (value > high) high = value;
  let sum = 0;
  for (const value of logits) sum += Math.exp(value - high);
  const total = high + Math.log(sum);
  return Float64Array.from(logits, (value) => value - total);
}

/** The places of the `count` highest, highest first. @param {ArrayLike<number>} values @param {number} count */
export function highest(values, count) {
  /** @type {number[]} */
  const best = [];
  for (let i = 0; i < values.length; i++) {
    if (best.length === count && values[i] <= values[best[count - 1]]) continue;
    let at = best.length;
    while (at > 0 && values[best[at - 1]] < values[i]) at--;
    best.splice(at, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}

/** One sentence's search: the best so far, those that have ended, and all that was considered. */
export class BeamSearch {
  /** @type {BeamCandidate[][]} */
  selections = [];
  /** @type {{score: number, ids: number[]}[]} */
  done = [];
  running = true;
  length = 0;

  /** @param {{beam: number, limit: number, end: number | null, forceEnd: boolean, prefix: number[]}} options */
  constructor({ beam, limit, end, forceEnd, prefix }) {
    this.beam = beam;
    this.limit = limit;
    this.end = end;
    this.forceEnd = forceEnd;
    this.prefix = prefix;
    /** @type {{total: number, ids: number[], parent: number}[]} */
    this.active = [{ total: 0, ids: [], parent: 0 }];
  }

  /** Bans: what a prefix asks for, or an end that is forced. @param {Float64Array} rows @param {number} step */
  #constrain(rows, step) {
    const wanted = this.prefix[step];
    if (wanted !== undefined) return rows.map((value, id) => (id === wanted ? value : -Infinity));
    if (this.forceEnd && step === this.limit - 1) return rows.map((_, id) => (id === this.end ? 0 : -Infinity));
    return rows;
  }

  /** Take what each active target says comes next. @param {Float64Array[]} rows */
  advance(rows) {
    const step = this.length++;
    const count = this.beam > 1 ? 2 * this.beam : 1;
    const candidates = rows.flatMap((row, parent) => {
      const allowed = this.#constrain(row, step);
      return highest(allowed, count).map((token) => {
        return { parent, token, total: this.active[parent].total + allowed[token] };
      });
    });
    candidates.sort((a, b) => b.total - a.total);
    /** @type {typeof this.active} */
    const active = [];
    /** @type {BeamCandidate[]} */
    const selected = [];
    candidates.slice(0, count).forEach(({ parent, token, total }, rank) => {
      if (total === -Infinity) return;
      const ids = [...this.active[parent].ids, token];
      const ends = token === this.end || this.length === this.limit;
      const finished = ends && rank < this.beam;
      let slot = -1;
      if (finished) this.done.push({ score: total / this.length, ids });
      else if (!ends && active.length < this.beam) slot = active.push({ total, ids, parent }) - 1;
      selected.push({ parent, token, total, finished, slot });
    });
    this.selections.push(selected);
    this.done.sort((a, b) => b.score - a.score).splice(this.beam);
    this.active = active;
    // Log-probabilities only fall: what cannot win even at the kindest length has lost.
    const hope = active.length ? active[0].total / this.limit : -Infinity;
    this.running = this.length < this.limit && active.length > 0 && !(this.done.length && hope <= this.done[0].score);
  }

  /** What was written, the end included. */
  get chosen() {
    return this.done[0]?.ids ?? [];
  }
}
