"""What a user reads when something is wrong.

    GlassformerError            every error a user can cause; the command line prints it and exits with 2
    ├── ConfigError             options that do not fit together, or a recipe that cannot be read
    ├── InputError              ids, masks or caches that do not fit the model
    │   └── KindError       of either: an argument of another kind than a function takes
    ├── WeightsError            a model folder that cannot be loaded
    ├── DataError               text files that cannot be read, or a corpus that cannot be used
    └── RunError                a training folder that cannot be started, resumed or written

Each message names the value, the limit it broke and what to do about it.
"""

from __future__ import annotations

import difflib
import errno
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real


class GlassformerError(Exception):
    """A mistake the user can mend; the message says how."""


class ConfigError(GlassformerError, ValueError):
    """Options that do not fit together."""


class InputError(GlassformerError, ValueError):
    """Ids, masks or caches that do not fit the model."""


class KindError(ConfigError, InputError):
    """An argument of another kind than a function takes."""


class WeightsError(GlassformerError):
    """A model folder that cannot be loaded."""


class DataError(GlassformerError):
    """Text that cannot be read or used."""


class RunError(GlassformerError):
    """A training folder that cannot be started, resumed or written."""


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Raise the panic of a Rust library, which is no Exception, as a RuntimeError."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise RuntimeError(str(error)) from None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """'; did you mean `x`?' for a near miss, else an empty string."""
    near = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return f"; did you mean `{near[0]}`?" if near else ""


def nearest(word: str, choices: Iterable[str]) -> str:
    """The four choices that share the longest part with a word."""
    match = difflib.SequenceMatcher(b=word, autojunk=False)

    def shared(choice: str) -> int:
        match.set_seq1(choice)
        return match.find_longest_match().size

    return one_of(sorted(choices, key=shared, reverse=True)[:4])


def one_of(choices: Iterable[str]) -> str:
    """The choices as a reader would list them."""
    return ", ".join(f"`{choice}`" for choice in choices)


def check_names(given: Iterable[str], known: Iterable[str]) -> None:
    for name in given:
        if name not in known:
            raise ConfigError(f"unknown option `{name}`{did_you_mean(name, known)}; there are {one_of(known)}")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        near = did_you_mean(str(value), choices)
        raise ConfigError(f"{name}={value!r:.40} is not one of {one_of(choices)}{near}")


def check_finite(name: str, value: object) -> None:
    if not isinstance(value, Real) or not math.isfinite(value):
        raise ConfigError(f"{name}={value!r:.40} must be a finite number")


def check_whole(name: str, value: object, least: int, fix: str) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ConfigError(f"{name}={value!r:.40} must be a whole number; {fix}")
    if value < least:
        raise ConfigError(f"{name}={value!r:.40} must be at least {least}; {fix}")


def why(error: OSError) -> str:
    """What kept a file from being read or written, in words."""
    return "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror or str(error)
