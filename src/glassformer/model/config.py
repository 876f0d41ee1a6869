"""Everything that makes one Transformer different from another: a handful of numbers and closed choices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from glassformer.common.arguments import checked
from glassformer.common.errors import ConfigError, check_choice, did_you_mean

Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]
GATED = {"swiglu": "silu", "geglu": "gelu", "reglu": "relu"}  # what papers call two settings
NormType = Literal["layer", "rms"]
Placement = Literal["pre", "post"]
Positions = Literal["sinusoidal", "learned", "rotary", "alibi", "relative", "none"]
Autoregression = Literal["attention", "ssru"]  # how a decoder looks back

# No whole number is larger than these; beyond them, building a model overflows or does not end.
MOST = {"seed": 2**63 - 1, "layers": 1000, "decoder_layers": 1000, "heads": 2**16, "decoder_heads": 2**16}
LARGEST = 2**24
TABLE = 2**25  # numbers in a table of sinusoids

COUNTS = (
    *("vocab_size", "src_vocab_size", "d_model", "heads", "d_ff", "decoder_heads", "decoder_d_ff", "kv_heads"),
    *("head_width", "max_length", "rotary_length", "image_size", "patch_size", "channels"),
)
RANGES: tuple[tuple[tuple[str, ...], Callable[[float], bool], str], ...] = (
    (COUNTS, lambda n: n >= 1, "it must be at least 1"),
    (("layers", "decoder_layers", "segments", "labels"), lambda n: n >= 0, "it cannot be negative"),
    (("dropout", "attention_dropout", "activation_dropout"), lambda p: 0 <= p < 1, "a share lies in 0 <= p < 1"),
    (("norm_eps", "rotary_base", "rotary_factor"), lambda x: x > 0, "it must be above 0"),
)
# Settings of two stacks that one stack has no use for.
TWO_STACKS: dict[str, Any] = dict.fromkeys(("src_vocab_size", "decoder_heads", "decoder_d_ff", "decoder_layers"))


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The whole description of a model; `heads=8, d_model=512` and so on as in "Attention Is All You Need".

    `layers`, `heads` and `d_ff` hold for both stacks unless the decoder's own are given. A `src_vocab_size` gives the
    source an embedding of its own; without one, source and target share theirs. With a `patch_size` an encoder reads
    square images of `image_size` and `channels`, and the vocabulary is that of their labels. With `labels` an encoder's
    head gives, of the first position alone, a logit for each of so many labels. A `None` number means "derived": head
    width (`d_head`) from `d_model // heads`, key/value heads from `heads`, the scale of the scores from
    1/sqrt(head width), `qkv_bias` from `bias`, both inner dropouts from `dropout`. JSON holds what `to_dict` gives
    `from_dict`.
    """

    vocab_size: int
    src_vocab_size: int | None = None
    d_model: int = 512
    heads: int = 8
    d_ff: int = 2048
    layers: int = 6
    decoder_heads: int | None = None
    decoder_d_ff: int | None = None
    decoder_layers: int | None = None
    kv_heads: int | None = None
    head_width: int | None = None
    score_scale: float | None = None

    norm: Placement = "pre"
    norm_type: NormType = "layer"
    norm_eps: float = 1e-5
    activation: Activation = "relu"
    gated: bool = False
    autoregression: Autoregression = "attention"
    bias: bool = True
    qkv_bias: bool | None = None

    positions: Positions = "sinusoidal"
    max_length: int = 1024
    rotary_base: float = 10_000.0
    rotary_factor: float = 1.0
    rotary_length: int | None = None
    rotary_low: float = 1.0
    rotary_high: float = 4.0
    relative_buckets: int = 32
    relative_distance: int = 128

    embedding_scale: bool = True
    embedding_norm: bool = False
    segments: int = 0
    image_size: int = 224
    patch_size: int | None = None
    channels: int = 3
    labels: int = 0
    tied: bool = True
    output_transform: bool = False
    output_bias: bool = False

    dropout: float = 0.1
    attention_dropout: float | None = None
    activation_dropout: float | None = None

    pad_id: int | None = 0
    start_id: int | None = 1
    end_id: int | None = 2
    force_end: bool = False  # the last token that fits is the end, whatever the model would say
    seed: int = 0

    def __post_init__(self) -> None:
        check(self)

    @property
    def d_head(self) -> int:
        return self.head_width or self.d_model // self.heads

    @property
    def encoder(self) -> ModelConfig:
        """This configuration as the encoder stack sees it: only a target starts and ends."""
        size = self.src_vocab_size or self.vocab_size
        pad = self.pad_id if self.pad_id is not None and self.pad_id < size else None
        others = TWO_STACKS | {"autoregression": "attention"}
        return replace(self, vocab_size=size, pad_id=pad, start_id=None, end_id=None, **others)

    @property
    def decoder(self) -> ModelConfig:
        """This configuration as the decoder stack sees it."""
        heads, d_ff = self.decoder_heads or self.heads, self.decoder_d_ff or self.d_ff
        layers = self.layers if self.decoder_layers is None else self.decoder_layers
        return replace(self, heads=heads, d_ff=d_ff, layers=layers, **TWO_STACKS)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    @checked
    def from_dict(cls, values: dict[str, Any]) -> ModelConfig:
        names = [field.name for field in fields(cls)]
        for name in values:
            if name not in names:
                raise ConfigError(f"unknown model setting `{name}`{did_you_mean(name, names)}")
        if "vocab_size" not in values:
            raise ConfigError("the model settings lack `vocab_size`: give the number of pieces in the vocabulary")
        return cls(**values)


type_hints = cache(get_type_hints)


def check(config: ModelConfig) -> None:
    """All that a configuration must satisfy, in one place."""
    for name, hint in type_hints(ModelConfig).items():
        choices, value = get_args(hint), getattr(config, name)
        if name == "activation" and value in [*GATED]:
            raise ConfigError(f"activation={value!r} is two settings here: activation={GATED[value]!r}, gated=True")
        if get_origin(hint) is Literal:
            check_choice(name, value, choices)
            continue
        kinds = choices or (hint,)
        if type(value) not in kinds and not (type(value) is int and float in kinds):
            expected = " or ".join("no value" if kind is type(None) else kind.__name__ for kind in kinds)
            raise ConfigError(f"{name}={value!r} is a {type(value).__name__}; it must be {expected}")
        most = MOST.get(name, LARGEST)
        if isinstance(value, int) and not -most <= value <= most:
            raise ConfigError(f"{name}={value!r:.40}: it must be at most {most:,}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{name}={value}: it must be a finite number")

    for names, holds, rule in RANGES:
        for name in names:
            value = getattr(config, name)
            if value is not None and not holds(value):
                raise ConfigError(f"{name}={value}: {rule}")
    for name in ("pad_id", "start_id", "end_id"):
        value = getattr(config, name)
        if value is not None and not 0 <= value < config.vocab_size:
            raise ConfigError(f"{name}={value} lies outside the vocabulary of {config.vocab_size} pieces")
    if config.rotary_low >= config.rotary_high:
        raise ConfigError(f"rotary_low={config.rotary_low} must lie below rotary_high={config.rotary_high}")

    for name, heads in (("heads", config.heads), ("decoder_heads", config.decoder_heads or config.heads)):
        if config.head_width is None and config.d_model % heads:
            fits = (n for n in range(1, min(config.d_model, 2 * heads) + 1) if config.d_model % n == 0)
            fit = min(fits, key=lambda n: abs(n - heads))
            raise ConfigError(
                f"d_model={config.d_model} cannot be split evenly into {name}={heads}; "
                f"{name}={fit} would fit, or set head_width"
            )
        if config.kv_heads is not None and heads % config.kv_heads:
            raise ConfigError(
                f"{name}={heads} cannot be shared evenly by kv_heads={config.kv_heads}; kv_heads must divide {name}"
            )
        if config.positions == "rotary" and (config.head_width or config.d_model // heads) % 2:
            raise ConfigError(
                f"rotary positions turn pairs of values, so the head width must be even; "
                f"d_model={config.d_model} over {name}={heads} gives {config.head_width or config.d_model // heads}"
            )
    if config.positions == "sinusoidal" and config.d_model % 2:
        raise ConfigError(f"sinusoidal positions pair a sine with a cosine: d_model={config.d_model} must be even")
    if config.positions == "sinusoidal" and config.max_length * config.d_model > TABLE:
        raise ConfigError(
            f"the table of max_length={config.max_length} positions, d_model={config.d_model} wide, has over {TABLE:,} "
            f"numbers; set positions='rotary'"
        )
    if config.patch_size is not None and (config.tied or config.image_size % config.patch_size):
        raise ConfigError(
            f"patch_size={config.patch_size} is for images: it must divide image_size={config.image_size}, and a head "
            f"has no words to be tied to (tied=False)"
        )
    if config.labels and config.tied:
        raise ConfigError(f"labels={config.labels}: a head of labels has no words to be tied to; set tied=False")
    buckets, far = config.relative_buckets, config.relative_distance
    if config.positions == "relative" and (buckets < 4 or buckets % 4 or far <= buckets):
        raise ConfigError(f"relative_buckets={buckets} must be a multiple of 4, and relative_distance={far} larger")
