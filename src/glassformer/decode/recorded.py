"""Decoding steps recorded once and replayed: a GPU is given a step's hundred kernels in a single launch.

A recording has fixed shapes and a memory of its own. Sources are padded up to one of a few shapes; the prompt is read
as usual, and what it leaves behind is copied into the recording, which then writes the rest. How far a step looks
back also has a few sizes, each recorded when it is first needed.

Shapes: B sentences, K beams, S source, E entries of the cache.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from glassformer.decode.beam import Beam
from glassformer.decode.greedy import Greedy
from glassformer.decode.search import Constraints
from glassformer.decode.step import Writer
from glassformer.model import Cache, DecoderOnly, EncoderDecoder
from glassformer.model.cache import Admitted

Selector = Greedy | Beam

MAX_RECORDINGS = 64  # recordings of a model, the least recently used of which go first
MEMORY_SHARE = 8  # all of them remember at most this part of the device's memory
CHECK_EVERY = 8  # steps between two looks at whether all sentences are done: each look waits for the device
MIN_EXTENT = 64  # entries that the first steps look back on


def bucket(number: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, 16, ...: at most a third of it is empty."""
    power = 1 << max(0, number - 1).bit_length()
    return power * 3 // 4 if power >= 4 and number <= power * 3 // 4 else power


class StaticCache(Cache):
    """A cache whose next place is a number on the device, so that one recorded step serves every position."""

    def __init__(self, first: Cache) -> None:
        """Like `first`, which has read the prompt, but without its contents."""
        super().__init__(len(first.layers), first.capacity, first.beams)
        assert first.batch is not None
        self.batch, self.prompt, self.length, self.padded = first.batch, first.prompt, first.length, first.padded
        self.attend = first.attend
        keys = first.layers[0].k
        assert keys is not None
        B, K, device = self.batch, self.beams, keys.device
        self.extent = self.max_entries
        self.at = torch.tensor([self.length], device=device)
        self.beam = torch.arange(K, device=device)
        self.own = torch.eye(K, dtype=torch.bool, device=device).expand(B, K, K)
        entries = torch.arange(self.max_entries, device=device)
        self.places = torch.where(entries < self.prompt, entries, self.prompt + (entries - self.prompt) // K)
        self.seen = torch.zeros((B, K, self.max_entries), dtype=torch.bool, device=device)
        self.slots = self.beam
        for mine, other in zip(self.layers, first.layers, strict=True):
            assert other.k is not None
            assert other.v is not None
            mine.k, mine.v = torch.zeros_like(other.k), torch.zeros_like(other.v)
            if other.cross is not None:
                mine.cross = torch.empty_like(other.cross[0]), torch.empty_like(other.cross[1])

    @property
    def bytes(self) -> int:
        held = ((layer.k, layer.v, *(layer.cross or ())) for layer in self.layers)
        return sum(entries.nbytes for entries in chain.from_iterable(held) if entries is not None)

    def copy_from(self, first: Cache) -> None:
        """Begin with what `first` holds: the prompt."""
        self.at.fill_(first.length)
        self.seen.zero_()
        self.seen[:, :, : first.length] = True if first.visible is None else first.visible
        for mine, other in zip(self.layers, first.layers, strict=True):
            for to, since in ((mine.k, other.k), (mine.v, other.v)):
                assert to is not None
                assert since is not None
                to[:, :, : first.length].copy_(since[:, :, : first.length])
            if mine.cross is not None and other.cross is not None:
                for to, since in zip(mine.cross, other.cross, strict=True):
                    to.copy_(since)

    def admit(self, ids: Tensor, mask: Tensor | None) -> Admitted:
        self.slots = self.prompt + (self.at - self.prompt) * self.beams + self.beam
        self.seen.index_copy_(2, self.slots, self.own)
        visible = self.seen[:, :, : self.extent]
        queries = self.at.clone()
        positions = queries
        if self.padded:
            first = visible[:, 0].int().argmax(1, keepdim=True).repeat_interleave(self.beams, 0)
            positions = (queries - first).clamp_min(0)
        self.at += 1
        return Admitted(queries, self.places[: self.extent], positions, visible.unsqueeze(1))

    def store(self, entries: Tensor, new: Tensor) -> Tensor:
        entries.index_copy_(2, self.slots, new)
        return entries[:, :, : self.extent]

    def follow(self, origin: Tensor) -> None:
        self.seen.copy_(self.seen.gather(1, origin.unsqueeze(2).expand_as(self.seen)))


class Recording:
    """One shape of search, its memory, and its step as a graph for each distance it may have to look back."""

    def __init__(self, writer: Writer, constraints: Constraints, selector: Selector) -> None:
        self.writer, self.constraints, self.selector = writer, constraints, selector
        self.cache = StaticCache(writer.cache)
        writer.cache = self.cache
        self.mask = writer.mask = None if writer.mask is None else writer.mask.clone()
        self.graphs: dict[int, torch.cuda.CUDAGraph | None] = {}
        self.pool: Any = None

    def begin(self, writer: Writer, constraints: Constraints, selector: Selector, cache: Cache) -> None:
        """Take over from a search that has made its first step."""
        self.cache.copy_from(cache)
        self.constraints.copy_from(constraints)
        for mine, other in zip(self.selector.state, selector.state, strict=True):
            if mine is not other:
                mine.copy_(other)
        if self.mask is not None and writer.mask is not None:
            self.mask.copy_(writer.mask)

    def body(self) -> None:
        if self.selector.origin is not None:
            self.cache.follow(self.selector.origin)
        self.selector.advance(self.writer.next(self.selector.tokens), self.constraints)

    def step(self, number: int) -> None:
        """The step that writes token `number`, the prompt's own having been 0."""
        needed = self.cache.prompt + number * self.cache.beams
        extent = min(self.cache.max_entries, max(MIN_EXTENT, bucket(needed)))
        self.cache.extent = extent
        if extent not in self.graphs or not self.selector.tokens.is_cuda:
            self.graphs[extent] = None  # the first time as it comes, so that every kernel has been loaded
            self.body()
            return
        graph = self.graphs[extent]
        if graph is None:
            graph = torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
                self.body()
            self.pool = self.pool or graph.pool()
            self.graphs[extent] = graph
        graph.replay()


class Recorder:
    """The recordings of one model."""

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        self.lock = threading.Lock()
        self.recordings: OrderedDict[tuple[object, ...], Recording] = OrderedDict()
        self.addresses = addresses(model)
        device = next(model.parameters()).device
        memory = torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else 2**33
        self.most = memory // MEMORY_SHARE

    def run(
        self, key: tuple[object, ...], limit: int, start: Callable[[], tuple[Writer, Constraints, Selector]], real: int
    ) -> Selector:
        """Search to the end for the first `real` sentences, by a recording of this shape.

        The caller holds the lock until it has read the result.
        """
        writer, constraints, selector = start()
        selector.going[real:] = False
        selector.advance(writer.next(), constraints)
        cache = writer.cache
        recording = self.recordings.get(key)
        if recording is None:
            recording = self.recordings[key] = Recording(writer, constraints, selector)
        self.recordings.move_to_end(key)
        self.forget()
        recording.begin(writer, constraints, selector, cache)
        for number in range(1, limit):
            if number % CHECK_EVERY == 1 and not bool(recording.selector.going.any()):
                break
            recording.step(number)
        return recording.selector

    def forget(self) -> None:
        """Keep the last one, and of those before it as many as there is memory for."""
        held = sum(recording.cache.bytes for recording in self.recordings.values())
        while len(self.recordings) > 1 and (len(self.recordings) > MAX_RECORDINGS or held > self.most):
            held -= self.recordings.popitem(last=False)[1].cache.bytes


RECORDERS: weakref.WeakKeyDictionary[torch.nn.Module, Recorder] = weakref.WeakKeyDictionary()
ONE_AT_A_TIME = threading.Lock()  # to look for a recorder, and to make one


def recorder(model: EncoderDecoder | DecoderOnly) -> Recorder:
    """The model's recorder; a new one if its weights have moved, for a recording knows them by their addresses."""
    with ONE_AT_A_TIME:
        found = RECORDERS.get(model)
        if found is None or found.addresses != addresses(model):
            found = RECORDERS[model] = Recorder(model)
        return found


def forget(model: EncoderDecoder | DecoderOnly) -> None:
    """Give back the memory of a model's recordings."""
    with ONE_AT_A_TIME:
        RECORDERS.pop(model, None)
    torch.cuda.empty_cache()


def addresses(model: torch.nn.Module) -> tuple[int, ...]:
    return tuple(tensor.data_ptr() for tensor in (*model.parameters(), *model.buffers()))


def pad_to_bucket(src: Tensor, mask: Tensor | None, pad: int, most: float = math.inf) -> tuple[Tensor, Tensor | None]:
    """The sources padded to a shape that others will have too, of at most `most` tokens; rows that were added are all
    padding."""
    rows, length = src.shape
    more_rows, more = bucket(rows) - rows, int(min((-length) % 16, most - length)) if length > 4 else 0
    if more_rows == more == 0:
        return src, mask
    mask = torch.ones_like(src, dtype=torch.bool) if mask is None else mask
    src = torch.nn.functional.pad(src, (0, more, 0, more_rows), value=pad)
    return src, torch.nn.functional.pad(mask, (0, more, 0, more_rows), value=False)
