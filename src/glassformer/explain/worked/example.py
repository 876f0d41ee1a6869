"""The run itself: a real `EncoderDecoder` with simple weights, and hooks that keep what each named place returns.

Shapes: B sentences, S source, T target, H heads, D model width, V vocabulary.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.errors import InputError, one_of
from glassformer.explain.worked import weights
from glassformer.explain.worked.steps import Kind, all_rows
from glassformer.model import EncoderDecoder, ModelConfig


@dataclass(frozen=True, eq=False)
class Step:
    """One named value: `axes` names each dimension of `value`, `inputs` the steps it is computed from."""

    name: str
    kind: Kind
    axes: tuple[str, ...]
    formula: str
    inputs: tuple[str, ...]
    value: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)


@dataclass(frozen=True, eq=False)
class WorkedExample:
    """Every value between the ids of two sentences and the loss of their translation, in the order of computation."""

    config: ModelConfig
    vocabulary: tuple[str, ...]
    steps: tuple[Step, ...]

    def __getitem__(self, name: str) -> Step:
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(step.name for step in self.steps)

    def words(self, ids: str, sentence: int) -> list[str]:
        """The words of `src`, `tgt` or `labels`."""
        return [self.vocabulary[int(i)] for i in self[ids].value[sentence]]

    def select(self, pattern: str) -> tuple[Step, ...]:
        """The steps whose name fits a glob pattern such as `*.pattern`."""
        chosen = tuple(step for step in self.steps if fnmatch.fnmatchcase(step.name, pattern))
        if not chosen:
            raise InputError(f"no value is named `{pattern}`{self._near(pattern)}")
        return chosen

    def _near(self, pattern: str) -> str:
        word = pattern.replace("*", "").strip(".").split(".")[-1].lower()
        ends = sorted({name.rpartition(".")[2] for name in self.names})
        close = difflib.get_close_matches(word, ends)
        near = [name for name in self.names if (word and word in name) or name.rpartition(".")[2] in close]
        if near:
            return f"; near it are {one_of(near[:6])}"
        return f"; the names end in {one_of(ends)}, and `*.pattern` takes all that end in `pattern`"

    def to_dict(self, pattern: str = "*") -> dict[str, Any]:
        """All of it as plain lists, fit for JSON; minus infinity, which JSON lacks, is the text "-inf"."""
        return {
            "config": self.config.to_dict(),
            "vocabulary": list(self.vocabulary),
            "tensors": [
                {
                    "name": step.name,
                    "shape": list(step.shape),
                    "axes": list(step.axes),
                    "formula": step.formula,
                    "inputs": list(step.inputs),
                    "values": _plain(step.value.tolist()),
                }
                for step in self.select(pattern)
            ],
        }


def _plain(values: Any) -> Any:
    if isinstance(values, list):
        return [_plain(value) for value in values]
    return "-inf" if values == float("-inf") else values


@torch.no_grad()
def build_model() -> EncoderDecoder:
    """The tiny model of the example, its matrices replaced by those of `weights`; each norm keeps scale 1, shift 0."""
    model = EncoderDecoder(ModelConfig(**weights.CONFIG)).eval()
    given = weights.parameters()
    for name, parameter in model.named_parameters():
        if ".norm." not in name:
            parameter.copy_(torch.tensor(given.pop(name)))
    assert not given, f"weights without a place in the model: {sorted(given)}"
    return model


@contextmanager
def kept(model: nn.Module, names: list[str]) -> Iterator[dict[str, Tensor]]:
    """While open, what each named module returns (with `.input`, what it is given) is kept under its name."""
    values: dict[str, Tensor] = {}

    def keep_output(name: str) -> Callable[[nn.Module, Any, Tensor], None]:
        return lambda _module, _args, value: values.update({name: value})

    def keep_input(name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        return lambda _module, args: values.update({name: args[0]})

    handles = []
    for name in names:
        module = model.get_submodule(name.removesuffix(".input"))
        if name.endswith(".input"):
            handles.append(module.register_forward_pre_hook(keep_input(name)))
        else:
            handles.append(module.register_forward_hook(keep_output(name)))
    try:
        yield values
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def worked_example() -> WorkedExample:
    """Run the two sentences through the model and keep every named value."""
    model, rows = build_model(), all_rows()
    src, tgt, labels = (torch.tensor(ids) for ids in weights.batch())
    src_mask = src != weights.PAD  # (B, S)
    values = {"src": src, "src_mask": src_mask, "tgt": tgt, "labels": labels}
    values |= {row.name: model.get_parameter(row.name) for row in rows if row.kind == "weight"}

    # Encoder and decoder share one embedding module, so each is watched in its own half of the pass.
    seen = [row.name for row in rows if row.name not in (*values, "probabilities", "loss")]
    with kept(model, [name for name in seen if name.startswith("encoder")]) as reading:
        memory = model.encode(src, src_mask)  # (B, S, D)
    with kept(model, [name for name in seen if not name.startswith("encoder")]) as writing:
        logits = model.decode(tgt, memory, src_mask)  # (B, T, V)
    values |= reading | writing

    probabilities = logits.softmax(-1)
    real = labels != weights.PAD  # padding is no answer to be learnt
    chosen = probabilities.gather(-1, labels.unsqueeze(-1)).squeeze(-1)  # (B, T)
    values |= {"probabilities": probabilities, "loss": -chosen[real].log().mean()}
    steps = tuple(
        Step(row.name, row.kind, row.axes, row.formula, row.inputs, values[row.name].detach().clone()) for row in rows
    )
    return WorkedExample(model.config, weights.WORDS, steps)
