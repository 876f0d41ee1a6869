"""What a traced model has written: chosen by search, or given; and how likely it found every token.

Shapes: T target, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from glassformer.decode import generate
from glassformer.errors import ConfigError
from glassformer.explain.subject import Subject
from glassformer.model import EncoderDecoder, EncoderOnly, Model

TOP = 10  # candidates kept of every step
COLDEST, HOTTEST = 0.001, 1000.0  # beyond these a temperature says nothing, and single precision overflows


@dataclass(frozen=True)
class Options:
    """How a trace decodes and what it shows."""

    beam: int = 1
    length_penalty: float = 1.0
    max_new_tokens: int = 128
    padding: int = 0
    temperature: float = 1.0
    prefix: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (("beam", 1), ("max_new_tokens", 1), ("padding", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ConfigError(f"{name}={value!r} must be a whole number, at least {least}")
        check_temperature(self.temperature)

    def as_dict(self) -> dict[str, Any]:
        return {
            "beam": self.beam,
            "length_penalty": self.length_penalty,
            "max_new_tokens": self.max_new_tokens,
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
    finished: bool = False
    score: float | None = None  # none where the output was given
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
        if model.config.start_id is None:
            raise ConfigError("the model's config names no start token, so its decoder cannot begin")
        return [model.config.start_id]
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
    selections: list[Any] = []
    more: dict[str, Any] = {"watch": selections.append} if options.beam > 1 else {}
    cooled = None
    if options.temperature != 1:
        cooled = model.head.register_forward_hook(lambda _module, _args, logits: logits / options.temperature)
    try:
        ((best,),) = generate(
            model, src, mask, options.beam, options.length_penalty, max_new_tokens=options.max_new_tokens,
            prefix=[list(options.prefix)] if options.prefix else None, **more,
        )  # fmt: skip
    finally:
        if cooled is not None:
            cooled.remove()
    finished = len(best.ids) < options.max_new_tokens
    chosen = [*best.ids, model.config.end_id] if finished and model.config.end_id is not None else best.ids
    return Written(prompt, chosen, finished, best.score, selections)


def log_probabilities(logits: Tensor, written: Written, temperature: float) -> Tensor:
    """Of every next token after each one the output was written from: (steps, V)."""
    return (logits[len(written.prompt) - 1 :] / temperature).log_softmax(-1)


def whole_mask(mask: Tensor, length: int) -> Tensor:
    """The prompt's mask, and beside it what was written, which is real."""
    return torch.cat((mask, mask.new_ones(1, length - mask.shape[1])), dim=1)


@torch.no_grad()
def forced(model: Model, src: Tensor, mask: Tensor, written: Written, temperature: float) -> list[float]:
    """The log-probability of each token that was written, were it written by `model`."""
    if not written.chosen:
        return []
    tgt = torch.tensor([written.reads], device=src.device)
    logits: Tensor
    if isinstance(model, EncoderDecoder):
        logits = model(src, tgt, mask)
    else:
        prompt = torch.cat((src, tgt[:, src.shape[1] :]), dim=1)  # the prompt may have been changed since
        logits = model(prompt, whole_mask(mask, prompt.shape[1]))
    found = log_probabilities(logits[0].float().cpu(), written, temperature)
    return [float(row[token]) for row, token in zip(found, written.chosen, strict=True)]


def steps(logits: Tensor, written: Written, subject: Subject, temperature: float) -> list[dict[str, Any]]:
    """Step by step: what was read, the likeliest next tokens, the one chosen, and the total so far."""
    if not written.chosen:
        return []
    found, total = log_probabilities(logits, written, temperature), 0.0
    best, ids = found.topk(min(TOP, found.shape[-1]))
    reads = subject.pieces(written.reads[len(written.prompt) - 1 :], source=False)
    rows = []
    for step, (token, read) in enumerate(zip(written.chosen, reads, strict=True)):
        own = float(found[step, token])
        total += own
        shown = ids[step].tolist()
        top = [
            {"id": id, "piece": piece, "probability": float(torch.tensor(value).exp()), "log_probability": value}
            for id, piece, value in zip(shown, subject.pieces(shown, source=False), best[step].tolist(), strict=True)
        ]
        rows.append(
            {"step": step, "reads": read, "top": top, "chosen": token, "chosen_log_probability": own, "total": total}
        )
    return rows
