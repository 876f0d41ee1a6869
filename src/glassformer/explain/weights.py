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
from glassformer.model import DecoderOnly, EncoderDecoder
from glassformer.model.position import PositionTable, RelativeBias, sinusoid
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
    both = isinstance(model, EncoderDecoder)
    decoder, encoder = config.decoder, config.encoder
    first = decoder if isinstance(model, DecoderOnly) else encoder
    kind = "encoder-decoder" if both else "decoder-only" if isinstance(model, DecoderOnly) else "encoder-only"
    return {
        "kind": kind,
        "task": subject.task,
        "name": name,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "encoder_layers": 0 if kind == "decoder-only" else encoder.layers,
        "decoder_layers": 0 if kind == "encoder-only" else decoder.layers,
        "heads": first.heads,
        "kv_heads": first.kv_heads or first.heads,
        "d_model": config.d_model,
        "d_head": first.d_head,
        "d_ff": first.d_ff,
        "decoder_heads": decoder.heads,
        "decoder_kv_heads": decoder.kv_heads or decoder.heads,
        "decoder_d_head": decoder.d_head,
        "decoder_d_ff": decoder.d_ff,
        "vocab_size": config.vocab_size,
        "vocab_size_source": first.vocab_size,
        "max_length": config.max_length,
        "norm": config.norm,
        "norm_kind": config.norm_type,
        "norm_eps": config.norm_eps,
        "positions": config.positions,
        "activation": config.activation,
        "gated": config.gated,
        "score_scale": config.score_scale or first.d_head**-0.5,
        "embedding_scale": config.d_model**0.5 if config.embedding_scale else 1.0,
        "labels": subject.answers(range(config.labels or config.vocab_size)) if subject.has_labels else [],
        "mask": subject.gap,
        "image_size": config.image_size if subject.reads_images else None,
        "patch_size": config.patch_size,
        "channels": config.channels,
    }
