"""A model as the kernels' own description of it: a whole stack in one call, where nothing but kernels is needed.

A translation of one sentence is many small steps. Between their products, Python and PyTorch would take as long as the
products themselves. What is computed is what the modules compute; models with parts that the kernels do not know go the
long way, module by module.

Shapes: B sentences, K beams, R rows (B K), S source, H heads, d head width, V vocabulary.
"""

from __future__ import annotations

import weakref
from typing import TypeVar

import torch
from torch import Tensor, nn

from glassformer.decode.beam import Beam
from glassformer.decode.greedy import Greedy
from glassformer.decode.kernels import HALF, KINDS, Kernels, address
from glassformer.decode.kernels.structures import Kept, Layer, Matrix, Norm, Ranking, Source, Stack, Step
from glassformer.decode.precision import Lookup, PackedCross, PackedHead, PackedSelf, identity
from glassformer.decode.search import Constraints, TopTokens
from glassformer.decode.step import KernelLinear, StepBlock, Writer, start_of
from glassformer.model import DecoderOnly, EncoderDecoder
from glassformer.model import norm as norms
from glassformer.model.layer import Block
from glassformer.model.probe import GLOBAL_HOOKS
from glassformer.model.transformer import Stack as Modules

Part = TypeVar("Part")
NORM_KINDS: dict[type[nn.Module], int] = {nn.Identity: 0, norms.LayerNorm: 1, norms.RMSNorm: 2}

TOGETHER = 16  # steps of a search in one call: then whoever waits may say that they have left

PROGRAMS: weakref.WeakKeyDictionary[nn.Module, Program | None] = weakref.WeakKeyDictionary()


class Unsupported(Exception):
    """A part that the kernels do not know."""


def require(condition: bool) -> None:
    if not condition:
        raise Unsupported


def require_kind(part: object, kind: type[Part]) -> Part:
    if not isinstance(part, kind):
        raise Unsupported
    return part


def matrix(product: nn.Module) -> Matrix:
    return require_kind(product, KernelLinear).linear.matrix


def norm_of(module: nn.Module) -> Norm:
    require(type(module) in NORM_KINDS)
    if isinstance(module, nn.Identity):
        return Norm()
    assert isinstance(module, norms.Norm)
    return Norm(NORM_KINDS[type(module)], module.eps, address(module.weight), address(module.bias))


def layer_of(block: Block) -> Layer:
    own, cross, feed = block.self_attention, block.cross_attention, block.feed_forward
    require(own.groups == own.heads and not feed.gated and feed.activation is identity)  # relu is the product's part
    layer = Layer(
        self_norm=norm_of(block.self_attention_residual.norm), feed_norm=norm_of(block.feed_forward_residual.norm),
        self_in=matrix(require_kind(own.projection, PackedSelf).whole), self_out=matrix(own.output),
        up=matrix(feed.up), down=matrix(feed.down),
    )  # fmt: skip
    if cross is not None:
        require(
            cross.groups == cross.heads
            and (cross.heads, cross.d_head, cross.scale) == (own.heads, own.d_head, own.scale)
        )
        layer.cross_norm = norm_of(block.cross_attention_residual.norm)
        query = require_kind(cross.projection, PackedCross).query
        layer.cross_in, layer.cross_out = matrix(query), matrix(cross.output)
    return layer


def table_of(tokens: nn.Module) -> tuple[int | None, int | None, int | None]:
    """Where an embedding lies: in float32, or in int8 and its scales."""
    if isinstance(tokens, Lookup):
        require(tokens.values.is_contiguous() and tokens.scales.is_contiguous())
        return None, address(tokens.values), address(tokens.scales)
    require(type(tokens) is nn.Embedding)
    weight = require_kind(tokens.weight, Tensor)
    require(weight.dtype == torch.float32 and weight.is_contiguous())
    return address(weight), None, None


def blocks_of(modules: Modules) -> list[Block]:
    blocks = [block.block if isinstance(block, StepBlock) else block for block in modules.blocks]
    return [block for block in blocks if isinstance(block, Block)]


def stack_of(modules: Modules) -> Stack:
    blocks = blocks_of(modules)
    require(bool(blocks) and modules.rotary is None and modules.distance is None and blocks[0].recurrence is None)
    embedding, attention = modules.embedding, blocks[0].self_attention
    require(embedding.positions is not None and embedding.segments is None and isinstance(embedding.norm, nn.Identity))
    assert embedding.positions is not None
    positions, tables = embedding.positions.table, table_of(embedding.tokens)
    require(positions.dtype == torch.float32 and positions.is_contiguous())
    return Stack(
        len(blocks), positions.shape[1], attention.heads, attention.d_head, attention.scale,
        blocks[0].self_attention_residual.pre, (Layer * len(blocks))(*map(layer_of, blocks)), norm_of(modules.norm),
        *tables, embedding.scale, address(positions),
    )  # fmt: skip


class Program:
    """The stacks and the head of a model that was made ready."""

    def __init__(self, model: EncoderDecoder) -> None:
        head = require_kind(model.head, PackedHead)
        require(isinstance(head.transform, nn.Identity))
        self.encoder, self.decoder, product = stack_of(model.encoder), stack_of(model.decoder), head.linear
        self.kernels: Kernels = require_kind(product, KernelLinear).kernels
        self.head, self.max_rows = matrix(product), require_kind(product, KernelLinear).max_rows
        crosses = [block.cross_attention for block in blocks_of(model.decoder)]
        projections = [cross.projection for cross in crosses if cross is not None]
        self.projections = [matrix(one.rest) for one in projections if isinstance(one, PackedCross)]
        self.vocab_size = self.head.outputs
        # None of these may hold anything: a model that is watched goes the long way.
        self.hooks = [table for part in model.modules() for table in (part._forward_hooks, part._forward_pre_hooks)]


def program(model: EncoderDecoder | DecoderOnly, src: Tensor, mask: Tensor | None, beams: int) -> Program | None:
    """The model's, if it can write from these sources (B, S)."""
    if not isinstance(model, EncoderDecoder) or model.training or src.device.type != "cpu":
        return None
    if model not in PROGRAMS:
        try:
            PROGRAMS[model] = Program(model)
        except Unsupported:
            PROGRAMS[model] = None
    found = PROGRAMS[model]
    if found is None or src.shape[0] * max(src.shape[1], beams) > found.max_rows:
        return None
    if any(GLOBAL_HOOKS) or any(found.hooks) or src.dtype != torch.int64:
        return None
    begins = mask is None or bool((mask[:, :-1] | ~mask[:, 1:]).all())  # padding is at the end only
    return found if begins else None


def writer_of(model: EncoderDecoder | DecoderOnly, src: Tensor, mask: Tensor | None, limit: int, beams: int) -> Writer:
    """By a program where there is one."""
    found = program(model, src, mask, beams)
    if found is None:
        return Writer(model, src, mask, limit, beams)
    assert isinstance(model, EncoderDecoder)
    return ProgramWriter(found, model, src, mask, limit, beams)


class ProgramWriter(Writer):
    """A writer whose every step is one call."""

    thinning = 0.75  # nothing large is copied

    def __init__(
        self, program: Program, model: EncoderDecoder, src: Tensor, mask: Tensor | None, limit: int, beams: int
    ) -> None:
        self.model, self.mask, self.program, self.beams = model, mask, program, beams
        self.prompt = src.new_full((src.shape[0], 1), start_of(model))
        stack, (B, S) = program.decoder, src.shape
        H, d, layers = stack.heads, stack.d, stack.layers
        self.lengths = torch.full((B,), S) if mask is None else mask.sum(1)
        self.places = torch.arange(B)  # of those that are still here, in what is kept of all
        wide = -(-S // HALF) * HALF  # keys lie turned
        self.source = [(torch.zeros((B, H, d, wide)), torch.empty((B, H, S, d))) for _ in range(layers)]
        room = 1 + limit * beams
        self.past = [(torch.empty((B, H, room, d)), torch.empty((B, H, room, d))) for _ in range(layers)]
        projected = zip(program.projections, self.source, strict=True)
        sources = (Source * layers)(*(Source(one, H, d, k.data_ptr(), v.data_ptr()) for one, (k, v) in projected))
        self.memory = program.kernels.encode(program.encoder, src.contiguous(), self.lengths, sources)
        self.seen, self.before = torch.zeros((2, B, beams, 1 + limit), dtype=torch.int32)
        self.origin: Tensor | None = None
        self.step = 0
        kept = [(*past, *source) for past, source in zip(self.past, self.source, strict=True)]
        self.kept = (Kept * layers)(*(Kept(*map(address, parts)) for parts in kept))

    def next(self, tokens: Tensor | None = None) -> Tensor:
        tokens = self.prompt if tokens is None else tokens
        logits = torch.empty((len(tokens), self.program.vocab_size))
        self.read(tokens, logits.data_ptr(), Ranking())
        return logits

    def next_top(self, tokens: Tensor | None, top_count: int | None) -> Tensor | TopTokens:
        tokens = self.prompt if tokens is None else tokens
        if top_count is None or self.program.head.kind == KINDS["fp32"]:
            return self.next(tokens)
        found, ranking = self.room_for(tokens, top_count)
        self.read(tokens, None, ranking)
        return found

    def room_for(self, tokens: Tensor, top_count: int) -> tuple[TopTokens, Ranking]:
        """Where so many of the likeliest are put for each row, and the same for the kernels."""
        rows, count = len(tokens), min(top_count, self.program.vocab_size)
        best, ids = torch.empty((rows, count)), torch.empty((rows, count), dtype=torch.long)
        found = TopTokens(best, ids, torch.empty((rows, 1)))
        return found, Ranking(count, *(part.data_ptr() for part in found))

    def run_steps(self, selector: Greedy | Beam, constraints: Constraints) -> int:
        if not isinstance(selector, Beam) or selector.watch is not None:
            return 0
        bans, logits = None, None
        if not constraints.free or self.program.head.kind == KINDS["fp32"]:
            bans = constraints.bans(selector.limit, self.program.vocab_size)
            if bans is None:
                return 0
            logits = torch.empty((len(selector.tokens), self.program.vocab_size))
        self.origin = selector.origin  # itself: it is read at the next step as this one leaves it
        found, ranking = self.room_for(selector.tokens, selector.top_count)
        made = self.program.kernels.search(
            self.program.decoder,
            self.step_arguments(selector.tokens, address(logits), ranking),
            selector.kernel_arguments(found.logits, found.normaliser, found.ids),
            bans,
            int(self.thinning * len(selector.going)),
            TOGETHER,
        )
        if made % 2:
            self.seen, self.before = self.before, self.seen
        self.step += made
        return made

    def read(self, tokens: Tensor, logits: int | None, ranking: Ranking) -> None:
        """One more token of every row (R, 1); what is said of the next is put where these point to."""
        self.program.kernels.step(self.program.decoder, self.step_arguments(tokens, logits, ranking))
        self.seen, self.before = self.before, self.seen
        self.step += 1

    def step_arguments(self, tokens: Tensor, logits: int | None, ranking: Ranking) -> Step:
        """The next step, for the kernels."""
        sentences, room = len(self.places), self.past[0][0].shape[2]
        beams = len(tokens) // sentences
        seen, before = (self.seen.data_ptr(), self.before.data_ptr()) if beams > 1 else (None, None)
        return Step(
            sentences, beams, self.step, room, self.source[0][1].shape[2], tokens.data_ptr(), self.kept, seen, before,
            address(self.origin), self.seen.shape[2], self.lengths.data_ptr(), self.places.data_ptr(),
            self.program.head, logits, ranking,
        )  # fmt: skip

    def follow(self, origin: Tensor) -> None:
        self.origin = origin

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences only. What is kept of the others is not read again, and nothing of it is moved."""
        self.places = self.places.index_select(0, sentences)
        self.seen, self.before = self.seen.index_select(0, sentences), self.before.index_select(0, sentences)
        self.lengths = self.lengths.index_select(0, sentences)
        self.origin = None if self.origin is None else self.origin.index_select(0, sentences)
