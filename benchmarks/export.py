"""Exports of random models over the grid of configurations: each is checked, or refused with its reason.

A fault can be seeded into what is written, to see that the export's own check finds it.
"""

from __future__ import annotations

import copy
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from glassformer.common.errors import ConfigError
from glassformer.deploy.export.formats import CannotExport, CheckFailed, load_format
from glassformer.deploy.export.inputs import LoadedModel
from glassformer.deploy.export.run import export
from glassformer.model import EncoderDecoder, ModelConfig

CHOICES: dict[str, tuple[Any, ...]] = {
    "norm": ("pre", "post"),
    "norm_type": ("layer", "layer", "rms"),
    "norm_eps": (1e-5, 1e-5, 1e-6),
    "activation": ("relu", "gelu", "gelu_tanh", "silu"),
    "gated": (False, False, True),
    "bias": (True, True, False),
    "positions": ("sinusoidal", "sinusoidal", "learned", "rotary", "alibi", "relative", "none"),
    "embedding_scale": (True, False),
    "embedding_norm": (False, False, True),
    "tied": (True, False),
    "output_bias": (True, False),
    "src_vocab_size": (None, None, 61),
    "kv_heads": (None, None, 2, 1),
    "head_width": (None, None, 6),
    "score_scale": (None, None, 1.0),
    "layers": (1, 2, 3),
    "decoder_layers": (None, 1, 2),
    "decoder_heads": (None, None, 2),
    "decoder_d_ff": (None, None, 40),
}

STRAY = 0.3  # of such models, those with one field that may be any
# Of the whole grid few models have the shape of a family. So for families it is narrowed to these.
BART = {
    "norm_type": ("layer",),
    "norm_eps": (1e-5,),
    "gated": (False,),
    "bias": (True,),
    "kv_heads": (None,),
    "head_width": (None,),
}
NARROW: dict[str, tuple[dict[str, tuple[Any, ...]], ...]] = {
    "huggingface": (
        BART | {"norm": ("post",), "positions": ("sinusoidal",), "embedding_norm": (False,)},
        BART | {"norm": ("pre",), "positions": ("sinusoidal",), "embedding_norm": (False,), "src_vocab_size": (None,)},
        BART
        | {"positions": ("learned", "sinusoidal", "none"), "embedding_norm": (True,), "src_vocab_size": (None,)},
        {
            "norm": ("pre",), "norm_type": ("rms",), "bias": (False,), "positions": ("relative",), "kv_heads": (None,),
            "embedding_scale": (False,), "embedding_norm": (False,), "output_bias": (False,), "decoder_heads": (None,),
            "src_vocab_size": (None,), "decoder_d_ff": (None,),
        },
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What became of one model: `equal` of `sentences` targets, `tied` ones beside them; else why it was refused."""

    model: str
    to: str
    sentences: int = 0
    equal: int = 0
    tied: int = 0
    score_difference: float = 0.0
    refused: str = ""
    failed: str = ""

    def __str__(self) -> str:
        if self.failed or self.refused:
            return f"{self.model}\n    {'FAILED' if self.failed else 'refused'}: {self.failed or self.refused}"
        tied = f", {self.tied} tied" if self.tied else ""
        return (
            f"{self.model}\n    {self.equal} of {self.sentences} targets equal{tied}; scores within "
            f"{self.score_difference:.1e}"
        )


def configuration(seed: int, to: str = "") -> ModelConfig:
    """A configuration drawn from the grid, or from the part of it that is meant for a format."""
    draw = random.Random(seed)
    while True:
        narrow = dict(draw.choice(NARROW[to])) if to in NARROW else {}
        if narrow and draw.random() < STRAY:
            del narrow[draw.choice(list(narrow))]
        chosen = {name: draw.choice(values) for name, values in (CHOICES | narrow).items()}
        try:
            return ModelConfig(vocab_size=53, d_model=32, heads=4, d_ff=48, max_length=64, seed=seed, **chosen)
        except ConfigError:
            continue


@torch.no_grad()
def random_model(config: ModelConfig) -> EncoderDecoder:
    """A model whose norms and biases are no ones and zeros, and whose targets end."""
    model = EncoderDecoder(config).eval()
    generator = torch.Generator().manual_seed(config.seed)
    for name, tensor in model.named_parameters():
        if tensor.dim() == 1 or "distance" in name:
            tensor.add_(0.2 * torch.randn(tensor.shape, generator=generator))
        elif "positions" in name:
            tensor.add_(torch.randn(tensor.shape, generator=generator))
        elif name.endswith(("up.weight", "down.weight", "projection.weight", "output.weight")):
            tensor.mul_(1.5)
    return model


def told(config: ModelConfig) -> str:
    """The fields that are not as usual."""
    usual = ModelConfig(vocab_size=config.vocab_size)
    names = [name for name in CHOICES if getattr(config, name) != getattr(usual, name)]
    return " ".join(f"{name}={getattr(config, name)}" for name in names)


def outcome(model: Any, to: str, sentences: int, name: str, **options: Any) -> Outcome:
    """One export into a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as place:
        try:
            figures = export(model, to, Path(place) / "out", sentences=sentences, **options).report["figures"]
        except CannotExport as reason:
            return Outcome(name, to, refused=str(reason))
        except CheckFailed as fault:
            return Outcome(name, to, failed=str(fault))
    ways = [figures[way] for way in ("greedy", "beam 4")]
    sums = {key: sum(way[key] for way in ways) for key in ("sentences", "equal", "tied")}
    return Outcome(name, to, **sums, score_difference=max(way["score_difference"] for way in ways))


def grid(to: str, configs: int, sentences: int, first: int = 0) -> Iterator[Outcome]:
    """Random models, one after another."""
    for seed in range(first, first + configs):
        config = configuration(seed, to)
        yield outcome(random_model(config), to, sentences, f"{seed}: {told(config)}")


def transposed(model: EncoderDecoder) -> None:
    block: Any = model.encoder.blocks[0]
    block.self_attention.output.weight.copy_(block.self_attention.output.weight.T.clone())


def unscaled(model: EncoderDecoder) -> None:
    """As if the embedding had not been multiplied by sqrt(D): the same as one that is smaller by that."""
    model.encoder.embedding.tokens.weight /= model.encoder.embedding.scale


def shifted(model: EncoderDecoder) -> None:
    """Every position reads the row of the next."""
    assert model.decoder.embedding.positions is not None
    table = model.decoder.embedding.positions.table
    table.copy_(torch.cat((table[1:], table[:1])))


FAULTS: dict[str, Callable[[EncoderDecoder], None]] = {
    "a transposed matrix": transposed,
    "a missing scale": unscaled,
    "positions off by one": shifted,
}


@contextmanager
def seeded(to: str, fault: Callable[[EncoderDecoder], None]) -> Iterator[None]:
    """While it lasts, what is written of a model has this fault; what it is compared with has not."""
    form = load_format(to)
    kept = form.write

    @torch.no_grad()
    def write(subject: LoadedModel, folder: Path) -> None:
        broken = copy.deepcopy(subject.model)
        assert isinstance(broken, EncoderDecoder)
        fault(broken)
        kept(replace(subject, model=broken), folder)

    form.write = write  # type: ignore[method-assign]  # for a while: see the docstring
    try:
        yield
    finally:
        form.write = kept  # type: ignore[method-assign]  # as it was


def faults(to: str, sentences: int) -> dict[str, Outcome]:
    """Each fault in a small model that is exported: the check must fail."""
    found = {}
    sizes: dict[str, Any] = {"vocab_size": 53, "d_model": 32, "heads": 4, "d_ff": 48, "layers": 2, "max_length": 64}
    config = ModelConfig(**sizes, positions="learned", embedding_norm=True, tied=False)  # which every format can say
    for name, fault in FAULTS.items():
        with seeded(to, fault):
            found[name] = outcome(random_model(config), to, sentences, name)
    return found
