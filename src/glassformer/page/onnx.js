// The graphs of a model in a browser: their files, their weights, and a decoder that is asked step by step.

import { Refusal } from "./request.js";

/** @param {string} address */
export async function fetched(address) {
  let answer;
  try {
    answer = await fetch(address);
  } catch {
    throw new Refusal(0, "no_file", address);
  }
  if (!answer.ok) throw new Refusal(answer.status, "no_file", address);
  return answer;
}

/** @param {string} address */
const bytesOf = async (address) => new Uint8Array(await (await fetched(address)).arrayBuffer());

/** A file that is stored packed. @param {string} address */
async function unpacked(address) {
  const packed = new Blob([await bytesOf(address)]).stream();
  return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** Weights as float32: whole numbers times the scale of their row. @param {Uint8Array} file @param {Told} told */
function expanded({ buffer }, told) {
  const all = new Float32Array(told.bytes / 4);
  for (const { offset, numbers, at, scales, rows } of told.stored) {
    const place = all.subarray(offset / 4, offset / 4 + numbers);
    if (scales === undefined || rows === undefined) {
      place.set(new Float32Array(buffer, at, numbers));
      continue;
    }
    const values = new Int8Array(buffer, at, numbers);
    const scale = new Float32Array(buffer, scales, rows);
    const width = numbers / rows;
    for (let i = 0; i < numbers; i++) place[i] = values[i] * scale[Math.floor(i / width)];
  }
  return all;
}

/** Whole numbers as the graphs read them. @param {Ort} ort @param {number[]} ids @param {number[]} shape */
export const whole = (ort, ids, shape) => new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), shape);

/** Rows of a table, each as often as it is named. @param {Ort} ort @param {OrtTensor} table @param {number[]} rows */
function rowsOf(ort, table, rows) {
  const [count, ...inner] = table.dims;
  const size = inner.reduce((a, b) => a * b, 1);
  if (count === rows.length && rows.every((row, i) => row === i)) return table;
  const data = new Float32Array(rows.length * size);
  for (const [i, row] of rows.entries()) data.set(table.data.subarray(row * size, (row + 1) * size), i * size);
  return new ort.Tensor("float32", data, [rows.length, ...inner]);
}

/** The three graphs, and the weights that they share. */
export class Graphs {
  /** @param {string} base @param {Told} told */
  static async load(base, told) {
    const ort = window.GLASSFORMER_RUNTIME;
    if (!ort) throw new Refusal(404, "no_file", "runtime/ort.js");
    const named = (/** @type {string} */ name) => bytesOf(`${base}onnx/${name}.onnx`);
    const [wasm, stored, ...files] = await Promise.all([
      unpacked(`${base}../runtime/ort.wasm.gz`),
      bytesOf(`${base}weights.bin`),
      named("encoder_model"),
      named("decoder_model_merged"),
      named("trace"),
    ]);
    ort.env.wasm.wasmBinary = wasm;
    ort.env.wasm.numThreads = 1;
    const weights = expanded(stored, told);
    const externalData = [{ path: "weights.bin", data: new Uint8Array(weights.buffer) }];
    const sessions = [];
    for (const file of files) {
      const options = { executionProviders: ["wasm"], externalData };
      sessions.push(await ort.InferenceSession.create(file, options));
    }
    return new Graphs(ort, weights, sessions);
  }

  /** @param {Ort} ort @param {Float32Array} weights @param {OrtSession[]} sessions */
  constructor(ort, weights, [encoder, decoder, traced]) {
    this.ort = ort;
    this.weights = weights;
    this.encoder = encoder;
    this.decoder = decoder;
    this.traced = traced;
  }
}

/** A decoder that is asked, token by token, what comes next. */
export class Writer {
  /** @param {Graphs} graphs @param {number[]} ids @param {number[]} real @param {Told["decoder"]} decoder */
  static async begin(graphs, ids, real, decoder) {
    const { ort } = graphs;
    const shape = [1, ids.length];
    const mask = whole(ort, real, shape);
    const read = await graphs.encoder.run({ input_ids: whole(ort, ids, shape), attention_mask: mask });
    return new Writer(graphs, read.last_hidden_state, real, decoder);
  }

  /** @param {Graphs} graphs @param {OrtTensor} memory @param {number[]} real @param {Told["decoder"]} decoder */
  constructor(graphs, memory, real, { groups, d_head }) {
    this.graphs = graphs;
    this.memory = memory;
    this.real = real;
    this.first = true;
    const { ort, decoder } = graphs;
    const names = decoder.inputNames.filter((name) => name.startsWith("past_key_values."));
    const none = () => new ort.Tensor("float32", new Float32Array(0), [1, groups, 0, d_head]);
    /** @type {Record<string, OrtTensor>} */
    this.caches = Object.fromEntries(names.map((name) => [name, none()]));
  }

  /** Logits after these tokens, which continue the rows so named. @param {number[]} tokens @param {number[]} from */
  async say(tokens, from) {
    const { ort, decoder } = this.graphs;
    const caches = Object.entries(this.caches).map(([name, table]) => [name, rowsOf(ort, table, from)]);
    const shared = from.map(() => 0);
    const said = await decoder.run({
      ...Object.fromEntries(caches),
      input_ids: whole(ort, tokens, [tokens.length, 1]),
      encoder_hidden_states: rowsOf(ort, this.memory, shared),
      encoder_attention_mask: whole(
        ort,
        from.flatMap(() => this.real),
        [from.length, this.real.length],
      ),
      use_cache_branch: new ort.Tensor("bool", [!this.first], [1]),
    });
    this.first = false;
    for (const [name, table] of Object.entries(said))
      if (name !== "logits") this.caches[name.replace("present.", "past_key_values.")] = table;
    const size = said.logits.data.length / tokens.length;
    return tokens.map((_, i) => said.logits.data.slice(i * size, (i + 1) * size));
  }
}
