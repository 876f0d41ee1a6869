"""What the translation of a sentence must hold, whether it does, and the sentence with that hidden.

Kept are the stretches of `protect.spans`, to the letter; numbers, as the language writes them; a glossary's terms, as
what they are to become; and what stands in Chinese, Japanese or Korean characters in a text of another language.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from glassformer.data.protect import PLACEHOLDERS, WORD, Span, spans
from glassformer.pipelines.language.glossary import Glossary, bordered
from glassformer.pipelines.language.measures import Measure, measures, units_of, written
from glassformer.pipelines.language.number_words import LANGUAGES, Spelt, exact, said
from glassformer.pipelines.language.numbers import (
    Number,
    compare,
    localised,
    multiplied,
    numbers,
    scaled,
    swapped,
    values_of,
    without,
)
from glassformer.pipelines.language.units import TIMES

_WIDE = re.compile("[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")
_EASTERN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_EASTERN_LANGUAGES = ("zh", "ja", "ko")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_JOINTS = ("/", ":", "-", ".", "–")  # between the numbers of a date, a time or a range, which go together
_SIGN = ("So", "Sm", "Sk", "No")  # kinds of characters
_SIGNS = "`<>{}"  # two of them make a stretch that was not there, maybe across sentences


@dataclass(frozen=True)
class Kept:
    """A stretch of a source, and what the translation holds in its place."""

    start: int
    end: int
    fill: str
    kind: Literal["span", "number", "term"]
    unit: str = ""  # of a number


@dataclass(frozen=True)
class Faults:
    """What a translation has lost, and whether it holds anything of the kind that its source has not."""

    lost: tuple[Kept, ...] = ()
    invented: bool = False

    def __bool__(self) -> bool:
        return self.invented or bool(self.lost)


@dataclass(frozen=True)
class Keeping:
    """A sentence with what its translation must hold."""

    source: str
    languages: tuple[str, str]
    glossary: Glossary | None = None
    alphabet: frozenset[str] = frozenset()  # what the model knows; none where that is not known

    @cached_property
    def items(self) -> tuple[Kept, ...]:
        """All of it, in order; none overlaps another."""
        found = [Kept(start, end, self.source[start:end], "span") for start, end in spans(self.source)]
        taken = {place for one in found for place in range(one.start, one.end)}
        for start, end, target in self.glossary.find(self.source) if self.glossary else ():
            if taken.isdisjoint(range(start, end)):
                found.append(Kept(start, end, target, "term"))
                taken |= set(range(start, end))
        if self.languages[0] not in _EASTERN_LANGUAGES:
            for match in _EASTERN.finditer(self.source):
                if taken.isdisjoint(range(*match.span())):
                    found.append(Kept(*match.span(), match[0], "term"))
                    taken |= set(range(*match.span()))
        amounts = {place for one in self._measures.values() for place in range(one.start, one.end)}
        for match in self._strange.finditer(self.source) if self._strange else ():
            if taken.isdisjoint(range(*match.span())) and amounts.isdisjoint(range(*match.span())):
                found.append(Kept(*match.span(), match[0], "term"))
        apart = [(one.start, one.end) for one in found]
        groups: list[list[Number]] = []
        for number in _numbers(self.source, self.languages[0], apart):
            if groups and self.source[groups[-1][-1].end : number.start] in _JOINTS:
                groups[-1].append(number)
            else:
                groups.append([number])
        found += [self._number(group, taken) for group in groups]
        return tuple(sorted(found, key=lambda one: one.start))

    def _number(self, group: list[Number], taken: set[int]) -> Kept:
        """A number, or several that go together, with its unit and the word for its thousands or millions."""
        source, target = self.languages
        start, end, last = group[0].start, group[-1].end, group[-1]
        token = self.source[start:end]
        known = source in LANGUAGES and target in LANGUAGES
        measure = self._measures.get((start, end)) if known else None
        if measure and (measure.plain or measure.scale) and taken.isdisjoint(range(measure.start, measure.end)):
            usual = bool(values_of(token, source))  # not so 9.95 in German, which stays as it is
            plain = swapped(token, source, target) if usual else token
            told = scaled(token, measure.scale, source, target) if measure.scale else plain
            return Kept(measure.start, measure.end, written(told, measure.unit, target), "number", measure.unit)
        if known and last.scale and len(group) == 1:
            return Kept(start, last.reach, scaled(token, last.scale, source, target), "number")
        return Kept(start, end, localised(token, *self.languages), "number")

    @cached_property
    def _measures(self) -> dict[Span, Measure]:
        """What has a unit, by the place of its number."""
        return {one.number: one for one in measures(self.source, self.languages[0])}

    @cached_property
    def _unknown(self) -> str:
        """What of the source the model has never met, as far as it is known."""
        strange = set() if self.source.isascii() or not self.alphabet else set(self.source) - self.alphabet
        return "".join(sign for sign in strange if not sign.isascii())

    @property
    def letters(self) -> str:
        """The source without signs and marks of the kind."""
        signs = [ord(sign) for sign in self._unknown if not sign.isalpha()]
        return self.source.translate(dict.fromkeys(signs)) if signs else self.source

    @property
    def core(self) -> Span:
        """The source without pictures at its ends, such as a smile; all of it where nothing is left."""
        pictures = _pictures(self._unknown)
        edge = pictures and pictures + "\ufe0f\u200d \t"
        start, end = len(self.source) - len(self.source.lstrip(edge)), len(self.source.rstrip(edge))
        return (start, end) if start < end else (0, len(self.source))

    @property
    def _strange(self) -> re.Pattern[str] | None:
        """Such pictures, and names with letters that the model has never met: it would spell them as it likes."""
        letters = re.escape("".join(filter(str.isalpha, _EASTERN.sub("", self._unknown))))
        signs = re.escape(_pictures(self._unknown))
        name = rf"(?<!{WORD})(?=[^\W\d_a-zß-öø-ÿ]){WORD}*?[{letters}](?:{WORD}|[{letters}])*" if letters else ""
        sign = rf"[{signs}][{signs}\ufe0f\u200d]*" if signs else ""
        return re.compile("|".join(filter(None, (name, sign)))) if letters or signs else None

    @cached_property
    def spelt(self) -> tuple[Spelt, ...]:
        """The numbers in words outside of all that, where both languages are known well enough to ask for them."""
        found = exact(self.source, self.languages[0]) if self.languages[1] in LANGUAGES else ()
        taken = {place for one in self.items for place in range(one.start, one.end)} if found else set()
        return tuple(one for one in found if taken.isdisjoint(range(one.start, one.end)))

    @property
    def wordless(self) -> bool:
        """Whether nothing is left to translate beside what is kept; the word for a unit is."""
        units = (self.source[one.start : one.end] for one in self.items if one.kind == "number")
        return not any(letter.isalpha() for part in (*self.between(), *units) for letter in part)

    def between(self) -> list[str]:
        """The source before, between and behind what is kept: one more than there is of that."""
        edges = [0, *(edge for one in self.items for edge in (one.start, one.end)), len(self.source)]
        return [self.source[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]

    def as_it_is(self) -> str:
        """The source with the glossary's terms alone translated."""
        text = self.source
        for one in reversed(self.items):
            text = text[: one.start] + one.fill + text[one.end :] if one.kind == "term" else text
        return text

    def joined(self, parts: Sequence[str]) -> str:
        """What stands between, translated, with what is kept."""
        return "".join(part + one.fill for part, one in zip(parts, self.items, strict=False)) + parts[-1]

    def hidden(self, which: Sequence[Kept], marks: str) -> str:
        """The source with a placeholder for each of `which`, in order."""
        text = self.source
        for one, mark in sorted(zip(which, marks, strict=False), key=lambda pair: -pair[0].start):
            text = text[: one.start] + mark + text[one.end :]
        return text

    def filled(self, translation: str, which: Sequence[Kept], marks: str) -> str | None:
        """A translation with what its placeholders stand for; None where one is missing, or comes twice."""
        fills = {mark: one.fill for one, mark in zip(which, marks, strict=False)}
        written = Counter(_PRIVATE.findall(translation))
        if any(written[mark] != 1 for mark in fills):
            return None
        return "".join(fills.get(letter, letter) for letter in translation)

    @staticmethod
    def marked(one: Kept) -> bool:
        """Whether it could be taken for a placeholder, and so must be one where there are any."""
        return any(letter in PLACEHOLDERS for letter in one.fill)

    def faults(self, target: str) -> Faults:
        lost: list[Kept] = []
        apart = spans(target)
        have = Counter(target[start:end] for start, end in apart)
        inside = "\n".join(have.elements())
        terms = Counter(one.fill for one in self.items if one.kind == "term")
        wanted = Counter(one.fill for one in self.items if one.kind == "span")
        for fill, count in terms.items():
            pattern = re.compile(bordered(fill))
            places = [match.span() for match in pattern.finditer(target)]
            own = sum(len(pattern.findall(one)) * times for one, times in wanted.items())
            if len(places) < count + own:
                lost += [one for one in self.items if one.kind == "term" and one.fill == fill]
            apart += places
            wanted += Counter({fill[start:end]: count for start, end in spans(fill)})
        have = _cut_at_words(have, wanted)
        lost += [one for one in self.items if one.kind == "span" and have[one.fill] < wanted[one.fill]]
        invented = any(have[one] > wanted[one] for one in have) or self._new_signs(target, inside)
        others = [(one.start, one.end) for one in self.items if one.kind != "number"]
        own_numbers = _numbers(self.source, self.languages[0], others)
        found = _numbers(target, self.languages[1], apart)
        told = compare(
            own_numbers, found, (without(self.source, others, " "), without(target, apart, " ")), self.languages
        )
        missing = {number.start for number in told.lost}
        missing |= self._without_unit(target)
        lost += [
            one for one in self.items if one.kind == "number" and not missing.isdisjoint(range(one.start, one.end))
        ]
        return Faults(tuple(lost), invented or bool(own_numbers and told.invented))

    def _without_unit(self, target: str) -> set[int]:
        """Where numbers stand whose unit `target` does not name. An age may well be told without the word for years."""
        units = {one.unit for one in self.items if one.unit}
        told = units_of(target, self.languages[1]) if units else Counter[str]()
        missing = {unit for unit in units if not told[unit]}
        if "year" in missing and told.keys().isdisjoint(TIMES):
            missing.remove("year")
        return {one.start for one in self.items if one.unit in missing}

    def _new_signs(self, target: str, inside: str) -> bool:
        """Whether `target` has more of the signs that make up code and tags than the source, stretches aside."""
        own = "\n".join(one.fill for one in self.items if one.kind == "span")
        fills = "\n".join(one.fill for one in self.items if one.kind == "term")
        return any(
            target.count(sign) - inside.count(sign) > self.source.count(sign) - own.count(sign) + fills.count(sign)
            for sign in _SIGNS
        )

    def unsaid(self, target: str) -> bool:
        """Whether `target` says one of the numbers in words less often than the source, in words or in digits."""
        if not self.spelt:
            return False
        told = said(target, self.languages[1])
        for sign, text, language in ((1, target, self.languages[1]), (-1, self.source, self.languages[0])):
            for number in numbers(text, language, spans(text)):
                told.update({int(value): sign for value in number.values if value.isdecimal()})
        wanted = Counter(one.value for one in self.spelt)
        return any(told[value] < count for value, count in wanted.items())

    def respelt(self, language: str = "") -> str:
        """The source with its numbers in digits instead of words, or in the words of a `language`."""
        text = self.source
        for one in reversed(self.spelt):
            told = one.words(language) if language else one.digits(self.languages[0])
            text = text[: one.start] + told + text[one.end :]
        return text

    def plain(self, target: str) -> str:
        """`target` without the signs that make code or tags of words which are none in the source."""
        wanted = Counter(one.fill for one in self.items if one.kind == "span")
        for start, end in reversed(spans(target)):
            text = target[start:end]
            if wanted[text]:
                wanted[text] -= 1
            else:
                target = target[:start] + re.sub(f"[{_SIGNS}]", "", text) + target[end:]
        return target


def _numbers(text: str, language: str, apart: Sequence[Span]) -> list[Number]:
    """The numbers of `text`, those of money with what one letter makes of them, as in $20k."""
    found = numbers(text, language, apart)
    scales = {one.number: one.scale for one in measures(text, language)} if found else {}
    return [multiplied(one, scales.get((one.start, one.end), 0), language) for one in found]


def _pictures(signs: str) -> str:
    """Those that are pictures or signs of mathematics, and no marks, money or degrees."""
    return "".join(sign for sign in signs if unicodedata.category(sign) in _SIGN and sign != "°")


def _cut_at_words(have: Counter[str], wanted: Counter[str]) -> Counter[str]:
    """Stretches of a target without the words that follow them where none is written with spaces, as in `$PATH变量`."""
    cut: Counter[str] = Counter()
    for text, count in have.items():
        match = None if text in wanted else _WIDE.search(text)
        bare = text[: match.start()] if match else text
        cut[bare if bare in wanted else text] += count
    return cut
