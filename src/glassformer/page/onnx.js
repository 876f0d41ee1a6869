// The graphs of a model in a browser: their files, their weights, and a decoder that is asked step by step.

import { Refusal } from "./request.js";

/** @param {string} address */
export async function fetchFile(address) {
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
const fetchBytes = async (address) => new Uint8Array(await (await fetchFile(address)).arrayBuffer());

/** A file that is stored packed. @param {string} address */
async function fetchGzip(address) {
  const packed = new Blob([await fetchBytes(address)]).stream();
  return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** Weights as float32: int8 numbers times the scale of their row. @param {Uint8Array} bytes @param {ModelFile} file */
function dequantize({ buffer }, file) {
  const all = new Float32Array(file.bytes / 4);
  for (const { offset, numbers, at, scales, rows } of file.stored) {
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
export const int64 = (ort, ids, shape) => new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), shape);

/** Rows of a table, some of them repeatedly. @param {Ort} ort @param {OrtTensor} table @param {number[]} rows */
function rowsOf(ort, table, rows) {
  const [count, ...inner] = table.dims;
  const size = inner.reduce((a, b) => a * b, 1);
  if (count === rows.length && rows.every((row, i) => row === i)) return table;
  const data = new Float32Array(rows.length * size);
  for (const [i, row] of rows.entries()) data.set(table.data.subarray(row * size, (row + 1) * size), i * size);
  return new ort.Tensor("float32", data, [rows.length, ...inner]);
}

/** The three graphs, and the weights that they share. @param {string} base @param {ModelFile} file */
export async function loadGraphs(base, file) {
  const ort = window.GLASSFORMER_RUNTIME;
  if (!ort) throw new Refusal(404, "no_file", "runtime/ort.js");
  const graph = (/** @type {string} */ name) => fetchBytes(`${base}onnx/${name}.onnx`);
  const [wasm, stored, ...files] = await Promise.all([
    fetchGzip(`${base}../runtime/ort.wasm.gz`),
    fetchBytes(`${base}weights.bin`),
    graph("encoder_model"),
    graph("decoder_model_merged"),
    graph("trace"),
  ]);
  ort.env.wasm.wasmBinary = wasm;
  ort.env.wasm.numThreads = 1;
  const weights = dequantize(stored, file);
  const externalData = [{ path: "weights.bin", data: new Uint8Array(weights.buffer) }];
  const sessions = [];
  for (const bytes of files) {
    sessions.push(await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"], externalData }));
  }
  const [encoder, decoder, tracer] = sessions;
  /** @param {number[]} ids @param {number[]} real */
  const encode = async (ids, real) => {
    const [input_ids, attention_mask] = [ids, real].map((row) => int64(ort, row, [1, row.length]));
    return (await encoder.run({ input_ids, attention_mask })).last_hidden_state;
  };
  return { ort, weights, decoder, tracer, encode };
}

/** @typedef {Awaited<ReturnType<typeof loadGraphs>>} Graphs */

/** The decoder with its cache, one step of all hypotheses at a time. */
export class StepDecoder {
  /** @param {Graphs} graphs @param {OrtTensor} memory @param {number[]} real @param {ModelFile["decoder"]} decoder */
  constructor(graphs, memory, real, { groups, d_head }) {
    this.graphs = graphs;
    this.memory = memory;
    this.real = real;
    this.first = true;
    const { ort, decoder } = graphs;
    const names = decoder.inputNames.filter((name) => name.startsWith("past_key_values."));
    const empty = () => new ort.Tensor("float32", new Float32Array(0), [1, groups, 0, d_head]);
    /** @type {Record<string, OrtTensor>} */
    this.caches = Object.fromEntries(names.map((name) => [name, empty()]));
  }

  /** Logits after these tokens, which continue the rows `from`. @param {number[]} tokens @param {number[]} from */
  async step(tokens, from) {
    const { ort, decoder } = this.graphs;
    const caches = Object.entries(this.caches).map(([name, table]) => [name, rowsOf(ort, table, from)]);
    const shared = from.map(() => 0);
    const mask = from.flatMap(() => this.real);
    const output = await decoder.run({
      ...Object.fromEntries(caches),
      input_ids: int64(ort, tokens, [tokens.length, 1]),
      encoder_hidden_states: rowsOf(ort, this.memory, shared),
      encoder_attention_mask: int64(ort, mask, [from.length, this.real.length]),
      use_cache_branch: new ort.Tensor("bool", [!this.first], [1]),
    });
    this.first = false;
    for (const [name, table] of Object.entries(output))
      if (name !== "logits") this.caches[name.replace("present.", "past_key_values.")] = table;
    const size = output.logits.data.length / tokens.length;
    return tokens.map((_, i) => output.logits.data.slice(i * size, (i + 1) * size));
  }
}
