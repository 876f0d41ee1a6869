"""Attention: every query gathers values from the keys it matches.

    Attention(Q, K, V) = softmax(Q K^T / sqrt(d) + bias) V

The masks stand first: what a query may see of padding and of later tokens, as one additive bias for a whole stack.

Shapes: B batch, T queries, S keys, H heads, G key/value heads (G = H unless grouped), D model width, d head width.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from glassformer.common.errors import InputError
from glassformer.model.cache import LayerCache
from glassformer.model.config import ModelConfig
from glassformer.model.embedding import rotate
from glassformer.model.probe import Probe, has_hooks


def padding_mask(mask: Tensor) -> Tensor:
    return mask[:, None, None, :]  # (B, 1, 1, S)


def causal_mask(queries: Tensor, keys: Tensor) -> Tensor:
    """Query at position t sees keys at positions up to and including t."""
    return (keys.unsqueeze(0) <= queries.unsqueeze(1))[None, None]  # (1, 1, T, S)


def text_mask(queries: Tensor, keys: Tensor) -> Tensor:
    """For rows that hold several texts: a query sees the keys of its own text, or of that text's partner on the other
    side. Arguments are the tokens' places in their texts, (B, T) and (B, S): a text begins at every 0."""
    query_text, key_text = ((places == 0).cumsum(1) for places in (queries, keys))
    return (query_text.unsqueeze(2) == key_text.unsqueeze(1)).unsqueeze(1)  # (B, 1, T, S)


def block_mask(places: Tensor, causal: bool, width: int = 128) -> BlockMask:
    """`text_mask` in blocks of `width` queries and keys, for a kernel that skips the blocks without a visible key."""
    length = places.shape[1]
    first = torch.arange(length, device=places.device) - places  # (B, T): where each token's text begins

    def visible(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        if causal:
            return (key <= query) & (key >= first[row, query])
        return first[row, query] == first[row, key]

    blocks = create_block_mask(visible, places.shape[0], None, length, length, device=places.device, BLOCK_SIZE=width)
    blocks.BLOCK_SIZE = (128, 128)  # PyTorch checks it against its own choice of tiles; the kernel gets TILES
    return blocks


def additive(visible: Tensor | None, bias: Tensor | None) -> Tensor | None:
    """One term to add to the scores: `bias` where a key may be seen, minus infinity where not."""
    if visible is None:
        return bias
    if bias is None:
        bias = torch.zeros(1, device=visible.device)
    return torch.where(visible, bias, float("-inf"))


def check_mask(mask: Tensor, ids: Tensor, name: str = "mask") -> None:
    if mask.dtype != torch.bool:
        raise InputError(
            f"{name} has dtype {mask.dtype}; it must be torch.bool, True for a real token: "
            f"{name}.bool() turns ones and zeros into it"
        )
    if mask.shape != ids.shape:
        raise InputError(
            f"{name} has shape {tuple(mask.shape)}, its ids {tuple(ids.shape)}; both must be (batch, length)"
        )


def check_places(places: Tensor, ids: Tensor, alone: bool) -> None:
    if not alone or places.shape != ids.shape[:2] or places.is_floating_point():
        fault = f"are {places.dtype} of shape {tuple(places.shape)}" if alone else "go with no mask and no cache"
        raise InputError(f"places {fault}; they are whole numbers, {tuple(ids.shape[:2])}, for rows without padding")


class AttentionMask(NamedTuple):
    """What the queries of one forward pass may see, and from where; built once per stack and shared by its layers.

    `bias` is added to the scores and carries padding, causality and distance terms. `causal` alone says
    "causal and nothing else", which the fastest kernels understand without a matrix.
    """

    bias: Tensor | None = None  # broadcasts to (B, H, T, S)
    causal: bool = False
    rotation: tuple[Tensor, Tensor] | None = None  # cosines and sines, each (T, d/2)
    blocks: BlockMask | None = None  # the same as `bias`, for a kernel that skips empty blocks
    positions: Tensor | None = None  # of the queries, (T) or (B, T): a text begins at 0


NO_MASK = AttentionMask()

# Options of the block-sparse kernel: queries and keys in a tile, warps, tiles read ahead, and the size of a block.
# With heads 64 wide and texts of some hundred tokens, two fifths less time on an H200 than by its own choice.
TILES = {"fwd_BLOCK_M": 64, "fwd_BLOCK_N": 64, "fwd_num_warps": 4, "fwd_num_stages": 3}
TILES |= {"bwd_BLOCK_M1": 32, "bwd_BLOCK_N1": 64, "bwd_BLOCK_M2": 64, "bwd_BLOCK_N2": 32}
TILES |= {"bwd_num_warps": 4, "bwd_num_stages": 3, "SPARSE_Q_BLOCK_SIZE": 64, "SPARSE_KV_BLOCK_SIZE": 64}


def softmax(scores: Tensor) -> Tensor:
    """Shares that sum to one over the keys; a row that may see nothing gets zeros, not NaN."""
    highest = scores.amax(-1, keepdim=True).detach()  # subtracted so that exp cannot overflow
    blind = highest == float("-inf")
    weight = (scores - highest.masked_fill(blind, 0.0)).exp()
    return weight / weight.sum(-1, keepdim=True).masked_fill(blind, 1.0)


class Projection(nn.Linear):
    """The matrices W_Q, W_K and W_V in one, rows in that order, so that self-attention multiplies once."""

    def __init__(self, config: ModelConfig) -> None:
        groups = config.kv_heads or config.heads
        self.rows = [config.heads * config.d_head, groups * config.d_head, groups * config.d_head]
        bias = config.bias if config.qkv_bias is None else config.qkv_bias
        super().__init__(config.d_model, sum(self.rows), bias=bias)

    def all(self, x: Tensor) -> tuple[Tensor, ...]:
        return torch.split(self(x), self.rows, dim=-1)  # (B, T, H d), (B, T, G d), (B, T, G d)

    def query(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight[: self.rows[0]], None if self.bias is None else self.bias[: self.rows[0]])

    def keys_values(self, memory: Tensor) -> tuple[Tensor, ...]:
        bias = None if self.bias is None else self.bias[self.rows[0] :]
        return torch.split(F.linear(memory, self.weight[self.rows[0] :], bias), self.rows[1:], dim=-1)


class Attention(nn.Module):
    """Multi-head attention: project, split into heads, attend in each, merge, project."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.groups, self.d_head = config.heads, config.kv_heads or config.heads, config.d_head
        self.scale = config.score_scale or 1 / math.sqrt(config.d_head)
        self.projection = Projection(config)
        self.output = nn.Linear(config.heads * config.d_head, config.d_model, bias=config.bias)
        self.dropout = config.dropout if config.attention_dropout is None else config.attention_dropout
        self._probes = tuple(Probe() for _ in range(8))
        self.q, self.k, self.v, self.products, self.scores, self.masked, self.pattern, self.context = self._probes

    def split(self, x: Tensor, heads: int) -> Tensor:
        return x.view(*x.shape[:-1], heads, self.d_head).transpose(1, 2)  # (B, H, T, d)

    def project(
        self, x: Tensor, memory: Tensor | None, mask: AttentionMask, cache: LayerCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of `x`; keys and values of `memory`, or of `x` itself and all the cache has seen before it."""
        if memory is not None:
            q = self.split(self.projection.query(x), self.heads)
            if cache is not None and cache.cross is not None:
                return q, *cache.cross
            k, v = (self.split(part, self.groups) for part in self.projection.keys_values(memory))
            if cache is not None:
                cache.cross = k, v = k.contiguous(), v.contiguous()
            return q, k, v
        q, k, v = self.projection.all(x)
        q, k, v = self.split(q, self.heads), self.split(k, self.groups), self.split(v, self.groups)
        if mask.rotation is not None:
            q, k = rotate(q, mask.rotation), rotate(k, mask.rotation)
        if cache is not None:
            k, v = cache.append(k, v)
        return q, k, v

    def reference(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask) -> Tensor:
        """The definition, every value of it visible."""
        q, k, v = self.q(q), self.k(k), self.v(v)
        if self.groups < self.heads:  # each key/value head serves several query heads
            k, v = (x.repeat_interleave(self.heads // self.groups, dim=1) for x in (k, v))
        products = self.products(q @ k.transpose(-2, -1))  # (B, H, T, S)
        masked = scores = self.scores(products * self.scale)
        if mask.bias is not None:
            masked = scores + mask.bias
        elif mask.causal:
            future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
            masked = scores.masked_fill(future, float("-inf"))
        pattern = self.pattern(softmax(self.masked(masked).float()).type_as(v))
        return self.context(F.dropout(pattern, self.dropout, self.training) @ v)  # (B, H, T, d)

    def fused(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask) -> Tensor:
        """The same in one kernel, which forms neither scores nor pattern in memory."""
        bias = None if mask.bias is None else mask.bias.to(q.dtype)
        dropout = self.dropout if self.training else 0.0
        return F.scaled_dot_product_attention(
            q, k, v, bias, dropout, mask.causal, scale=self.scale, enable_gqa=self.groups < self.heads
        )

    def block_sparse(self, q: Tensor, k: Tensor, v: Tensor, blocks: BlockMask) -> Tensor:
        """The same in a kernel that passes over blocks in which no query may see a key; it has no dropout."""
        tiles: Any = TILES if self.d_head == 64 else None
        grouped = self.groups < self.heads
        return flex_attention(q, k, v, block_mask=blocks, scale=self.scale, enable_gqa=grouped, kernel_options=tiles)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, cache: LayerCache | None) -> Tensor:
        """(B, H, T, d), by the fastest of several equal ways; watched probes need the reference."""
        if has_hooks(self._probes):
            return self.reference(q, k, v, mask)
        if mask.blocks is not None and not (self.training and self.dropout) and self.d_head in (16, 32, 64, 128):
            return self.block_sparse(q, k, v, mask.blocks)
        if torch.compiler.is_compiling() and q.is_cuda and k.shape[2] <= self.d_head:
            # A compiler fuses the written lines too: with heads 64 wide, which were measured, better than the kernel
            # is while a query's scores are no more numbers than the query itself.
            return self.reference(q, k, v, mask)
        attend = None if cache is None or mask.causal or self.training else cache.cache.attend
        context = None if attend is None else attend(q, k, v, mask.bias, self.scale)
        return self.fused(q, k, v, mask) if context is None else context

    def forward(
        self, x: Tensor, mask: AttentionMask, memory: Tensor | None = None, cache: LayerCache | None = None
    ) -> Tensor:
        q, k, v = self.project(x, memory, mask, cache)
        # Rows that share their keys, as beams do, attend to them side by side, like more queries.
        beams = q.shape[0] // max(1, k.shape[0])
        if beams > 1:
            q = q.view(-1, beams, *q.shape[1:]).transpose(1, 2).flatten(2, 3)  # (B/K, H, K T, d)
        context = self.attend(q, k, v, mask, cache)  # (B, H, T, d)
        if beams > 1:
            context = context.view(*context.shape[:2], beams, -1, self.d_head).transpose(1, 2).flatten(0, 1)
        merged = context.transpose(1, 2).flatten(2)  # (B, T, H d): the heads side by side again
        return self.output(merged)  # (B, T, D)
