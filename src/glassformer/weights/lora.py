"""Low-rank adapters (LoRA): what a model learns beside its weights, while these stay as they are.

    W' = W + alpha / r  B A

W is frozen, A and B learn. B begins at zero, so that W' begins as W. W_Q, W_K and W_V of an attention are one matrix:
they share the r directions that A reads, and each has rows of its own in B.

An adapter is two files. adapter.safetensors holds `NAME.a` and `NAME.b` of each matrix NAME, and whole what is no sum:
the head of labels, if there is one. adapter.json has alpha, the settings of that head, and the base: a digest of its
weights, so that an adapter is never put on a model that it was not made for.

Shapes: O outputs, I inputs, r rank.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from glassformer.common.arguments import checked
from glassformer.common.errors import ConfigError, WeightsError, nearest
from glassformer.common.files import read_json, read_tensors, write_tensors, write_text
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, Model
from glassformer.model.transformer import Head
from glassformer.weights.quantized import set_weights, weights

FORMAT, FORMAT_VERSION = "glassformer-adapter", 1
NUMBERS, TENSORS = "adapter.json", "adapter.safetensors"
ORIGINAL, ADDED = ".parametrizations.weight.original", ".parametrizations.weight.0."  # torch's own names
HEAD_FOLDER = "head"  # of labels, beside a published model that was given one
HEAD = ("labels", "tied", "output_transform", "output_bias")  # the settings that a head of labels brings with it
Some = TypeVar("Some", EncoderDecoder, EncoderOnly, DecoderOnly)


class LowRank(nn.Module):
    """What is added to one matrix."""

    def __init__(self, matrix: Tensor, rank: int, alpha: float, generator: torch.Generator) -> None:
        super().__init__()
        outputs, inputs = matrix.shape
        self.a = nn.Parameter(torch.randn(rank, inputs, generator=generator) * inputs**-0.5)
        self.b = nn.Parameter(torch.zeros(outputs, rank))
        self.scale = alpha / rank

    def forward(self, matrix: Tensor) -> Tensor:
        return added(matrix, self.a, self.b, self.scale)


def added(matrix: Tensor, a: Tensor, b: Tensor, scale: float) -> Tensor:
    return torch.addmm(matrix, b, a, alpha=scale)  # (O, I)


def attach(model: nn.Module, rank: int, alpha: float, patterns: Sequence[str], seed: int) -> list[str]:
    """Give each linear layer whose name fits one of the patterns a matrix of `rank` to learn; the layers' names."""
    layers = {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    chosen = matching(patterns, layers, "lora_on")
    generator = torch.Generator().manual_seed(seed)
    for name in chosen:
        module = layers[name]
        if rank > min(module.weight.shape):
            size = " x ".join(map(str, module.weight.shape))
            raise ConfigError(f"train.lora_rank = {rank} is more than a matrix of {size} has ({name}); lower it")
        parametrize.register_parametrization(module, "weight", LowRank(module.weight, rank, alpha, generator))
    return chosen


def matching(patterns: Sequence[str], names: Sequence[str] | Mapping[str, Any], key: str) -> list[str]:
    """The names that fit one of the patterns, of which each must fit some."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ConfigError(
                f"train.{key}: `{pattern}` fits no name of the model's; * stands for anything, dots included. "
                f"Near it: {nearest(pattern, names)}"
            )
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def is_added(name: str) -> bool:
    return ADDED in name


def merged(tensors: Mapping[str, Tensor], scale: float) -> dict[str, Tensor]:
    """The weights of a model with what was added to them summed up, under the names that it had before."""
    plain: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name.endswith(ORIGINAL):
            layer = name.removesuffix(ORIGINAL)
            a, b = (tensors[f"{layer}{ADDED}{part}"] for part in "ab")
            plain[f"{layer}.weight"] = added(tensor, a, b, scale)
        elif not is_added(name):
            plain[name] = tensor
    return plain


@torch.no_grad()
def merged_model(model: Some, scale: float) -> Some:
    """A model of plain matrices that computes the same."""
    made = type(model)(model.config)
    set_weights(made, merged(weights(model), scale))
    return made.eval()


def digest(tensors: Mapping[str, Tensor]) -> str:
    """The same for the same weights. The head's are left out: another may take its place."""
    sha = hashlib.sha256()
    plain = {name.replace(ORIGINAL, ".weight"): tensor for name, tensor in tensors.items() if not is_added(name)}
    for name in sorted(name for name in plain if not name.startswith("head.")):
        tensor = plain[name].detach().cpu().float().contiguous()
        sha.update(f"{name} {tuple(tensor.shape)}\n".encode())
        sha.update(tensor.numpy().tobytes())
    return sha.hexdigest()


def save(
    folder: Path, model: Model, tensors: Mapping[str, Tensor], alpha: float, base: str, labels: Sequence[str] = ()
) -> None:
    """Write an adapter; `tensors` are all the model's, by the names they have while it learns, `base` is the name of
    the model that they were added to."""
    parts = {name.replace(ADDED, "."): tensor for name, tensor in tensors.items() if is_added(name)}
    settings: dict[str, Any] = {"format": FORMAT, "format_version": FORMAT_VERSION, "alpha": alpha, "base": base}
    settings["digest"] = digest({name: tensors[name] for name, _ in model.named_parameters()})
    if model.config.labels:
        parts |= {name: tensor for name, tensor in tensors.items() if name.startswith("head.")}
        settings["head"] = {name: getattr(model.config, name) for name in HEAD} | {"names": list(labels)}
    folder.mkdir(exist_ok=True)
    write_tensors(folder / TENSORS, parts)
    write_text(folder / NUMBERS, json.dumps(settings, indent=1) + "\n")


def adapter_labels(folder: Path) -> tuple[str, ...]:
    """The names of the labels that a published model in this folder was taught; none where it was taught none."""
    settings = read_json(folder / HEAD_FOLDER / NUMBERS) or {}
    return tuple((settings.get("head") or {}).get("names", ()))


@checked
@torch.no_grad()
def load_adapter(model: Model, folder: str | Path) -> tuple[str, ...]:
    """Add what an adapter learnt to the model it was made for, and to no other; it is an ordinary model afterwards.

    `folder` holds adapter.json and adapter.safetensors, as a run with `train.lora_rank` leaves them. An adapter that
    brings a head of labels puts it in the place of the model's own; the names of the labels are given back.
    """
    folder = Path(folder)
    settings = read_json(folder / NUMBERS)
    if settings is None or settings.get("format") != FORMAT:
        raise WeightsError(f"{folder} holds no adapter ({NUMBERS}); a run with train.lora_rank writes one")
    if settings.get("format_version") != FORMAT_VERSION:
        raise WeightsError(
            f"{folder / NUMBERS} is of version {settings.get('format_version')!r:.40}; this glassformer reads "
            f"{FORMAT_VERSION}: update it (pip install --upgrade glassformer)"
        )
    if settings.get("digest") != digest(dict(model.named_parameters())):
        raise WeightsError(
            f"{folder} was made for other weights than this model's: for those of {settings.get('base')!r:.200}, as "
            f"they were when it was trained, in float32 and with no adapter on them"
        )
    tensors = read_tensors(folder / TENSORS)
    head = dict(settings.get("head") or {})
    names = tuple(head.pop("names", ()))
    own = weights(model)
    for layer in sorted({name.removesuffix(".a") for name in tensors if name.endswith(".a")}):
        a, b, matrix = tensors.get(f"{layer}.a"), tensors.get(f"{layer}.b"), own.get(f"{layer}.weight")
        if a is None or b is None or matrix is None or (len(b), a.shape[1]) != matrix.shape:
            raise WeightsError(f"{folder / TENSORS} does not fit the model at `{layer}`; copy both files again")
        matrix.copy_(added(matrix, a.to(matrix.device), b.to(matrix.device), settings["alpha"] / len(a)))
    if head:
        assert isinstance(model, EncoderOnly)
        model.config = replace(model.config, **head)
        model.head = Head(model.config, model.encoder.embedding)
        place = next(iter(model.encoder.parameters())).device
        model.head.load_state_dict(
            {n.removeprefix("head."): t for n, t in tensors.items() if n.startswith("head.")}, strict=True
        )
        model.head.to(place)
    return names
