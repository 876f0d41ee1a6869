"""What every format is made of, and what is said where one fails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from glassformer.common.errors import GlassformerError
from glassformer.deploy.export.sample import Sample
from glassformer.deploy.export.subject import Subject

Progress = Callable[[str], None]


class CannotExport(GlassformerError):
    """The format has no way to say what the model does; nothing was written."""


class CheckFailed(GlassformerError):
    """What was written does something else than the model, and was taken away again."""


class Format(ABC):
    """A way out: `refuse` what it cannot say, `write` the rest, `check` what was written.

    `options` is a frozen dataclass of what can be asked for; its checks are its own.
    """

    name: str
    options: type[Any]

    @abstractmethod
    def refuse(self, subject: Subject, options: Any) -> None:
        """Raise CannotExport where the format cannot say what the model does; before anything is written."""

    @abstractmethod
    def write(self, subject: Subject, folder: Path, options: Any) -> None:
        """Write all files into a folder that is there and empty."""

    @abstractmethod
    def check(self, subject: Subject, folder: Path, sample: Sample, options: Any, progress: Progress) -> dict[str, Any]:
        """Load what was written into `folder` by the other system and compare; the figures, for the report.

        Raises CheckFailed where the two differ: see `glassformer.deploy.export.check`.
        """

    def versions(self) -> dict[str, str]:
        """The libraries that had a part in it."""
        return {}
