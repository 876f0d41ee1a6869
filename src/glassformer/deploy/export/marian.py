"""To Marian's own files, which Firefox's engine runs: so far the weights, of a model whose vocabularies are those of
SentencePiece models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.deploy.export.formats import CannotExport
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.model.attention import Attention
from glassformer.weights.marian_files import Quantized, write_binary
from glassformer.weights.pretrained import marian_native
from glassformer.weights.pretrained.family import Settings, Weights
from glassformer.weights.quantized import FULL

Ranges = dict[str, float]  # of each matrix in the file, the largest number that it multiplies


def refusals(config: ModelConfig) -> Iterator[str]:
    """Why Firefox's engine cannot run a model of this configuration."""
    wanted: dict[str, Any] = {
        "autoregression": "ssru", "norm": "post", "norm_type": "layer", "activation": "relu", "gated": False,
        "positions": "sinusoidal", "bias": True, "embedding_scale": True, "embedding_norm": False, "segments": 0,
        "output_transform": False, "tied": True, "kv_heads": None, "head_width": None, "qkv_bias": None,
    }  # fmt: skip
    for name, value in wanted.items():
        if (own := getattr(config, name)) != value:
            yield f"{name}={own!r}: it knows {value!r} alone"
    if config.decoder.heads != config.heads or config.decoder.d_ff != config.d_ff:
        yield f"decoder_heads={config.decoder.heads}, decoder_d_ff={config.decoder.d_ff}: both its stacks are alike"
    if config.start_id != config.vocab_size - 1 or config.pad_id != config.start_id:
        yield f"start_id={config.start_id}: its targets begin with nothing, here the last piece, an embedding of zeros"


def settings_of(config: ModelConfig) -> dict[str, Any]:
    """By Marian's names."""
    size = config.vocab_size - 1
    shared = config.src_vocab_size is None
    given = {
        "dim-emb": config.d_model, "transformer-heads": config.heads, "transformer-dim-ffn": config.d_ff,
        "enc-depth": config.layers, "dec-depth": config.decoder.layers, "transformer-ffn-activation": config.activation,
        "dim-vocabs": [config.src_vocab_size or size, size], "transformer-decoder-autoreg": "rnn",
        "tied-embeddings-all": shared, "tied-embeddings": not shared,
    }  # fmt: skip
    return marian_native.SUPPORTED | given


def to_yaml(settings: Mapping[str, Any]) -> str:
    def spelt(value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(spelt, value))}]"
        return str(value).lower() if isinstance(value, bool) else f'"{value}"' if value == "" else str(value)

    return "".join(f"{name}: {spelt(value)}\n" for name, value in settings.items())


@torch.no_grad()
def input_ranges(model: EncoderDecoder, run: Callable[[EncoderDecoder], object]) -> Ranges:
    """The largest number that each matrix of the file multiplies, while `run` uses the model."""
    found: Ranges = {}

    def see(name: str, value: Tensor) -> None:
        found[name] = max(found.get(name, 0.0), float(value.abs().max()))

    def watch(names: tuple[str, ...], module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        memory = args[2] if len(args) > 2 else kwargs.get("memory")
        for i, name in enumerate(names):
            see(name, args[0] if memory is None or i == 0 or not isinstance(module, Attention) else memory)

    handles = []
    for ours, take in tables(model).items():
        owner, _, _ = ours.removesuffix(".weight").partition(".projection")
        if ours.endswith(".weight") and ("tokens" not in ours and "norm" not in ours):
            module = model.get_submodule(owner)
            handles.append(module.register_forward_pre_hook(partial(watch, take.names), with_kwargs=True))
    output = "Wemb" if model.config.src_vocab_size is None else "decoder_Wemb"
    handles.append(model.head.register_forward_pre_hook(lambda _, args: see(output, args[0])))
    try:
        run(model)
    finally:
        for handle in handles:
            handle.remove()
    return found


def tables(model: EncoderDecoder) -> Weights:
    shared = model.config.src_vocab_size or True
    values = {"target-pieces": model.config.vocab_size - 1, "source-pieces": shared}
    return marian_native.weights(model.config, Settings(values))


def write_weights(path: Path, model: EncoderDecoder, ranges: Ranges | None = None, largest: int = FULL) -> None:
    """The weights in one file: in float32, or with `ranges` in int8, with the scales of what they multiply. `largest`
    is the largest whole number used; up to 64, no processor adds up two products past its 16 bits."""
    if reasons := list(refusals(model.config)):
        raise CannotExport("Firefox's engine cannot run this model: " + "; ".join(reasons))
    own = dict(model.named_parameters()) | dict(model.named_buffers())
    found: dict[str, Tensor | Quantized] = {}
    for ours, take in tables(model).items():
        for name, part in zip(take.names, take.parts(own[ours].detach()), strict=True):
            assert part is not None
            name = name.removesuffix("?")
            matrix = ours.endswith(".weight") and min(part.shape) > 1
            found[name] = part if ranges is None or not matrix else quantized(name, part, largest)
            if ranges is not None and name in ranges:
                split = name == "decoder_Wemb"  # there the scale is written as a quantised number itself
                alpha = FULL / max(ranges[name], 1e-6)
                scale = Quantized(torch.full((1, 1), FULL, dtype=torch.int8), FULL / alpha)
                known = "none" if name == "Wemb" else name
                found[known + marian_native.ALPHA] = scale if split else torch.full((1, 1), alpha)
    write_binary(path, found, to_yaml(settings_of(model.config)))


def quantized(name: str, part: Tensor, largest: int) -> Quantized:
    multiplier = largest / max(float(part.abs().max()), 1e-12)
    whole = (part * multiplier).round().clamp(-largest, largest).to(torch.int8)
    return Quantized(whole if name.endswith("Wemb") else whole.T, multiplier)
