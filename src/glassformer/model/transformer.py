"""The whole: embedding, a stack of layers, a head; and the three ways to put them together.

    EncoderDecoder   a source read both ways, a target written left to right     (the original, Marian, BART, T5)
    EncoderOnly      one text, or one image, read both ways                       (BERT, ViT)
    DecoderOnly      one text written left to right                               (GPT, Llama)

Shapes: B batch, S source, T target, D model width, V vocabulary.
"""

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.common.arguments import checked
from glassformer.common.errors import ConfigError, InputError
from glassformer.model import attention as masks
from glassformer.model.attention import AttentionMask, Projection, additive
from glassformer.model.cache import Cache
from glassformer.model.config import ModelConfig
from glassformer.model.embedding import Alibi, Embedding, PatchEmbedding, PositionTable, RelativeBias, Rotary
from glassformer.model.layer import ACTIVATIONS, Block
from glassformer.model.norm import make_norm

AnyModule = TypeVar("AnyModule", bound=nn.Module)

LONG = 256  # from so many positions on, skipping the blocks between a row's texts pays


class Stack(nn.Module):
    """Embedding and N layers: an encoder, or with `causal` a decoder. A Pre-LN stack ends with a norm of its own."""

    def __init__(self, config: ModelConfig, causal: bool, cross: bool) -> None:
        super().__init__()
        self.causal = causal
        if causal and (config.patch_size is not None or config.labels):
            name, what = ("labels", "labels are given") if config.labels else ("patch_size", "images are read")
            raise ConfigError(f"{name}={getattr(config, name)}: {what} by an EncoderOnly alone")
        self.embedding = Embedding(config) if config.patch_size is None else PatchEmbedding(config, config.patch_size)
        self.rotary = Rotary(config) if config.positions == "rotary" else None
        relative = RelativeBias(config, both_ways=not causal) if config.positions == "relative" else None
        self.distance = Alibi(config) if config.positions == "alibi" else relative
        self.blocks = nn.ModuleList(Block(config, cross) for _ in range(config.layers))
        self.norm = make_norm(config) if config.norm == "pre" else nn.Identity()

    def attention_mask(self, queries: Tensor, keys: Tensor, visible: Tensor | None) -> AttentionMask:
        """What the queries may see of the keys, as one term for all layers."""
        rotation = self.rotary(queries) if self.rotary is not None else None
        bias = self.distance(queries, keys) if self.distance is not None else None
        causal = self.causal and queries.shape[0] > 1  # a single newest token has no future
        if causal and visible is None and bias is None and queries.shape[0] == keys.shape[0]:
            return AttentionMask(causal=True, rotation=rotation)
        if causal:
            past = masks.causal_mask(queries, keys)
            visible = past if visible is None else visible & past
        return AttentionMask(additive(visible, bias), rotation=rotation)

    def forward(
        self, ids: Tensor, mask: Tensor | None = None, memory: Tensor | None = None, memory_mask: Tensor | None = None,
        cache: Cache | None = None, segments: Tensor | None = None, places: Tensor | None = None,
        memory_places: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """`places` (B, T) put several texts into one row: each counts from 0 and sees only itself, and of the memory,
        by its own places, only its partner."""
        start, length = 0 if cache is None else cache.length, self.embedding.length(ids)
        self.embedding.check(ids, start + length if places is None else 0, segments)
        if mask is not None:
            masks.check_mask(mask, ids)
        if places is not None:
            masks.check_places(places, ids, mask is None and cache is None)
        if cache is not None:
            cache.check(ids, len(self.blocks))
            queries, keys, positions, visible = cache.admit(ids, mask)
        else:
            positions = queries = keys = torch.arange(length, device=ids.device)
            visible = None
            if mask is not None:  # a text starts at its first real token, wherever padding has pushed it
                positions = (queries - mask.int().argmax(1, keepdim=True)).clamp_min(0)  # (B, T)
                visible = masks.padding_mask(mask)
            if places is not None:
                positions, visible = places, masks.text_mask(places, places)
        self_mask = self.attention_mask(queries, keys, visible)._replace(positions=positions)
        compiled = ids.is_cuda and torch.compiler.is_compiling()
        if compiled and places is not None and length >= LONG and self.distance is None:
            width = 64 if self.embedding.config.d_head == 64 else 128  # as in TILES
            self_mask = self_mask._replace(blocks=masks.block_mask(places, self.causal, width))
        memory_visible = None if memory_mask is None else masks.padding_mask(memory_mask)
        if places is not None and memory_places is not None:
            memory_visible = masks.text_mask(places, memory_places)
        cross_mask = AttentionMask(additive(memory_visible, None))
        x = self.embedding(ids, positions, segments)
        for i, block in enumerate(self.blocks):
            x = block(x, self_mask, memory, cross_mask, None if cache is None else cache.layers[i])
        return self.norm(x)  # (B, T, D)


class Head(nn.Module):
    """Vectors to logits over the vocabulary, by the token embedding itself where the two are tied; or over labels."""

    def __init__(self, config: ModelConfig, embedding: Embedding) -> None:
        super().__init__()
        self.transform = Transform(config) if config.output_transform else nn.Identity()
        size = config.labels or config.vocab_size
        self.weight = embedding.tokens.weight if config.tied else nn.Parameter(torch.empty(size, config.d_model))
        self.bias = nn.Parameter(torch.zeros(size)) if config.output_bias else None

    def forward(self, hidden: Tensor) -> Tensor:
        return F.linear(self.transform(hidden), self.weight, self.bias)  # (B, T, V)


class Transform(nn.Module):
    """A last dense layer before the vocabulary, as masked language models have."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = make_norm(config)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.norm(self.activation(self.dense(hidden)))


@torch.no_grad()
def initialise(model: nn.Module, config: ModelConfig) -> None:
    """Xavier for every matrix, from a generator of its own: the same seed gives the same weights everywhere."""
    generator = torch.Generator().manual_seed(config.seed)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            rows = module.rows if isinstance(module, Projection) else [len(module.weight)]
            for matrix in torch.split(module.weight, rows):  # W_Q, W_K and W_V are three matrices though stored as one
                nn.init.xavier_uniform_(matrix, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=config.d_model**-0.5, generator=generator)
            if module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, PositionTable | RelativeBias) and isinstance(module.table, nn.Parameter):
            std = 0.02 if isinstance(module, PositionTable) else config.d_model**-0.5
            nn.init.normal_(module.table, std=std, generator=generator)
        elif isinstance(module, Head) and not config.tied:
            nn.init.xavier_uniform_(module.weight, generator=generator)


@checked
class EncoderDecoder(nn.Module):
    """`encode` reads a source, `decode` writes a target, by steps with a `new_cache`; `model(src, tgt)`: all logits."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Stack(config.encoder, causal=False, cross=False)
        self.decoder = Stack(config.decoder, causal=True, cross=True)
        if config.src_vocab_size is None:
            self.decoder.embedding.tokens = self.encoder.embedding.tokens
        self.head = Head(config, self.decoder.embedding)
        initialise(self, config)

    def encode(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        return self.encoder(src, src_mask)  # (B, S, D)

    def decode(self, tgt: Tensor, memory: Tensor, src_mask: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        """Logits after each token of `tgt`; with a cache, `tgt` holds only the tokens it has not seen yet. It may have
        several rows for each source, one after the other: hypotheses that share its memory."""
        if memory.dim() != 3 or tgt.shape[0] % memory.shape[0] or memory.shape[2] != self.config.d_model:
            raise InputError(
                f"memory of shape {tuple(memory.shape)} does not go with a target of shape {tuple(tgt.shape)}; "
                f"it must be (batch, source length, {self.config.d_model}), as encode() returns it"
            )
        if src_mask is not None:
            masks.check_mask(src_mask, memory[:, :, 0], "src_mask")
        return self.head(self.decoder(tgt, None, memory, src_mask, cache))  # (B, T, V)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, src_places: Tensor | None = None,
        tgt_places: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """All logits. `src_places` and `tgt_places`, (B, S) and (B, T), are each token's place in its text, where rows
        hold several pairs side by side: each counts from 0, and sees only itself and its partner."""
        if (src.dim() > 1 < tgt.dim() and src.shape[0] != tgt.shape[0]) or (src_places is None) != (tgt_places is None):
            raise InputError(f"src {tuple(src.shape)} and tgt {tuple(tgt.shape)} go by rows, with places both or none")
        memory = self.encoder(src, src_mask, places=src_places)
        hidden = self.decoder(tgt, None, memory, src_mask, places=tgt_places, memory_places=src_places)
        return self.head(hidden)  # (B, T, V)

    def new_cache(self, capacity: int, beams: int = 1) -> Cache:
        return Cache(len(self.decoder.blocks), capacity, beams)


@checked
class EncoderOnly(nn.Module):
    """Reads a text both ways: `model(ids, mask)` gives logits for every position, masked ones included; with `labels`,
    one row for the whole text or image, read off at its first position."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Stack(config.encoder, causal=False, cross=False)
        self.head = Head(config, self.encoder.embedding)
        initialise(self, config)

    def forward(
        self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None, places: Tensor | None = None
    ) -> Tensor:
        """`places` (B, T) are each token's place in its text, where rows hold several."""
        if self.config.labels and places is not None:
            raise InputError("a model of labels takes one text a row, without places")
        hidden = self.encoder(ids, mask, segments=segments, places=places)
        if self.config.labels:  # padding may have pushed a text away from the left
            rows = torch.arange(hidden.shape[0], device=hidden.device)
            hidden = hidden[rows, torch.zeros_like(rows) if mask is None else mask.int().argmax(1)]  # (B, D)
        return self.head(hidden)  # (B, T, V), of labels (B, V)


@checked
class DecoderOnly(nn.Module):
    """Continues a text: `model(ids, mask)` gives the logits of each next token; with a `new_cache`, step by step."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.decoder = Stack(config.decoder, causal=True, cross=False)
        self.head = Head(config, self.decoder.embedding)
        initialise(self, config)

    def forward(
        self, ids: Tensor, mask: Tensor | None = None, cache: Cache | None = None, places: Tensor | None = None
    ) -> Tensor:
        """With a cache, `ids` and `mask` hold only the tokens it has not seen yet. `places` (B, T) are each token's
        place in its text, where rows hold several."""
        return self.head(self.decoder(ids, mask, cache=cache, places=places))  # (B, T, V)

    def new_cache(self, capacity: int, beams: int = 1) -> Cache:
        return Cache(len(self.decoder.blocks), capacity, beams)


def share_weights(model: AnyModule) -> AnyModule:
    """A copy of the module tree with the same weights: what is hooked or replaced in it leaves the model alone."""
    return copy.deepcopy(model, {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())})
