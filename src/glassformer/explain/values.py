"""Values by name: looked up, listed and chosen by a pattern, with the nearest name where there is none."""

from __future__ import annotations

import difflib
import fnmatch

from glassformer.common.errors import InputError, one_of
from glassformer.explain.operations import Value


class Values(dict[str, Value]):
    """In the order of computation."""

    def __missing__(self, name: str) -> Value:
        raise InputError(f"no value is named `{name}`{self._near(name)}")

    def names(self, pattern: str = "*") -> list[str]:
        """The names that fit a glob pattern."""
        return [name for name in self if fnmatch.fnmatchcase(name, pattern)]

    def select(self, pattern: str = "*") -> list[Value]:
        """The values whose names fit; at least one must."""
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
