// From which language into which.

export class Ways {
  /** @param {Spoken[]} languages */
  constructor(languages) {
    this.languages = languages;
    this.codes = languages.map((one) => one.code);
  }

  /** @param {string} code */
  known(code) {
    return this.codes.includes(code);
  }

  /** Those that a language, or any, can be translated into. @param {string} code */
  #targetsOf(code) {
    const found = this.languages.find((one) => one.code === code)?.targets ?? this.codes;
    return found.filter((one) => one !== code);
  }

  /** @param {string} from @param {string} to */
  leads(from, to) {
    return this.#targetsOf(from).includes(to);
  }

  /**
   * Into which language: the one asked for if there is a way, else the reader's own, else any.
   * @param {string} from
   * @param {string} asked
   * @param {string} own
   */
  target(from, asked, own) {
    if (this.leads(from, asked)) return asked;
    const targets = this.#targetsOf(from);
    if (from === "auto") return targets.find((one) => one !== own) ?? asked; // what they type is in theirs, most often
    return targets.includes(own) ? own : (targets[0] ?? asked);
  }
}
