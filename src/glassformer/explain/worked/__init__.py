"""The worked example: two short sentences, as one batch, from ids to logits in a model small enough for a pencil.

Read `weights` (what is given), this file (a trace of each sentence, the batch and the loss), `arithmetic` (single cells
written out), `texts` (the story, in its order), `render` (how it is printed).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from glassformer.explain.activations import Value, Values
from glassformer.explain.trace import Trace, plain, trace
from glassformer.explain.worked.weights import ATTENTION, CONFIG, EMBEDDING, END, FEED_FORWARD, PAD, PAIRS, START, WORDS
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.pipelines.translator import Translator


class WordTokenizer:
    """Every word of the vocabulary is a piece."""

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        return [[*ids, END] for ids in self.encode_target(texts)]

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        return [[WORDS.index(word) for word in text.split()] for text in texts]

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]:
        return [" ".join(WORDS[id] for id in ids if id not in (PAD, START, END)) for ids in batch]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return [WORDS[id] for id in ids]

    target_pieces = source_pieces


@dataclass(frozen=True, eq=False)
class WorkedExample:
    """`traces`: one per sentence; `values`: those of both, stacked along an axis `sentence`, the batch and the loss."""

    traces: tuple[Trace, ...]
    labels: list[list[int]]
    values: Values

    def label_probabilities(self) -> list[float]:
        """The probability of every label but padding."""
        probabilities = self.values["probabilities"].value
        return [
            float(probabilities[sentence, place, label])
            for sentence, labels in enumerate(self.labels)
            for place, label in enumerate(labels)
            if label != PAD
        ]

    def to_dict(self, pattern: str = "*") -> dict[str, Any]:
        """Everything as plain lists, fit for JSON; minus infinity, which JSON lacks, is the text "-inf"."""
        tensors = [
            {"name": value.name, "shape": list(value.value.shape), "axes": list(value.axes), "formula": value.formula}
            | {"inputs": value.inputs, "values": plain(value.value.tolist())}
            for value in self.values.select(pattern)
        ]
        return {"config": self.traces[0].subject.config.to_dict(), "vocabulary": list(WORDS), "tensors": tensors}


@torch.no_grad()
def build_model() -> EncoderDecoder:
    """The tiny model of the example, which keeps each matrix transposed. Its norms stay at scale 1, shift 0."""
    model = EncoderDecoder(ModelConfig(**CONFIG)).eval()
    given = {"encoder.embedding.tokens.weight": torch.tensor(EMBEDDING)}
    for at, matrices in ATTENTION.items():
        q, k, v, output = (torch.tensor(matrices[name]).T for name in ("W_Q", "W_K", "W_V", "W_O"))
        given |= {f"{at}.projection.weight": torch.cat((q, k, v)), f"{at}.output.weight": output}
    for at, matrices in FEED_FORWARD.items():
        given |= {f"{at}.{name}.weight": torch.tensor(matrix).T for name, matrix in matrices.items()}
    for name, parameter in model.named_parameters():
        if ".norm." not in name:
            parameter.copy_(given.pop(name))
    assert not given, f"weights without a place in the model: {sorted(given)}"
    return model


def worked_example() -> WorkedExample:
    """Trace the two sentences, each padded to the length of the longer."""
    translator, words = Translator(build_model(), WordTokenizer()), WordTokenizer()
    sources, targets = (words.encode_target(texts) for texts in zip(*PAIRS, strict=True))
    longest_source, longest_target = (max(map(len, ids)) for ids in (sources, targets))
    traces = tuple(
        trace(translator, text, pad(ids, longest_target), padding=longest_source - len(source))
        for (text, _), source, ids in zip(PAIRS, sources, targets, strict=True)
    )
    labels = [pad([*ids, END], longest_target + 1) for ids in targets]
    example = WorkedExample(traces, labels, Values(batch_values(traces, labels)))
    for name, value in traces[0].values.items():
        both = torch.stack([one[name] for one in traces])
        example.values[name] = replace(value, axes=("sentence", *value.axes), value=both)
    loss = -torch.tensor(example.label_probabilities()).log().mean()
    op = {"kind": "loss", "inputs": ["probabilities", "labels"]}
    example.values["loss"] = Value("loss", (), op, "-Σ ln p[label] / n", loss)
    return example


def pad(ids: list[int], length: int) -> list[int]:
    return ids + [PAD] * (length - len(ids))


def batch_values(traces: Sequence[Trace], labels: Sequence[Sequence[int]]) -> dict[str, Value]:
    """The batch, and the weights as the model keeps them."""
    batch: list[tuple[str, str, str, Sequence[Sequence[int]]]] = [
        ("src", "src", "index(word)", [one.source for one in traces]),
        ("src_mask", "src", "src ≠ <pad>", [one.real for one in traces]),
        ("tgt", "tgt", "index(word)", [one.written.reads for one in traces]),
        ("labels", "tgt", "labels[t] = tgt[t + 1]", labels),
    ]
    values = {
        name: Value(name, ("sentence", f"position:{side}"), {"kind": "given"}, formula, torch.tensor(rows))
        for name, side, formula, rows in batch
    }
    weights = traces[0].weights
    return values | {
        name: Value(name, axes, {"kind": "weight"}, "learnt", weights.tensors[name])
        for name, axes in weights.axes.items()
    }
