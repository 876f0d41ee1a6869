"""Translate with the two ONNX files next to this one: python run.py "a sentence" [--beam 4].

It needs onnxruntime, numpy and, for text, tokenizers, but not the program that wrote the files.

    encoder_model.onnx          input_ids, attention_mask -> last_hidden_state
    decoder_model_merged.onnx   one token after those in the caches -> logits, and the caches with it

The caches are keys and values of each layer. `past_key_values.0.decoder.key` and so on hold the tokens so far and grow
by one at every step. `...encoder...` hold the source: the first step computes them (`use_cache_branch` false) and all
others receive them.

Shapes: B sentences, K beams, S source, P tokens so far, V vocabulary.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ids = list[int]
NEVER = np.float32(-np.inf)


@dataclass
class Target:
    """A target without its end token, its log-probability per token, and whether the search ended it."""

    ids: Ids
    score: float
    finished: bool


@dataclass
class Search:
    """One sentence's search: the best K so far, and those that have ended."""

    beams: int
    limit: int
    length_penalty: float
    totals: Floats = field(init=False)  # (K)
    ids: list[Ids] = field(default_factory=list)
    done: list[tuple[float, Ids]] = field(default_factory=list)
    going: bool = True

    def __post_init__(self) -> None:
        self.totals = np.array([0.0] + [-np.inf] * (self.beams - 1), dtype=np.float32)  # all start equal: one counts
        self.ids = [[] for _ in range(self.beams)]

    def advance(self, log_probs: Floats, end: int | None) -> list[int]:
        """Extend the beams by log-probabilities (K, V), or (1, V) at first; returns the parent of each new beam."""
        beams, length = self.beams, len(self.ids[0]) + 1
        sums = (self.totals[: len(log_probs), None] + log_probs).ravel()
        count = min(2 * beams if beams > 1 else 1, len(sums))  # a greedy search takes the first, even if it is the end
        best = np.argpartition(-sums, count - 1)[:count]
        best = best[np.lexsort((best, -sums[best]))]
        kept: list[tuple[np.float32, Ids, int]] = []
        for rank, place in enumerate(best):
            parent, token = divmod(int(place), log_probs.shape[1])
            ids = [*self.ids[parent], token]
            if token == end or length == self.limit:
                if self.going and rank < beams and np.isfinite(sums[place]):
                    self.done.append((float(sums[place]) / length**self.length_penalty, ids))
            elif len(kept) < beams:
                kept.append((sums[place], ids, parent))
        self.done = sorted(self.done, key=lambda one: -one[0])[:beams]
        kept += [(NEVER, [*self.ids[0], 0], 0)] * (beams - len(kept))
        self.totals = np.array([total for total, _, _ in kept], dtype=np.float32)
        self.ids = [ids for _, ids, _ in kept]
        # Log-probabilities only fall, so a beam that cannot win even at the best length has lost.
        bound = float(self.totals[0]) / (self.limit if self.length_penalty > 0 else length) ** self.length_penalty
        self.going = self.going and length < self.limit and (not self.done or bound > self.done[0][0])
        return [parent for _, _, parent in kept]


class OnnxModel:
    """The two files, and their settings in config.json."""

    def __init__(self, folder: str | Path, threads: int = 0) -> None:
        folder = Path(folder)
        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.disable_quant_qdq", "1")  # weights become float32 once, not each time
        suffix = self.config["glassformer"]["suffix"]
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(
                folder / "onnx" / f"{name}{suffix}.onnx", options, providers=["CPUExecutionProvider"]
            )
            for name in ("encoder_model", "decoder_model_merged")
        )
        self.start, self.end = self.config["decoder_start_token_id"], self.config["eos_token_id"]
        self.pad = self.config["pad_token_id"] or 0
        self.caches = [one for one in self.decoder.get_inputs() if one.name.startswith("past_key_values.")]
        self.outputs = [one.name for one in self.decoder.get_outputs()]

    def generate(
        self, sources: list[Ids], beam: int = 1, limit: int | None = None, length_penalty: float = 1.0
    ) -> list[Target]:
        """The best target of each source, by greedy or beam search."""
        longest = self.config["max_position_embeddings"]
        width = max(map(len, sources))
        if not all(sources) or width > longest:
            raise ValueError(f"a source must have 1 to {longest} tokens; these have {[len(ids) for ids in sources]}")
        if limit is None:
            limit = min(2 * (-(-width // 16) * 16) + 20, longest - 1)
        src = np.full((len(sources), width), self.pad, dtype=np.int64)
        mask = np.zeros_like(src)
        for row, ids in enumerate(sources):
            src[row, : len(ids)], mask[row, : len(ids)] = ids, 1
        (memory,) = self.encoder.run(None, {"input_ids": src, "attention_mask": mask})
        fixed = {"encoder_hidden_states": memory, "encoder_attention_mask": mask}
        empty = [(len(sources), int(one.shape[1]), 0, int(one.shape[3])) for one in self.caches]
        caches = {one.name: np.zeros(shape, np.float32) for one, shape in zip(self.caches, empty, strict=True)}
        tokens = np.full((len(sources), 1), self.start, dtype=np.int64)
        searches = [Search(beam, limit, length_penalty) for _ in sources]
        rows = 1  # of each sentence
        for step in range(limit):
            cached = np.array([step > 0])
            given = {"input_ids": tokens, "use_cache_branch": cached, **fixed, **caches}
            logits, *grown = self.decoder.run(self.outputs, given)
            caches = {
                name.replace("present.", "past_key_values."): value
                for name, value in zip(self.outputs[1:], grown, strict=True)
            }
            log_probs = log_softmax(logits[:, -1])
            if self.config["glassformer"]["force_end"] and step == limit - 1:
                log_probs[:], log_probs[:, self.end] = NEVER, 0.0
            parents = [
                row * rows + parent
                for row, search in enumerate(searches)
                for parent in search.advance(log_probs[row * rows : (row + 1) * rows], self.end)
            ]
            if not any(search.going for search in searches):
                break
            if parents != list(range(len(tokens))):
                caches = {name: value[parents] for name, value in caches.items()}
                if rows == 1:
                    fixed = {name: value[parents] for name, value in fixed.items()}
            rows = beam
            tokens = np.array([[ids[-1]] for search in searches for ids in search.ids], dtype=np.int64)
        return [self.best(search) for search in searches]

    def best(self, search: Search) -> Target:
        if not search.done:
            raise ValueError("no target is possible: are the weights finite?")
        score, ids = search.done[0]
        ended = ids[-1:] == [self.end]
        forced = self.config["glassformer"]["force_end"] and len(ids) == search.limit
        return Target(ids[:-1] if ended else ids, score, ended and not forced)


def log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)), np.float32)


class TextCodec:
    """Text to ids and back, by the tokenizer's files next to the model."""

    def __init__(self, folder: str | Path, config: dict[str, Any]) -> None:
        import tokenizers

        sides = config["glassformer"]["tokenizers"]
        if not sides:
            raise SystemExit("This model came without a tokenizer that could be written; give ids: --ids 5 6 7")
        self.source, self.target = (tokenizers.Tokenizer.from_file(str(Path(folder) / name)) for name in sides)
        self.silent = set(config["glassformer"]["silent"])

    def encode(self, text: str) -> Ids:
        return list(self.source.encode(text).ids)

    def decode(self, ids: Ids) -> str:
        return str(self.target.decode([id for id in ids if id not in self.silent], skip_special_tokens=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("texts", nargs="*", help="sentences; without any, a line each from standard input")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--ids", type=int, nargs="+", help="a source as ids, answered in ids")
    args = parser.parse_args()
    folder = Path(__file__).parent
    model = OnnxModel(folder)
    if args.ids:
        print(*model.generate([args.ids], args.beam)[0].ids)
        return
    text = TextCodec(folder, model.config)
    for line in args.texts or sys.stdin:
        ids = text.encode(line.strip()) if line.strip() else []
        print(text.decode(model.generate([ids], args.beam)[0].ids) if ids else "", flush=True)


if __name__ == "__main__":
    main()
