"""Texts of any length, as people write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal, Unpack

from glassformer.common.arguments import check_texts, checked
from glassformer.common.errors import ConfigError, check_whole
from glassformer.common.strings import HAN
from glassformer.data import Tokenizer
from glassformer.data.protect import spans
from glassformer.data.tokenizer import split_words
from glassformer.decode import Search
from glassformer.decode.search import SearchOptions, search_of
from glassformer.pipelines.language.invariants import Glossary, Invariants
from glassformer.pipelines.language.language import NAMES, detect_language, language_name
from glassformer.pipelines.language.sentences import Piece, separator, split_sentences
from glassformer.pipelines.text.sentence_translator import (
    LEFT,
    Answer,
    SentenceTranslator,
    Steps,
    TranslateRequest,
    run,
    translate_now,
)
from glassformer.pipelines.translator import Translation, Translator, Way

BEAM = 4
FEWEST_UNKNOWN = 3  # words that training never saw before a text counts as foreign
CHINESE = re.compile(f"[{HAN}]")
Detect = Callable[[str], str | None]
Progress = Callable[[int], None]
NoteKind = Literal["pivot", "language", "unfamiliar", "characters", "cut", "kept"]


@dataclass(frozen=True)
class Note:
    """What a reader should know of a translation: `kind` for programs, `text` for people."""

    kind: NoteKind
    text: str


@dataclass(frozen=True)
class TranslatedText:
    """The translation of a text: `finished` if every sentence is, `via` the text in between where there was one."""

    text: str
    sentences: tuple[Translation, ...] = ()
    notes: tuple[Note, ...] = ()
    via: str | None = None

    @property
    def finished(self) -> bool:
        return all(sentence.finished for sentence in self.sentences)


@checked
class TextTranslator:
    """A translator of whole texts: `translate` gives their translations, `details` what is known of them too.

        de = gf.TextTranslator(gf.Translator.load("en-de", to="de"))
        de.translate(["Run `make` twice. It takes 3.5 minutes."])

    Paragraphs are cut into sentences; white space and line breaks between them stay. Code, addresses, placeholders such
    as `{name}` and numbers come out unchanged, numbers as the language writes them, and the terms of a `glossary` as it
    gives them. With a second translator, `then`, a text goes through both: `pivot` is the language between.

    `detect` names the language of a text or a sentence, or gives None where it is not sure. A sentence of the target's
    language then stays as it is, and one of a third goes to the translator that `other` gives for that, if it does; the
    rest is of the text's `main` language, which is the `source` by default. Notes tell what is not of that.
    A model with a card or tags knows its languages; for others, name them. `answer` runs the requests to the models.
    """

    def __init__(
        self,
        translator: Translator,
        then: Translator | None = None,
        *,
        source: str = "",
        target: str = "",
        glossary: Glossary | None = None,
        detect: Detect | None = None,
        main: str = "",
        other: Callable[[str], TextTranslator | None] | None = None,
        answer: Callable[[TranslateRequest], Answer] = translate_now,
    ) -> None:
        first = languages(translator)
        last = first if then is None else languages(then)
        self.source, self.target = source or first[0], target or last[1]
        self.glossary, self.detect, self.answer = glossary, detect, answer
        self.main, self.other, self._others = main or self.source, other, dict[str, TextTranslator | None]()
        self.pivot = None if then is None else first[1]
        if first[1] != last[0] and then is not None:
            raise ConfigError(
                f"one translator writes `{first[1]}` and the next reads `{last[0]}`; give two with a language between"
            )
        self.translators = [SentenceTranslator(translator, self.source, self.target if then is None else first[1])]
        if then is not None:
            self.translators.append(SentenceTranslator(then, last[0], self.target))

    def __call__(self, text: str) -> str:
        return self.translate([text])[0]

    def translate(
        self,
        texts: Iterable[str],
        *,
        search: Search | None = None,
        progress: Progress | None = None,
        **options: Unpack[SearchOptions],
    ) -> list[str]:
        """The translation of each text. The search is given as to `Translator.translate`; without one, it is a beam of
        4. `progress` is called with about how many texts are done."""
        steps = self.steps(check_texts(texts, "texts"), search, progress, **options)
        return [one.text for one in run(steps, self.answer)]

    def details(
        self,
        texts: Iterable[str],
        *,
        search: Search | None = None,
        progress: Progress | None = None,
        **options: Unpack[SearchOptions],
    ) -> list[TranslatedText]:
        """The translation of each text with its sentences and notes."""
        return run(self.steps(check_texts(texts, "texts"), search, progress, **options), self.answer)

    def steps(
        self,
        texts: list[str],
        search: Search | None = None,
        progress: Progress | None = None,
        **options: Unpack[SearchOptions],
    ) -> Steps[list[TranslatedText]]:
        """The translations, for whoever answers the requests."""
        if search is None:
            search = Search(beam=1 if options.get("sampling") is not None else BEAM)
        search = search_of(search, **options)
        if search.nbest > 1:
            raise ConfigError(f"nbest={search.nbest}: a text has one translation; ask `Translator.translate` for more")
        cut = [self._by_language(text) for text in texts]
        found: dict[tuple[str, str], TranslatedText] = {}
        for language in dict.fromkeys(one for parts in cut for _, one in parts if one is not None):
            group = list(dict.fromkeys(piece.text for parts in cut for piece, one in parts if one == language))
            made = yield from self._from_language(language, group, search, progress)
            found |= {(language, text): one for text, one in zip(group, made, strict=True)}
        if progress is not None:
            progress(len(texts))
        return [join_parts(parts, found) for parts in cut]

    def _by_language(self, text: str) -> list[tuple[Piece, str | None]]:
        """A text with its language; one of several in pieces, and the language of each sentence."""
        pieces = split_sentences(text, self.main, spans(text)) if self.detect is not None and self.main else []
        languages = [] if self.detect is None else sentence_languages(pieces, self.main, self._reads, self.detect)
        if len(known := {*languages} - {None}) < 2:
            return [(Piece(text, False), next(iter(known), self.main))]
        return list(zip(pieces, languages, strict=True))

    def _reads(self, language: str) -> bool:
        if language in (self.main, self.source, self.target):
            return True
        if language not in self._others:
            self._others[language] = None if self.other is None else self.other(language)
        return self._others[language] is not None

    def _from_language(
        self, language: str, texts: list[str], search: Search, progress: Progress | None
    ) -> Steps[list[TranslatedText]]:
        """Texts of one language, with notes."""
        if language == self.target != self.source:
            same = [(Translation(text, source=text, way="same"),) for text in texts]
            notes = [already_in(language, text) for text in texts]
            return list(map(TranslatedText, texts, same, notes))
        if (by := self._others.get(language)) is not None:
            made = yield from by._from_language(language, texts, search, None)
            read = f"translated from {language_name(language)}, not from {language_name(self.main)}"
            return [
                TranslatedText(one.text, (as_sentence(text, one),), (*quote(read, text), *one.notes))
                for text, one in zip(texts, made, strict=True)
            ]
        if self.pivot is None:
            made = yield from self._through(self.translators[0], texts, search, self.glossary, progress, 0, len(texts))
        else:
            made = yield from self._by_pivot(texts, search, progress)
        return [self._with_notes(text, one) for text, one in zip(texts, made, strict=True)]

    def alternatives(self, texts: Iterable[str], count: int) -> list[list[str]]:
        """Up to `count` other translations of each text: the second-best of every sentence, the third-best, and so on;
        a sentence that has no more stays at its best."""
        check_whole("count", count, 1, "1 gives the second-best alone")
        texts = check_texts(texts, "texts")
        made, last = self.details(texts), self.translators[-1]
        own = [[language for _, language in self._by_language(text)] == [self.source] for text in texts]
        made = [
            one if is_own else TranslatedText("") for one, is_own in zip(made, own, strict=True)
        ]  # others have none
        best = {one.source: one for text in made for one in text.sentences}
        ranked = run(last.alternatives(list(best.values()), count, Search(beam=BEAM)), self.answer)
        others = dict(zip(best, ranked, strict=True))
        found: list[list[str]] = []
        for source, text in zip(texts, made, strict=True):
            read = source if text.via is None else text.via
            pieces = split_sentences(read, last.source, spans(read))
            most = max((len(others[one.source]) for one in text.sentences), default=0)
            found.append([])
            for rank in range(most):
                chosen = {
                    one.source: replace(one, text=(others[one.source][rank : rank + 1] or [one.text])[0])
                    for one in text.sentences
                }
                found[-1].append(join_sentences(pieces, chosen).text)
        return found

    def _by_pivot(self, texts: list[str], search: Search, progress: Progress | None) -> Steps[list[TranslatedText]]:
        """Through both translators; a glossary's term, which neither knows, goes as a character that both keep."""
        first, second = self.translators
        masks = [GlossaryMask(text, self.source, self.glossary) for text in texts]
        work = 2 * len(texts)
        between = yield from self._through(first, [mask.text for mask in masks], search, None, progress, 0, work)
        pivots = [one.text for one in between]
        last = yield from self._through(second, pivots, search, None, progress, len(texts), work)
        made = []
        for mask, one, other in zip(masks, between, last, strict=True):
            sentences = tuple(
                replace(s, source=mask.fill(s.source), text=mask.fill(s.text), finished=s.finished and one.finished)
                for s in other.sentences
            )
            made.append(TranslatedText(mask.fill(other.text), sentences, other.notes, mask.fill(one.text)))
        return made

    def _through(
        self,
        translator: SentenceTranslator,
        texts: list[str],
        search: Search,
        glossary: Glossary | None,
        progress: Progress | None,
        before: int,
        work: int,
    ) -> Steps[list[TranslatedText]]:
        """`texts` by one translator; of all the `work`, counted in texts, so much has been done `before`."""
        cut = [split_sentences(text, translator.source, spans(text)) for text in texts]
        unique = list(dict.fromkeys(piece.text for pieces in cut for piece in pieces if not piece.gap))

        def count_texts(done: int) -> None:
            if progress is not None:
                share = (before + len(texts) * done / len(unique)) / work
                progress(min(len(texts) - 1, int(share * len(texts))))

        translations = yield from translator.translate(unique, search, glossary, count_texts)
        by_source = dict(zip(unique, translations, strict=True))
        return [join_sentences(pieces, by_source) for pieces in cut]

    def _with_notes(self, text: str, made: TranslatedText) -> TranslatedText:
        if not made.sentences or all(one.way == "same" for one in made.sentences):
            return made
        pivot = Note("pivot", f"`{self.source}` to `{self.target}` goes by `{self.pivot}`")
        notes = [*([] if self.pivot is None else [pivot]), *self._notes_on_source(text)]
        if not made.finished:
            same = [one for one in made.sentences if not one.finished and one.text == one.source]
            left = "left as it is, since its translation found no end"
            stopped = "the translation was stopped by the limit of length before its end"
            notes.append(Note("cut", f"{left}: {same[0].source:.60}" if same else stopped))
        reasons: dict[Way, Note] = {
            "source": Note("kept", "no translation kept what must not change"),
            "copied": Note("kept", "the model gave its words back as they are"),
            "unread": Note("characters", "most of its characters are none that the model has learnt"),
        }
        for way, why in reasons.items():
            if found := [one for one in made.sentences if one.way == way]:
                notes.append(Note(why.kind, f"left as it is, since {why.text}: {found[0].source:.60}"))
        return replace(made, notes=tuple(notes))

    def _notes_on_source(self, text: str) -> list[Note]:
        notes, translator = [], self.translators[0].translator
        language = self.detect(text) if self.detect is not None and self.source else None
        if language is not None and language != self.source:
            looks = f"this looks like `{language}`, but is translated as if it were `{self.source}`"
            notes.append(Note("language", looks))
        unknown = translator.unfamiliar([text])
        if len(unknown) >= FEWEST_UNKNOWN and 2 * len(unknown) > len({word.casefold() for word in split_words(text)}):
            notes.append(Note("unfamiliar", translator.about.warning(unknown)))
        return notes


def join_sentences(pieces: Sequence[Piece], translations: Mapping[str, Translation]) -> TranslatedText:
    """A text of the translations of its sentences, by their sources."""
    whole, last, space = "", "", ""
    for piece in pieces:
        if piece.gap:
            space = piece.text
            continue
        translation = translations[piece.text].text
        whole += (separator(space, last, whole, translation) if last else space) + translation
        last, space = piece.text, ""
    return TranslatedText(whole + space, tuple(translations[piece.text] for piece in pieces if not piece.gap))


def sentence_languages(
    pieces: Sequence[Piece], main: str, reads: Callable[[str], bool], detect: Detect
) -> list[str | None]:
    """The language of each piece of a text, none for gaps: of those that can be read the one that it shows, else the
    `main` one; where its line has several, or the script is another, the likeliest."""
    shown = [code if not piece.gap and (code := detect(piece.text)) and reads(code) else None for piece in pieces]
    lines = list(accumulate(piece.gap and "\n" in piece.text for piece in pieces))
    seen: dict[int, set[str | None]] = {}
    for line, language in zip(lines, shown, strict=True):
        seen.setdefault(line, {main, None}).add(language)
    for i, piece in enumerate(pieces):
        if shown[i] is None and not piece.gap:
            latin, known = main == "zh" and not CHINESE.search(piece.text), seen[lines[i]]
            several = len(known) > 2
            among = [one for one in NAMES if (one in known if several else reads(one)) and not (latin and one == "zh")]
            doubt = latin or (several and " " in piece.text)
            shown[i] = (detect_language(piece.text, among).code if doubt and among else None) or main
    return shown


def join_parts(
    parts: Sequence[tuple[Piece, str | None]], found: Mapping[tuple[str, str], TranslatedText]
) -> TranslatedText:
    """A text in one language, or of the translations of its sentences."""
    made = {piece.text: found[language, piece.text] for piece, language in parts if language is not None}
    if len(parts) == 1:
        return next(iter(made.values()))
    sentences = {text: as_sentence(text, one) for text, one in made.items()}
    notes = dict.fromkeys(note for one in made.values() for note in one.notes)
    return replace(join_sentences([piece for piece, _ in parts], sentences), notes=tuple(notes))


def as_sentence(source: str, made: TranslatedText) -> Translation:
    """A text's translation as that of one sentence."""
    way: Way = next((one.way for one in made.sentences if one.way in LEFT), "plain")
    return Translation(made.text, source=source, way=way, finished=made.finished)


def quote(what: str, text: str) -> tuple[Note, ...]:
    return (Note("language", f"{what}: {' '.join(text.split()):.60}"),)


def already_in(language: str, text: str) -> tuple[Note, ...]:
    left = f"left as it is, for it is {language_name(language)} already"
    return quote(left, text) if any(map(str.isalpha, text)) else ()


class GlossaryMask:
    """A text whose glossary terms are masked by private-use characters that it does not hold."""

    def __init__(self, text: str, source: str, glossary: Glossary | None) -> None:
        free = (mark for mark in map(chr, range(0xF8FF, 0xE100, -1)) if mark not in text)
        marks: dict[str, str] = {}
        for one in reversed(Invariants(text, (source, ""), glossary).items if glossary else ()):
            if one.kind == "term":
                mark = marks.get(one.fill) or next(free, one.fill)
                marks[one.fill] = mark
                text = text[: one.start] + mark + text[one.end :]
        self.fills = {mark: fill for fill, mark in marks.items()}
        self.text = text

    def fill(self, text: str) -> str:
        return "".join(self.fills.get(letter, letter) for letter in text)


def languages(translator: Translator) -> tuple[str, str]:
    """What a translator reads and writes, as far as it is known."""
    about, to, tokenizer = translator.about, translator.to, translator.tokenizer
    if to is None or not isinstance(tokenizer, Tokenizer):
        return about.source, about.target
    others = [tag for tag in tokenizer.tags if tag != to]
    return others[0] if len(others) == 1 else "", to
