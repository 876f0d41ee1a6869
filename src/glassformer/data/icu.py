"""ICU messages: arguments with branches, as `{n, plural, one {# file} other {# files}}`, and the leaves in these."""

from __future__ import annotations

import re
from collections.abc import Callable

_DEPTH = 8  # of braces in a leaf
_LEAF = r"(?>[^{}']++|'[{}#](?:[^']|'')*+'|')*+"  # a quoted brace is a letter
for _ in range(_DEPTH):
    _LEAF = rf"(?>[^{{}}']++|'[{{}}#](?:[^']|'')*+'|'|\{{{_LEAF}\}})*+"
_KEY = r"\s*(?:=\d+|[\w-]+)\s*"
ARGUMENT = (
    rf"\{{\s*[\w.-]+\s*,\s*(?:plural|select|selectordinal)\s*,(?:\s*offset:\s*\d+)?(?:{_KEY}\{{{_LEAF}\}})++\s*\}}"
)
_ARGUMENT = re.compile(rf"`[^`]*`|<[^<>]*>|{ARGUMENT}")  # not in code, nor in a tag
_BRANCH = re.compile(rf"({_KEY}\{{\s*)({_LEAF})")
_PLURAL = re.compile(r"\{[^,]*,\s*(?:plural|selectordinal)")
_NUMBER = "{__number__}"  # stands for # in a plural: a placeholder that the translation keeps


def change_leaves(text: str, change: Callable[[str], str]) -> str:
    """`text` with each leaf of its outermost arguments changed. `change` gets # in a plural as a placeholder."""

    def branch(found: re.Match[str]) -> str:
        leaf = found[2].rstrip()
        return found[1] + change(leaf) + found[2][len(leaf) :]

    def argument(found: re.Match[str]) -> str:
        whole = found[0].replace("#", _NUMBER) if _PLURAL.match(found[0]) else found[0]
        return _BRANCH.sub(branch, whole).replace(_NUMBER, "#") if whole[0] == "{" else whole

    return _ARGUMENT.sub(argument, text)


def find_leaves(text: str) -> list[str]:
    found: dict[str, str] = {}
    change_leaves(text, lambda leaf: found.setdefault(leaf, leaf))
    return list(found)


def without_line_ends(text: str) -> str:
    """`text` with spaces for the line ends within its arguments."""
    return re.sub(ARGUMENT, lambda found: re.sub(r"[\r\n]", " ", found[0]), text) if "{" in text else text
