"""Texts of any length, as people write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Unpack

from glassformer.common.errors import ConfigError, check_whole
from glassformer.common.strings import strings
from glassformer.data import Tokenizer
from glassformer.data.protect import spans
from glassformer.decode import Search
from glassformer.decode.search import SearchOptions, search_of
from glassformer.pipelines.language.cutting import UNSPACED, WIDE_MARKS
from glassformer.pipelines.language.glossary import Glossary
from glassformer.pipelines.language.invariants import Keeping
from glassformer.pipelines.language.sentences import Piece, sentences, splitter
from glassformer.pipelines.text.guards import Detect, warnings
from glassformer.pipelines.text.request import Asking, answered
from glassformer.pipelines.text.sentence_translator import Hop
from glassformer.pipelines.text.translated import Note, TranslatedSentence, TranslatedText
from glassformer.pipelines.translator import Translator

BEAM = 4


class TextTranslator:
    """A translator of whole texts: `translate` gives their translations, `details` all there is to say of them.

        de = gf.TextTranslator(gf.Translator.load("en-de", to="de"))
        de.translate(["Run `make` twice. It takes 3.5 minutes."])

    Paragraphs are cut into sentences; white space and line breaks between them stay. Code, addresses, placeholders such
    as `{name}` and numbers come out as they are, numbers as the language writes them, and the terms of a `glossary` as
    they are given there. With a second translator, `then`, a text goes through both: `pivot` is the language between.

    `detect` names a text's language, or None where it is not sure: one that is not the `source` is noted. What the
    languages are is known of a model that has a card or tags, and can be said for others.
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
    ) -> None:
        first = languages(translator)
        last = first if then is None else languages(then)
        self.source, self.target = source or first[0], target or last[1]
        self.pivot: str | None = None
        self.glossary, self.detect = glossary, detect
        if then is None:
            self.hops = [Hop(translator, self.source, self.target)]
            return
        if first[1] != last[0]:
            raise ConfigError(
                f"one translator writes `{first[1]}` and the next reads `{last[0]}`; give two with a language between"
            )
        self.pivot = first[1]
        self.hops = [Hop(translator, self.source, first[1]), Hop(then, last[0], self.target)]

    def __call__(self, text: str) -> str:
        return self.translate([text])[0]

    def translate(
        self,
        texts: Iterable[str],
        *,
        search: Search | None = None,
        progress: Callable[[int], None] | None = None,
        **options: Unpack[SearchOptions],
    ) -> list[str]:
        """The translation of each text. What to look for is given as to `Translator.translate`; without a word on it, a
        beam of 4. `progress` is told about how many texts are done."""
        return [one.text for one in answered(self._made(strings(texts, "texts"), search, progress, options))]

    def details(
        self,
        texts: Iterable[str],
        *,
        search: Search | None = None,
        progress: Callable[[int], None] | None = None,
        **options: Unpack[SearchOptions],
    ) -> list[TranslatedText]:
        """The translation of each text with its sentences and what there is to note."""
        texts = strings(texts, "texts")
        made = answered(self._made(texts, search, progress, options))
        known = [Note("splitter", why)] if (why := splitter()) else []
        if self.pivot is not None:
            known.append(Note("pivot", f"`{self.source}` to `{self.target}` goes by `{self.pivot}`"))
        return [self._noted(text, one, known) for text, one in zip(texts, made, strict=True)]

    def _made(
        self, texts: list[str], search: Search | None, progress: Callable[[int], None] | None, options: SearchOptions
    ) -> Asking[list[TranslatedText]]:
        """The translations, and nothing noted yet."""
        if search is None:
            search = Search(beam=1 if options.get("sampling") is not None else BEAM)
        search = search_of(search, **options)
        if search.nbest > 1:
            raise ConfigError(f"nbest={search.nbest}: a text has one translation; ask `Translator.translate` for more")
        if self.pivot is None:
            made = yield from self._through(self.hops[0], texts, search, self.glossary, progress, 0, len(texts))
        else:
            made = yield from self._by_pivot(texts, search, progress)
        if progress is not None:
            progress(len(texts))
        return made

    def alternatives(self, texts: Iterable[str], count: int) -> list[list[str]]:
        """Up to `count` other translations of each text: every sentence said the second-best way, the third-best, and
        so on; a sentence that has no more stays at its best."""
        check_whole("count", count, 1, "1 gives the second-best alone")
        found, last, search = self.details(texts), self.hops[-1], Search(beam=BEAM)
        told = {one.source: one for text in found for one in text.sentences}
        others = dict(zip(told, last.others(list(told.values()), count, search), strict=True))
        made: list[list[str]] = []
        for source, text in zip(strings(texts, "texts"), found, strict=True):
            read = source if text.via is None else text.via
            pieces = sentences(read, last.source, spans(read))
            most = max((len(others[one.source]) for one in text.sentences), default=0)
            made.append([])
            for rank in range(most):
                said = {
                    one.source: replace(one, text=others[one.source][rank]) if rank < len(others[one.source]) else one
                    for one in text.sentences
                }
                made[-1].append(self._put_together(last, read, pieces, said).text)
        return made

    def _by_pivot(
        self, texts: list[str], search: Search, progress: Callable[[int], None] | None
    ) -> Asking[list[TranslatedText]]:
        """Through both; a term of the glossary, which knows nothing of the language between, goes as a character that
        neither changes."""
        first, second = self.hops
        veils = [Veil(text, self.glossary) for text in texts]
        whole, hidden = 2 * len(texts), [veil.text for veil in veils]
        between = yield from self._through(first, hidden, search, None, progress, 0, whole)
        told = [one.text for one in between]
        last = yield from self._through(second, told, search, None, progress, len(texts), whole)
        made = []
        for veil, one, other in zip(veils, between, last, strict=True):
            own = tuple(
                TranslatedSentence(veil.lifted(s.source), veil.lifted(s.text), s.finished and one.finished, s.way)
                for s in other.sentences
            )
            made.append(TranslatedText(veil.lifted(other.text), own, other.notes, veil.lifted(one.text)))
        return made

    def _through(
        self,
        hop: Hop,
        texts: list[str],
        search: Search,
        glossary: Glossary | None,
        progress: Callable[[int], None] | None,
        before: int,
        whole: int,
    ) -> Asking[list[TranslatedText]]:
        """`texts` by one translator; of the `whole` work, counted in texts, as much as `before` has been done."""
        cut = [sentences(text, hop.source, spans(text)) for text in texts]
        unique = list(dict.fromkeys(piece.text for pieces in cut for piece in pieces if not piece.gap))

        def tell(done: int) -> None:
            if progress is not None:
                share = (before + len(texts) * done / len(unique)) / whole
                progress(min(len(texts) - 1, int(share * len(texts))))

        told = dict(zip(unique, (yield from hop.translate(unique, search, glossary, tell)), strict=True))
        return [self._put_together(hop, text, pieces, told) for text, pieces in zip(texts, cut, strict=True)]

    def _put_together(
        self, hop: Hop, text: str, pieces: list[Piece], told: dict[str, TranslatedSentence]
    ) -> TranslatedText:
        whole, last, space = "", "", ""
        for piece in pieces:
            if piece.gap:
                space = piece.text
                continue
            translation = told[piece.text].text
            whole += (between(space, last, whole, translation) if last else space) + translation
            last, space = piece.text, ""
        own = tuple(told[piece.text] for piece in pieces if not piece.gap)
        return TranslatedText(whole + space, own)

    def _noted(self, text: str, made: TranslatedText, known: list[Note]) -> TranslatedText:
        if not made.sentences or all(one.way == "same" for one in made.sentences):
            return made
        notes = [*known, *warnings(self.hops[0].translator, text, self.source, self.detect)]
        if not made.finished:
            same = [one for one in made.sentences if not one.finished and one.text == one.source]
            told = "left as it is, since its translation found no end"
            cut = "the translation was stopped by the limit of length before its end"
            notes.append(Note("cut", f"{told}: {same[0].source:.60}" if same else cut))
        if left := [one for one in made.sentences if one.way == "source"]:
            notes.append(
                Note("kept", f"left as it is, since no translation kept what must not change: {left[0].source:.60}")
            )
        if unread := [one for one in made.sentences if one.way == "unread"]:
            told = "left as it is, since most of its characters are none that the model has learnt"
            notes.append(Note("characters", f"{told}: {unread[0].source:.60}"))
        return TranslatedText(made.text, made.sentences, tuple(notes), made.via)


def translating(by: TextTranslator, texts: list[str]) -> Asking[list[str]]:
    """As `translate`, for whoever asks the translators in another way."""
    made = yield from by._made(texts, None, None, {})
    return [one.text for one in made]


class Veil:
    """A text whose glossary terms are hidden behind private-use characters that it has not."""

    def __init__(self, text: str, glossary: Glossary | None) -> None:
        free = (mark for mark in map(chr, range(0xF8FF, 0xE100, -1)) if mark not in text)
        marks: dict[str, str] = {}
        for one in reversed(Keeping(text, ("", ""), glossary).items if glossary else ()):
            if one.kind == "term":
                mark = marks.get(one.fill) or next(free, one.fill)
                marks[one.fill] = mark
                text = text[: one.start] + mark + text[one.end :]
        self.fills = {mark: fill for fill, mark in marks.items()}
        self.text = text

    def lifted(self, text: str) -> str:
        return "".join(self.fills.get(letter, letter) for letter in text)


def languages(translator: Translator) -> tuple[str, str]:
    """What a translator reads and writes, as far as it is known."""
    about, to, tokenizer = translator.about, translator.to, translator.tokenizer
    if to is None or not isinstance(tokenizer, Tokenizer):
        return about.source, about.target
    others = [tag for tag in tokenizer.tags if tag != to]
    return others[0] if len(others) == 1 else "", to


def between(space: str, sentence: str, left: str, right: str) -> str:
    """What goes between the translations `left` and `right` where `space` stood, after `sentence`: scripts without
    spaces have none, and the others one, whatever the source's was."""
    if space == " " and (UNSPACED.match(left[-1:]) or UNSPACED.match(right[:1])):
        return ""
    if not space and sentence[-1] in WIDE_MARKS and not UNSPACED.match(left[-1:]):
        return " "
    return space
