"""Ids in, ids out: any number of sources of any length, through a model made ready to run.

Shapes: B sources, S the longest of them.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import torch
from torch import Tensor

from glassformer.decode.generation import run_search, stream
from glassformer.decode.precision import Model, Precision, WeightsVersion, prepare, resolve_precision
from glassformer.decode.recorded import forget
from glassformer.decode.scoring import Alignment, align, alternatives, score
from glassformer.decode.search import Hypothesis, LengthRule, Placeholders, Search, SpecialTokens
from glassformer.model import EncoderDecoder
from glassformer.weights.marian_files import Shortlist
from glassformer.weights.quantized import dequantize_model, has_alphas, is_quantized

BATCH_TOKENS = 4096
GPU_TOKENS = 65_536  # and at most 1,024 for each GiB of a GPU's memory
STRIDE = 16  # a source counts as so many tokens, or the next multiple: each row costs a vocabulary of scores
GROWTH = 2  # a target may be this many times as long as its source, and SLACK tokens more
SLACK = 20

Ids = list[int]


@dataclass(frozen=True)
class Likelihood:
    """The log-probability of a given target; `tokens` counts its end mark."""

    log_probability: float
    tokens: int

    def score(self, rule: LengthRule) -> float:
        return self.log_probability / float(rule.divisor(torch.tensor(max(1, self.tokens))))


class ModelRunner(Generic[Model]):
    """A model, and the copy of it that runs: made on first use, and again when the weights have changed since; shared
    by all threads.

    With a way to load the plain model `again`, it is let go once a copy with rounded weights has been made, unless
    somebody has asked for it. A model whose weights are stored in int8 is no plain one: of it only the copy is made.
    """

    def __init__(self, model: Model, device: torch.device, precision: Precision) -> None:
        stored = is_quantized(model)
        self.precision = resolve_precision(precision, model.config.d_model, device, stored, has_alphas(model))
        self.config, self.device = model.config, device
        self.reload: Callable[[], Model] | None = None
        self._plain: Model | None = None if stored else model.to(device).eval()
        self._stored: Model | None = model.eval() if stored else None
        # Kept: the plain model, rounded once more, would not have the scales.
        self._scaled: Model | None = self._stored if has_alphas(model) else None
        self._ready: Model | None = None
        self._stamp: WeightsVersion | None = None  # of the plain model, as it was when the copy was made
        self._lock = threading.Lock()

    @property
    def model(self) -> Model:
        """The plain float32 model; kept from now on, for it may be changed."""
        with self._lock:
            if self._plain is None:
                assert self.reload is not None or self._scaled is not None
                plain = copy.deepcopy(self._scaled) if self.reload is None else self.reload()
                assert plain is not None
                dequantize_model(plain)
                self._plain = plain.to(self.device).eval()
                self._stamp = WeightsVersion(self._plain)
            self.reload = None
            return self._plain

    @property
    def ready(self) -> Model:
        with self._lock:
            plain = self._plain
            if self._stored is not None and self._ready is None:
                self._ready, self._stored = prepare(self._stored, self.precision), None
            if plain is not None and (self._ready is None or self._stamp is None or not self._stamp.holds()):
                self._ready, self._stamp = prepare(plain, self.precision), WeightsVersion(plain)
                if self.reload is not None and self.precision != "fp32":
                    self._plain = self._stamp = None
            assert self._ready is not None
            return self._ready


class Engine(ModelRunner[EncoderDecoder]):
    """Sources to targets, in batches. A `shortlist` says of each source which pieces its targets may hold."""

    def __init__(
        self, model: EncoderDecoder, device: torch.device, precision: Precision, shortlist: Shortlist | None = None
    ) -> None:
        super().__init__(model, device, precision)
        self.shortlist = shortlist
        self.pad = SpecialTokens.of(model.encoder.embedding.config).pad
        self.batch_tokens = default_batch_tokens(device)

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle or copy holds the model; the copy that runs is made again on first use."""
        model = self._scaled if self._plain is None and self._scaled is not None else self.model
        return type(self), (model, self.device, self.precision, self.shortlist)

    def allowed(self, sources: Sequence[Ids]) -> Tensor | None:
        """Of each source, the pieces that its target may hold, (B, V); None where it may hold all."""
        return None if self.shortlist is None else self.shortlist.allowed(sources, self.config.vocab_size)

    def max_target_length(self, length: int, search: Search | None = None) -> int:
        """The longest target tried for a source of `length` tokens; the start token needs a position too."""
        if search is not None and search.max_new_tokens is not None:
            return search.max_new_tokens
        return min(GROWTH * padded_length(length) + SLACK, self.config.max_length - 1)

    def tensors(self, sources: Sequence[Ids]) -> tuple[Tensor, Tensor]:
        """Sources as one table of ids (B, S), and which of them are real."""
        return pad_batch(sources, self.pad, self.device)

    def generate(
        self,
        sources: Sequence[Ids],
        prefixes: Sequence[Ids],
        search: Search,
        *,
        given: int = 0,
        placeholders: Placeholders | None = None,
        batch_tokens: int | None = None,
        between_steps: Callable[[], None] | None = None,
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        """The best targets of the sources, batch by batch: which sources it held, and theirs, each with its prefix, of
        which the first `given` tokens are certain."""
        lengths = [len(ids) for ids in sources]
        plain = placeholders is None and not any(prefixes) and not self.config.force_end and self.shortlist is None
        mixed = plain and can_mix(search) and self.device.type == "cpu"
        tokens = self.batch_tokens if batch_tokens is None else batch_tokens
        waiting = deque(batches(lengths, tokens // search.beam, mixed=mixed))
        while waiting:
            rows = waiting.popleft()
            src, mask = self.tensors([sources[i] for i in rows])
            limited = replace(search, max_new_tokens=self.max_target_length(src.shape[1], search))
            begun = [prefixes[i] for i in rows]
            prefix = begun if any(begun) else None
            held = placeholders and placeholders.of(rows)
            limits = [self.max_target_length(lengths[i], search) for i in rows] if mixed else None
            best = None
            try:
                best = run_search(
                    self.ready, src, mask, limited, prefix, given, held, between_steps=between_steps, limits=limits,
                    allowed=self.allowed([sources[i] for i in rows]),
                )  # fmt: skip
            except torch.OutOfMemoryError:  # of a GPU
                if len(rows) == 1:
                    raise
            if best is not None:
                yield rows, best
                continue
            forget(self.ready)
            waiting.extendleft((rows[len(rows) // 2 :], rows[: len(rows) // 2]))

    def stream(self, source: Ids, prefix: Ids, search: Search, given: int = 0) -> Generator[int, None, Hypothesis]:
        """The tokens of one target, as they are chosen; in the end it returns the whole."""
        limited = replace(search, max_new_tokens=self.max_target_length(len(source), search))
        src, allowed = self.tensors([source])[0], self.allowed([source])
        return stream(self.ready, src, search=limited, prefix=prefix, given=given, allowed=allowed)

    def alternatives(self, source: Ids, prefix: Ids, count: int, given: int = 0) -> list[tuple[int, float, Hypothesis]]:
        """The likeliest tokens after `prefix`, their log-probabilities, and what greedy search makes of each."""
        likeliest = alternatives(self.ready, self.tensors([source])[0], prefix, count)
        written = self.generate([source] * count, [[*prefix, token] for token, _ in likeliest], Search(), given=given)
        best = [ranked[0] for _, batch in written for ranked in batch]  # all of one length, so in the order given
        return [(token, value, whole) for (token, value), whole in zip(likeliest, best, strict=True)]

    def align(self, sources: Sequence[Ids], written: Sequence[Sequence[Hypothesis]]) -> list[list[Alignment]]:
        """The alignments of one batch's targets, by the plain model."""
        src, mask = self.tensors([ids for ids, ranked in zip(sources, written, strict=True) for _ in ranked])
        alignments = iter(align(self.model, src, [h.ids for ranked in written for h in ranked], mask))
        return [[next(alignments) for _ in ranked] for ranked in written]

    def likelihoods(
        self, sources: Sequence[Ids], targets: Sequence[Ids], batch_tokens: int, given: int = 0
    ) -> list[Likelihood]:
        """How likely each target is, its first `given` tokens being certain."""
        totals = [0.0] * len(targets)
        lengths = [max(len(s), len(t) + 1) for s, t in zip(sources, targets, strict=True)]
        for rows in batches(lengths, batch_tokens):
            src, mask = self.tensors([sources[i] for i in rows])
            batch = score(self.ready, src, [targets[i] for i in rows], mask, length_penalty=0.0, given=given)
            for i, total in zip(rows, batch, strict=True):
                totals[i] = total
        return [Likelihood(total, len(target) + 1) for total, target in zip(totals, targets, strict=True)]


def default_batch_tokens(device: torch.device) -> int:
    """The tokens of a batch, beams counted, where nothing else is said; a GPU writes more at once about as fast."""
    if device.type != "cuda":
        return BATCH_TOKENS
    memory = torch.cuda.get_device_properties(device).total_memory
    return min(GPU_TOKENS, max(BATCH_TOKENS, memory // 2**20))


def padded_length(length: int) -> int:
    return -(-length // STRIDE) * STRIDE


def pad_batch(sources: Sequence[Sequence[int]], pad: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids as one table (B, S), and which of them are real."""
    width = max(map(len, sources))
    ids = torch.tensor([[*ids, *[pad] * (width - len(ids))] for ids in sources])
    mask = torch.arange(width) < torch.tensor([[len(ids)] for ids in sources])
    return ids.to(device), mask.to(device)


def can_mix(search: Search) -> bool:
    """Whether sources that count differently may share a batch of this search, each with the limit that it has alone.
    Only where scores divide by the length itself: another power of it may be rounded otherwise in a longer table."""
    usual = search.length_penalty == 1 and search.length_rule == "average" and search.max_new_tokens is None
    return usual and search.beam > 1 and search.allows_repetition


def may_join(width: int, widest: int) -> bool:
    """Whether sources that count `width` are near enough to those that count `widest`, in a batch that is mixed."""
    return widest <= 2 * width


def batches(lengths: Sequence[int], tokens: int, alike: bool = False, mixed: bool = False) -> list[list[int]]:
    """Indices in batches of at most `tokens`, longest first, like with like, so that little of a batch is padding;
    `alike`: none of it.

    Unless `mixed`, all lengths of a batch count alike, so all have the same limit for their targets, whatever else is
    translated.
    """
    rows: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        width, first = padded_length(lengths[i]), lengths[rows[-1][0]] if rows else 0
        widest = padded_length(first)
        near = lengths[i] == first if alike else width == widest or (mixed and may_join(width, widest))
        if rows and near and (len(rows[-1]) + 1) * widest <= tokens:
            rows[-1].append(i)
        else:
            rows.append([i])
    return rows
