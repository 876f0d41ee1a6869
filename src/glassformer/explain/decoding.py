"""What a traced model puts out, and how likely it found every token of it: a text that it decoded, with the tree of the
hypotheses that its search kept, finished and dropped; or, of an encoder alone, a label or the pieces that fill gaps.

Shapes: T positions, V vocabulary or labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from glassformer.common.errors import ConfigError, check_whole
from glassformer.decode import Search, generate
from glassformer.decode.generation import NoTarget
from glassformer.decode.step import start_of
from glassformer.explain.activations import ActivationCache, record_activations
from glassformer.explain.kv_cache import disable_cache, is_causal
from glassformer.explain.operations import whole_mask
from glassformer.explain.subject import Subject
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, Model

TOP = 10  # candidates kept of every step
MOST_LABELS = 20  # a model with no more labels than these shows all of them
COLDEST, HOTTEST = 0.001, 1000.0  # beyond these a temperature says nothing, and single precision overflows
RULE = "sum of log-probabilities / length ** length_penalty"
RUNNERS_UP = 3  # drawn beside each choice of a greedy search


@dataclass(frozen=True)
class DecodingOptions:
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
        search = {name: getattr(self.search, name) for name in ("beam", "length_penalty", "max_new_tokens")}
        return search | {"padding": self.padding, "temperature": self.temperature, "prefix": list(self.prefix)}


def check_temperature(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not COLDEST <= value <= HOTTEST:
        raise ConfigError(f"temperature={value!r:.60} must be a number above 0, from {COLDEST} to {HOTTEST:g}")


@dataclass(frozen=True)
class DecodedTokens:
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


def teacher_forced(model: Model, source: list[int], target: list[int]) -> DecodedTokens:
    """A target that the caller gives; an encoder-decoder's ends with the end token."""
    end = model.config.end_id if isinstance(model, EncoderDecoder) else None
    if end is not None and target[-1:] == [end]:
        target = target[:-1]
    return DecodedTokens(prompt_of(model, source), target if end is None else [*target, end], end is not None)


def decode(model: Model, src: Tensor, mask: Tensor, options: DecodingOptions) -> DecodedTokens:
    """Search for a target, with a cache wherever no change forbids one."""
    prompt = prompt_of(model, src[0].tolist())
    if isinstance(model, EncoderOnly):
        return DecodedTokens(prompt)
    if not is_causal(model):
        disable_cache(model)
    selections: list[Any] = []
    hook = None
    if options.temperature != 1:
        hook = model.head.register_forward_hook(lambda _module, _args, logits: logits / options.temperature)
    try:
        prefix = [options.prefix] if options.prefix else None
        watch = selections.append if options.search.beam > 1 else None
        ((best,),) = generate(model, src, mask, search=options.search, prefix=prefix, given=options.given, watch=watch)
    except NoTarget:  # a trace still shows where the model's numbers break off
        return DecodedTokens(prompt)
    finally:
        if hook is not None:
            hook.remove()
    limit = options.search.max_new_tokens
    finished = limit is None or len(best.ids) < limit
    chosen = [*best.ids, model.config.end_id] if finished and model.config.end_id is not None else best.ids
    forced = model.config.force_end and finished and len(chosen) == limit
    return DecodedTokens(prompt, chosen, finished, forced, selections)


@torch.no_grad()
def step_logits(model: Model, src: Tensor, mask: Tensor, written: DecodedTokens) -> Tensor:
    """The logits (steps, V) that each token was chosen from, or would have been by `model`.

    Where a token sees later ones, a step saw only those before it, so that each is a pass of its own. The model is
    hooked, so that its numbers are those of the traced pass to the last bit.
    """
    assert isinstance(model, EncoderDecoder | DecoderOnly)
    first, reads = len(written.prompt), torch.tensor([written.reads], device=src.device)
    with record_activations(model, ActivationCache(), ""):
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

        if is_causal(model):
            return read(reads.shape[1])[first - 1 :]
        return torch.stack([read(end)[-1] for end in range(first, reads.shape[1] + 1)])


def log_probabilities(logits: Tensor, temperature: float) -> Tensor:
    """In double precision: near certainty, single precision would leave nothing but its rounding."""
    return (logits.double() / temperature).log_softmax(-1)


def chosen_log_probabilities(log_probs: Tensor, written: DecodedTokens) -> list[float]:
    """Of the tokens written, by the log-probabilities (steps, V) of each step; an end that was forced costs nothing."""
    rows = [float(log_probs[step, token]) for step, token in enumerate(written.chosen)]
    return [*rows[:-1], 0.0] if written.forced_end else rows


def top_candidates(subject: Subject, log_probs: Tensor, most: int) -> list[dict[str, Any]]:
    """The likeliest, by the log-probabilities (V) of one position or step."""
    best, ids = log_probs.topk(min(most, log_probs.shape[0]))
    return [
        {"id": id, "piece": piece, "probability": math.exp(value), "log_probability": value}
        for id, piece, value in zip(ids.tolist(), subject.answers(ids.tolist()), best.tolist(), strict=True)
    ]


def decoding_steps(log_probs: Tensor, written: DecodedTokens, subject: Subject) -> list[dict[str, Any]]:
    """Step by step: what was read, the likeliest next tokens, the one chosen, and the total so far."""
    if not written.chosen:
        return []
    total = 0.0
    reads = subject.pieces(written.reads[len(written.prompt) - 1 :], source=False)
    pieces = subject.pieces(written.chosen, source=False)
    rows = []
    for step, own in enumerate(chosen_log_probabilities(log_probs, written)):
        total += own
        top = top_candidates(subject, log_probs[step], TOP)
        rows.append(
            {"step": step, "reads": reads[step], "top": top, "chosen": written.chosen[step]}
            | {"piece": pieces[step], "chosen_log_probability": own, "total": total}
            | {"forced": written.forced_end and step == len(written.chosen) - 1}
        )
    return rows


def encoder_answer(
    subject: Subject, source: Sequence[int], real: Sequence[bool], log_probs: Tensor
) -> dict[str, Any] | None:
    """By the log-probabilities (T, V) of every position, or (1, V) of the whole; None of a model that writes.

    `kind` is "label" or "fill". Each of its `places` is a position with the likeliest candidates, the best first: that
    of the whole, or those that are masked; where none is, those of all real tokens. `text` is the label, or what was
    read with its gaps filled.
    """
    if subject.writes:
        return None
    if subject.has_labels:
        most = log_probs.shape[-1] if log_probs.shape[-1] <= MOST_LABELS else TOP
        place = {"position": 0, "piece": subject.source_pieces(source)[0]}
        top = top_candidates(subject, log_probs[0], most)
        return {"kind": "label", "masked": False, "text": top[0]["piece"], "places": [place | {"top": top}]}
    gaps = [i for i, id in enumerate(source) if real[i] and id == subject.mask_id]
    pieces = subject.pieces(source, source=True)
    places: list[dict[str, Any]] = [
        {"position": i, "piece": pieces[i], "top": top_candidates(subject, log_probs[i], TOP)}
        for i in gaps or [i for i, one in enumerate(real) if one]
    ]
    best = {place["position"]: place["top"][0]["id"] for place in places}
    text = subject.filled([best.get(i, id) for i, id in enumerate(source)], list(best.values())) if gaps else ""
    return {"kind": "fill", "masked": bool(gaps), "text": text, "places": places}


def answer_log_probabilities(answer: dict[str, Any], log_probs: Tensor) -> list[float]:
    """Of the best candidates of an answer, by the log-probabilities (T, V) of this or of another run."""
    rows = [0 if answer["kind"] == "label" else place["position"] for place in answer["places"]]
    return [float(log_probs[row, place["top"][0]["id"]]) for row, place in zip(rows, answer["places"], strict=True)]


class BeamTree:
    """The hypotheses of a search as nodes, in the order in which it made them.

    `log_probs`: the log-probabilities (steps, V) along the output, as its steps show them.
    """

    def __init__(self, subject: Subject, written: DecodedTokens, log_probs: Tensor, search: Search) -> None:
        self.subject, self.written, self.log_probs, self.search = subject, written, log_probs, search
        self.own = chosen_log_probabilities(log_probs, written)
        self.nodes: list[dict[str, Any]] = []
        self.add(None, -1, written.prompt[-1], 0.0, "kept")
        if written.selections:
            self.add_beams()
        else:
            self.add_greedy()
        self.mark_winner()

    def add(self, parent: int | None, step: int, token: int, total: float, state: str) -> int:
        before = 0.0 if parent is None else self.nodes[parent]["total"]
        score = total / (step + 1) ** self.search.length_penalty if step >= 0 else 0.0
        piece = self.subject.pieces([token], source=False)[0]
        node = {"id": len(self.nodes), "parent": parent, "step": step, "token": token, "piece": piece}
        numbers = {"log_probability": total - before, "total": total, "score": score}
        self.nodes.append(node | numbers | {"state": state, "winner": False})
        return len(self.nodes) - 1

    def add_beams(self) -> None:
        """The candidates of every step, but for those that a prefix has ruled out.

        Search adds up in single precision. Along the output and beside it the sums are those of `log_probs`, so that
        no number has two values.
        """
        slots = {0: 0}  # the node of each slot of the beam
        output = 0  # the last node of the output so far
        for selection in self.written.selections:
            rows = [x[0].tolist() for x in (selection.parent, selection.token, selection.total)]
            ended, kept = selection.finished[0].tolist(), selection.kept[0].tolist()
            grown: dict[int, int] = {}
            step, following = selection.step, -1
            for parent, token, total, finished, slot in zip(*rows, ended, kept, strict=True):
                if not math.isfinite(total) or parent not in slots:
                    continue
                state = "finished" if finished else "kept" if slot >= 0 else "pruned"
                chosen = slots[parent] == output and token == self.written.chosen[step]
                if slots[parent] == output:
                    own = self.own[step] if chosen else float(self.log_probs[step, token])
                    total = self.nodes[output]["total"] + own
                node = self.add(slots[parent], step, token, total, state)
                following = node if chosen else following
                if slot >= 0 and not finished:
                    grown[slot] = node
            slots = grown
            output = following if step + 1 < len(self.own) else -1

    def add_greedy(self) -> None:
        """The output alone, and beside each of its tokens the likeliest others."""
        at, total, chosen = 0, 0.0, self.written.chosen
        for step, (token, own) in enumerate(zip(chosen, self.own, strict=True)):
            row = self.log_probs[step]
            others = [id for id in row.topk(min(RUNNERS_UP + 1, len(row))).indices.tolist() if id != token]
            ends = self.written.finished and step == len(chosen) - 1
            following = self.add(at, step, token, total + own, "finished" if ends else "kept")
            for id in others[:RUNNERS_UP]:
                self.add(at, step, id, total + float(row[id]), "pruned")
            at, total = following, total + own

    def mark_winner(self) -> None:
        """Mark the path of the best hypothesis."""
        at: int | None = 0
        self.nodes[0]["winner"] = True
        for token in self.written.chosen:
            at = next((n["id"] for n in self.nodes if n["parent"] == at and n["token"] == token), None)
            if at is None:
                return
            self.nodes[at]["winner"] = True


def beam_tree(subject: Subject, written: DecodedTokens, log_probs: Tensor, search: Search) -> dict[str, Any] | None:
    if not written.prompt:
        return None
    nodes = BeamTree(subject, written, log_probs, search).nodes
    return {"size": search.beam, "length_penalty": search.length_penalty, "rule": RULE, "nodes": nodes}
