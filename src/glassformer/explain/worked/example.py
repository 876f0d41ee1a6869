"""The two sentences as one batch: a trace of each, and beside the traced values what was given and the loss."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from glassformer.explain.operations import Value
from glassformer.explain.trace import trace
from glassformer.explain.traced import Trace, plain
from glassformer.explain.values import Values
from glassformer.explain.worked.weights import ATTENTION, CONFIG, EMBEDDING, END, FEED_FORWARD, PAD, PAIRS, START, WORDS
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.pipelines.translator import Translator


class Words:
    """The vocabulary as a tokenizer: every word is a piece."""

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
    """`traces`: one per sentence; `values`: those of both in one, behind an axis `sentence`, and what is theirs."""

    traces: tuple[Trace, ...]
    labels: list[list[int]]
    values: Values

    def label_probabilities(self) -> list[float]:
        """The probability of every label; padding is no answer to be learnt."""
        probabilities = self.values["probabilities"].value
        return [
            float(probabilities[sentence, place, label])
            for sentence, labels in enumerate(self.labels)
            for place, label in enumerate(labels)
            if label != PAD
        ]

    def to_dict(self, pattern: str = "*") -> dict[str, Any]:
        """All of it as plain lists, fit for JSON; minus infinity, which JSON lacks, is the text "-inf"."""
        tensors = [
            {"name": value.name, "shape": list(value.value.shape), "axes": list(value.axes), "formula": value.formula}
            | {"inputs": value.inputs, "values": plain(value.value.tolist())}
            for value in self.values.select(pattern)
        ]
        return {"config": self.traces[0].subject.config.to_dict(), "vocabulary": list(WORDS), "tensors": tensors}


@torch.no_grad()
def build_model() -> EncoderDecoder:
    """The tiny model of the example; it keeps each matrix transposed. Its norms stay at scale 1, shift 0."""
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
    """Follow the two sentences through the model, each padded to the length of the longer."""
    translator, words = Translator(build_model(), Words()), Words()
    sources, targets = (words.encode_target(texts) for texts in zip(*PAIRS, strict=True))
    longest_source, longest_target = (max(map(len, ids)) for ids in (sources, targets))
    traces = tuple(
        trace(translator, text, pad(ids, longest_target), padding=longest_source - len(source))
        for (text, _), source, ids in zip(PAIRS, sources, targets, strict=True)
    )
    labels = [pad([*ids, END], longest_target + 1) for ids in targets]
    example = WorkedExample(traces, labels, Values())
    example.values.update({value.name: value for value in [*given(example), *traced(traces)]})
    loss = -torch.tensor(example.label_probabilities()).log().mean()
    example.values["loss"] = Value(
        "loss", (), {"kind": "loss", "inputs": ["probabilities", "labels"]}, "-Σ ln p[label] / n", loss
    )
    return example


def pad(ids: list[int], length: int) -> list[int]:
    return ids + [PAD] * (length - len(ids))


def given(example: WorkedExample) -> list[Value]:
    """The batch, and the weights as the model keeps them."""

    def batch(name: str, side: str, formula: str, rows: Sequence[Sequence[int]]) -> Value:
        return Value(name, ("sentence", f"position:{side}"), {"kind": "given"}, formula, torch.tensor(rows))

    traces, weights = example.traces, example.traces[0].weights
    return [
        batch("src", "src", "index(word)", [one.source for one in traces]),
        batch("src_mask", "src", "src ≠ <pad>", [one.real for one in traces]),
        batch("tgt", "tgt", "index(word)", [one.written.reads for one in traces]),
        batch("labels", "tgt", "labels[t] = tgt[t + 1]", example.labels),
        *(
            Value(name, weights.axes[name], {"kind": "weight"}, "learnt", weights.tensors[name])
            for name in weights.axes
        ),
    ]


def traced(traces: Sequence[Trace]) -> list[Value]:
    """What the traces hold, both sentences in one."""

    def both(name: str) -> Tensor:
        return torch.stack([one[name] for one in traces])

    return [
        Value(value.name, ("sentence", *value.axes), value.op, value.formula, both(value.name))
        for value in traces[0].values.values()
    ]
