// What the page that translates speaks of, beside what the other one knows. Names are known without an import.

type FrontLanguage = "en" | "de" | "zh";
type Front = import("./main.js").Front;
type Line = import("./lines.js").Line;

/** GET /languages */
interface Spoken {
  code: string;
  name: string;
  targets: string[];
}

/** GET /frontend/settings */
interface Settings {
  keyRequired: boolean;
  filesTranslation: boolean;
  supportedFilesFormat: string[];
}

/** POST /api/words: both texts in pieces, pairs of pieces that belong together, sentences by their pieces. */
interface Told {
  source: string[];
  target: string[];
  links: [number, number][];
  sentences: SentenceTold[];
}

interface SentenceTold {
  source: [number, number];
  target: [number, number];
  /** what each model on the way read of it */
  steps: { direction: string; text: string }[];
}

/** What the address holds; a language that is not named is found out, or chosen. */
interface FrontState {
  from: string;
  to: string;
  q: string;
  lang: FrontLanguage | "";
  theme: "" | "light" | "dark";
}

/** A word of the translation: its line, and its piece of that. */
interface WordAt {
  line: number;
  piece: number;
}
