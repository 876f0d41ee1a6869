"""What a user reads when something is wrong.

    GlassformerError            every error a user can cause; the command line prints it and exits with 2
    ├── ConfigError             options that do not fit together, or a recipe that cannot be read
    ├── InputError              ids, masks or caches that do not fit the model
    ├── WeightsError            a model folder that cannot be loaded
    ├── DataError               text files that cannot be read, or a corpus that cannot be used
    └── RunError                a training folder that cannot be started, resumed or written

Each message names the value, the limit it broke and what to do about it.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable


class GlassformerError(Exception):
    """A mistake the user can mend; the message says how."""


class ConfigError(GlassformerError, ValueError):
    """Options that do not fit together."""


class InputError(GlassformerError, ValueError):
    """Ids, masks or caches that do not fit the model."""


class WeightsError(GlassformerError):
    """A model folder that cannot be loaded."""


class DataError(GlassformerError):
    """Text that cannot be read or used."""


class RunError(GlassformerError):
    """A training folder that cannot be started, resumed or written."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """'; did you mean `x`?' for a near miss, else an empty string."""
    near = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return f"; did you mean `{near[0]}`?" if near else ""


def one_of(choices: Iterable[str]) -> str:
    """The choices as a reader would list them."""
    return ", ".join(f"`{choice}`" for choice in choices)


def why(error: OSError) -> str:
    """What kept a file from being read or written, in words."""
    return "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror or str(error)
