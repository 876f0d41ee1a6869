"""What all runs of a model share: its facts, its weights by name, and their fingerprint."""

from __future__ import annotations

import hashlib
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.explain.subject import Subject
from glassformer.model import ModelConfig
from glassformer.model.embedding import PositionTable, RelativeBias, sinusoid
from glassformer.model.transformer import Head

_fingerprints: weakref.WeakKeyDictionary[nn.Module, tuple[object, str]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def raw(value: Tensor) -> bytes:
    """Little-endian float32, row by row."""
    return value.detach().float().cpu().contiguous().numpy().astype("<f4", copy=False).tobytes()


@dataclass(frozen=True)
class Weights:
    """A model's tensors by name, tied ones once; the paper's sinusoid, which anyone can compute, is left out."""

    tensors: dict[str, Tensor]
    axes: dict[str, tuple[str, ...]]
    names: dict[int, str]  # of a tensor's identity

    @classmethod
    def of(cls, model: nn.Module) -> Weights:
        tensors: dict[str, Tensor] = {}
        axes: dict[str, tuple[str, ...]] = {}
        names: dict[int, str] = {}
        for at, module in model.named_modules():
            if isinstance(module, PositionTable) and is_sinusoid(module):
                continue
            for part, tensor in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
                name = f"{at}.{part}"
                if id(tensor) not in names:
                    tensors[name], axes[name], names[id(tensor)] = tensor, axes_of(module, tensor), name
        return cls(tensors, axes, names)

    def name(self, tensor: Tensor | None) -> str | None:
        """The name of a weight; None for a weight that a module lacks."""
        return None if tensor is None else self.names[id(tensor)]

    def manifest(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        offset = 0
        for name, tensor in self.tensors.items():
            row = {"name": name, "shape": list(tensor.shape), "axes": list(self.axes[name])}
            rows.append(row | {"offset": offset, "bytes": 4 * tensor.numel()})
            offset += 4 * tensor.numel()
        return rows

    def blob(self) -> bytes:
        return b"".join(map(raw, self.tensors.values()))


def axes_of(module: nn.Module, tensor: Tensor) -> tuple[str, ...]:
    if isinstance(module, nn.Linear):
        return ("out", "in")[: tensor.dim()]
    if isinstance(module, PositionTable):
        return ("position", "channel")
    if isinstance(module, RelativeBias):
        return ("bucket", "head")
    if tensor.dim() == 2:
        return ("vocab", "channel")
    return ("vocab" if isinstance(module, Head) else "channel",)


def is_sinusoid(positions: PositionTable) -> bool:
    table = positions.table
    return not isinstance(table, nn.Parameter) and torch.equal(table.cpu().float(), sinusoid(*table.shape))


def fingerprint(model: nn.Module) -> str:
    """The same for the same weights; computed once, and again only after they have been changed."""
    tensors = [*model.parameters(), *model.buffers()]
    state = tuple((tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version) for tensor in tensors)
    with _lock:
        known = _fingerprints.get(model)
        if known is not None and known[0] == state:
            return known[1]
    digest = hashlib.sha256(repr(getattr(model, "config", None)).encode())
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    with _lock:
        _fingerprints[model] = (state, digest.hexdigest())
    return digest.hexdigest()


def facts(subject: Subject, name: str) -> dict[str, Any]:
    """The facts of a model for the manifest."""
    model, config = subject.model, subject.config
    encoder, decoder = hasattr(model, "encoder"), hasattr(model, "decoder")
    first = config.encoder if encoder else config.decoder
    same = (
        "d_model", "vocab_size", "max_length", "norm", "norm_eps", "positions", "activation", "gated", "patch_size",
        "channels",
    )  # fmt: skip
    return {
        "kind": "encoder-decoder" if encoder and decoder else "encoder-only" if encoder else "decoder-only",
        "task": subject.task,
        "name": name,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "encoder_layers": config.encoder.layers if encoder else 0,
        "decoder_layers": config.decoder.layers if decoder else 0,
        **stack_sizes(first),
        **{f"decoder_{size}": value for size, value in stack_sizes(config.decoder).items()},
        **{field: getattr(config, field) for field in same},
        "vocab_size_source": first.vocab_size,
        "norm_kind": config.norm_type,
        "score_scale": config.score_scale or first.d_head**-0.5,
        "embedding_scale": config.d_model**0.5 if config.embedding_scale else 1.0,
        "labels": subject.answers(range(config.labels or config.vocab_size)) if subject.has_labels else [],
        "mask": subject.gap,
        "image_size": config.image_size if subject.reads_images else None,
    }


def stack_sizes(config: ModelConfig) -> dict[str, int]:
    kv_heads = config.kv_heads or config.heads
    return {"heads": config.heads, "kv_heads": kv_heads, "d_head": config.d_head, "d_ff": config.d_ff}
