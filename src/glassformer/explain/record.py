"""A private copy of a model, and what its named places return in one pass.

A hook sits on a module, and a model is shared: so a trace watches a copy of the module tree that shares every weight
with the original. The original never carries a hook, its other users never wait, and two traces never meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from glassformer.model.attention import Attention, AttentionMask
from glassformer.model.norm import Norm


class Seen:
    """What one pass has shown: `values` by the name of the place, `inputs` likewise, and what each layer could see."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.inputs: dict[str, Tensor] = {}
        self.masks: dict[str, AttentionMask] = {}


@contextmanager
def watching(model: nn.Module, seen: Seen, root: str) -> Iterator[None]:
    """While open, keep what every module under `root` returns.

    Encoder and decoder may share their embedding, so each is watched in its own half of the pass. The insides of a
    norm are left alone: watching them would make it take another kernel.
    """
    handles = []
    for at, module in model.get_submodule(root).named_modules(remove_duplicate=False):
        name = ".".join(filter(None, (root, at)))
        if name.endswith(".normalised"):
            continue

        def keep(module: nn.Module, args: tuple[Any, ...], value: Any, name: str = name) -> None:
            seen.values[name] = value
            if isinstance(module, Norm | nn.Linear):
                seen.inputs[name] = args[0]
            elif isinstance(module, Attention):
                seen.masks[name] = args[1]

        handles.append(module.register_forward_hook(keep))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
