"""The worked example of `glassformer trace` as parts of a page: what is told, then names, matrices and sums."""

from __future__ import annotations

import re
from functools import cache

from glassformer.common.strings import Language
from glassformer.explain.worked import WorkedExample, worked_example
from glassformer.explain.worked.render import SENTENCES, answers, calculations, headings, matrices, panel_of
from glassformer.explain.worked.texts import FRAME, STORY

WIDTH = 92  # columns; a page scrolls what is wider
SPECIAL = re.compile(r"<(\w+)>")  # a code host would take it for HTML
CHAPTER = "chapter."


def chapters() -> dict[str, list[str]]:
    """The parts of each chapter of the story, in the order of telling."""
    found: dict[str, list[str]] = {}
    for key in STORY:
        if key.startswith(CHAPTER):
            found[key.removeprefix(CHAPTER)] = []
        else:
            found[list(found)[-1]].append(key)
    return found


@cache
def example() -> WorkedExample:
    return worked_example()


def markdown(chapter: str, language: Language) -> str:
    """A chapter of the story, `batch` or `encoder.self_attention` for example."""
    if chapter not in chapters():
        raise LookupError(f"the worked example has no chapter `{chapter}`, only {', '.join(chapters())}")
    parts = [part(key, language) for key in chapters()[chapter]]
    if chapter == list(chapters())[-1]:
        lines = [line.plain for line in answers(example(), language)]
        parts.append(f"{FRAME['answer'].say(language)}\n\n" + block(lines))
    return "\n\n".join(parts)


def part(key: str, language: Language) -> str:
    values = [value for value in example().values.values() if panel_of(value) == key]
    sentences = SENTENCES.get(key, (0,))
    lines = [
        *headings(example(), values, language, WIDTH),
        *matrices(example(), values, sentences),
        *calculations(example(), values, sentences[0], WIDTH),
    ]
    told = SPECIAL.sub(r"`<\1>`", STORY[key].say(language))
    return f"{told}\n\n{block([line.plain for line in lines])}"


def block(lines: list[str]) -> str:
    return "```text\n" + "".join(f"{line.rstrip()}\n" for line in lines) + "```"
