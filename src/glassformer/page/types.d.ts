// What the page's code speaks of: the data that the trace sends, what the page makes of it, its own parts.
// Names are known in every file without an import.

/* The trace: glassformer.explain.trace.Trace.manifest() */

interface Manifest {
  run: string;
  model: Model;
  options: { beam: number; length_penalty: number; padding: number; prefix: number[] } & Record<string, unknown>;
  changes: Change[];
  text: string;
  about: About;
  unfamiliar: string[];
  /** tag: the language that the first piece tells the model to write */
  source: { ids: number[]; pieces: string[]; real: boolean[]; tag: string | null };
  target: { ids: number[]; pieces: string[] };
  output: { ids: number[]; pieces: string[]; text: string; score: number | null; finished: boolean } | null;
  tensors: Entry[];
  weights: WeightEntry[];
  steps: Step[];
  answer: { kind: "fill" | "label"; masked: boolean; text: string; places: AnswerPlace[] } | null;
  one_pass: boolean;
  beam: { size: number; length_penalty: number; nodes: BeamNode[] } | null;
  cache: { steps: CacheStep[]; max_difference: number | null; equal: boolean; used: boolean } | null;
  masks: string[];
  capped?: Record<string, { asked: number; used: number }>;
}

/** What a model does with what it reads: glassformer.explain.subject. */
type Task = "translate" | "continue" | "fill" | "label" | "image";

interface Model {
  kind: "encoder-decoder" | "encoder-only" | "decoder-only";
  task: Task;
  name: string;
  parameters: number;
  encoder_layers: number;
  decoder_layers: number;
  heads: number;
  decoder_heads?: number;
  d_model: number;
  max_length?: number;
  positions: "sinusoidal" | "learned" | "rotary" | "alibi" | "relative" | "none";
  score_scale: number;
  labels: string[];
  /** the token that stands for a gap */
  mask: string | null;
  image_size: number | null;
  patch_size: number | null;
  channels: number;
}

interface About {
  source: string;
  target: string;
  purpose: string;
  purpose_zh: string;
}

interface WeightEntry {
  name: string;
  shape: number[];
  offset: number;
  bytes: number;
}

interface Entry extends WeightEntry {
  axes: string[];
  op: Op;
  formula: string;
  formula_zh: string;
  inputs: string[];
  low: number | null;
  high: number | null;
}

/** How a value was made; a name within is that of a value or of a weight. */
type Op =
  | { kind: "lookup"; weight: string; ids: "source" | "target" | number[] }
  | { kind: "pixels" }
  | { kind: "prepend"; weight: string; input: string }
  | { kind: "first"; input: string }
  | { kind: "scale"; input: string; by: number }
  | { kind: "positions"; weight: string | null; shift?: number }
  | { kind: "add"; inputs: string[] }
  | { kind: "linear"; input: string; weight: string; bias: string | null; rows?: number[]; heads?: number | null }
  | { kind: "rotate"; input: string; cos: string; sin: string }
  | { kind: "products"; q: string; k: string }
  | { kind: "mask"; input: string; mask: string; bias: string | null }
  | { kind: "softmax"; input: string; temperature: number }
  | { kind: "context"; pattern: string; v: string }
  | { kind: "merge"; input: string }
  | Norm
  | { kind: "activation"; input: string; gated: boolean; expression: Expression }
  | { kind: "relative"; weight: string; buckets: number[] }
  | { kind: "alibi"; slopes: number[] }
  | { kind: "rotation"; part: "cos" | "sin"; base: number; d_head: number; pace: number[] | null }
  | { kind: "visible" }
  | { kind: "same"; input: string }
  | { kind: "replaced"; by: Change; heads?: number[]; otherwise?: Op };
interface Norm {
  kind: `${string}_norm`;
  input: string;
  weight: string | null;
  bias: string | null;
  eps: number;
  expression: Expression;
  /** what all values of a row share: the mean, sum or max of an expression */
  row: Record<string, [string, Expression]>;
  why: { en: string; zh: string };
}

/** A number, a symbol, or an operation and what it acts on: glassformer.explain.formulas. */
type Expression = number | string | [string, ...Expression[]];

interface Candidate {
  id: number;
  piece: string;
  probability: number;
  log_probability: number;
}

/** A place of what was read, and what the model would put there, the likeliest first. */
interface AnswerPlace {
  position: number;
  piece: string;
  top: Candidate[];
}

interface Step {
  top: Candidate[];
  chosen: number;
  piece: string;
  chosen_log_probability: number;
  total: number;
  forced: boolean;
}

interface BeamNode {
  id: number;
  parent: number | null;
  step: number;
  token: number;
  piece: string;
  total: number;
  score: number;
  state: "kept" | "finished" | "pruned";
  winner: boolean;
}

interface CacheStep {
  self: number[];
  cross: number[];
  with: number;
  without: number;
}

/** A what-if: glassformer.explain.interventions. */
type Change =
  | { kind: "remove_head"; stack: Stack; layer: number; attention?: string; head: number }
  | { kind: "remove_layer"; stack: Stack; layer: number }
  | { kind: "remove_mask"; mask: "causal" | "padding" }
  | { kind: "remove_cross"; layer: number | null }
  | { kind: "remove_positions"; stack: Stack | null }
  | { kind: "remove_scale" }
  | { kind: "swap_token"; position: number; piece?: string; id?: number }
  | { kind: "prefix"; pieces?: string[]; ids?: number[] }
  | { kind: "temperature"; value: number };

interface Difference {
  output_before: string | null;
  output_after: string | null;
  same_output: boolean;
  forced: { piece: string; before: number | null; after: number | null; difference: number | null }[];
  total_before: number | null;
  total_after: number | null;
}

/* The server */

interface ServerFacts {
  model: Model;
  about: About;
  limits: { beam: number; padding: number } | null;
  examples: Example[];
  /** the one that is shown, by its name; those that can be chosen */
  direction: string;
  directions: Direction[];
  /** whether the server has the handbook's site, and the page that translates */
  handbook?: boolean;
  translates?: boolean;
}

/** A language that is not known is empty. */
interface Direction {
  name: string;
  model: string;
  source: string;
  target: string;
}

/** A sentence to try; its kind, and what to look at in it. */
interface Example {
  text: string;
  label: string;
  label_zh: string;
  look: string;
  look_zh: string;
}

interface Lab {
  name: string;
  title: string;
  claim: string;
  prediction: string;
  change: string;
}

interface LabReport extends Lab {
  seed: number;
  seeds: number[];
  seconds: number;
  summary: string;
  verdict: Verdict;
  figure: Figure;
  /** the figure as a picture; null where the server has no matplotlib */
  svg: string | null;
  checks: Check[];
  numbers: Record<string, number | string>;
  spreads: Record<string, Spread>;
}

/** The 95 % interval of a mean over the seeds, and what each of them gave. */
interface Spread {
  interval: (number | string)[];
  values: (number | string)[];
}

/** A number that JSON cannot hold comes as its name: "inf". */
interface Check extends Spread {
  text: string;
  value: number | string;
  low: number | string;
  high: number | string;
  extent: boolean;
  passed: boolean;
  outcome: "passed" | "failed" | "open";
}

interface LabRun {
  name: string;
  seed: number;
}

type Verdict = "holds" | "holds with limits" | "does not hold" | "not decided";

interface Figure {
  caption: string;
  panels: { title: string }[];
}

/* A model in the page: glassformer.deploy.export.page */

interface VocabularyFile {
  pieces: string[];
  merges?: [string, string][];
  scores?: number[];
  tags: number[];
  marks: string;
}

/** What told.json holds: all that is the same in every run. */
interface ModelFile {
  facts: ServerFacts;
  /** the outputs of the graph of a trace */
  values: string[];
  tensors: Omit<Entry, "offset" | "bytes" | "low" | "high">[];
  weights: WeightEntry[];
  masks: string[];
  tag: string | null;
  schematics: Schematics;
  text: { sides: VocabularyFile[]; first: number[]; words: string[] };
  decoder: {
    start: number;
    end: number | null;
    pad: number;
    force_end: boolean;
    max_length: number;
    layers: number;
    heads: number;
    groups: number;
    d_head: number;
    d_model: number;
    d_ff: number;
    gated: boolean;
    vocab_size: number;
  };
  rules: {
    growth: number;
    slack: number;
    stride: number;
    top: number;
    runners_up: number;
    rule: string;
    rounding: number;
  };
  /** where the parts of weights.bin belong */
  stored: { offset: number; numbers: number; at: number; scales?: number; rows?: number }[];
  bytes: number;
}

/** A run in the browser, before its manifest is written. */
interface LocalRun {
  id: string;
  ids: number[];
  real: number[];
  output: DecodedTokens;
  limit: number;
  beam: number;
  padding: number;
  logits: Float32Array[];
  /** the same by steps with a cache */
  cached: Float32Array[];
  selections: BeamCandidate[][];
}

interface DecodedTokens {
  chosen: number[];
  finished: boolean;
  forced: boolean;
  reads: number[];
}

/** A candidate of a step, and what became of it. */
interface BeamCandidate {
  parent: number;
  token: number;
  total: number;
  finished: boolean;
  slot: number;
}

/** As much of onnxruntime-web as is used. */
interface OrtTensor {
  dims: number[];
  data: Float32Array<ArrayBuffer>;
}
interface OrtSession {
  inputNames: string[];
  run(given: Record<string, OrtTensor>): Promise<Record<string, OrtTensor>>;
}
interface Ort {
  env: { wasm: { wasmBinary: ArrayBuffer; numThreads: number } };
  Tensor: new (kind: string, data: Float32Array | BigInt64Array | boolean[], dims: number[]) => OrtTensor;
  InferenceSession: { create(model: Uint8Array, options: object): Promise<OrtSession> };
}

/* The page */

/** The page, whether or not there is a run; a view is only drawn of one. */
type Page = import("./main.js").Page;
type App = Page & { run: Run };
type Run = import("./run.js").Run;
type Source =
  | import("./source.js").ServerSource
  | import("./source.js").EmbeddedSource
  | import("./local_source.js").LocalSource;
type Refusal = import("./request.js").Refusal;
type Matrix = import("./matrix.js").Matrix;

type Stack = "encoder" | "decoder";
/** A sublayer of a block. */
type Part = "self" | "cross" | "feed";
type Side = "src" | "tgt";
type Language = "en" | "zh";
type View = "flow" | "block" | "cell" | "positions" | "decode" | "answer" | "cache" | "whatif" | "trace" | "labs";

type Drawing = "model" | "encoder-layer" | "decoder-layer" | "attention" | "masks";
/** Drawings as SVG, by language and kind. */
type Schematics = Record<Language, Record<Drawing, string>>;

/** A view: the values it needs, what else it waits for, its picture, what follows when that stands. */
interface Painter {
  names?(app: App): string[];
  prepare?(app: App): Promise<void>;
  draw(app: App): HTMLElement;
  shown?(app: App): void;
}

/** The whole state of the page, which its address holds. */
interface State {
  /** the sentence */
  text: string;
  /** by its name; "" for the one that the page opens on */
  direction: string;
  beam: number;
  /** padding tokens after the sentence */
  padding: number;
  /** ids that the output must begin with */
  prefix: number[];
  view: View;
  /** "encoder.0", "decoder.1" */
  layer: string;
  head: number;
  /** the name of a value */
  tensor: string;
  /** an index into it; empty where none is locked */
  cell: number[];
  /** of the decoding */
  step: number;
  lang: Language | "";
  theme: "" | "light" | "dark";
  /** "src:2", "tgt:0": the token that is followed; "" where none is */
  token: string;
  /** "1" where the head of the page is folded up */
  fold: string;
  /** the drawing that is open under the flow; "" where none is */
  drawing: Drawing | "";
  changes: Change[];
  /** the lab that is open, and its seed */
  lab: string;
  seed: number;
}

/** What the source answers; with changes, the run before them and what they made of it. */
interface Answer {
  run: Run;
  before: Run | null;
  difference: Difference | null;
}

/** One matrix of a tensor: all of it, or one head. */
interface Sheet {
  name: string;
  head: number | null;
  rows: number;
  cols: number;
  at: (i: number, j: number) => number;
  masked: (i: number, j: number) => boolean;
  /** of a cell in the whole tensor */
  index: (i: number, j: number) => number[];
  rowAxis: string;
  colAxis: string;
  rowLabels: string[] | null;
  colLabels: string[] | null;
  /** parts of one: drawn from nothing to full, not from minus to plus */
  sequential: boolean;
  /** the value that gets the strongest colour */
  high: number;
  hue: Hue;
}

type Hue = "q" | "k" | "v" | Stack;

/** A cell under the pointer, with the tokens that its row and column stand for. */
interface CellTarget {
  name: string;
  index: number[];
  /** their keys, "src:2" */
  tokens: string[];
  matrix: Matrix;
}

/** What a matrix tells of its cells. */
interface MatrixHooks {
  preview: (cell: CellTarget | null) => void;
  lock: (cell: CellTarget) => void;
  release: () => void;
}

interface MatrixOptions {
  /** whether each row's sum stands beside it */
  sums?: boolean;
  title?: string;
  /** the width of a cell, at most */
  most?: number;
}

/** Cells of a value; null: all of that axis. */
interface Area {
  name: string;
  head: number | null;
  row: number | null;
  col: number | null;
}

interface WeightRow {
  name: string;
  row: number;
  values: Float32Array;
}

/** What a cell was made of: cells, rows of weights, or a what-if. */
interface Operands {
  areas: Area[];
  weights: WeightRow[];
  change: string;
}

interface TreeHooks {
  /** the one that is looked at */
  step: number;
  chosen: (node: BeamNode) => unknown;
  preview: (node: BeamNode) => unknown;
}

/** Where a part of the flow is drawn; alone: in a picture of its own. */
interface FlowBox {
  x: number;
  width: number;
  height: number;
  row: number;
  alone: boolean;
}

/** One attention of the model. */
interface AttentionPlace {
  /** of its pattern */
  name: string;
  stack: Stack;
  i: number;
  attention: string;
  layer: string;
  heads: number;
}

/** What the stamps of heads are called, how they look, and what it means to choose one. */
interface StampHooks {
  nameOf: (one: AttentionPlace) => string;
  draw: (one: AttentionPlace, head: number) => Element;
  choose: (one: AttentionPlace, head: number) => unknown;
}

/** A line over whole numbers. */
interface Curve {
  name: string;
  colour: string;
  points: { x: number; y: number }[];
}

/** What makes the term of a cell is given this. */
interface CellContext<Made = Op> {
  run: Run;
  op: Made;
  name: string;
  index: number[];
  value: number;
  hidden: boolean;
  operands: Operands;
}
type TermBuilder<Kind extends Op["kind"]> = (cell: CellContext<Extract<Op, { kind: Kind }>>) => Term | Promise<Term>;

interface Explanation extends Operands, Equation {
  name: string;
  index: number[];
  value: number;
  kind: Op["kind"];
  /** the operation in words */
  description: string;
  masked: boolean;
}

type Operation = "sum" | "difference" | "product" | "quotient" | "power";
type Term =
  | { kind: "number"; value: number; note: string; exact?: boolean }
  | { kind: "call"; name: string; parts: Term[] }
  | { kind: Operation; parts: Term[] };

interface Printed {
  text: string;
  kind: "number" | "sign";
  note?: string;
}

interface Equation {
  pieces: Printed[];
  result: string;
  /** what is printed gives what is printed */
  holds: boolean;
}

/* Elements */

type Spot = [x: number, y: number];
type Box = [x: number, y: number, width: number, height: number];

type Child = Node | string | false | null | undefined | Child[];
type Value = string | number | boolean | null | undefined;
type Listeners = { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => unknown };

interface Attributes {
  on?: Listeners;
  style?: Record<string, string>;
  data?: Record<string, Value>;
  [name: string]: Value | Listeners | Record<string, Value>;
}

/** The tag of "p.lede" is p. */
type TagOf<T extends string> = T extends `${infer Tag}.${string}` ? Tag : T;
type HtmlOf<T extends string> = TagOf<T> extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[TagOf<T>] : never;
type SvgOf<T extends string> = TagOf<T> extends keyof SVGElementTagNameMap ? SVGElementTagNameMap[TagOf<T>] : never;

interface Window {
  /** the folder of a model that runs in the page, and what runs it */
  GLASSFORMER_MODEL?: string;
  GLASSFORMER_RUNTIME?: Ort;
  GLASSFORMER_EMBEDDED?: { manifest: Manifest; blob: string; weights: string | null; schematics: Schematics };
}
