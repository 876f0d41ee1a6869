"""Interventions: the changes of a what-if, checked, and applied to a private copy of a model.

A change is a plain dictionary with a `kind`, so that Python, JSON and the page share one form. `CHANGE_KINDS` holds for
each kind its fields, their check, and how it changes the model: a hook sets a value, or a number of a module is
replaced. A kind without such a function changes what the model is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from glassformer.common.errors import InputError, did_you_mean, one_of
from glassformer.explain.decoding import check_temperature
from glassformer.explain.kv_cache import stack_arguments
from glassformer.explain.subject import Subject
from glassformer.model import DecoderOnly, EncoderDecoder, Model
from glassformer.model.attention import Attention
from glassformer.model.layer import Block
from glassformer.model.transformer import Stack

Change = dict[str, Any]


def check_changes(changes: Iterable[Mapping[str, Any]], subject: Subject) -> list[Change]:
    """The changes, complete and within the model's ranges."""
    if isinstance(changes, Mapping | str):
        raise InputError("changes is one change; give a list of them: changes=[{...}]")
    complete = []
    for change in changes:
        if not isinstance(change, Mapping) or "kind" not in change:
            raise InputError(f"the change {change!r} names no `kind`; it is one of {one_of(CHANGE_KINDS)}")
        kind = change["kind"]
        if not isinstance(kind, str) or kind not in CHANGE_KINDS:
            near = did_you_mean(str(kind), CHANGE_KINDS)
            raise InputError(f"no change is of kind {kind!r}; it is one of {one_of(CHANGE_KINDS)}{near}")
        fields = CHANGE_KINDS[kind].fields
        for name in change:
            if name not in ("kind", *fields):
                near = did_you_mean(str(name), fields)
                raise InputError(f"{kind} has no `{name}`; it takes {one_of(fields) or 'nothing'}{near}")
        for name, optional in fields.items():
            if not optional and change.get(name) is None:
                raise InputError(f"{kind} needs `{name}`")
        whole = {"kind": kind} | {name: change.get(name) for name in fields if name in change or fields[name]}
        CHANGE_KINDS[kind].check(whole, subject)
        complete.append(whole)
    return complete


def stacks_of(model: Model) -> dict[str, Stack]:
    return {name: getattr(model, name) for name in ("encoder", "decoder") if hasattr(model, name)}


def stack_of(model: Model, change: Change) -> Stack:
    stacks = stacks_of(model)
    if change["stack"] not in list(stacks):  # whatever it is
        raise InputError(f"{change['kind']}: this model has no stack {change['stack']!r}, only {one_of(stacks)}")
    return stacks[change["stack"]]


def block_of(stack: Stack, change: Change) -> Block:
    check_index(change, "layer", len(stack.blocks), "layers")
    return cast(Block, stack.blocks[change["layer"]])


def check_index(change: Change, field: str, size: int, what: str) -> None:
    value = change[field]
    if type(value) is not int or not 0 <= value < size:
        span = f"the {size} {what} are numbered 0 to {size - 1}" if size else f"this model has no {what}"
        raise InputError(f"{change['kind']}: there is no {field} {value!r}; {span}")


def attention_of(model: Model, change: Change) -> tuple[str, Attention]:
    """The attention whose head is meant, and its name."""
    block = block_of(stack_of(model, change), change)
    kinds = {"self": block.self_attention} | ({"cross": block.cross_attention} if block.cross_attention else {})
    if change["attention"] not in list(kinds):  # whatever it is
        own, kind = one_of(kinds), change["attention"]
        raise InputError(f"{change['kind']}: the {change['stack']} has {own} attention, not {kind!r}")
    name = f"{change['stack']}.blocks.{change['layer']}.{change['attention']}_attention"
    return name, kinds[change["attention"]]


def check_head(change: Change, subject: Subject) -> None:
    if change["attention"] is None:
        change["attention"] = "self"
    _, attention = attention_of(subject.model, change)
    check_index(change, "head", attention.heads, "heads")


def check_mask(change: Change, subject: Subject) -> None:
    if change["mask"] not in ("causal", "padding"):
        raise InputError(f"remove_mask: there is no mask {change['mask']!r}; it is `causal` or `padding`")
    if change["mask"] == "causal" and not subject.writes:
        raise InputError("remove_mask: an encoder-only model reads both ways and has no causal mask")
    if subject.reads_images:
        raise InputError("remove_mask: an image has no padding, so nothing of it is masked")


def check_cross(change: Change, subject: Subject) -> None:
    if not isinstance(subject.model, EncoderDecoder):
        raise InputError("remove_cross: only an encoder-decoder model has cross-attention")
    if change["layer"] is not None:
        block_of(subject.model.decoder, change)


def check_positions(change: Change, subject: Subject) -> None:
    if change["stack"] is not None:
        stack_of(subject.model, change)
    if subject.config.positions == "none":
        raise InputError("remove_positions: this model has no positions")


def check_scale(change: Change, subject: Subject) -> None:
    if all(module.scale == 1.0 for module in subject.model.modules() if isinstance(module, Attention)):
        raise InputError("remove_scale: this model's scores have no scale; it was trained without one")


def check_swap(change: Change, subject: Subject) -> None:
    if (change["piece"] is None) == (change["id"] is None):
        raise InputError("swap_token needs a `piece`, or an `id` instead")
    if subject.reads_images:
        raise InputError("swap_token: an image has no tokens to swap; trace another image")
    if not isinstance(change["piece"], str | None):
        raise InputError(f"swap_token: the piece {change['piece']!r:.60} is not text; an id is given as `id`")


def check_prefix(change: Change, subject: Subject) -> None:
    if (change["pieces"] is None) == (change["ids"] is None):
        raise InputError("prefix needs `pieces`, or `ids` instead")
    if not subject.writes:
        raise InputError("prefix: an encoder-only model writes nothing")
    given = change["pieces"] if change["ids"] is None else change["ids"]
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError(f"prefix: {given!r} is not a list")
    subject.prefix_ids(given)


def swap_tokens(ids: list[int], changes: list[Change], subject: Subject) -> list[int]:
    """The source after its swaps."""
    ids = list(ids)
    for change in changes:
        if change["kind"] == "swap_token":
            check_index(change, "position", len(ids), "tokens")
            id = subject.piece_id(change["piece"], source=True) if change["id"] is None else change["id"]
            subject.check([id], subject.source_size, "swap_token")
            ids[change["position"]] = id
    return ids


def apply_changes(model: Model, changes: list[Change]) -> dict[str, Change]:
    """Change a private copy; returns the values that are set, `by` which change, and which `heads` of them."""
    replaced: dict[str, Change] = {}
    for change in changes:
        act = CHANGE_KINDS[change["kind"]].act
        for name in [] if act is None else act(model, change):
            heads = replaced.get(name, {}).get("heads", [])
            replaced[name] = {"by": change} | ({"heads": [*heads, change["head"]]} if "head" in change else {})
    return replaced


def zeros(_module: nn.Module, _args: Any, value: Tensor) -> Tensor:
    """A hook that sets what a module returns to zero."""
    return torch.zeros_like(value)


def remove_head(model: Model, change: Change) -> list[str]:
    name, attention = attention_of(model, change)

    def ablate(_module: nn.Module, _args: Any, context: Tensor) -> Tensor:
        context = context.clone()
        context[:, change["head"]] = 0.0  # (B, H, T, d)
        return context

    attention.context.register_forward_hook(ablate)
    return [f"{name}.context"]


def remove_layer(model: Model, change: Change) -> list[str]:
    block = block_of(stack_of(model, change), change)
    block.register_forward_hook(lambda _module, args, _value: args[0])
    return [f"{change['stack']}.blocks.{change['layer']}"]


def remove_mask(model: Model, change: Change) -> list[str]:
    if change["mask"] == "causal":
        assert isinstance(model, EncoderDecoder | DecoderOnly)
        model.decoder.causal = False
        return []
    for stack in stacks_of(model).values():
        stack.register_forward_pre_hook(without_masks, with_kwargs=True)
    return []


def without_masks(_stack: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A hook that drops the masks from the arguments of a stack."""
    return (), stack_arguments(args, kwargs) | {"mask": None, "memory_mask": None}


def remove_cross(model: Model, change: Change) -> list[str]:
    assert isinstance(model, EncoderDecoder)
    layers = range(len(model.decoder.blocks)) if change["layer"] is None else [change["layer"]]
    for i in layers:
        attention = cast(Block, model.decoder.blocks[i]).cross_attention
        assert attention is not None
        attention.output.register_forward_hook(zeros)
    return [f"decoder.blocks.{i}.cross_attention.output" for i in layers]


def remove_positions(model: Model, change: Change) -> list[str]:
    names = []
    for at, stack in stacks_of(model).items():
        if change["stack"] not in (None, at):
            continue
        for name, module in {"embedding.positions": stack.embedding.positions, "distance": stack.distance}.items():
            if module is not None:
                module.register_forward_hook(zeros)
                names.append(f"{at}.{name}")
        if stack.rotary is not None:
            stack.rotary.register_forward_hook(
                lambda _module, _args, turn: (torch.ones_like(turn[0]), torch.zeros_like(turn[1]))
            )
            names += [f"{at}.rotation.cos", f"{at}.rotation.sin"]
    return names


def remove_scale(model: Model, change: Change) -> list[str]:
    for module in model.modules():
        if isinstance(module, Attention):
            module.scale = 1.0
    return []


class ChangeKind(NamedTuple):
    """A kind of change: its fields, their check, and how it changes a model."""

    fields: dict[str, bool]  # and whether they may be left out
    check: Callable[[Change, Subject], object]
    act: Callable[[Model, Change], list[str]] | None = None  # returns the names of the values that it sets


CHANGE_KINDS = {
    "remove_head": ChangeKind(
        {"stack": False, "layer": False, "attention": True, "head": False}, check_head, remove_head
    ),
    "remove_layer": ChangeKind(
        {"stack": False, "layer": False}, lambda change, by: block_of(stack_of(by.model, change), change), remove_layer
    ),
    "remove_mask": ChangeKind({"mask": False}, check_mask, remove_mask),
    "remove_cross": ChangeKind({"layer": True}, check_cross, remove_cross),
    "remove_positions": ChangeKind({"stack": True}, check_positions, remove_positions),
    "remove_scale": ChangeKind({}, check_scale, remove_scale),
    "swap_token": ChangeKind({"position": False, "piece": True, "id": True}, check_swap),
    "prefix": ChangeKind({"pieces": True, "ids": True}, check_prefix),
    "temperature": ChangeKind({"value": False}, lambda change, _: check_temperature(change["value"])),
}
