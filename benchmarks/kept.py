"""What must not change does not, and noise stays small: a translator on lines of text, and on what is hardly any."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from glassformer.pipelines.language.invariants import Invariants
from glassformer.pipelines.text import TextTranslator
from glassformer.pipelines.text.sentence_translator import most_tokens

_DIGIT = re.compile(r"\d")
SCRIPTS = (0x21, 0x61, 0xC0, 0x400, 0x600, 0x900, 0x4E00, 0x1F600, 0xE000)


@dataclass(frozen=True)
class Kept:
    """Of `lines`, those that hold digits, code or the like, and of these those that keep all of it; how the sentences
    came about; and the first lines that did not keep theirs."""

    lines: int
    numbers: int
    numbers_kept: int
    stretches: int
    stretches_kept: int
    ways: dict[str, int]
    lost: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Noise:
    """Of `strings`, those that came back, those too long, and those that were stopped by the limit of length."""

    strings: int
    returned: int
    too_long: int
    cut: int
    worst: tuple[tuple[str, str], ...]


def kept(translator: TextTranslator, lines: Sequence[str]) -> Kept:
    counts: Counter[str] = Counter()
    ways: Counter[str] = Counter()
    lost = []
    languages = translator.source, translator.target
    for line, made in zip(lines, translator.details(lines), strict=True):
        ways.update(sentence.way for sentence in made.sentences)
        invariants = Invariants(line, languages)
        missing = {one.kind for one in invariants.faults(made.text).lost}
        for kind, present in (
            ("number", bool(_DIGIT.search(line))),
            ("span", any(one.kind == "span" for one in invariants.items)),
        ):
            counts[kind] += present
            counts[f"{kind} kept"] += present and kind not in missing
        if missing:
            lost.append((line, made.text))
    return Kept(
        len(lines),
        counts["number"],
        counts["number kept"],
        counts["span"],
        counts["span kept"],
        dict(ways),
        tuple(lost[:10]),
    )


def noise(translator: TextTranslator, lines: Sequence[str], count: int = 1000) -> Noise:
    """`count` single words, fragments and random strings, made from `lines`; each a text of its own."""
    chance = random.Random(0)
    texts = [odd(chance, lines) for _ in range(count)]
    made = translator.details(texts)
    encode = translator.translators[-1].translator.tokenizer.encode_target
    sources, targets = encode(texts), encode([one.text for one in made])
    worst = [
        (text, one.text)
        for text, one, source, target in zip(texts, made, sources, targets, strict=True)
        if len(target) > most_tokens(len(source))
    ]
    returned = sum(bool(one.text.strip()) == bool(text.strip()) for text, one in zip(texts, made, strict=True))
    return Noise(count, returned, len(worst), sum(not one.finished for one in made), tuple(worst[:10]))


def odd(chance: random.Random, lines: Sequence[str]) -> str:
    words = chance.choice(lines).split() or ["a"]
    kind = chance.randrange(6)
    if kind == 0:
        return chance.choice(words)
    if kind == 1:
        start = chance.randrange(len(words))
        return " ".join(words[start : start + chance.randint(2, 5)])
    if kind == 2:
        word = chance.choice(words)
        return (word + chance.choice(["", " "])) * chance.randint(2, 20)
    if kind == 3:
        line = " ".join(words)
        start = chance.randrange(len(line) + 1)
        return line[start : start + chance.randint(1, 25)]
    script = chance.choice(SCRIPTS)
    letters = [chr(script + chance.randrange(26)) for _ in range(chance.randint(1, 40))]
    return "".join(letter if chance.random() < 0.8 else " " for letter in letters)
