"""What a public function is given, checked against its annotations where it comes in."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, reduce, wraps
from inspect import isfunction, signature
from numbers import Integral, Real
from operator import or_
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, Literal, TypeVar, Union, Unpack, cast, get_args, get_origin, get_type_hints

import torch

from glassformer.common.errors import KindError, check_names, one_of

LISTS = (Iterable, Sequence, list)
KINDS: dict[Any, Any] = {int: Integral, float: Real, Path: os.PathLike}  # what counts as one of these
SPECIAL = ("__init__", "__call__", "__getitem__")  # checked as the methods with a plain name are
Given = TypeVar("Given")


def checked(given: Given) -> Given:
    """A function, or a class with its public methods, that refuses arguments of other kinds than its annotations."""
    if not isinstance(given, type):
        return cast(Given, checked_function(cast(Any, given)))
    for name, member in list(vars(given).items()):
        function = getattr(member, "__func__", member)  # of a class method
        if isfunction(function) and (name in SPECIAL or not name.startswith("_")):
            made = checked_function(function)
            setattr(given, name, made if function is member else type(member)(made))
    return given


def checked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    @cache  # on the first call, when every name of the annotations is there
    def parameters() -> dict[str, Any]:
        hints, found = get_type_hints(function), dict[str, Any]()
        for name in signature(function).parameters:
            hint = hints.get(name, Any)
            found |= get_type_hints(get_args(hint)[0]) if get_origin(hint) is Unpack else {name: hint}
        return found

    options = "Unpack" in str(function.__annotations__)

    @wraps(function)
    def checking(*args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_compiling():
            hints = parameters()
            if options:
                check_names(kwargs, hints)
            for name, value in [*zip(hints, args, strict=False), *kwargs.items()]:
                check_kind(name, value, hints.get(name, Any))
        return function(*args, **kwargs)

    return checking


def is_list(value: object) -> bool:
    """Whether things come out of it one by one: no characters, keys or names of columns, nothing without an order."""
    table = getattr(value, "ndim", 2) != 1 and (hasattr(value, "keys") or hasattr(value, "columns"))
    return isinstance(value, Iterable) and not table and not isinstance(value, str | bytes | set | frozenset)


@cache
def kind_test(hint: Any) -> Callable[[Any], bool]:
    """Whether a value is of the kind that an annotation names. What an iterator yields is not looked at."""
    origin, parts = get_origin(hint), get_args(hint)
    if isinstance(hint, TypeVar):
        return kind_test(reduce(or_, hint.__constraints__) if hint.__constraints__ else hint.__bound__ or Any)
    if len(kinds_of(hint)) > 1:
        tests = [kind_test(part) for part in parts]
        return lambda value: any(test(value) for test in tests)
    if origin is Literal:
        return lambda value: isinstance(value, tuple(map(type, parts)))
    kind: Any = object if hint is Any else KINDS.get(hint, origin or hint)
    if origin in LISTS:
        each = kind_test(parts[0])
        return lambda value: (
            isinstance(value, kind) and (all(map(each, value)) if isinstance(value, list | tuple) else is_list(value))
        )
    if origin in (Mapping, dict):
        key, entry = map(kind_test, parts)
        return lambda value: isinstance(value, kind) and all(key(k) and entry(v) for k, v in value.items())
    return lambda value: isinstance(value, kind)


def check_kind(name: str, value: Any, hint: Any) -> None:
    """Refuse a value of another kind than the annotation names; of a list, the first that is."""
    if kind_test(hint)(value):
        return
    inside = [get_args(kind)[0] for kind in kinds_of(hint) if get_origin(kind) in LISTS]
    for i, one in enumerate(value if inside and isinstance(value, list | tuple) else ()):
        check_kind(f"{name}[{i}]", one, reduce(or_, inside))
    fix = ""
    if hasattr(value, "columns"):
        fix = "; give one of its columns"
    elif kind_test(hint)(getattr(value, "model", value)):
        fix = "; give its `.model`"
    elif isinstance(value, str) and inside:
        fix = "; for one, write [text]"
    elif isinstance(value, list | tuple):
        fix = "; give one at a time"
    shown = " ".join(f"{value!r:.60}".split())
    raise KindError(f"{name}={shown} is of type {type(value).__name__}; it must be {describe(hint)}{fix}")


def check_texts(given: Iterable[str], name: str) -> list[str]:
    """Texts as a list; the lines of an open file without their ends."""
    check_kind(name, given, Iterable[str])
    found = list(given)
    check_kind(name, found, list[str])
    return [line.removesuffix("\n") for line in found] if isinstance(given, io.TextIOBase) else found


def kinds_of(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def describe(hint: Any, names: Mapping[Any, str] = MappingProxyType({})) -> str:
    """The kind that an annotation names, in words: those of `names`, or else of Python."""
    if hint in names:
        return names[hint]
    if len(kinds := kinds_of(hint)) > 1:
        return " or ".join(describe(kind, names) for kind in kinds if kind is not type(None))
    if get_origin(hint) is Literal:
        return f"one of {one_of(get_args(hint))}"
    if get_origin(hint) in LISTS:
        return f"a list of {describe(get_args(hint)[0], names)}"
    if get_origin(hint) in (Mapping, dict):
        return "a dict of {} to {}".format(*(describe(kind, names) for kind in get_args(hint)))
    return getattr(get_origin(hint) or hint, "__name__", str(hint))
