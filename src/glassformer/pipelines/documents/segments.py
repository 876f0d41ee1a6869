"""Segments: the stretches of a document that are translated, each as words and the inline markup between them.

Every format splits its text into segments, and each segment into inlines; how they are translated is the same for all
formats. The mark of markup begins with `+` where it opens, `-` where it closes, `=` where it has no content. The rest
names the markup, so that the markup of a translation can be compared with that of its source.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, TypeVar, cast

from glassformer.common.errors import DataError
from glassformer.data.icu import find_leaves

NEWLINE = re.compile(r"\r\n|\r|\n")
# A run of spaces or full stops is matched from its first character alone: from each of them, it would take minutes.
SENTENCE_END = re.compile(r"(?<![.!?])[.!?]+[\"'”’)]*\s+(?=[^a-z\s])|[。！？]+[”’」）]*")
LINE_END = re.compile(r"(?:(?<![ \t])[ \t]+)?[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+[ \t]*")
REFERENCE = re.compile(r"&(?:\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]*);")  # a character, as in HTML
PARSE_ERRORS: dict[type[Exception], str] = {
    RecursionError: "too much lies within each other in it",
    MemoryError: "it takes too much memory; cut it into several",
}
LABELLED = ("link ", "image ", "<a ")  # marks of markup whose content is a label

Result = TypeVar("Result")
Task: TypeAlias = Generator[list[str], list[str], Result]  # yields texts and is sent their translations
Structure: TypeAlias = tuple[Counter[tuple[str, tuple[str, ...]]], set[tuple[str, ...]]]


@dataclass(frozen=True)
class Inline:
    """Words, or a piece of markup, which has a mark."""

    source: str  # as in the document
    mark: str = ""
    sent: str | None = None  # as the translator gets it, if that is not the source
    output: str | None = None  # as it is written among translated words, if that is not the source

    @property
    def text(self) -> str:
        return self.source if self.sent is None else self.sent

    @property
    def has_words(self) -> bool:
        return not self.mark and has_letters(self.text)


Parse = Callable[[str], list[Inline]]  # the inlines of a translation, as they will be in the document


class SupportsTranslate(Protocol):
    """Texts in, their translations out, one for each; `progress` gets the number of those that are done."""

    def translate(self, texts: list[str], *, progress: Callable[[int], None] | None = None) -> list[str]: ...


@dataclass
class DocumentStats:
    """How many segments a document has, and how they were translated."""

    segments: int = 0
    in_pieces: int = 0  # the translation lost or added markup, so the text between the markup was translated alone
    untranslated: int = 0  # even that did not fit into the document: some of it keeps the source's words

    def add(self, other: DocumentStats) -> None:
        self.segments += other.segments
        self.in_pieces += other.in_pieces
        self.untranslated += other.untranslated


@dataclass
class Segment:
    """What is between `start` and `end` of a document's text."""

    start: int
    end: int
    inlines: list[Inline]
    parse: Parse
    fit: Callable[[str], str | None] = str  # changed so that it is valid at this place; None if nothing helps
    layout: Callable[[str], str] = str  # such as broken into lines
    is_text: bool = True  # the translator may get it as one text, markup included

    @property
    def has_words(self) -> bool:
        return any(one.has_words for one in self.inlines)


def line_spans(text: str) -> list[tuple[int, int]]:
    """Where each line starts and stops, without its line end."""
    ends = [*NEWLINE.finditer(text)]
    return [*zip([0, *(end.end() for end in ends)], [*(end.start() for end in ends), len(text)], strict=True)]


def has_letters(text: str) -> bool:
    return any(letter.isalpha() for letter in REFERENCE.sub(lambda found: html.unescape(found[0]), text))


def join_lines(text: str) -> str:
    """Joins wrapped lines: by a space, but by nothing between Chinese characters."""

    def separator(found: re.Match[str]) -> str:
        before, after = text[max(0, found.start() - 1) : found.start()], text[found.end() : found.end() + 1]
        return "" if is_unspaced(before) and is_unspaced(after) else " "

    return LINE_END.sub(separator, text)


def is_unspaced(letter: str) -> bool:
    """A character of a script that is written without spaces."""
    return "\u3000" <= letter <= "\u9fff" or "\uff00" <= letter <= "\uff60" or letter >= "\U00020000"


def join_text(inlines: Iterable[Inline]) -> str:
    return "".join(one.text for one in inlines)


def join_output(inlines: Iterable[Inline]) -> str:
    return "".join(one.source if one.output is None else one.output for one in inlines)


def marks(inlines: Iterable[Inline]) -> list[str]:
    return [one.mark for one in inlines if one.mark]


def with_open_marks(inlines: Iterable[Inline]) -> Iterator[tuple[Inline, tuple[str, ...]]]:
    """Each inline with the markup that is open around it."""
    opened: list[str] = []
    for one in inlines:
        if one.mark.startswith("-") and opened and opened[-1] == one.mark[1:]:
            opened.pop()
        yield one, tuple(opened)
        if one.mark.startswith("+"):
            opened.append(one.mark[1:])


def is_balanced(inlines: Iterable[Inline]) -> bool:
    """Whether all markup that is opened is closed, in order."""
    opened: list[str] = []
    for mark in marks(inlines):
        if mark.startswith("+"):
            opened.append(mark[1:])
        elif mark.startswith("-") and (not opened or opened.pop() != mark[1:]):
            return False
    return not opened


def markup_structure(inlines: list[Inline]) -> Structure:
    """What a translation must share with its source: which markup is nested in which, and where there are words."""
    placed = list(with_open_marks(inlines))
    markup = Counter((one.mark, opened) for one, opened in placed if one.mark)
    return markup, {opened for one, opened in placed if one.has_words}


def is_connected(inlines: list[Inline]) -> bool:
    """Whether the words form one text around markup. If not, each stands alone: the label of a link or an image, or
    the only words that there are."""
    words = [opened for one, opened in with_open_marks(inlines) if one.has_words]
    labels = all(any(mark.startswith(LABELLED) for mark in opened) for opened in words)
    return not labels and (len(words) > 1 or any(one.mark.startswith("=") for one in inlines))


def restore_markup(source: list[Inline], translation: list[Inline]) -> list[Inline]:
    """The translation with the exact markup of the source; both have the same marks."""
    markup: dict[str, list[Inline]] = {}
    for one in source:
        if one.mark:
            markup.setdefault(one.mark, []).append(one)
    return [markup[one.mark].pop(0) if one.mark else one for one in translation]


def split_sentences(inlines: list[Inline]) -> list[list[Inline]]:
    """Split where a sentence ends outside all markup; joined, they are the same text."""
    parts: list[list[Inline]] = [[]]
    for one, opened in with_open_marks(inlines):
        if one.mark or opened:
            parts[-1].append(one)
            continue
        start = 0
        for end in (found.end() for found in SENTENCE_END.finditer(one.text)):
            parts[-1].append(Inline(one.text[start:end]))
            parts.append([])
            start = end
        if start < len(one.text):
            parts[-1].append(Inline(one.text[start:]))
    return [part for part in parts if part]


def translate_segment(segment: Segment, stats: DocumentStats) -> Task[str | None]:
    """As one text; if that changes the markup, sentence by sentence; and if a sentence does, piece by piece.

    None if the segment has to stay as it is.
    """
    stats.segments += 1
    inlines, structure = segment.inlines, markup_structure(segment.inlines)
    connected = is_connected(inlines)
    if connected and segment.is_text and is_balanced(inlines):
        (translation,) = yield [join_text(inlines).strip()]
        text = with_source_markup(segment, inlines, translation)
        text = None if text is None else segment.fit(copy_outer_spaces(join_text(inlines), text))
        if text is not None and markup_structure(segment.parse(text)) == structure:
            return segment.layout(text)
    if connected and find_leaves(join_text(inlines)):  # no piece of an ICU message says anything
        stats.untranslated += 1
        return None
    stats.in_pieces += connected
    parts = split_sentences(inlines) if connected and segment.is_text else [inlines]
    whole = [i for i, part in enumerate(parts) if is_balanced(part) and any(one.has_words for one in part)]
    whole = whole if len(parts) > 1 else []
    answers = (yield [join_text(parts[i]).strip() for i in whole]) if whole else []
    translations = dict(zip(whole, answers, strict=True))
    texts, is_complete = [], True
    for i, part in enumerate(parts):
        text = with_source_markup(segment, part, translations[i]) if i in translations else None
        if text is None:
            text, all_translated = yield from translate_pieces(segment, part)
            is_complete = is_complete and all_translated
        texts.append(copy_outer_spaces(join_text(part), text))
    text = segment.fit("".join(texts))
    if text is not None and markup_structure(segment.parse(text)) != structure:
        text = None
    stats.untranslated += text is None or not is_complete
    return None if text is None else segment.layout(text)


def with_source_markup(segment: Segment, inlines: list[Inline], translation: str) -> str | None:
    """The translation of these inlines with their own markup in it; None if its markup is different."""
    found = segment.parse(join_lines(translation.strip()))
    structure = markup_structure(inlines)
    if markup_structure(found) != structure:
        return None
    text = join_output(restore_markup(inlines, found))
    return text if markup_structure(segment.parse(text)) == structure else None


def translate_pieces(segment: Segment, inlines: list[Inline]) -> Task[tuple[str, bool]]:
    """Only the text between the markup is translated, so the markup stays the same, in its order.

    Also whether all pieces are translated: some may have to keep the source's words.
    """
    words = [i for i, one in enumerate(inlines) if one.has_words]
    answers = yield [inlines[i].text.strip() for i in words]
    source = [join_output([one] if one.mark else segment.parse(one.text)) for one in inlines]
    pieces, translated = list(source), 0
    for i, answer in zip(words, answers, strict=True):
        found = segment.parse(join_lines(answer.strip()))
        if not marks(found) and any(one.has_words for one in found):
            pieces[i] = copy_outer_spaces(inlines[i].text, join_output(found))
            translated += 1
    restored = 0  # if all pieces together have other markup: the first, then two more, then four more
    while restored < len(words) and marks(segment.parse("".join(pieces))) != marks(inlines):
        for i in words[restored : 2 * restored + 1]:
            pieces[i] = source[i]
        restored = 2 * restored + 1
    return "".join(pieces), translated == len(words) and not restored


def copy_outer_spaces(source: str, text: str) -> str:
    before = source[: len(source) - len(source.lstrip())]
    return before + text.strip() + source[len(source.rstrip()) :]


def gather(tasks: Sequence[Task[Result]], requested: Sequence[list[str]] = ()) -> Task[list[Result]]:
    """One task of several, which run at the same time: their texts go to the translator together. The texts of each are
    added to its list of `requested`."""
    results: dict[int, Result] = {}
    answers: dict[int, list[str] | None] = dict.fromkeys(range(len(tasks)))
    while answers:
        requests: dict[int, list[str]] = {}
        for i, answer in answers.items():
            try:
                requests[i] = next(tasks[i]) if answer is None else tasks[i].send(answer)
            except StopIteration as end:
                results[i] = end.value
        for i in requests if requested else ():
            requested[i].extend(requests[i])
        got = iter((yield [text for texts in requests.values() for text in texts]) if requests else [])
        answers = {i: [next(got) for _ in texts] for i, texts in requests.items()}
    return [results[i] for i in range(len(tasks))]


def run_task(
    task: Task[Result], translator: SupportsTranslate, progress: Callable[[int, int], None] | None = None
) -> Result:
    """Runs a task, translating equal texts once; `progress` gets how many of how many texts are done."""
    answers: list[str] | None = None
    while True:
        try:
            requested = next(task) if answers is None else task.send(answers)
        except StopIteration as end:
            return cast(Result, end.value)
        except DataError:
            raise
        except Exception as error:  # a parser's: whatever it stumbles over is an error of this document alone
            reason = PARSE_ERRORS.get(type(error), f"{type(error).__name__}: {error}")
            raise DataError(f"it cannot be parsed: {reason}") from error
        texts = list(dict.fromkeys(requested))
        report = None if progress is None else partial(lambda total, done: progress(done, total), len(texts))
        translations = translator.translate(texts, progress=report) if texts else []
        by_text = dict(zip(texts, translations, strict=True))
        answers = [by_text[text] for text in requested]


def replace_spans(text: str, spans: Iterable[tuple[int, int]], replacements: Iterable[str | None]) -> str:
    """The document with these spans replaced, but for those with None, and nothing else changed."""
    parts, at = [], 0
    for (start, end), replacement in zip(spans, replacements, strict=True):
        if replacement is not None:
            assert start >= at, "spans come in order and do not overlap"
            parts += [text[at:start], replacement]
            at = end
    return "".join([*parts, text[at:]])


def translate_segments(text: str, segments: Sequence[Segment], stats: DocumentStats) -> Task[str]:
    """The document with all its segments translated at the same time."""
    translations = yield from gather([translate_segment(one, stats) for one in segments])
    return replace_spans(text, [(one.start, one.end) for one in segments], translations)
