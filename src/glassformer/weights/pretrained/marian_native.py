"""Folders of Marian's own files, as Firefox Translations publishes them: a model (.bin or .npz), one SentencePiece
vocabulary for both sides or one each, and perhaps a lexical shortlist.

Marian has no start token: at the first position there is no embedding. Here that is one piece more than the file has,
with an embedding of zeros. It also pads, and is never written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from glassformer.common.errors import WeightsError, one_of
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.model.config import Autoregression
from glassformer.weights.marian_files import (
    SETTINGS,
    Contents,
    Quantized,
    Shortlist,
    is_shortlist,
    read_shortlist,
)
from glassformer.weights.pretrained.family import Family, Settings, Take, Weights
from glassformer.weights.pretrained.tokenizer import SURROGATE, check_size, read_pieces
from glassformer.weights.quantized import ALPHAS, set_weights

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

POSITIONS = 257  # Firefox's engine writes 256 tokens at most
NEVER = -1e9
ALPHA = "_QuantMultA"
OUTPUT_ALPHA = ("none_QuantMultA", "decoder_Wemb_QuantMultA")
OUTPUT = "decoder_ff_logit_out_"
# What the parts here do, by Marian's names, where a model may have been trained otherwise.
SUPPORTED: dict[str, Any] = {
    "type": "transformer", "transformer-preprocess": "", "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d", "transformer-postprocess-top": "", "transformer-ffn-depth": 2,
    "transformer-no-projection": False, "transformer-no-bias": False, "transformer-no-affine": False,
    "transformer-rnn-projection": False, "transformer-train-position-embeddings": False, "transformer-tied-layers": [],
    "transformer-pool": False, "lemma-dim-emb": 0, "input-types": [], "ulr": False, "dec-cell": "ssru",
}  # fmt: skip
LOOKS_BACK: dict[str, Autoregression] = {"rnn": "ssru", "self-attention": "attention"}
ATTENTION = {"projection": ("Wq", "Wk", "Wv"), "output": ("Wo",)}


def config(settings: Settings, tied: bool) -> ModelConfig:
    for name, value in SUPPORTED.items():
        settings.only(name, value)
    again = settings.get("transformer-decoder-autoreg", "self-attention")
    if again not in LOOKS_BACK:
        raise WeightsError(
            f"{settings.file} sets `transformer-decoder-autoreg` to {again!r}; read are {one_of(LOOKS_BACK)}"
        )
    target, source = settings.need("target-pieces"), settings.need("source-pieces")
    return ModelConfig(
        vocab_size=target + 1, src_vocab_size=None if source is True else source, d_model=settings.need("dim-emb"),
        heads=settings.need("transformer-heads"), d_ff=settings.need("transformer-dim-ffn"),
        decoder_d_ff=settings.get("transformer-decoder-dim-ffn", 0) or None,
        layers=settings.need("enc-depth"), decoder_layers=settings.need("dec-depth"), norm="post", norm_eps=1e-6,
        activation=settings.activation("transformer-ffn-activation", "relu"), autoregression=LOOKS_BACK[again],
        max_length=POSITIONS, tied=tied, output_bias=True, dropout=0.0, start_id=target, pad_id=target,
        end_id=settings.get("end-piece", 0),
    )  # fmt: skip


def angles(length: int, width: int) -> Tensor:
    """Marian's sinusoid in its own arithmetic: sines first, and frequencies from 1 to 1/10000 inclusive."""
    half = width // 2
    steps = (np.arange(width) % half).astype(np.float32) / np.float32(max(1, half - 1))
    turns = np.float32(1e-4) ** steps
    shift = (np.arange(width) // half).astype(np.float32) * np.float32(np.pi / 2)
    return torch.from_numpy(np.sin(np.arange(length, dtype=np.float32)[:, None] * turns + shift))


def matrices(*names: str) -> Take:
    """Matrices (I, O) one beside the other in the file, one below the other here."""
    return Take(
        names, lambda *parts: torch.cat([part.T for part in parts]), lambda t: [p.T for p in t.chunk(len(names))]
    )


def rows(*names: str) -> Take:
    """Biases and norms, (1, O) in the file."""
    return Take(
        names, lambda *parts: torch.cat([p.flatten() for p in parts]), lambda t: [*t.unsqueeze(0).chunk(len(names), 1)]
    )


def with_start(row: Tensor) -> tuple[Any, Any]:
    """A fold that puts one row behind all others, and its inverse."""
    return lambda t: torch.cat((t.reshape(-1, *row.shape[1:]), row)), lambda t: (t[:-1],)


def weights(config: ModelConfig, settings: Settings) -> Weights:
    table: Weights = {}
    for side, stack in (("encoder", config.encoder), ("decoder", config.decoder)):
        for i in range(stack.layers):
            ours, theirs = f"{side}.blocks.{i}", f"{side}_l{i + 1}"
            attentions = {"self_attention": "self"} | ({"cross_attention": "context"} if side == "decoder" else {})
            if stack.autoregression == "ssru":
                del attentions["self_attention"]
                table[f"{ours}.recurrence.candidate.weight"] = matrices(f"{theirs}_rnn_W")
                table[f"{ours}.recurrence.forget.weight"] = matrices(f"{theirs}_rnn_Wf")
                table[f"{ours}.recurrence.forget.bias"] = rows(f"{theirs}_rnn_bf")
            norms = {"self_attention": "rnn_ffn", "feed_forward": "ffn_ffn"}
            for part, name in attentions.items():
                norms[part] = f"{name}_Wo"
                for linear, letters in ATTENTION.items():
                    names = [f"{theirs}_{name}_{letter}" for letter in letters]
                    table[f"{ours}.{part}.{linear}.weight"] = matrices(*names)
                    table[f"{ours}.{part}.{linear}.bias"] = rows(*(name.replace("_W", "_b") for name in names))
            for linear, n in (("up", 1), ("down", 2)):
                table[f"{ours}.feed_forward.{linear}.weight"] = matrices(f"{theirs}_ffn_W{n}")
                table[f"{ours}.feed_forward.{linear}.bias"] = rows(f"{theirs}_ffn_b{n}")
            for part, name in norms.items():
                table[f"{ours}.{part}_residual.norm.weight"] = rows(f"{theirs}_{name}_ln_scale")
                table[f"{ours}.{part}_residual.norm.bias"] = rows(f"{theirs}_{name}_ln_bias")
        table[f"{side}.embedding.positions.table"] = Take(
            (), lambda: angles(config.max_length, config.d_model), lambda t: ()
        )
    target = with_start(torch.zeros(1, config.d_model))
    if config.src_vocab_size is None:
        table["encoder.embedding.tokens.weight"] = Take(("Wemb",), *target)
    else:
        table["encoder.embedding.tokens.weight"] = Take(("encoder_Wemb",))
        table["decoder.embedding.tokens.weight"] = Take(("decoder_Wemb",), *target)
    none, size = torch.full((1,), NEVER), config.vocab_size - 1
    fold, unfold = with_start(none)
    table["head.bias"] = Take(
        (f"{OUTPUT}b?",),
        lambda t: fold(torch.zeros(1, size) if t is None else t),
        lambda t: (unfold(t)[0].unsqueeze(0),),
    )
    return table


def family(settings: Settings) -> Family:
    shared = settings.need("source-pieces") is True
    return Family(EncoderDecoder, config, weights, embedding="Wemb" if shared else "decoder_Wemb", head="head")


class Files(NamedTuple):
    """The files of a folder."""

    model: Path
    vocabularies: tuple[Path, Path] | None  # of source and target
    shortlist: Path | None


def find_files(folder: Path) -> Files | None:
    """The files of Marian's that a folder holds; None if it is no such folder."""
    if not folder.is_dir() or (folder / "config.json").exists():
        return None
    spm, files = sorted(folder.glob("*.spm")), [*sorted(folder.glob("*.bin")), *sorted(folder.glob("*.npz"))]
    lists = [file for file in files if file.suffix == ".bin" and (file.name.startswith("lex.") or is_shortlist(file))]
    models = [file for file in files if file not in lists]
    if not models or not (spm or any(".intgemm" in file.name or file.suffix == ".npz" for file in models)):
        return None
    for several, what in ((models, "models"), (lists, "shortlists")):
        if len(several) > 1:
            raise WeightsError(
                f"{folder} holds {len(several)} {what}: {one_of(file.name for file in several)}; keep one"
            )
    sides = [[file for file in spm if file.name.startswith(side)] for side in ("src", "trg")]
    pair = (spm[0], spm[0]) if len(spm) == 1 else (sides[0][0], sides[1][0]) if all(map(len, sides)) else None
    if spm and (pair is None or len(spm) > 2):
        raise WeightsError(f"{folder} holds {len(spm)} vocabularies; name two of them srcvocab.spm and trgvocab.spm")
    return Files(models[0], pair, lists[0] if lists else None)


def settings_of(found: Contents) -> tuple[Settings, dict[str, Tensor]]:
    """The settings with what only the weights tell, and the weights by the names that the table knows, in float32."""
    path, values, stored = found
    tensors = {name: t.dequantize() if isinstance(t, Quantized) else t for name, t in stored.items()}
    for name, value in stored.items():
        if name.endswith("Wemb") and isinstance(value, Quantized):
            tensors[name] = tensors[name].T
        if name.endswith(ALPHA):
            del tensors[name]
    shared = "Wemb" in tensors
    sizes = []
    for name in ("Wemb",) if shared else ("decoder_Wemb", "encoder_Wemb"):
        if name not in tensors or tensors[name].dim() != 2:
            raise WeightsError(
                f"{path} holds no embedding `{name}` of two dimensions; is it a whole translation model?"
            )
        sizes.append(len(tensors[name]))
    head = tensors.pop(f"{OUTPUT}W", None)
    head = tensors.pop(f"{OUTPUT}Wt", None) if head is None else head.T
    if head is not None and head.dim() == 2:
        tensors["head"] = torch.cat((head, head.new_zeros(1, head.shape[1])))
    more = {"target-pieces": sizes[0], "source-pieces": shared or sizes[1]}
    return Settings(values | more, f"{path}: {SETTINGS}"), tensors


def complete(model: EncoderDecoder, settings: Settings, contents: Contents, files: Files, rounded: bool) -> None:
    """What the other files say of a model. `rounded`: what is quantised in the file stays so, with the scales of what
    it multiplies."""
    if files.vocabularies is not None:
        for path, size in zip(files.vocabularies, vocabulary_sizes(model.config), strict=True):
            pieces = read_pieces(path)
            check_size(len(pieces) - 1, size, f"{path.name} and {files.model.name}")
            model.config = replace(model.config, end_id=pieces.eos_id())
    if rounded:
        keep_quantized(model, settings, contents)


def vocabulary_sizes(config: ModelConfig) -> tuple[int, int]:
    """Pieces of source and target, without the one that Marian does not have."""
    return config.src_vocab_size or config.vocab_size - 1, config.vocab_size - 1


def keep_quantized(model: EncoderDecoder, settings: Settings, contents: Contents) -> None:
    """Put the bytes of the file in the place of the weights that came from them."""
    stored, state, alphas = contents.tensors, dict[str, Tensor](), dict[str, Tensor]()
    own = dict(model.named_parameters())
    for name, take in weights(model.config, settings).items():
        parts = [stored.get(one) for one in take.names]
        if name not in own or not parts or not all(isinstance(part, Quantized) for part in parts):
            continue
        quantized = [part for part in parts if isinstance(part, Quantized)]
        values = torch.cat([part.values for part in quantized])
        scales = torch.cat([torch.full((len(p.values),), float(1 / np.float32(p.multiplier))) for p in quantized])
        more = len(own[name]) - len(values)  # the start's
        state[name] = torch.cat((values, values.new_zeros(more, values.shape[1])))
        state[f"{name.removesuffix('weight')}scales"] = torch.cat((scales, scales.new_ones(more)))
        given = [alpha_of(contents, f"{one}{ALPHA}") for one in take.names]
        if None not in given and not name.endswith("tokens.weight"):
            pairs = zip(quantized, given, strict=True)
            alphas[name] = torch.cat([torch.full((len(part.values),), float(alpha or 0)) for part, alpha in pairs])
    set_weights(model, state)
    output = next((alpha for name in OUTPUT_ALPHA if (alpha := alpha_of(contents, name)) is not None), None)
    if model.config.tied and output is not None:
        alphas["head.weight"] = torch.full((model.config.vocab_size,), output)
    for name, scales in alphas.items():
        model.get_submodule(name.rpartition(".")[0]).register_buffer(ALPHAS, scales)


def alpha_of(contents: Contents, name: str) -> float | None:
    """What the activations before a matrix are multiplied by, where the file says it."""
    value = contents.tensors.get(name)
    if value is None:
        return None
    plain = value.dequantize() if isinstance(value, Quantized) else value
    if plain.numel() != 1 or not plain.item() > 0:
        raise WeightsError(f"{contents.path}: `{name}` must be one number above 0")
    return float(plain.item())


class SentencePieceTokenizer:
    """Text to ids and back by SentencePiece models whose ids are the model's; a source ends with the end mark."""

    def __init__(self, source: SentencePieceProcessor, target: SentencePieceProcessor) -> None:
        self._source, self._target = source, target

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        return [[*ids, self._source.eos_id()] for ids in self._encode(self._source, texts)]

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without the end mark, so that a target can be continued."""
        return self._encode(self._target, texts)

    def _encode(self, codec: SentencePieceProcessor, texts: Sequence[str]) -> list[list[int]]:
        return [list(codec.encode(SURROGATE.sub("\ufffd", text))) for text in texts]  # half of a pair is no text

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]:
        size = len(self._target)
        return [str(self._target.decode([id for id in ids if id < size])) for ids in batch]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return self._pieces(self._source, ids)

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        return self._pieces(self._target, ids)

    def _pieces(self, codec: SentencePieceProcessor, ids: Sequence[int]) -> list[str]:
        return [codec.id_to_piece(id) if id < len(codec) else "<s>" for id in ids]


class NativeTranslator(NamedTuple):
    """Tokenizer and shortlist of a folder."""

    tokenizer: SentencePieceTokenizer
    shortlist: Shortlist | None


def read_texts(files: Files, config: ModelConfig) -> NativeTranslator:
    """What makes a translator of a model."""
    if files.vocabularies is None:
        place = files.model.parent
        raise WeightsError(
            f"{place} holds no vocabulary: copy vocab.*.spm, or srcvocab.*.spm and trgvocab.*.spm, there"
        )
    source, target = files.vocabularies
    shared = source == target or source.read_bytes() == target.read_bytes()
    size = vocabulary_sizes(config)[1]
    shortlist = None if files.shortlist is None else read_shortlist(files.shortlist, size, shared)
    return NativeTranslator(SentencePieceTokenizer(read_pieces(source), read_pieces(target)), shortlist)
