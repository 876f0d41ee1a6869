"""Out of here: a model for CTranslate2, Hugging Face and others, each export checked by what it does there.

This room has the name of the function that it is for. So it can be called, as `gf.export(...)`: that is `run.export`,
which is loaded then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class Room(ModuleType):
    """A module that can be called."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.__wrapped__(*args, **options)

    @property
    def __wrapped__(self) -> Callable[..., Any]:  # what its signature is read from
        from glassformer.export.run import export

        return export


export = sys.modules[__name__]
export.__class__ = Room
