"""Sentences through one translator, with all that must not change.

Each sentence climbs down a ladder until its translation has kept everything: as the model writes it; with digits for
numbers in words that it got wrong; with placeholders for what it lost; with placeholders for all of it; piece by piece,
between what is kept; and else it stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from glassformer.data import Tokenizer
from glassformer.decode import Search
from glassformer.pipelines.language.glossary import Glossary
from glassformer.pipelines.language.invariants import Keeping, Kept
from glassformer.pipelines.language.normalize import clear, loud, quiet, shouted
from glassformer.pipelines.language.number_words import SMALL
from glassformer.pipelines.text.clauses import clauses, doubted, likelier, sentence
from glassformer.pipelines.text.guards import loops, most_tokens, unreadable
from glassformer.pipelines.text.request import Ask, Asking
from glassformer.pipelines.text.translated import TranslatedSentence, Way
from glassformer.pipelines.translation import Translation
from glassformer.pipelines.translator import Translator

NGRAM = 3  # tokens in a row that come once only, where a translation went round in circles
BREAK = re.compile(r"(?<!\s)\s*[\n\r\u2028\u2029]\s*")
ENDS = ".。"
BROKEN = "\ufffd"


class Written(NamedTuple):
    text: str
    finished: bool
    whole: bool = True  # and not by its clauses


@dataclass
class Climb:
    """A sentence on its way down: as it is given, and as the model is to read it."""

    given: Keeping
    keeping: Keeping
    loud: bool = False  # all in capitals
    edges: tuple[str, str] = ("", "")  # pictures before and behind, which need no translation
    lost: tuple[Kept, ...] = ()
    hidden: tuple[Kept, ...] = ()
    done: TranslatedSentence | None = None
    misspoken: bool = False  # says another number in words, it seems
    small: bool = False  # it was none but small numbers
    doubtful: TranslatedSentence | None = None  # kept everything, but seems to say another number in words

    def offer(self, written: Written, way: Way) -> None:
        """Take a translation if it says anything, and nothing is wrong with it."""
        text = written.text.strip()
        faults = self.keeping.faults(text)
        if faults and not self.keeping.items:  # nothing that a placeholder could stand for
            text = self.keeping.plain(text)
            faults = self.keeping.faults(text)
        if text and not faults:
            made = self.made(text, written.finished, way if written.whole or way != "plain" else "clauses")
            self.done, self.doubtful = (None, made) if self.keeping.unsaid(text) else (made, None)
        lost = {*faults.lost, *self.lost}
        self.lost = tuple(one for one in self.keeping.items if one in lost)

    def made(self, text: str, finished: bool, way: Way) -> TranslatedSentence:
        """`text` as the translation of what was given."""
        text = (loud(text) if self.loud else text).join(self.edges)
        return TranslatedSentence(self.given.source, text, finished, way)


class Hop:
    """A translator of one direction."""

    def __init__(self, translator: Translator, source: str, target: str) -> None:
        self.translator, self.source, self.target = translator, source, target
        tokenizer = translator.tokenizer
        self.marks, self.alphabet = "", frozenset[str]()
        if isinstance(tokenizer, Tokenizer):
            self.marks, self.alphabet = tokenizer.placeholders, tokenizer.alphabet

    def translate(
        self,
        sentences: Sequence[str],
        search: Search,
        glossary: Glossary | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Asking[list[TranslatedSentence]]:
        """The translation of each sentence; `progress` is told how many have been written for the first time."""
        climbs = [self._climb(sentence, glossary) for sentence in sentences]
        for climb in climbs:
            if unreadable(self.translator.tokenizer, climb.keeping.letters):
                climb.done = self._as_it_is(climb, "unread")
            elif climb.given.wordless:
                climb.done = self._as_it_is(climb, "same")
            elif self.marks:  # no model could copy a private-use character that it has never met
                climb.lost = tuple(
                    one for one in climb.keeping.items if is_private(one.fill) and one.fill not in self.marks
                )
        left = [climb for climb in climbs if climb.done is None and not climb.lost]
        told = yield from self.write([one.keeping.source for one in left], search, progress)
        for climb, written in zip(left, told, strict=True):
            climb.offer(written, "plain")
            climb.misspoken = climb.keeping.unsaid(written.text)
        yield from self._in_digits([climb for climb in climbs if climb.misspoken], search)
        for everything in (False, True):
            yield from self._with_placeholders([climb for climb in climbs if climb.done is None], search, everything)
        yield from self._in_pieces([climb for climb in climbs if not (climb.done or climb.doubtful)], search)
        return [climb.done or climb.doubtful or self._as_it_is(climb, "source") for climb in climbs]

    def others(self, told: Sequence[TranslatedSentence], count: int, search: Search) -> list[list[str]]:
        """Up to `count` other translations of sentences that have been translated, best first; each keeps all that must
        not change."""
        wider = replace(search, beam=max(search.beam, count + 1), nbest=count + 1)
        rows = [i for i, one in enumerate(told) if one.way == "plain"]
        climbs = [self._climb(told[i].source, None) for i in rows]
        ranked = self.translator.translate([one.keeping.source for one in climbs], search=wider) if rows else []
        found = [list[str]() for _ in told]
        for i, climb, candidates in zip(rows, climbs, ranked, strict=True):
            for text in dict.fromkeys(legible(one.text, climb.keeping.source) for one in candidates if one.finished):
                made = climb.made(text, True, "plain").text
                if text and made != told[i].text and not climb.keeping.faults(text) and not climb.keeping.unsaid(text):
                    found[i].append(made)
        return [texts[:count] for texts in found]

    def _as_it_is(self, climb: Climb, way: Way) -> TranslatedSentence:
        return TranslatedSentence(climb.given.source, climb.given.as_it_is(), True, way)

    def _climb(self, sentence: str, glossary: Glossary | None) -> Climb:
        given = Keeping(sentence, (self.source, self.target), glossary, self.alphabet)
        text = clear(sentence, self.source, self.target)
        start, end = (given if text == sentence else replace(given, source=text)).core
        edges, text = (text[:start], text[end:]), text[start:end]
        capitals = shouted(text, self.source)
        text = quiet(text) if capitals else text
        return Climb(given, given if text == sentence else replace(given, source=text), capitals, edges)

    def _in_digits(self, climbs: list[Climb], search: Search) -> Asking[None]:
        """Digits for the numbers in words, and from here on nothing else; the words where there is nothing else."""
        for climb in climbs:
            words, climb.lost = climb.keeping, ()
            climb.small = all(one.value <= SMALL for one in words.spelt)
            climb.keeping = replace(words, source=words.respelt())
            if climb.keeping.wordless:
                text = words.respelt(self.target)
                text = text[:1].upper() + text[1:] if words.source[:1].isupper() else text
                climb.done = climb.made(text, True, "digits")
        left = [climb for climb in climbs if not climb.keeping.wordless]
        told = yield from self.write([one.keeping.source for one in left], search)
        for climb, written in zip(left, told, strict=True):
            climb.offer(written, "digits")
            if climb.small:  # and may have been said in some other way
                climb.done = climb.done or climb.doubtful

    def _with_placeholders(self, climbs: list[Climb], search: Search, everything: bool) -> Asking[None]:
        """Placeholders for what was lost, or, with as many as there are, for everything."""
        room, tried = len(self.marks), []
        for climb in climbs:
            items, lost = climb.keeping.items, set(climb.lost)
            others = [one for one in items if one not in lost] if everything else []
            which = lost.union(others[: max(0, room - len(lost))])
            hidden = tuple(one for one in items if one in which or climb.keeping.marked(one))
            if hidden and len(hidden) <= room and hidden != climb.hidden:
                climb.hidden = hidden
                tried.append(climb)
        texts = [climb.keeping.hidden(climb.hidden, self.marks) for climb in tried]
        told = yield from self.write(texts, search, placeholders=True)
        for climb, written in zip(tried, told, strict=True):
            text = climb.keeping.filled(written.text, climb.hidden, self.marks)
            if text is not None:
                climb.offer(Written(text, written.finished), "placeholders")

    def _in_pieces(self, climbs: list[Climb], search: Search) -> Asking[None]:
        wanted: dict[str, None] = {}
        for climb in climbs:
            if climb.keeping.items:
                wanted |= dict.fromkeys(part.strip() for part in climb.keeping.between() if has_letters(part))
        told = dict(zip(wanted, (yield from self.write(list(wanted), search)), strict=True))
        for part, written in told.items():
            text = written.text.rstrip(ENDS).rstrip() if part[-1] not in ENDS else written.text
            clean = not Keeping(part, (self.source, self.target)).faults(text)
            told[part] = Written(text, written.finished) if clean and text else Written(part, True)
        for climb in climbs:
            parts, finished = [], True
            for part in climb.keeping.between():
                bare = part.strip()
                if bare in told:
                    finished = finished and told[bare].finished
                    part = part.replace(bare, told[bare].text)
                parts.append(part)
            climb.offer(Written(climb.keeping.joined(parts), finished), "pieces")

    def write(
        self,
        texts: Sequence[str],
        search: Search,
        progress: Callable[[int], None] | None = None,
        placeholders: bool = False,
    ) -> Asking[list[Written]]:
        """What the model makes of `texts`; where it goes round in circles or too far, what it makes of a second try.

        Where that finds no end either, the text was none that it can translate, and stays as it is.
        """
        if not texts:
            return []
        translator = self.translator
        best = [ranked[0] for ranked in (yield Ask(translator, texts, search, placeholders, progress))]
        sources = translator.tokenizer.encode_source(texts)
        lengths = [len(ids) - (translator.to is not None) for ids in sources]
        again: dict[int, list[int]] = {}  # by the length allowed
        for i, (one, ids) in enumerate(zip(best, sources, strict=True)):
            if self._runs_on(one, ids, lengths[i]):
                again.setdefault(most_tokens(lengths[i]), []).append(i)
        for limit, rows in again.items():
            longest = translator.max_target_length(translator.max_source_length())
            careful = replace(search, no_repeat_ngram=NGRAM, max_new_tokens=min(limit, longest))
            second = yield Ask(translator, [texts[i] for i in rows], careful, placeholders)
            for i, ranked in zip(rows, second, strict=True):
                endless = not ranked[0].finished and limit < longest
                best[i] = replace(ranked[0], text=texts[i]) if endless else ranked[0]
        made = [Written(legible(one.text, text), one.finished) for one, text in zip(best, texts, strict=True)]
        parts = {
            i: cut
            for i, one in enumerate(best)
            if doubted(one, lengths[i], search)
            and len(cut := clauses(texts[i], translator.tokenizer.encode_source)) > 1
        }
        if parts:
            asked = Ask(translator, [part.text for cut in parts.values() for part in cut], search, placeholders)
            told = iter([ranked[0] for ranked in (yield asked)])
            for i, cut in parts.items():
                some = [next(told) for _ in cut]
                astray = any(self._runs_on(one, part.ids, len(part.ids)) for one, part in zip(some, cut, strict=True))
                if not astray and likelier(some, best[i]):
                    clean = [legible(one.text, texts[i]) for one in some]
                    made[i] = Written(sentence(cut, clean, self.target), True, False)
        return made

    def _runs_on(self, one: Translation, source: list[int], length: int) -> bool:
        if not one.finished or len(one.tokens) > most_tokens(length):
            return True
        return loops(self.translator.tokenizer, source, one.tokens)


def legible(text: str, source: str) -> str:
    """In one line, and without the sign that stands for bytes of no character, unless the source has it."""
    return one_line(text if BROKEN in source else text.replace(BROKEN, ""))


def one_line(text: str) -> str:
    return BREAK.sub(" ", text.strip())


def is_private(text: str) -> bool:
    return len(text) == 1 and "\ue000" <= text <= "\uf8ff"


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))
