"""Texts translated part by part, each told when it is made: the first at once, later ones more and more together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from glassformer.data.protect import spans
from glassformer.deploy.server.request_state import Ticket
from glassformer.deploy.server.stream import Event, Tell
from glassformer.pipelines.language.sentences import sentences

if TYPE_CHECKING:
    from glassformer.deploy.server.libre import Libre

MOST = 4000  # characters translated together


class Part(NamedTuple):
    number: int  # of its text
    code: str | None
    text: str


def translate_in_parts(libre: Libre, asked: dict[str, Any], ticket: Ticket, tell: Tell) -> None:
    """Each part as an event, then the whole answer: the one that a request without events gets."""
    wish = libre.wish(asked)
    parts = [
        Part(number, code, text)
        for number, (whole, code) in enumerate(zip(wish.texts, wish.codes, strict=True))
        for text in ([whole] if wish.html or code is None else paragraphs(whole, code))
    ]
    made = [""] * len(wish.texts)
    for some in growing(parts):
        ticket.check()
        texts, _ = libre.made([one.text for one in some], [one.code for one in some], wish, ticket)
        for one, text in zip(some, texts, strict=True):
            made[one.number] += text
            tell(Event("part", {"index": one.number, "translatedText": text}))
    others: list[list[str]] = []
    if wish.alternatives:
        _, others = libre.made(wish.texts, wish.codes, wish, ticket, wish.alternatives)
    tell(Event("done", wish.answer(made, others)))


def paragraphs(text: str, language: str) -> list[str]:
    """A text cut where lines end, unless within what must not be cut; joined, they are the text. As no sentence goes
    beyond a line, their translations, joined, are that of the text."""
    parts = [""]
    for piece in sentences(text, language, spans(text)):
        parts[-1] += piece.text
        if piece.gap and "\n" in piece.text:
            parts.append("")
    return [part for part in parts if part] or [text]


def growing(parts: list[Part]) -> Iterator[list[Part]]:
    """One, then two, then four, and so on, up to so many characters."""
    at, count = 0, 1
    while at < len(parts):
        end, size = at, 0
        while end < min(len(parts), at + count) and (end == at or size + len(parts[end].text) <= MOST):
            size += len(parts[end].text)
            end += 1
        yield parts[at:end]
        at, count = end, 2 * count
