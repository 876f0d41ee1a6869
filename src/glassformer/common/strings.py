"""Texts as a reader meets them: in two languages, in several scripts, in lines of a width."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len

Language = Literal["en", "zh"]
CLOSING, OPENING = "，。；：、！？）》」”,.;:!?)", "（《「“("
_WIDE = "\u2e80-\u9fff\uff00-\uffef「」“”"
# Ranges of characters of scripts, for character classes of regular expressions.
HAN = "\u3400-\u9fff\uf900-\ufaff"
KANA_HANGUL = "\u3040-\u30ff\uac00-\ud7af"
WIDE = "\u3000-\u303f\u3400-\u9fff\uff00-\uffef"  # Han with the marks and forms of full width
UNSPACED = (
    f"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff{HAN}"  # letters of scripts without spaces between words
)
_PIECE = re.compile(rf"`[^`]*`|[{_WIDE}]|\s+|[^\s`{_WIDE}]+")


@dataclass(frozen=True)
class Text:
    """A text for readers, in both languages."""

    en: str
    zh: str

    def say(self, language: str, *values: object) -> str:
        """In one language, `values` in the places kept for them: {0}, {1}."""
        template = self.zh if language == "zh" else self.en
        return template.format(*values) if values else template


def wrap(text: str, width: int) -> str:
    """Lines of at most `width` letters: broken at spaces, and between Chinese signs but never before a stop."""
    return "\n".join(line for paragraph in text.split("\n") for line in _lines(paragraph, width))


def _lines(paragraph: str, width: int) -> list[str]:
    words: list[str] = []
    for piece in _PIECE.findall(paragraph):
        before = words[-1][-1] if words else " "
        apart = piece.isspace() or before.isspace() or cell_len(piece[0]) == 2 or cell_len(before) == 2
        if words and not before.isspace() and (piece[0] in CLOSING or before in OPENING or not apart):
            words[-1] += piece
        else:
            words.append(piece)
    lines, line = [], ""
    for word in words:
        if line and cell_len(line) + cell_len(word.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        if line or not word.isspace():
            line += word
    return [*lines, line.rstrip()]
