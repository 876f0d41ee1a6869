// Types of the page that translates, known without an import.

type FrontLanguage = "en" | "de" | "zh";
type TranslatePage = import("./main.js").TranslatePage;
type Line = import("./lines.js").Line;

/** GET /languages */
interface ServedLanguage {
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

/** POST /api/words: both texts in pieces, linked pairs of pieces, and sentences as ranges of pieces. */
interface Alignment {
  source: string[];
  target: string[];
  links: [number, number][];
  sentences: AlignedSentence[];
}

/** With the input of each model, how probably the translation is right, and the pieces that the model doubts. */
interface AlignedSentence {
  source: [number, number];
  target: [number, number];
  steps: { direction: string; text: string }[];
  probability: number | null;
  doubts: number[];
}

/** The state in the address; an empty language is detected, or chosen. */
interface FrontState {
  from: string;
  to: string;
  q: string;
  lang: FrontLanguage | "";
  theme: "" | "light" | "dark";
}

/** A word of the translation: the index of its line, and of its piece in that. */
interface WordPlace {
  line: number;
  piece: number;
}
