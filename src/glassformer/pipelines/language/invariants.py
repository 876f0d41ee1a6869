"""What the translation of a sentence must keep, whether it does, and the sentence with that masked.

To keep are the stretches of `protect.spans`, to the letter; numbers, as the language writes them; a glossary's terms,
as it gives them; and in a text of another language, Chinese, Japanese and Korean characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal

from glassformer.common.arguments import checked
from glassformer.common.errors import DataError, InputError, did_you_mean, why
from glassformer.common.strings import HAN, KANA_HANGUL, UNSPACED, WIDE
from glassformer.data.protect import WORD, Span, spans
from glassformer.pipelines.language.measures import TIMES, Measure, find_measures, format_measure, mentioned_units
from glassformer.pipelines.language.numbers import (
    LANGUAGES,
    Number,
    NumberWord,
    blank_out,
    compare_numbers,
    find_number_words,
    find_numbers,
    format_scaled,
    localize,
    possible_number_words,
    swap_marks,
    values_of,
    with_scale,
)

_WORD_LETTER = rf"(?![{UNSPACED}])\w"  # a term ends at a word's border, but not in scripts without spaces
_JOINED = re.compile(_WORD_LETTER * 2)
_WIDE = re.compile(f"[{WIDE}]")
_EASTERN = re.compile(f"[{HAN}{KANA_HANGUL}]+")
_EASTERN_LANGUAGES = ("zh", "ja", "ko")
_CAPITALS = re.compile(rf"(?<!{WORD})(?:[^\W\d_a-zß-öø-ÿ][^\W\d_A-Z]+[\s-])*[^\W\d_a-zß-öø-ÿ][^\W\d_A-Z]+(?!{WORD})")
FEWEST_TITLED = 4  # words with a capital, and no others, before a sentence counts as a heading
PRIVATE = re.compile("[\ue000-\uf8ff]")
_JOINTS = ("/", ":", "-", ".", "–")  # between the numbers of a date, a time or a range, which go together
_SIGN = ("So", "Sm", "Sk", "No")  # kinds of characters
_SIGNS = "`<>{}"  # two of them make a stretch of code or a tag, maybe across sentences
PLURALS = {"en": "(?:e?s)?", "de": "(?:e[ns]?|n|s)?"}  # endings; other changes of a word are not looked for
# What takes the next argument: %s, ~a, {}; not {0}.
IN_TURN = re.compile(r"%(?!\d+[$:]|[(<])[^%]*[A-Za-z@]|~[^~/]*[A-Za-z]|\{(?:[:!][^{}]*)?\}")


@checked
@dataclass(frozen=True)
class Glossary:
    """Source terms and what each is in the target, to the letter.

        terms = gf.Glossary.load("terms.tsv")
        gf.TextTranslator(translator, glossary=terms).translate(["The kernel starts."])

    A term is found where it stands as a word of its own, in the plural too, the longest first; as it is written if it
    is there so, in other capitals else.
    """

    terms: Mapping[str, str]
    _folded: dict[str, str] = field(init=False, repr=False, compare=False)
    _patterns: dict[str, re.Pattern[str]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        folded: dict[str, str] = {}
        if not all(map(str.strip, self.terms)):
            raise InputError("a term of the glossary is empty; leave it out")
        for term, target in self.terms.items():
            folded.setdefault(term.casefold(), target)
        object.__setattr__(self, "_folded", folded)

    @classmethod
    def load(cls, path: str | Path) -> Glossary:
        """A file of lines `source TAB target`; empty lines and lines that begin with # are left out."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise DataError(f"the glossary {path} does not exist; is the path right?") from None
        except UnicodeDecodeError as error:
            raise DataError(f"the glossary {path} is not UTF-8 (byte {error.start + 1}); save it as UTF-8") from None
        except OSError as error:
            raise DataError(f"the glossary {path} cannot be read: {why(error)}") from None
        terms: dict[str, str] = {}
        lines: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            columns = [column.strip() for column in line.split("\t")]
            while len(columns) > 2 and not columns[-1]:
                columns.pop()
            if len(columns) != 2:
                what = "has no TAB" if len(columns) == 1 else f"has {len(columns)} columns"
                raise DataError(
                    f"{path}, line {number}: {line.strip()!r:.60} {what}; write source term, TAB, target term "
                    f"(a comment is a line that begins with #)"
                )
            term, target = columns
            if not term or not target:
                side = "source" if not term else "target"
                raise DataError(f"{path}, line {number}: the {side} term is empty; fill it in, or take the line out")
            if terms.setdefault(term, target) != target:
                raise DataError(
                    f"{path}, line {number}: {term!r:.60} is {target!r:.60} here and {terms[term]!r:.60} in line "
                    f"{lines[term]}; keep one of them"
                )
            lines.setdefault(term, number)
        return cls(terms)

    def find(self, text: str, language: str = "") -> list[tuple[int, int, str]]:
        """The start and end of each term in `text`, which is of this language, and what it is in the target."""
        if not self.terms:
            return []
        if language not in self._patterns:
            ranked = sorted(self.terms, key=lambda term: (-len(term), term))
            pattern = "|".join(word_pattern(term, PLURALS.get(language, "")) for term in ranked)
            self._patterns[language] = re.compile(pattern, re.IGNORECASE)
        return [(match.start(), match.end(), self[match[0]]) for match in self._patterns[language].finditer(text)]

    def __getitem__(self, term: str) -> str:
        """What a term is in the target, by one of its forms."""
        singulars = [term, *(term[:-cut] for cut in (1, 2)), re.sub("ies$", "y", term, flags=re.IGNORECASE)]
        known = [self.terms.get(one, self._folded.get(one.casefold())) for one in singulars]
        found = next((target for target in known if target is not None), None)
        if found is None:
            raise InputError(f"the glossary has no term {term!r:.60}{did_you_mean(term, self.terms)}")
        return found

    def unused(self, translations: Iterable[str], terms: Iterable[str] | None = None) -> list[str]:
        """Which of the terms, or of `terms`, no translation holds."""
        text = "\n".join(translations)
        patterns = {term: word_pattern(self[term]) for term in (self.terms if terms is None else terms)}
        return [term for term, pattern in patterns.items() if not re.search(pattern, text, re.IGNORECASE)]


def word_pattern(term: str, plural: str = "") -> str:
    """A pattern that finds `term` as a word of its own, or with the ending of a plural."""
    before = f"(?<!{_WORD_LETTER})" if re.match(_WORD_LETTER, term) else ""
    after = f"(?!{_WORD_LETTER})" if re.match(_WORD_LETTER, term[-1]) else ""
    stem = re.sub("(?<=[^aeiou])y$", "(?:y|ie)", re.escape(term)) if "e?s" in plural else re.escape(term)
    return before + stem + plural * bool(after) + after


def find_words(term: str, text: str) -> list[Span]:
    """Where `term` stands in `text` as a word of its own; what `word_pattern` finds, with nothing to compile."""
    found, start = [], text.find(term)
    while start >= 0:
        end = start + len(term)
        if not any(0 < edge < len(text) and _JOINED.match(text, edge - 1) for edge in (start, end)):
            found.append((start, end))
        start = text.find(term, end)
    return found


@dataclass(frozen=True)
class Invariant:
    """A stretch of a source, and what the translation holds in its place."""

    start: int
    end: int
    fill: str
    kind: Literal["span", "number", "term"]
    unit: str = ""  # of a number


@dataclass(frozen=True)
class Faults:
    """What a translation has lost, and whether it holds anything of these kinds that its source lacks."""

    lost: tuple[Invariant, ...] = ()
    invented: bool = False

    def __bool__(self) -> bool:
        return self.invented or bool(self.lost)


@dataclass(frozen=True)
class Invariants:
    """A sentence with what its translation must hold."""

    source: str
    languages: tuple[str, str]
    glossary: Glossary | None = None
    alphabet: frozenset[str] = frozenset()  # what the model knows; none where that is not known
    words: frozenset[str] = frozenset()  # that it has met in training, likewise

    @cached_property
    def items(self) -> tuple[Invariant, ...]:
        """All of it, in order; none overlaps another."""
        found = [Invariant(start, end, self.source[start:end], "span") for start, end in spans(self.source)]
        taken = {place for one in found for place in range(one.start, one.end)}
        terms = self.glossary.find(self.source, self.languages[0]) if self.glossary else []
        if self.languages[0] not in _EASTERN_LANGUAGES:
            terms += [(*match.span(), match[0]) for match in _EASTERN.finditer(self.source)]
        if self._strange:
            amounts = {place for one in self._measures.values() for place in range(one.start, one.end)}
            strange = [(*match.span(), match[0]) for match in self._strange.finditer(self.source)]
            terms += [one for one in strange if amounts.isdisjoint(range(*one[:2]))]
        terms += [(*name, self.source[slice(*name)]) for name in self._names]
        for start, end, target in terms:
            if taken.isdisjoint(range(start, end)):
                found.append(Invariant(start, end, target, "term"))
                taken |= set(range(start, end))
        groups: list[list[Number]] = []
        for number in _numbers(self.source, self.languages[0], [(one.start, one.end) for one in found]):
            if groups and self.source[groups[-1][-1].end : number.start] in _JOINTS:
                groups[-1].append(number)
            else:
                groups.append([number])
        found += [self._number(group, taken) for group in groups]
        return tuple(sorted(found, key=lambda one: one.start))

    def _number(self, group: list[Number], taken: set[int]) -> Invariant:
        """A number, or several that go together, with its unit and the word for its thousands or millions."""
        source, target = self.languages
        start, end, last = group[0].start, group[-1].end, group[-1]
        token = self.source[start:end]
        if source in LANGUAGES and target in LANGUAGES:
            measure = self._measures.get((start, end))
            if measure and (measure.plain or measure.scale) and taken.isdisjoint(range(measure.start, measure.end)):
                usual = bool(values_of(token, source))  # not so 9.95 in German, which stays as it is
                plain = swap_marks(token, source, target) if usual else token
                number = format_scaled(token, measure.scale, source, target) if measure.scale else plain
                text = format_measure(number, measure.unit, target)
                return Invariant(measure.start, measure.end, text, "number", measure.unit)
            if last.scale and len(group) == 1:
                return Invariant(start, last.reach, format_scaled(token, last.scale, source, target), "number")
        return Invariant(start, end, localize(token, *self.languages), "number")

    @cached_property
    def _measures(self) -> dict[Span, Measure]:
        """What has a unit, by the place of its number."""
        return {one.number: one for one in find_measures(self.source, self.languages[0])}

    @cached_property
    def _unknown(self) -> str:
        """The characters of the source that are not in the model's alphabet, if that is known."""
        strange = set() if self.source.isascii() or not self.alphabet else set(self.source) - self.alphabet
        return "".join(sign for sign in strange if not sign.isascii())

    @property
    def readable(self) -> str:
        """The source without unknown signs."""
        signs = [ord(sign) for sign in self._unknown if not sign.isalpha() and sign != "\ufffd"]
        return self.source.translate(dict.fromkeys(signs)) if signs else self.source

    @property
    def core(self) -> Span:
        """The place of the source without unknown pictures at its ends; of all of it where nothing would be left."""
        pictures = _pictures(self._unknown)
        edge = pictures and pictures + "\ufe0f\u200d \t"
        start, end = len(self.source) - len(self.source.lstrip(edge)), len(self.source.rstrip(edge))
        return (start, end) if start < end else (0, len(self.source))

    @cached_property
    def _strange(self) -> re.Pattern[str] | None:
        """A pattern of unknown pictures, and of names with unknown letters, which the model would spell as it likes."""
        letters = re.escape("".join(filter(str.isalpha, _EASTERN.sub("", self._unknown))))
        signs = re.escape(_pictures(self._unknown))
        name = rf"(?<!{WORD})(?=[^\W\d_a-zß-öø-ÿ]){WORD}*?[{letters}](?:{WORD}|[{letters}])*" if letters else ""
        sign = rf"[{signs}][{signs}\ufe0f\u200d]*" if signs else ""
        return re.compile("|".join(filter(None, (name, sign)))) if letters or signs else None

    @cached_property
    def _names(self) -> list[Span]:
        """Names of people and places that the model has not met: capitals within the sentence; at its start and in
        German of more than one word."""
        found = []
        for run in _CAPITALS.finditer(self.source) if self.words else ():
            least = 2 if self.languages[0] == "de" or not any(map(str.isalnum, self.source[: run.start()])) else 1
            names = re.finditer(rf"(?:{WORD}|-)+", run[0])
            unmet = [match for match in names if not self.words.issuperset(match[0].casefold().split("-"))]
            found += [(run.start() + one.start(), run.start() + one.end()) for one in unmet if len(unmet) >= least]
        titled = [word[0].isupper() for word in re.findall(r"[^\W\d_]{3,}", self.source)]
        return found if not all(titled) or len(titled) < FEWEST_TITLED else []

    @cached_property
    def number_words(self) -> tuple[NumberWord, ...]:
        """The numbers in words outside of all that, if both languages are known."""
        found = find_number_words(self.source, self.languages[0]) if self.languages[1] in LANGUAGES else ()
        taken = {place for one in self.items for place in range(one.start, one.end)} if found else set()
        return tuple(one for one in found if taken.isdisjoint(range(one.start, one.end)))

    @property
    def is_wordless(self) -> bool:
        """Whether nothing is left to translate; the word for a unit would be."""
        units = (self.source[one.start : one.end] for one in self.items if one.kind == "number")
        return not any(letter.isalpha() for part in (*self.gaps(), *units) for letter in part)

    def gaps(self) -> list[str]:
        """The source before, between and behind the items: one more than there are items."""
        edges = [0, *(edge for one in self.items for edge in (one.start, one.end)), len(self.source)]
        return [self.source[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]

    def fill_gaps(self, gaps: Sequence[str]) -> str:
        """Translations of the gaps, with the items between them."""
        return "".join(gap + one.fill for gap, one in zip(gaps, self.items, strict=False)) + gaps[-1]

    def with_terms(self) -> str:
        """The source with the glossary's terms alone translated."""
        return self._replaced([(one.start, one.end, one.fill) for one in self.items if one.kind == "term"])

    def mask(self, items: Sequence[Invariant], marks: str) -> str:
        """The source with a placeholder for each of some items, in order."""
        return self._replaced([(one.start, one.end, mark) for one, mark in zip(items, marks, strict=False)])

    def respell(self, language: str = "") -> str:
        """The source with its number words in digits, or in the words of a `language`."""
        return self._replaced(
            [
                (one.start, one.end, one.words(language) if language else one.digits(self.languages[0]))
                for one in self.number_words
            ]
        )

    def _replaced(self, stretches: Sequence[tuple[int, int, str]]) -> str:
        text = self.source
        for start, end, new in reversed(stretches):
            text = text[:start] + new + text[end:]
        return text

    def unmask(self, translation: str, items: Sequence[Invariant], marks: str) -> str | None:
        """A translation with the items for their placeholders; None where one is missing, twice or out of turn."""
        fills = {mark: one.fill for one, mark in zip(items, marks, strict=False)}
        found = Counter(PRIVATE.findall(translation))
        in_turn = [mark for one, mark in zip(items, marks, strict=False) if one in self.in_turn]
        if any(found[mark] != 1 for mark in fills) or in_turn != [mark for mark in translation if mark in in_turn]:
            return None
        translation = re.sub(" {2,}", " ", translation)
        for (one, mark), (after, following) in pairwise(zip(items, marks, strict=False)):
            if one.end == after.start:
                translation = translation.replace(f"{mark} {following}", mark + following)
        return "".join(fills.get(letter, letter) for letter in translation)

    @property
    def in_turn(self) -> tuple[Invariant, ...]:
        """Two or more placeholders that take their arguments in turn, so that their order must stay."""
        found = tuple(one for one in self.items if one.kind == "span" and IN_TURN.fullmatch(one.fill))
        return found if len(found) > 1 else ()

    def copies(self, target: str) -> bool:
        """Whether `target` has the very words of the source between code and placeholders."""
        kept = [(one.start, one.end) for one in self.items if one.kind == "span"]
        texts = (blank_out(self.source, kept, " "), blank_out(target, spans(target), " "))
        own, other = (re.findall(r"\w+", text) for text in texts)
        return bool(kept) and own == other and any(map(str.isalpha, "".join(own)))

    def faults(self, target: str) -> Faults:
        apart = spans(target)
        order = [target[start:end] for start, end in apart if IN_TURN.fullmatch(target, start, end)]
        lost = [*self.in_turn] if [one.fill for one in self.in_turn] != order[: len(self.in_turn)] else []
        have = Counter(target[start:end] for start, end in apart)
        inside = "\n".join(have.elements())
        terms = Counter(one.fill for one in self.items if one.kind == "term")
        wanted = Counter(one.fill for one in self.items if one.kind == "span")
        for fill, count in terms.items():
            places = find_words(fill, target)
            own = sum(len(find_words(fill, one)) * times for one, times in wanted.items())
            if len(places) < count + own:
                lost += [one for one in self.items if one.kind == "term" and one.fill == fill]
            apart += places
            wanted += Counter({fill[start:end]: count for start, end in spans(fill)})
        have = _cut_at_words(have, wanted)
        lost += [one for one in self.items if one.kind == "span" and have[one.fill] < wanted[one.fill]]
        invented = any(have[one] > wanted[one] for one in have) or self._new_signs(target, inside)
        others = [(one.start, one.end) for one in self.items if one.kind != "number"]
        own_numbers = _numbers(self.source, self.languages[0], others)
        lost_numbers, new_numbers = compare_numbers(
            own_numbers,
            _numbers(target, self.languages[1], apart),
            (blank_out(self.source, others, " "), blank_out(target, apart, " ")),
            self.languages,
        )
        missing = {number.start for number in lost_numbers} | self._without_unit(target)
        lost += [
            one for one in self.items if one.kind == "number" and not missing.isdisjoint(range(one.start, one.end))
        ]
        return Faults(tuple(lost), invented or bool(own_numbers and new_numbers))

    def _without_unit(self, target: str) -> set[int]:
        """The starts of numbers whose unit `target` does not name. An age needs no word for years."""
        units = {one.unit for one in self.items if one.unit}
        named = mentioned_units(target, self.languages[1]) if units else Counter[str]()
        missing = {unit for unit in units if not named[unit]}
        if "year" in missing and named.keys().isdisjoint(TIMES):
            missing.remove("year")
        return {one.start for one in self.items if one.unit in missing}

    def _new_signs(self, target: str, inside: str) -> bool:
        """Whether `target` has more of the signs that make up code and tags than the source, stretches aside."""
        own = "\n".join(one.fill for one in self.items if one.kind == "span")
        fills = "\n".join(one.fill for one in self.items if one.kind == "term")
        return any(
            target.count(sign) - inside.count(sign) > self.source.count(sign) - own.count(sign) + fills.count(sign)
            for sign in (_SIGNS + "%" if "%" in own else _SIGNS)  # in a format string, %% alone is a percent sign
        )

    def misses_number_word(self, target: str) -> bool:
        """Whether `target` says one of the numbers in words less often than the source, in words or in digits."""
        if not self.number_words:
            return False
        counts = possible_number_words(target, self.languages[1])
        for sign, text, language in ((1, target, self.languages[1]), (-1, self.source, self.languages[0])):
            for number in find_numbers(text, language, spans(text)):
                values = (one for one in number.values if one.isdecimal() and len(one) < 20)  # as long as any in words
                counts.update(dict.fromkeys(map(int, values), sign))
        wanted = Counter(one.value for one in self.number_words)
        return any(counts[value] < count for value, count in wanted.items())

    def without_new_markup(self, target: str) -> str:
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
    found = find_numbers(text, language, apart)
    scales = {one.number: one.scale for one in find_measures(text, language)} if found else {}
    return [with_scale(one, scales.get((one.start, one.end), 0), language) for one in found]


def _pictures(signs: str) -> str:
    """Those of `signs` that are pictures or mathematics, and no punctuation, money or degrees."""
    return "".join(sign for sign in signs if unicodedata.category(sign) in _SIGN and sign != "°")


def _cut_at_words(have: Counter[str], wanted: Counter[str]) -> Counter[str]:
    """Stretches of a target without the words that follow them where none is written with spaces, as in `$PATH变量`."""
    cut: Counter[str] = Counter()
    for text, count in have.items():
        match = None if text in wanted else _WIDE.search(text)
        bare = text[: match.start()] if match else text
        cut[bare if bare in wanted else text] += count
    return cut
