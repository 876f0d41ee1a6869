"""Out of here: a model for CTranslate2, Hugging Face and others, each export checked by what it does there.

This room has the name of the function that it is for. So it can be called, as `gf.export(...)`: that is `run.export`,
which is loaded then.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any


class Room(ModuleType):
    """A module that can be called."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        from glassformer.export.run import export

        return export(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        from glassformer.export.run import export

        return inspect.signature(export)


export = sys.modules[__name__]
export.__class__ = Room
