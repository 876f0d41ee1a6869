"""The values inside a model by name: recorded by hooks in one forward pass, then kept with what each of them means.

A hook sits on a module, and a model is shared. So a trace hooks a copy of the module tree that shares every weight with
the original: the original never carries a hook, and two traces never meet.
"""

from __future__ import annotations

import difflib
import fnmatch
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from glassformer.common.errors import InputError, one_of
from glassformer.model.attention import Attention, AttentionMask
from glassformer.model.norm import Norm

Op = dict[str, Any]
LINKS = ("input", "q", "k", "v", "pattern", "cos", "sin", "mask")  # fields of an operation that name one other value


class ActivationCache:
    """What the modules of one forward pass returned and read, and the mask of each attention, by name."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.inputs: dict[str, Tensor] = {}
        self.masks: dict[str, AttentionMask] = {}


@contextmanager
def record_activations(model: nn.Module, cache: ActivationCache, root: str) -> Iterator[None]:
    """Hook every module under `root` while the context is open.

    Encoder and decoder may share their embedding, so each half of a forward pass is recorded on its own. The insides of
    a norm get no hook: it would make the norm take another kernel.
    """
    handles = []
    for at, module in model.get_submodule(root).named_modules(remove_duplicate=False):
        name = ".".join(filter(None, (root, at)))
        if name.endswith(".normalised"):
            continue

        def keep(module: nn.Module, args: tuple[Any, ...], value: Any, name: str = name) -> None:
            cache.values[name] = value
            if isinstance(module, Norm | nn.Linear):
                cache.inputs[name] = args[0]
            elif isinstance(module, Attention):
                cache.masks[name] = args[1]

        handles.append(module.register_forward_hook(keep))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@dataclass(frozen=True, eq=False)
class Value:
    """One named value: `axes` names each dimension, `op` is the operation that computes it, `formula` is for people."""

    name: str
    axes: tuple[str, ...]
    op: Op
    formula: str
    value: Tensor

    @property
    def inputs(self) -> list[str]:
        """The names of the values that it is computed from."""
        op = self.op.get("otherwise", self.op)
        links = (*LINKS, "bias") if op["kind"] == "mask" else LINKS  # elsewhere a bias is a weight
        return [*op.get("inputs", ()), *(op[link] for link in links if op.get(link) is not None)]

    @property
    def span(self) -> tuple[float, float]:
        """The lowest and highest of the finite numbers."""
        if not self.value.numel():
            return 0.0, 0.0
        low, high = map(float, self.value.aminmax())
        if math.isfinite(low) and math.isfinite(high):
            return low, high
        finite = self.value[self.value.isfinite()]
        return (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 0.0)


class Values(dict[str, Value]):
    """Values by name, in the order of computation; an unknown name raises an error with the nearest one."""

    def __missing__(self, name: str) -> Value:
        raise InputError(f"no value is named `{name}`{self._near(name)}")

    def names(self, pattern: str = "*") -> list[str]:
        """The names that match a glob pattern."""
        return [name for name in self if fnmatch.fnmatchcase(name, pattern)]

    def select(self, pattern: str = "*") -> list[Value]:
        """The values whose names match a glob pattern; at least one must."""
        return [self[name] for name in self.names(pattern) or [pattern]]

    def _near(self, name: str) -> str:
        if near := difflib.get_close_matches(name, list(self), n=1, cutoff=0.75):
            return f"; did you mean `{near[0]}`?"
        word = name.replace("*", "").strip(".").rpartition(".")[2]
        ends = sorted({known.rpartition(".")[2] for known in self if not known[-1].isdigit()})
        if close := difflib.get_close_matches(word, ends, n=1):
            first = next(known for known in self if known.endswith(f".{close[0]}") or known == close[0])
            return f"; did you mean `{first}`?"
        return f"; the names end in {one_of(ends)}, and names('*') gives all"
