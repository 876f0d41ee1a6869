"""What a traced model has written: chosen by search, or given; and how likely it found every token.

Shapes: T target, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from glassformer.common.errors import ConfigError, check_whole
from glassformer.decode import Search, generate
from glassformer.decode.generation import NoTarget
from glassformer.decode.writer import start_of
from glassformer.explain.record import Seen, watching
from glassformer.explain.subject import Subject
from glassformer.explain.uncached import uncached
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, Model

TOP = 10  # candidates kept of every step
COLDEST, HOTTEST = 0.001, 1000.0  # beyond these a temperature says nothing, and single precision overflows


@dataclass(frozen=True)
class Options:
    """How a trace decodes and what it shows."""

    search: Search  # with its limit of new tokens
    padding: int = 0
    temperature: float = 1.0
    prefix: tuple[int, ...] = ()
    given: int = 0  # tokens of the prefix that cost nothing

    def __post_init__(self) -> None:
        check_whole("padding", self.padding, 0, "0 puts none beside the sentence")
        check_temperature(self.temperature)

    def as_dict(self) -> dict[str, Any]:
        return {
            "beam": self.search.beam,
            "length_penalty": self.search.length_penalty,
            "max_new_tokens": self.search.max_new_tokens,
            "padding": self.padding,
            "temperature": self.temperature,
            "prefix": list(self.prefix),
        }


def check_temperature(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not COLDEST <= value <= HOTTEST:
        raise ConfigError(f"temperature={value!r:.60} must be a number above 0, from {COLDEST} to {HOTTEST:g}")


@dataclass(frozen=True)
class Written:
    """`prompt`: what the decoder reads before it writes; `chosen`: the tokens it then wrote, the end included."""

    prompt: list[int]
    chosen: list[int] = field(default_factory=list)
    finished: bool = False  # the end is among them
    forced_end: bool = False  # the length limit wrote the end, not the model
    selections: list[Any] = field(default_factory=list)  # what beam search considered, step by step

    @property
    def reads(self) -> list[int]:
        """All that the decoder reads; the last token is written, never read."""
        return (self.prompt + self.chosen)[:-1] if self.chosen else self.prompt

    @property
    def ids(self) -> list[int]:
        return self.chosen[:-1] if self.finished else self.chosen


def prompt_of(model: Model, source: list[int]) -> list[int]:
    if isinstance(model, EncoderDecoder):
        return [start_of(model)]
    return [] if isinstance(model, EncoderOnly) else source


def given(model: Model, source: list[int], target: list[int]) -> Written:
    """A target that was not searched for; an encoder-decoder's is closed by the end token."""
    end = model.config.end_id if isinstance(model, EncoderDecoder) else None
    if end is not None and target[-1:] == [end]:
        target = target[:-1]
    return Written(prompt_of(model, source), target if end is None else [*target, end], end is not None)


def write(model: Model, src: Tensor, mask: Tensor, options: Options) -> Written:
    """Search, by the fast path wherever no change stands in its way."""
    prompt = prompt_of(model, src[0].tolist())
    if isinstance(model, EncoderOnly):
        return Written(prompt)
    # What is cached of a token must not depend on later ones.
    writer = model if one_pass(model) else uncached(model).train(model.training)
    selections: list[Any] = []
    cooled = None
    if options.temperature != 1:
        cooled = model.head.register_forward_hook(lambda _module, _args, logits: logits / options.temperature)
    try:
        ((best,),) = generate(
            writer, src, mask, search=options.search, prefix=[options.prefix] if options.prefix else None,
            given=options.given,
            watch=selections.append if options.search.beam > 1 else None,
        )  # fmt: skip
    except NoTarget:  # where its numbers break off can still be looked at
        return Written(prompt)
    finally:
        if cooled is not None:
            cooled.remove()
    limit = options.search.max_new_tokens
    finished = limit is None or len(best.ids) < limit
    chosen = [*best.ids, model.config.end_id] if finished and model.config.end_id is not None else best.ids
    forced = model.config.force_end and finished and len(chosen) == limit
    return Written(prompt, chosen, finished, forced, selections)


def one_pass(model: Model) -> bool:
    """Whether one pass over the output shows what every step saw: while no token sees a later one."""
    return isinstance(model, EncoderOnly) or model.decoder.causal


def whole_mask(mask: Tensor, length: int) -> Tensor:
    """The prompt's mask, and beside it what was written, which is real."""
    return torch.cat((mask, mask.new_ones(1, length - mask.shape[1])), dim=1)


@torch.no_grad()
def step_logits(model: Model, src: Tensor, mask: Tensor, written: Written) -> Tensor:
    """The logits (steps, V) that each token was chosen from, or would have been by `model`.

    Where a token sees later ones, a step saw only those before it, so that each is a pass of its own. The model is
    watched, so that its numbers are those of the traced pass to the last bit.
    """
    assert isinstance(model, EncoderDecoder | DecoderOnly)
    first, reads = len(written.prompt), torch.tensor([written.reads], device=src.device)
    with watching(model, Seen(), ""):
        if isinstance(model, EncoderDecoder):
            memory = model.encode(src, mask)
        else:
            reads = torch.cat((src, reads[:, src.shape[1] :]), dim=1)  # the prompt may have been changed since

        def read(end: int) -> Tensor:
            tgt = reads[:, :end]
            if isinstance(model, EncoderDecoder):
                return model.decode(tgt, memory, mask)[0].float().cpu()
            logits: Tensor = model(tgt, whole_mask(mask, end))
            return logits[0].float().cpu()

        if one_pass(model):
            return read(reads.shape[1])[first - 1 :]
        return torch.stack([read(end)[-1] for end in range(first, reads.shape[1] + 1)])


def log_probabilities(logits: Tensor, temperature: float) -> Tensor:
    """In double precision: near certainty, a single one's rounding would be all that is left of them."""
    return (logits.double() / temperature).log_softmax(-1)


def chosen_log_probabilities(log_probs: Tensor, written: Written) -> list[float]:
    """Of the tokens written, by the log-probabilities (steps, V) of each step; an end that was forced costs nothing."""
    rows = [float(log_probs[step, token]) for step, token in enumerate(written.chosen)]
    return [*rows[:-1], 0.0] if written.forced_end else rows


def candidates(subject: Subject, log_probs: Tensor, most: int) -> list[dict[str, Any]]:
    """The likeliest, by the log-probabilities (V) of one place or step."""
    best, ids = log_probs.topk(min(most, log_probs.shape[0]))
    return [
        {"id": id, "piece": piece, "probability": math.exp(value), "log_probability": value}
        for id, piece, value in zip(ids.tolist(), subject.answers(ids.tolist()), best.tolist(), strict=True)
    ]


def steps(log_probs: Tensor, written: Written, subject: Subject) -> list[dict[str, Any]]:
    """Step by step: what was read, the likeliest next tokens, the one chosen, and the total so far."""
    if not written.chosen:
        return []
    total = 0.0
    reads = subject.pieces(written.reads[len(written.prompt) - 1 :], source=False)
    written_pieces = subject.pieces(written.chosen, source=False)
    rows = []
    for step, own in enumerate(chosen_log_probabilities(log_probs, written)):
        total += own
        top = candidates(subject, log_probs[step], TOP)
        rows.append(
            {"step": step, "reads": reads[step], "top": top, "chosen": written.chosen[step]}
            | {"piece": written_pieces[step], "chosen_log_probability": own, "total": total}
            | {"forced": written.forced_end and step == len(written.chosen) - 1}
        )
    return rows
