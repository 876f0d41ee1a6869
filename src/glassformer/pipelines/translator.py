"""Sentence in, sentence out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack

import torch

from glassformer.common.arguments import check_texts, checked
from glassformer.common.device import pick_device
from glassformer.common.errors import ConfigError, InputError
from glassformer.data import About, Directed, PairTokenizer, Tokenizer
from glassformer.data.tokenizer import stream_decode
from glassformer.decode import Hypothesis, LengthRule, Search
from glassformer.decode.engine import BATCH_TOKENS, Engine, Likelihood
from glassformer.decode.precision import Precision
from glassformer.decode.scoring import Alignment
from glassformer.decode.search import Placeholders, Rule, SearchOptions, check_stream, search_of
from glassformer.model import EncoderDecoder
from glassformer.pipelines import box
from glassformer.pipelines.confidence import Confidence, doubted_words, read_confidence
from glassformer.pipelines.language.sentences import Part, join_parts, separator, split_by_length
from glassformer.weights import bundle
from glassformer.weights.hub import locate
from glassformer.weights.lora import load_adapter
from glassformer.weights.marian_files import Shortlist

SHORTEST = 8  # tokens; in fewer, not every single character can be spelt


class TooLong(InputError):
    """A text that cannot be split: the `index`-th of those given as `name`."""

    def __init__(self, name: str, index: int, reason: str) -> None:
        super().__init__(name, index, reason)  # all three, so that it can be pickled
        self.name, self.index, self.reason = name, index, reason

    def __str__(self) -> str:
        return f"{self.name}[{self.index}] {self.reason}"


# How the translation of a sentence of a text came about:
#   plain          as the model wrote it
#   clauses        a long sentence clause by clause, which the model found likelier
#   digits         with digits for number words that the model got wrong
#   placeholders   with placeholders for what must not change, filled in afterwards
#   pieces         the parts between what must not change, one by one
#   same           untranslated: there was nothing to translate
#   source         untranslated: no translation kept what must not change
#   copied         untranslated: the model gave back the words beside code or placeholders
#   unread         untranslated: the model knows too few of its characters
Way = Literal["plain", "clauses", "digits", "placeholders", "pieces", "same", "source", "copied", "unread"]


@dataclass(frozen=True)
class Translation:
    """A target, its score (the log-probability over the length rule's divisor) and its tokens.

    A text too long for the model is translated in `parts`. Its score is then the mean of theirs, weighted by the tokens
    of their sources, because scores divided by length do not add up.

    On request, `alignment` pairs the place of each of `tokens` with that of the one in `source_tokens` it came from.

    The limit of length stopped one that is not `finished`, or a part of it. A sentence of a text also has its `source`
    and the `way` in which its translation came about. `log_probabilities` are those of each of `tokens`.
    `probability` is that of the translation being right, where the model's confidence has been measured: as close to a
    person's as the `chrf` of its `Confidence`.
    """

    text: str
    score: float = 0.0
    tokens: list[str] = field(default_factory=list)
    parts: int = 1
    source_tokens: list[str] | None = None
    alignment: Alignment | None = None
    finished: bool = True
    source: str = ""
    way: Way = "plain"
    log_probabilities: list[float] = field(default_factory=list, compare=False, repr=False)
    probability: float | None = field(default=None, compare=False, repr=False)

    @property
    def doubts(self) -> list[str]:
        """The words that hold a token which the model finds improbable."""
        return doubted_words(self.tokens, self.log_probabilities)


@dataclass(frozen=True)
class Alternative:
    """A token that may come next, its log-probability, and the likeliest translation that goes on from it."""

    token: str
    log_probability: float
    translation: Translation


@checked
class Translator:
    """A model with its tokenizer. `t("one sentence")` gives its translation; `t.translate` takes many.

    `t.model` is the plain float32 model. What runs is a copy in the given `precision`, made on first use and again
    after the weights have changed (changes through `.data` go unnoticed). A translator loaded with rounded weights
    keeps only these until `t.model` is read. Between calls only the tokenizer's cache of words stays: threads may share
    a translator, and it can be pickled. A translator given an `Engine` shares its model with others.
    """

    def __init__(
        self,
        model: EncoderDecoder | Engine,
        tokenizer: PairTokenizer,
        device: str | torch.device = "cpu",
        precision: Precision = "fp32",
        about: About | None = None,
        measured: Mapping[str, Confidence] | None = None,
    ) -> None:
        self.engine = model if isinstance(model, Engine) else Engine(model, pick_device(device), precision)
        self.device, self.tokenizer, self.about = self.engine.device, tokenizer, about or About()
        self.measured = measured or {}  # by target language

    @property
    def model(self) -> EncoderDecoder:
        return self.engine.model

    @property
    def to(self) -> str | None:
        """The language translated into, of a model that knows several."""
        to: str | None = getattr(self.tokenizer, "to", None)  # asked at every request; to ask for `Directed` is slow
        return to

    def toward(self, language: str) -> Translator:
        """The same model, translating into another of the languages that it knows."""
        tokenizer = direct_tokenizer(self.tokenizer, language)
        assert isinstance(tokenizer, Directed)
        return Translator(self.engine, tokenizer, about=tokenizer.card(self.about), measured=self.measured)

    @property
    def confidence(self) -> Confidence | None:
        """How sure its translations are, where that has been measured."""
        return self.measured.get(self.to or self.about.target)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        device: str | torch.device = "cpu",
        precision: Precision = "fp32",
        *,
        to: str | None = None,
        source: str | None = None,
        adapter: str | Path | None = None,
        revision: str | None = None,
        offline: bool = False,
    ) -> Translator:
        """The translator of a folder: one that `glassformer train` has made, or a Hugging Face folder of a Marian,
        M2M100, NLLB or mBART model. Where there is no such folder, one of the translators that come with glassformer
        ("en-de", "de-en", "en-zh", "zh-en"), else a model of the hub, such as "Helsinki-NLP/opus-mt-en-de", fetched as
        `load_model` does.

        A model of several target languages needs to be given one, `to="de"`; one of several source languages too,
        `source="en"`. The weights of an `adapter`, a folder of a run with `train.lora_rank`, are added to the model's.
        """
        if not os.path.lexists(folder) and (direction := box.directions().get(str(folder))) is not None:
            folder, to = box.folder(direction.model), to or direction.to
        device = pick_device(device)
        here = revision is None and os.path.isdir(folder)
        folder = Path(folder) if here else locate(folder, revision, offline)
        read = read_published if not bundle.is_bundle(folder) and (folder / "config.json").is_file() else read_bundle
        if read is read_bundle and not (folder / "config.json").exists():
            read = read_native
        loaded = read(folder, source, to, device.type == "cpu", adapter)
        measured = read_confidence(folder) if adapter is None else {}
        engine = Engine(loaded.model, device, precision, loaded.shortlist)
        translator = cls(engine, loaded.tokenizer, about=loaded.about, measured=measured)
        translator.engine.reload = loaded.reload if adapter is None else None
        return translator

    @property
    def _forced(self) -> int:
        """How many tokens every target begins with: one for its language, where the model has several."""
        return len(self.tokenizer.encode_target([""])[0])

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle or copy holds the model; the copy that runs is made again on first use."""
        settings = self.engine.precision, self.about, self.measured
        return type(self), (self.engine, self.tokenizer, self.device, *settings)

    def __call__(self, text: str) -> str:
        return self.translate([text])[0][0].text

    def translate(
        self,
        texts: Iterable[str],
        *,
        search: Search | None = None,
        prefix: str | Iterable[str] | None = None,
        placeholders: bool = False,
        max_length: int | None = None,
        batch_tokens: int | None = None,
        alignments: bool = False,
        progress: Callable[[int], None] | None = None,
        between_steps: Callable[[], None] | None = None,
        **options: Unpack[SearchOptions],
    ) -> list[list[Translation]]:
        """The `nbest` best translations of each text (fewer where no more are possible), in the order given; an empty
        text stays empty. The search is a `Search`, options by name, such as `beam=4`, or both: a name wins.

        A text of more than `max_length` tokens (at most the model's own limit, which is the default) is split at
        sentence ends, else at clauses, else at spaces, else anywhere. `progress` is called with the number of texts
        done.

        Each translation begins with its `prefix`, one for all or one each, even against `no_repeat_ngram`; of a split
        text, the first part does. With `placeholders`, each placeholder of a text that the model has learnt to copy
        comes exactly once in its translation, and no other. An exception raised by `between_steps` ends the search.
        """
        search = search_of(search, **options)
        texts = check_texts(texts, "texts")
        check_batch_tokens(batch_tokens)
        split = self.split(texts, self.max_source_length(max_length))
        prefixes = self._prefix_ids(split, prefix, search)
        jobs = [(i, k) for i, parts in enumerate(split) for k in range(len(parts))]
        sources = [split[i][k].ids for i, k in jobs]
        starts = [prefixes[i] if k == 0 else prefixes[i][: self._forced] for i, k in jobs]
        required = placeholders_of(self.tokenizer, [split[i][k].text for i, k in jobs]) if placeholders else None
        written: list[list[list[Hypothesis]]] = [[[] for _ in parts] for parts in split]
        aligned: list[list[list[Alignment]]] = [[[] for _ in parts] for parts in split]
        left = [len(parts) for parts in split]
        for rows, best in self.engine.generate(
            sources, starts, search, given=self._forced, placeholders=required, batch_tokens=batch_tokens,
            between_steps=between_steps,
        ):  # fmt: skip
            pairs = self.engine.align([sources[n] for n in rows], best) if alignments else [[]] * len(rows)
            for n, hypotheses, alignment in zip(rows, best, pairs, strict=True):
                i, k = jobs[n]
                written[i][k], aligned[i][k] = hypotheses, alignment
                left[i] -= 1
            if progress is not None:
                progress(left.count(0))
        made = [
            join_hypotheses(self.tokenizer, split[i], written[i], search.nbest, aligned[i] if alignments else None)
            for i in range(len(texts))
        ]
        return [[rated(one, self.confidence) for one in ranked] for ranked in made]

    def stream(
        self,
        text: str,
        *,
        search: Search | None = None,
        prefix: str = "",
        max_length: int | None = None,
        **options: Unpack[SearchOptions],
    ) -> Iterator[str]:
        """The translation of one text piece by piece, as it is written: the likeliest tokens, or drawn by `sampling`.

        Joined, the pieces are what `translate` gives with the same options.
        """
        search = check_stream(search_of(search, **options))
        (parts,) = split = self.split([text], self.max_source_length(max_length))
        (start,) = self._prefix_ids(split, prefix, search)
        return self._stream_parts(parts, start, search)

    def _stream_parts(self, parts: list[Part], prefix: list[int], search: Search) -> Iterator[str]:
        whole, forced = "", self._forced
        for before, part in zip([None, *parts], parts, strict=False):
            length = len(whole)
            tokens = self.engine.stream(part.ids, prefix if before is None else prefix[:forced], search, forced)
            for text in stream_decode(self.tokenizer, tokens):
                if before is not None and len(whole) == length:
                    text = separator(" " * part.spaced, before.text, whole, text) + text
                whole += text
                yield text

    def alternatives(self, text: str, prefix: str = "", count: int = 5) -> list[Alternative]:
        """The `count` likeliest tokens after `prefix` in the translation of `text`, and where each would lead."""
        longest = self.max_source_length()
        (parts,) = split = self.split([text], longest)
        if len(parts) != 1:
            what = "is empty" if not parts else f"is longer than the {longest:,} tokens read at once"
            raise InputError(f"the text {what}; alternatives() looks at one text that is translated as a whole")
        (start,) = self._prefix_ids(split, prefix)
        if len(start) == self.max_target_length(len(parts[0].ids)):
            raise InputError(f"the prefix {prefix!r:.60} leaves no room for another token; shorten it")
        return [
            Alternative(
                self.tokenizer.target_pieces([token])[0], value, *join_hypotheses(self.tokenizer, parts, [[best]])
            )
            for token, value, best in self.engine.alternatives(parts[0].ids, start, count, self._forced)
        ]

    def score(
        self,
        texts: Iterable[str],
        targets: Iterable[str],
        *,
        length_penalty: float = 1.0,
        length_rule: Rule = "average",
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[float]:
        """The score that search would give each target as the translation of its text."""
        rule = LengthRule(length_penalty, length_rule)
        return [one.score(rule) for one in self.likelihoods(texts, targets, batch_tokens=batch_tokens)]

    def likelihoods(
        self, texts: Iterable[str], targets: Iterable[str], *, batch_tokens: int = BATCH_TOKENS
    ) -> list[Likelihood]:
        """How likely the model finds each target as the translation of its text; an empty text has an empty one."""
        texts, targets = check_texts(texts, "texts"), check_texts(targets, "targets")
        check_batch_tokens(batch_tokens)
        if len(texts) != len(targets):
            raise InputError(f"{len(texts)} texts but {len(targets)} targets; give one each")
        sources, ids = self.tokenizer.encode_source(texts), self.tokenizer.encode_target(targets)
        limit = self.max_source_length()
        for i, (source, target) in enumerate(zip(sources, ids, strict=True)):
            for name, length, most in (("texts", len(source), limit), ("targets", len(target), limit - 1)):
                if length > most:
                    raise TooLong(name, i, f"has {length:,} tokens, the model takes {most:,}; score it in pieces")
        forced = self._forced
        likelihoods = [Likelihood(float("-inf") if len(one) > forced else 0.0, len(one) - forced) for one in ids]
        real = [i for i, text in enumerate(texts) if sources[i] and text.strip()]
        likely = self.engine.likelihoods([sources[i] for i in real], [ids[i] for i in real], batch_tokens, forced)
        for i, likelihood in zip(real, likely, strict=True):
            likelihoods[i] = likelihood
        return likelihoods

    def unfamiliar(self, texts: Sequence[str]) -> list[str]:
        """The words of `texts` that training never saw, each once; none where its words are not known."""
        return self.tokenizer.unfamiliar(texts) if isinstance(self.tokenizer, Tokenizer) else []

    def max_source_length(self, max_length: int | None = None) -> int:
        """The most source tokens translated at once."""
        if max_length is not None and max_length < SHORTEST:
            raise InputError(f"max_length={max_length} is too short to hold every character; give {SHORTEST} or more")
        own = self.engine.config.max_length
        return own if max_length is None else min(max_length, own)

    def max_target_length(self, length: int, search: Search | None = None) -> int:
        """The longest translation tried for a source of `length` tokens."""
        return self.engine.max_target_length(length, search)

    def split(self, texts: Sequence[str], limit: int) -> list[list[Part]]:
        """Each text as parts of at most `limit` tokens: most often one, none for white space alone."""
        encode = self.tokenizer.encode_source

        def parts(text: str, ids: list[int]) -> list[Part]:
            if not ids or not text.strip():
                return []
            return [Part(text, ids)] if len(ids) <= limit else split_by_length(text, limit, encode)

        return [parts(text, ids) for text, ids in zip(texts, encode(texts), strict=True)]

    def _prefix_ids(
        self, split: list[list[Part]], prefix: str | Iterable[str] | None, search: Search | None = None
    ) -> list[list[int]]:
        """The ids that each text's translation must begin with; a space at their end is the next word's own."""
        given = (
            [prefix or ""] * len(split) if prefix is None or isinstance(prefix, str) else check_texts(prefix, "prefix")
        )
        if len(given) != len(split):
            raise InputError(f"{len(given)} prefixes for {len(split)} texts; give one for all, or one each")
        prefixes = self.tokenizer.encode_target([one.rstrip() for one in given])
        for parts, one, ids in zip(split, given, prefixes, strict=True):
            if parts and len(ids) > (limit := self.max_target_length(len(parts[0].ids), search)):
                raise InputError(
                    f"the prefix {one!r:.60} has {len(ids)} tokens, but the translation of {parts[0].text!r:.60} "
                    f"may have {limit}; shorten it"
                )
        return prefixes


def rated(one: Translation, known: Confidence | None) -> Translation:
    """The same with its probability, where that is known."""
    return one if known is None else replace(one, probability=known.probability(one.log_probabilities))


def join_hypotheses(
    tokenizer: PairTokenizer,
    parts: list[Part],
    written: list[list[Hypothesis]],
    nbest: int = 1,
    aligned: list[list[Alignment]] | None = None,
) -> list[Translation]:
    """A text's translations from those of its parts, the best with the best, the second with the second."""
    if not parts:
        return [Translation("") if aligned is None else Translation("", 0.0, [], 1, [], [])] * nbest
    lengths = [len(part.ids) for part in parts]
    translations = []
    for rank, ranked in enumerate(zip(*written, strict=False)):  # as many as the part with the fewest has
        score = sum(h.score * length for h, length in zip(ranked, lengths, strict=True)) / sum(lengths)
        source_tokens: list[str] | None = None
        alignment: Alignment | None = None
        if aligned is not None:
            source_tokens, alignment, target_tokens = [], [], 0
            for part, h, pairs in zip(parts, ranked, aligned, strict=True):
                alignment += [(target_tokens + t, len(source_tokens) + s) for t, s in pairs[rank]]
                source_tokens += tokenizer.source_pieces(part.ids)
                target_tokens += len(h.ids)
        translations.append(
            Translation(
                join_parts(parts, tokenizer.decode_target([h.ids for h in ranked])),
                ranked[0].score if len(parts) == 1 else score,
                [piece for h in ranked for piece in tokenizer.target_pieces(h.ids)],
                len(parts),
                source_tokens,
                alignment,
                all(h.finished for h in ranked),
                log_probabilities=[one for h in ranked for one in h.log_probabilities],
            )
        )
    return translations


def placeholders_of(tokenizer: PairTokenizer, texts: Sequence[str]) -> Placeholders | None:
    """Those that the target of each text must hold; None where the model has not learnt to copy any."""
    marks = tokenizer.placeholders if isinstance(tokenizer, Tokenizer) else ""
    known = [(mark, ids[-1]) for mark, ids in zip(marks, tokenizer.encode_target(list(marks)), strict=True)]
    required = tuple(tuple(id for mark, id in known if mark in text) for text in texts)
    return Placeholders(tuple(id for _, id in known), required) if known else None


class LoadedTranslator(NamedTuple):
    """The model, tokenizer and card of a folder, and what loads the model once more."""

    model: EncoderDecoder
    tokenizer: PairTokenizer
    about: About | None
    reload: Callable[[], EncoderDecoder] | None
    shortlist: Shortlist | None = None


def read_native(
    folder: Path, source: str | None, to: str | None, rounded: bool, adapter: str | Path | None
) -> LoadedTranslator:
    """The translator of a folder of Marian's own files; of any other without a config.json, why it is none."""
    from glassformer.weights.pretrained.loader import load_native
    from glassformer.weights.pretrained.marian_native import find_files, read_texts

    files = find_files(folder)
    if files is None:
        return read_bundle(folder, source, to, rounded, adapter)
    for name, value in (("to", to), ("source", source)):
        if value is not None:
            raise InputError(f"{folder} translates one way only; {name}={value!r} cannot be chosen")
    model = load_native(files, rounded and adapter is None)
    if adapter is not None:
        load_adapter(model, adapter)
    tokenizer, shortlist = read_texts(files, model.config)
    reload = bundle.reloader(folder, lambda place: load_native(find_files(place) or files))
    return LoadedTranslator(model, tokenizer, None, reload, shortlist)


def read_published(
    folder: Path, source: str | None, to: str | None, rounded: bool, adapter: str | Path | None
) -> LoadedTranslator:
    """The translator of a Hugging Face folder."""
    from glassformer.weights.pretrained.loader import load_published

    model, tokenizer = load_published(folder, source, to)
    if adapter is not None:
        load_adapter(model, adapter)
    tokenizer = tokenizer if to is None else direct_tokenizer(tokenizer, to)
    about = tokenizer.card(About()) if isinstance(tokenizer, Directed) else None
    reload = bundle.reloader(folder, lambda place: load_published(place, source, to)[0])
    return LoadedTranslator(model, tokenizer, about, reload)


def read_bundle(
    folder: Path, source: str | None, to: str | None, rounded: bool, adapter: str | Path | None
) -> LoadedTranslator:
    """The translator of a folder that `glassformer train` has made."""
    loaded = bundle.load(folder, rounded, adapter)
    model = loaded.of_kind(EncoderDecoder)
    if to is None and (tags := loaded.tokenizer.tags):
        raise InputError(f"{folder} translates into {' and '.join(tags)}; say into which: to={tags[0]!r}")
    tokenizer = loaded.tokenizer if to is None else loaded.tokenizer.toward(to)
    about = tokenizer.card(About.of_recipe(loaded.recipe))
    if source is not None and source != about.source:  # it reads the language that it does not write
        what = f"translates from {about.source}" if about.source else "has one source"
        raise InputError(f"{folder} {what}; source={source!r} cannot be chosen")
    reload = bundle.reloader(folder, lambda place: bundle.load(place).of_kind(EncoderDecoder))
    return LoadedTranslator(model, tokenizer, about, reload)


def direct_tokenizer(tokenizer: PairTokenizer, language: str) -> PairTokenizer:
    """The same tokenizer, for another of the target languages that it knows."""
    if not isinstance(tokenizer, Directed):
        raise InputError(f"this model translates into one language only; to={language!r} cannot be chosen")
    return tokenizer.toward(language)


def check_batch_tokens(batch_tokens: int | None) -> None:
    if batch_tokens is not None and batch_tokens < 1:
        raise ConfigError(f"batch_tokens={batch_tokens} must be at least 1")
