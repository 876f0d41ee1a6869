"""What a table of a published family is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from glassformer.common.errors import WeightsError, one_of
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, ModelConfig
from glassformer.model.config import Activation

ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}

Names = dict[str, str | tuple[str, Any]]  # of our settings: the family's own, with its published default if any


class Settings:
    """A family's own `config.json`, or what else says so, read with its published defaults."""

    def __init__(self, values: Mapping[str, Any], file: str = "config.json") -> None:
        self.values, self.file = values, file

    def get(self, name: str, default: Any) -> Any:
        value = self.values.get(name)
        return default if value is None else value

    def need(self, name: str) -> Any:
        if self.values.get(name) is None:
            raise WeightsError(f"{self.file} lacks `{name}`, which this model type needs")
        return self.values[name]

    def only(self, name: str, supported: Any) -> None:
        """Refuse a variant of the family that the parts do not cover."""
        if self.get(name, supported) != supported:
            raise WeightsError(
                f"{self.file} sets `{name}` to {self.values[name]!r}; "
                f"this model type is supported with {supported!r} only"
            )

    def activation(self, name: str, default: str) -> Activation:
        value = self.get(name, default)
        if value not in ACTIVATIONS:
            raise WeightsError(f"{self.file} sets `{name}` to {value!r}; supported are {one_of(ACTIVATIONS)}")
        return ACTIVATIONS[value]

    def read(self, names: Names) -> dict[str, Any]:
        """Our settings, by a family's names for them; one that comes without a default is needed."""
        found: dict[str, Any] = {}
        for ours, name in names.items():
            if isinstance(name, str):
                found[ours] = self.need(name)
            else:
                found[ours] = self.activation(*name) if ours == "activation" else self.get(*name)
        return found

    def token(self, name: str, vocab_size: int) -> int | None:
        """The id of a special token, if the vocabulary has it; of several end tokens the first."""
        value = self.values.get(name)
        if isinstance(value, list):
            value = value[0] if value else None
        return value if isinstance(value, int) and 0 <= value < vocab_size else None

    def ids(self, vocab_size: int, *start: str) -> dict[str, Any]:
        """The vocabulary's size and its special tokens; the start is the first of these names that there is."""
        starts = (self.token(name, vocab_size) for name in start)
        return {
            "vocab_size": vocab_size,
            "pad_id": self.token("pad_token_id", vocab_size),
            "start_id": next((id for id in starts if id is not None), None),
            "end_id": self.token("eos_token_id", vocab_size),
        }


def to_settings(config: ModelConfig, names: Names) -> dict[str, Any]:
    """The other way: a configuration of ours by a family's names."""
    spelt = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    shares = {name: getattr(config, name) for name in ("attention_dropout", "activation_dropout")}
    computed = {name: config.dropout if share is None else share for name, share in shares.items()} | {
        "activation": spelt[config.activation],
        "head_width": config.d_head,
        "kv_heads": config.kv_heads or config.heads,
        "segments": config.segments or 1,
        "decoder_heads": config.decoder.heads,
        "decoder_d_ff": config.decoder.d_ff,
        "decoder_layers": config.decoder.layers,
    }
    return {
        name if isinstance(name, str) else name[0]: computed[ours] if ours in computed else getattr(config, ours)
        for ours, name in names.items()
    }


def join(*parts: Tensor) -> Tensor:
    """One matrix of several, stacked by rows; a single tensor stays as it is."""
    return torch.cat(parts) if len(parts) > 1 else parts[0]


Parts = Sequence[Tensor | None]


@dataclass(frozen=True)
class Take:
    """Where one of our tensors comes from: the file's names, how their tensors become it, and how it becomes them.

    A name that ends in `?` may be missing: `fold` is given None for it, and `unfold` gives None where the file needs
    none. Without an `unfold`, parts of one size lie one below the other, as `join` puts them. What a fold drops (rows
    that nobody reads, a last digit) `unfold` cannot know; `unload` has it from the file for a model that was loaded.
    """

    names: tuple[str, ...]
    fold: Callable[..., Tensor] = join
    unfold: Callable[[Tensor], Parts] | None = None

    def parts(self, ours: Tensor) -> Parts:
        """The file's tensors, one for each name."""
        return ours.chunk(len(self.names)) if self.unfold is None else self.unfold(ours)


def from_row(first: int) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Parts]]:
    """A fold that leaves out the rows before the first one that is read, and its inverse, which makes them zeros."""
    return lambda t: t[first:], lambda t: (torch.cat((t.new_zeros(first, *t.shape[1:]), t)),)


Weights = dict[str, Take]


@dataclass(frozen=True)
class Family:
    """A published family: which arrangement it is, how its settings read, where its weights go.

    `same` lists names under which a file may hold one and the same tensor; the first is the one the table uses.
    `head` and `embedding` decide whether the two are tied: they are when the file holds one tensor for both.
    `constant` matches buffers that carry no weight; `other_head` matches weights of a head that is not loaded.
    """

    model: type[EncoderDecoder] | type[EncoderOnly] | type[DecoderOnly]
    config: Callable[[Settings, bool], ModelConfig]
    weights: Callable[[ModelConfig, Settings], Weights]
    embedding: str
    head: str
    prefix: str = ""
    same: tuple[tuple[str, ...], ...] = ()
    constant: str = "$^"
    other_head: str = "$^"
    rename: tuple[tuple[str, str], ...] = ()


def layers(
    count: int, ours: str, theirs: str, table: Mapping[str, tuple[str, ...]], parts: Sequence[str] = ("weight", "bias")
) -> Weights:
    """A layer's table written out for every layer of a stack."""
    return {
        f"{ours}.{i}.{name}.{part}": Take(tuple(f"{theirs}.{i}.{source}.{part}" for source in sources))
        for i in range(count)
        for name, sources in table.items()
        for part in parts
    }


def pairs(table: Mapping[str, str]) -> Weights:
    """Weight and bias of single modules."""
    return {f"{a}.{part}": Take((f"{b}.{part}",)) for a, b in table.items() for part in ("weight", "bias")}
