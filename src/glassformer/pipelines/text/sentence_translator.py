"""Sentences through one translator, with all that must not change.

Each sentence is tried in several ways until a translation keeps everything: as the model writes it; with digits for
number words that it got wrong; with placeholders for what it lost; with placeholders for all of it; piece by piece,
between what must not change. If none does, the sentence stays as it is.

What is asked of the model on the way is a `TranslateRequest`; who runs the steps decides who answers it: the translator
at once, or a server's queue.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from glassformer.data import PairTokenizer, Tokenizer
from glassformer.data.icu import change_leaves, find_leaves
from glassformer.data.protect import PLACEHOLDERS, map_outside_spans
from glassformer.decode import Search
from glassformer.pipelines.language.invariants import PRIVATE, Faults, Glossary, Invariant, Invariants
from glassformer.pipelines.language.normalize import DOUBLED, is_all_caps, normalize, to_sentence_case
from glassformer.pipelines.language.numbers import SMALL
from glassformer.pipelines.language.sentences import join_clauses, split_clauses
from glassformer.pipelines.translator import Translation, Translator, Way, rated

T = TypeVar("T")


@dataclass(frozen=True)
class TranslateRequest:
    """Sentences for a translator, as its `translate` takes them."""

    translator: Translator
    texts: Sequence[str]
    search: Search
    placeholders: bool = False
    progress: Callable[[int], None] | None = None


Answer = list[list[Translation]]  # of a request: as `Translator.translate` gives it
Steps = Generator[TranslateRequest, Answer, T]  # yields requests, is sent their answers, returns what it makes of them


def translate_now(request: TranslateRequest) -> Answer:
    """The answer of the request's translator, in this thread."""
    return request.translator.translate(
        request.texts, search=request.search, placeholders=request.placeholders, progress=request.progress
    )


def run(steps: Steps[T], answer: Callable[[TranslateRequest], Answer] = translate_now) -> T:
    """What `steps` returns, with its requests answered one after the other."""
    try:
        request = next(steps)
        while True:
            request = steps.send(answer(request))
    except StopIteration as end:
        result: T = end.value
        return result


async def run_async(steps: Steps[T], answer: Callable[[TranslateRequest], Awaitable[Answer]]) -> T:
    """As `run`, where answers are awaited."""
    try:
        request = next(steps)
        while True:
            request = steps.send(await answer(request))
    except StopIteration as end:
        result: T = end.value
        return result


NGRAM = 3  # tokens in a row that come once only, in the second try after a translation that repeated itself
GROWTH, SLACK = 3, 10  # a translation has at most so many times the tokens of its source, and so many more
LONGEST_UNIT = 12  # tokens, the longest stretch whose repetition is looked for
FREE_RUN = 8  # tokens of repetition that the source need not explain
MOST_TIMES = 30  # repetitions that are counted; more would take time that grows with their square
FEWEST_STRANGE = 3  # unknown pieces before a text counts as unreadable
LONG, LONGEST = 40, 1000  # tokens of sentences that may be translated clause by clause
DOUBT = -0.3  # the mean logarithm of a token's probability below which they are
MARGIN = 0.06  # by so much the mean of the clauses must be above it
BREAK = re.compile(r"(?<!\s)\s*[\n\r\u2028\u2029]\s*")
ENDS = ".。"
LEFT = ("source", "copied", "unread")  # untranslated, though there are words
REPLACEMENT = "\ufffd"  # stands for bytes of no character
_RUN = re.compile(rf"(?=((.{{1,{LONGEST_UNIT}}})\2{{2,{MOST_TIMES}}}))", re.DOTALL)
_BYTE = re.compile(r"<0x[0-9A-F]{2}>|<unk>")


@dataclass
class SentenceState:
    """A sentence on its way through the tries: as it is given, and as the model reads it."""

    given: Invariants
    invariants: Invariants
    all_caps: bool = False
    edges: tuple[str, str] = ("", "")  # pictures before and behind, which need no translation
    lost: tuple[Invariant, ...] = ()
    masked: tuple[Invariant, ...] = ()
    done: Translation | None = None
    wrong_number: bool = False  # another number in words than the source, it seems
    small_numbers: bool = False  # the number words were none but small ones
    doubtful: Translation | None = None  # keeps everything, but seems to say another number in words
    copied: bool = False  # a translation kept the words too

    def offer(self, translation: Translation, way: Way) -> None:
        """Take a translation if it says anything, and nothing is wrong with it."""
        text = translation.text.strip()
        faults = self.invariants.faults(text)
        if faults and not self.invariants.items:  # nothing that a placeholder could stand for
            text = self.invariants.without_new_markup(text)
            faults = self.invariants.faults(text)
        if text and not faults and self.invariants.copies(text):
            self.copied, faults = True, Faults(self.invariants.items)
        if text and not faults:
            made = self.finish(replace(translation, text=text), translation.way if way == "plain" else way)
            wrong = self.invariants.misses_number_word(text)
            self.done, self.doubtful = (None, made) if wrong else (made, None)
        lost = {*faults.lost, *self.lost}
        self.lost = tuple(one for one in self.invariants.items if one in lost)

    def finish(self, translation: Translation, way: Way) -> Translation:
        """The translation of what the model read as that of what was given."""
        text = (map_outside_spans(translation.text, str.upper) if self.all_caps else translation.text).join(self.edges)
        if DOUBLED.search(self.given.source):
            text = map_outside_spans(text, lambda part: part.replace("'", "''"))
        return replace(translation, text=text, source=self.given.source, way=way)

    def untranslated(self, way: Way) -> Translation:
        return Translation(self.given.with_terms(), source=self.given.source, way=way)


class SentenceTranslator:
    """A translator of one direction."""

    def __init__(self, translator: Translator, source: str, target: str) -> None:
        self.translator, self.source, self.target = translator, source, target
        tokenizer = translator.tokenizer
        self.marks, self.alphabet, self.words = "", frozenset[str](), frozenset[str]()
        if isinstance(tokenizer, Tokenizer):
            self.marks, self.alphabet, self.words = tokenizer.placeholders, tokenizer.alphabet, tokenizer.words

    def translate(
        self,
        sentences: Sequence[str],
        search: Search,
        glossary: Glossary | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Steps[list[Translation]]:
        """The translation of each sentence; `progress` is called with the number of first tries that are done."""
        states = [self._state(sentence, glossary) for sentence in sentences]
        for state in states:
            if is_unreadable(self.translator.tokenizer, state.invariants.readable):
                state.done = state.untranslated("unread")
            elif state.given.is_wordless:
                state.done = state.untranslated("same")
            elif self.marks:  # no model can copy a private-use character that it has never met
                items = state.invariants.items
                unmet = tuple(one for one in items if PRIVATE.fullmatch(one.fill) and one.fill not in self.marks)
                state.lost = unmet or state.invariants.in_turn
        first = [state for state in states if state.done is None and not state.lost]
        translations = yield from self.write([one.invariants.source for one in first], search, progress)
        for state, translation in zip(first, translations, strict=True):
            state.offer(translation, "plain")
            state.wrong_number = state.invariants.misses_number_word(translation.text)
        yield from self._with_digits([state for state in states if state.wrong_number], search)
        for everything in (False, True):
            yield from self._with_placeholders([state for state in states if state.done is None], search, everything)
        yield from self._in_pieces([state for state in states if not (state.done or state.doubtful)], search)
        made = [one.done or one.doubtful or one.untranslated("copied" if one.copied else "source") for one in states]
        return (yield from self._with_leaves(made, search, glossary))

    def _with_leaves(
        self, made: list[Translation], search: Search, glossary: Glossary | None
    ) -> Steps[list[Translation]]:
        """Translations with the leaves of their ICU messages translated."""
        found = {i: some for i, one in enumerate(made) if one.way not in LEFT and (some := find_leaves(one.text))}
        leaves = list(dict.fromkeys(leaf for some in found.values() for leaf in some))
        by_leaf = dict(
            zip(leaves, (yield from self.translate(leaves, search, glossary)) if leaves else [], strict=True)
        )
        for i, some in found.items():
            parts = [made[i], *(by_leaf[leaf] for leaf in some)]
            text = change_leaves(made[i].text, lambda leaf: by_leaf[leaf].text)
            way: Way = next((one.way for one in parts if one.way in LEFT), "placeholders")
            made[i] = replace(made[i], text=text, way=way, finished=all(one.finished for one in parts))
        return made

    def alternatives(self, translations: Sequence[Translation], count: int, search: Search) -> Steps[list[list[str]]]:
        """Up to `count` other translations of each sentence, best first; each keeps all that must not change."""
        wider = replace(search, beam=max(search.beam, count + 1), nbest=count + 1)
        rows = [i for i, one in enumerate(translations) if one.way == "plain"]
        states = [self._state(translations[i].source, None) for i in rows]
        ranked: list[list[Translation]] = []
        if rows:
            ranked = yield TranslateRequest(self.translator, [one.invariants.source for one in states], wider)
        others = [list[str]() for _ in translations]
        for i, state, candidates in zip(rows, states, ranked, strict=True):
            source = state.invariants.source
            for text in dict.fromkeys(clean(one.text, source) for one in candidates if one.finished):
                made = state.finish(Translation(text), "plain").text
                right = not state.invariants.faults(text) and not state.invariants.misses_number_word(text)
                if text and made != translations[i].text and right:
                    others[i].append(made)
        return [texts[:count] for texts in others]

    def _state(self, sentence: str, glossary: Glossary | None) -> SentenceState:
        given = Invariants(sentence, (self.source, self.target), glossary, self.alphabet, self.words)
        text = normalize(sentence, self.source, self.target)
        start, end = (given if text == sentence else replace(given, source=text)).core
        edges, text = (text[:start], text[end:]), text[start:end]
        all_caps = is_all_caps(text, self.source)
        text = to_sentence_case(text) if all_caps else text
        return SentenceState(given, given if text == sentence else replace(given, source=text), all_caps, edges)

    def _with_digits(self, states: list[SentenceState], search: Search) -> Steps[None]:
        """Digits for the number words, for this try and all that follow; where there is nothing else to translate, the
        target's number words."""
        for state in states:
            words, state.lost = state.invariants, ()
            state.small_numbers = all(one.value <= SMALL for one in words.number_words)
            state.invariants = replace(words, source=words.respell())
            if state.invariants.is_wordless:
                text = words.respell(self.target)
                text = text[:1].upper() + text[1:] if words.source[:1].isupper() else text
                state.done = state.finish(Translation(text), "digits")
        left = [state for state in states if not state.invariants.is_wordless]
        translations = yield from self.write([one.invariants.source for one in left], search)
        for state, translation in zip(left, translations, strict=True):
            state.offer(translation, "digits")
            if state.small_numbers:  # and may have been said in some other way
                state.done = state.done or state.doubtful

    def _with_placeholders(self, states: list[SentenceState], search: Search, everything: bool) -> Steps[None]:
        """Placeholders for what was lost, or, with as many as there are, for everything."""
        room, tried = len(self.marks), []
        for state in states:
            items, lost = state.invariants.items, set(state.lost)
            others = [one for one in items if one not in lost] if everything else []
            which = lost.union(others[: max(0, room - len(lost))])
            # What could be taken for a placeholder must be masked by one where others are.
            masked = tuple(one for one in items if one in which or any(mark in one.fill for mark in PLACEHOLDERS))
            if masked and len(masked) <= room and masked != state.masked:
                state.masked = masked
                tried.append(state)
        texts = [state.invariants.mask(state.masked, self.marks) for state in tried]
        translations = yield from self.write(texts, search, placeholders=True)
        for state, translation in zip(tried, translations, strict=True):
            text = state.invariants.unmask(translation.text, state.masked, self.marks)
            if text is not None:
                state.offer(replace(translation, text=text), "placeholders")

    def _in_pieces(self, states: list[SentenceState], search: Search) -> Steps[None]:
        pieces: dict[str, None] = {}
        for state in states:
            if state.invariants.items:
                pieces |= dict.fromkeys(gap.strip() for gap in state.invariants.gaps() if any(map(str.isalpha, gap)))
        translated = dict(zip(pieces, (yield from self.write(list(pieces), search)), strict=True))
        for piece, translation in translated.items():
            text = translation.text.rstrip(ENDS).rstrip() if piece[-1] not in ENDS else translation.text
            right = text and not Invariants(piece, (self.source, self.target)).faults(text)
            translated[piece] = replace(translation, text=text) if right else Translation(piece)
        for state in states:
            gaps, finished = [], True
            for gap in state.invariants.gaps():
                piece = gap.strip()
                if piece in translated:
                    finished = finished and translated[piece].finished
                    gap = gap.replace(piece, translated[piece].text)
                gaps.append(gap)
            state.offer(Translation(state.invariants.fill_gaps(gaps), finished=finished), "pieces")

    def write(
        self,
        texts: Sequence[str],
        search: Search,
        progress: Callable[[int], None] | None = None,
        placeholders: bool = False,
    ) -> Steps[list[Translation]]:
        """What the model makes of `texts`, in a second try where it repeats itself or finds no end.

        Where that finds no end either, the model cannot translate the text, which stays as it is.
        """
        if not texts:
            return []
        translator = self.translator
        best = [ranked[0] for ranked in (yield TranslateRequest(translator, texts, search, placeholders, progress))]
        sources = translator.tokenizer.encode_source(texts)
        lengths = [len(ids) - (translator.to is not None) for ids in sources]
        again: dict[int, list[int]] = {}  # by the length allowed
        for i, (one, ids) in enumerate(zip(best, sources, strict=True)):
            if self._runs_on(one, ids, lengths[i]):
                again.setdefault(most_tokens(lengths[i]), []).append(i)
        for limit, rows in again.items():
            longest = translator.max_target_length(translator.max_source_length())
            careful = replace(search, no_repeat_ngram=NGRAM, max_new_tokens=min(limit, longest))
            second = yield TranslateRequest(translator, [texts[i] for i in rows], careful, placeholders)
            for i, ranked in zip(rows, second, strict=True):
                endless = not ranked[0].finished and limit < longest
                best[i] = replace(ranked[0], text=texts[i]) if endless else ranked[0]
        made = [replace(one, text=clean(one.text, text)) for one, text in zip(best, texts, strict=True)]
        parts = {
            i: clauses
            for i, one in enumerate(best)
            if is_doubtful(one, lengths[i], search)
            and len(clauses := split_clauses(texts[i], translator.tokenizer.encode_source)) > 1
        }
        if parts:
            clause_texts = [part.text for clauses in parts.values() for part in clauses]
            ranked_clauses = iter((yield TranslateRequest(translator, clause_texts, search, placeholders)))
            for i, clauses in parts.items():
                some = [next(ranked_clauses)[0] for _ in clauses]
                run_on = any(
                    self._runs_on(one, part.ids, len(part.ids)) for one, part in zip(some, clauses, strict=True)
                )
                if not run_on and are_likelier(some, best[i]):
                    text = join_clauses(clauses, [clean(one.text, texts[i]) for one in some], self.target)
                    tokens = [token for one in some for token in one.tokens]
                    each = [value for one in some for value in one.log_probabilities]
                    whole = Translation(text, 0.0, tokens, len(some), way="clauses", log_probabilities=each)
                    made[i] = rated(whole, translator.confidence)
        return made

    def _runs_on(self, one: Translation, source: list[int], length: int) -> bool:
        """Whether a translation found no end, is too long, or repeats what its source does not."""
        if not one.finished or len(one.tokens) > most_tokens(length):
            return True
        return repeats(self.translator.tokenizer, source, one.tokens)


def most_tokens(length: int) -> int:
    """The most tokens of the translation of `length` tokens."""
    return GROWTH * length + SLACK


def repetition(tokens: Sequence[str]) -> int:
    """The tokens of the longest stretch that repeats at most LONGEST_UNIT tokens, three times or more in a row."""
    letters = {token: chr(number) for number, token in enumerate(dict.fromkeys(tokens), 0x10000)}
    text = "".join(map(letters.__getitem__, tokens))
    return max((len(match[1]) for match in _RUN.finditer(text)), default=0)


def repeats(tokenizer: PairTokenizer, source: Sequence[int], target: Sequence[str]) -> bool:
    """Whether a translation repeats itself, and its source does not."""
    run = repetition(target)
    return run > FREE_RUN and run > 2 * repetition(tokenizer.source_pieces(source)) + FREE_RUN


def is_unreadable(tokenizer: PairTokenizer, text: str) -> bool:
    """Whether the model has not learnt most characters of a text, so that it would make up a translation."""
    pieces = [] if text.isascii() else tokenizer.source_pieces(tokenizer.encode_source([text])[0])
    strange = sum(1 for piece in pieces if _BYTE.fullmatch(piece))
    return strange >= FEWEST_STRANGE and 2 * strange > len(pieces)


def is_doubtful(one: Translation, length: int, search: Search) -> bool:
    """Whether a translation of `length` source tokens is worth a try clause by clause; never where its score is no
    mean. In sentences longer than most of training, a model may lose its way, and its probabilities fall."""
    mean = search.sampling is None and search.length_rule == "average" and search.length_penalty == 1.0
    return mean and LONG <= length <= LONGEST and one.score < DOUBT


def are_likelier(parts: Sequence[Translation], whole: Translation) -> bool:
    """Whether the parts' translations, token by token, are clearly likelier than that of the whole."""
    counts = [len(one.tokens) + 1 for one in parts]  # and the end
    mean = sum(one.score * count for one, count in zip(parts, counts, strict=True)) / sum(counts)
    return all(one.finished and any(map(str.isalnum, one.text)) for one in parts) and mean > whole.score + MARGIN


def clean(text: str, source: str) -> str:
    """In one line, and without replacement characters, unless the source has some."""
    return BREAK.sub(" ", (text if REPLACEMENT in source else text.replace(REPLACEMENT, "")).strip())
