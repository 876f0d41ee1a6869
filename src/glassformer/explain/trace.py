"""Every value between a sentence and what a model makes of it, by name.

The output is decoded first, by the fast path. Then one pass over all of it, with a hook at every named place, gives
the values: what the model computes for a token depends on no later one, so this pass shows what every step saw. Where
a what-if has removed the causal mask it shows what the last step saw, which read all of it; the steps, the score and
the beam tree are told from a pass of each step.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

import torch
from torch import Tensor

from glassformer.common.errors import ConfigError, check_names
from glassformer.decode import Search
from glassformer.explain.answer import answer
from glassformer.explain.beam_tree import beam_tree
from glassformer.explain.cache_view import cache_view
from glassformer.explain.changes import Change, carry_out, checked, swapped
from glassformer.explain.ends import head
from glassformer.explain.operations import Account, Op, Side, Value
from glassformer.explain.record import Seen, watching
from glassformer.explain.subject import Sentence, Subject, Traced
from glassformer.explain.traced import Trace
from glassformer.explain.values import Values
from glassformer.explain.weights import Weights, fingerprint, raw
from glassformer.explain.writing import (
    Options,
    Written,
    given,
    log_probabilities,
    one_pass,
    step_logits,
    steps,
    whole_mask,
    write,
)
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, Model
from glassformer.model.layer import Block
from glassformer.model.probe import share_weights


@dataclass(frozen=True)
class Case:
    """A model, changed where it should be, with what it is given."""

    name: str
    subject: Subject
    sentence: Sentence
    target: list[int] | None  # given, not searched for
    model: Model  # a private copy
    src: Tensor  # (1, S), or an image (1, C, H, W)
    mask: Tensor  # (1, S), of an image its places
    options: Options
    changes: list[Change]
    replaced: dict[str, Change]


class TraceOptions(TypedDict, total=False):
    """What `trace` and `what_if` take by name."""

    beam: int
    length_penalty: float
    max_new_tokens: int | None
    prefix: Sequence[int | str] | None
    padding: int
    temperature: float
    name: str
    between_steps: Callable[[], None] | None


def begin(
    subject: Subject,
    sentence: Sentence,
    target: Sentence | None,
    changes: Iterable[Mapping[str, Any]],
    *,
    beam: int = 1,
    length_penalty: float = 1.0,
    max_new_tokens: int | None = None,
    prefix: Sequence[int | str] | None = None,
    padding: int = 0,
    temperature: float = 1.0,
    name: str = "model",
    between_steps: Callable[[], None] | None = None,
) -> Case:
    """Check all that was asked for and make the model ready."""
    wanted = checked(changes, subject)
    image = subject.image(sentence) if subject.reads_images else None
    if image is not None and padding:
        raise ConfigError(f"padding={padding}: an image fills its model's places; leave `padding` out")
    ids = swapped(subject.source_ids(sentence), wanted, subject)
    if target is not None and not subject.writes:
        raise ConfigError("an encoder-only model writes no target; leave `target` out")
    if target is not None and (prefix or any(change["kind"] == "prefix" for change in wanted)):
        raise ConfigError("a given target is not searched for, so a prefix has no place in it; leave one of them out")
    limit = subject.max_target_length(len(ids)) if max_new_tokens is None else max_new_tokens
    search = Search(beam=beam, length_penalty=length_penalty, max_new_tokens=limit)
    begun = () if target is not None else tuple(subject.prefix_ids(prefix or ()))
    options = Options(search, padding, temperature, begun, len(subject.opening))
    for change in wanted:
        if change["kind"] == "temperature":
            options = replace(options, temperature=float(change["value"]))
        elif change["kind"] == "prefix":
            pieces = change["pieces"] if change["ids"] is None else change["ids"]
            options = replace(options, prefix=tuple(subject.prefix_ids(pieces)))
    pads, real = [subject.config.pad_id or 0] * options.padding, [True] * len(ids)
    hidden = [False] * options.padding
    # A text that is continued has its padding before it, any other behind.
    left = isinstance(subject.model, DecoderOnly)
    ids, real = (pads + ids, hidden + real) if left else (ids + pads, real + hidden)
    model = share_weights(subject.model).eval()
    if between_steps is not None:
        for module in model.modules():
            if isinstance(module, Block):
                module.register_forward_pre_hook(lambda _module, _args: between_steps())
    replaced = carry_out(model, wanted)
    src, mask = (torch.tensor([row], device=subject.device) for row in (ids, real or [True] * len(subject.places)))
    src = src if image is None else image
    given = None if target is None else subject.target_ids(target)
    return Case(name, subject, sentence, given, model, src, mask, options, wanted, replaced)


def trace(
    subject: Traced,
    sentence: Sentence,
    target: Sentence | None = None,
    *,
    changes: Iterable[Mapping[str, Any]] = (),
    **options: Unpack[TraceOptions],
) -> Trace:
    """Follow a sentence through a model: `trace(t, "twenty-one")["decoder.blocks.0.cross_attention.pattern"]`.

    A `Translator` takes a sentence, a `TextGenerator` a prompt, a `MaskFiller` a text with gaps, a `Classifier` a text
    or an image; a model alone takes ids. What writes does so unless a `target` is given; of the others `answer` tells
    what fills the gaps, or the labels. Several threads may trace one model while others use it. `changes` are those of
    `what_if`; by name there may also be said:

    beam, length_penalty, max_new_tokens   how a target is looked for, as in `Search`
    prefix                                 ids or pieces that it begins with
    padding                                tokens put beside the sentence, so that their mask can be seen
    temperature                            divides the logits
    name                                   of the model, as the trace tells it
    between_steps                          called before every layer of every pass; what it raises ends the trace
    """
    check_names(options, TraceOptions.__annotations__)
    return follow(begin(Subject(subject), sentence, target, changes, **options))


def follow(case: Case) -> Trace:
    """Decode, run the traced pass, and account for every value of it."""
    subject, options = case.subject, case.options
    if case.target is not None:
        written = given(case.model, case.src[0].tolist(), case.target)
    else:
        written = write(case.model, case.src, case.mask, options)
    weights = Weights.of(case.model)
    values, memory = traced_pass(case, written, weights)
    logits = values["logits"].value[max(0, len(written.prompt) - 1) :]  # (steps, V); of what writes nothing, (T, V)
    if not one_pass(case.model):
        logits = step_logits(case.model, case.src, case.mask, written)
    log_probs = log_probabilities(logits, options.temperature)
    rows = steps(log_probs, written, subject)
    source, real = [] if subject.reads_images else case.src[0].tolist(), case.mask[0].tolist()
    return Trace(
        subject=subject,
        name=case.name,
        run=run_id(subject, source, written, case),
        text=subject.told(case.sentence),
        source=source,
        real=real,
        written=written,
        options=options,
        changes=case.changes,
        values=Values(values),
        weights=weights,
        steps=rows,
        answer=answer(subject, source, real, log_probs),
        score=rows[-1]["total"] / len(rows) ** options.search.length_penalty if rows else None,
        one_pass=one_pass(case.model),
        beam=beam_tree(subject, written, log_probs, options.search),
        cache=cache_view(case.model, memory, case.mask, written, logits),
    )


def traced_pass(case: Case, written: Written, weights: Weights) -> tuple[dict[str, Value], Tensor | None]:
    """The traced pass: every value by name, and the memory."""
    open_mask = any(change["kind"] == "remove_mask" and change["mask"] == "padding" for change in case.changes)
    shift = case.options.padding if isinstance(case.model, DecoderOnly) and not open_mask else 0
    account = Account(case.model.config, Seen(), weights, case.replaced, shift)
    tgt = torch.tensor([written.reads], device=case.src.device)
    memory = watched_pass(case.model, case.src, case.mask, tgt, account, open_mask, case.options.temperature)
    return account.values, memory


@torch.no_grad()
def watched_pass(
    model: Model,
    src: Tensor,
    mask: Tensor,
    tgt: Tensor,
    account: Account,
    open_mask: bool = False,
    temperature: float = 1.0,
) -> Tensor | None:
    """One pass over all that was read, `src` (1, S) and `tgt` (1, T), every value of it into the account; the memory.

    `open_mask`: the model sees padding too.
    """
    seen = account.seen
    padding: Op = {"causal": False, "padding": None if open_mask else "source"}
    memory: Tensor | None = None
    if isinstance(model, EncoderDecoder):
        with watching(model, seen, "encoder"):
            memory = model.encode(src, mask)
        with watching(model, seen, "decoder"), watching(model, seen, "head"):
            model.decode(tgt, memory, mask)
        stream = account.stack("encoder", model.encoder, padding)
        named = account.same("memory", stream, "what cross-attention reads")
        causal: Op = {"causal": model.decoder.causal, "padding": None}
        stream = account.stack("decoder", model.decoder, causal, named, padding)
    elif isinstance(model, EncoderOnly):
        with watching(model, seen, "encoder"), watching(model, seen, "head"):
            model(src, mask if model.config.patch_size is None else None)
        seen_all: Op = {"causal": False, "padding": None}
        stream = account.stack("encoder", model.encoder, padding if model.config.patch_size is None else seen_all)
    else:
        with watching(model, seen, "decoder"), watching(model, seen, "head"):
            model(tgt, whole_mask(mask, tgt.shape[1]))
        causal = padding | {"causal": model.decoder.causal}
        stream = account.stack("decoder", model.decoder, causal)
    head(account, model.head, Side(not isinstance(model, EncoderOnly)), stream, temperature)
    return memory


def run_id(subject: Subject, source: list[int], written: Written, case: Case) -> str:
    """The same for the same weights, ids, options and changes."""
    pixels = hashlib.sha256(raw(case.src)).hexdigest() if subject.reads_images else None
    facts = [
        fingerprint(subject.model),
        pixels or source,
        written.reads,
        written.chosen,
        case.options.as_dict(),
        case.changes,
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
