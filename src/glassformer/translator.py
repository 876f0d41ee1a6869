"""Sentence in, sentence out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from glassformer import bundle
from glassformer.decode import Hypothesis, LengthRule, Sampling
from glassformer.decode.alignment import Alignment
from glassformer.decode.engine import BATCH_TOKENS, Engine, Likelihood, Search
from glassformer.decode.hypothesis import Rule
from glassformer.decode.precision import Precision
from glassformer.errors import ConfigError, InputError, WeightsError
from glassformer.model import EncoderDecoder
from glassformer.text import About, Tokenizer
from glassformer.text.cutting import Part, cut, joined, seam
from glassformer.text.strings import one_string, strings

SHORTEST = 8  # tokens; in fewer, not every single character can be spelt


class Text(Protocol):
    """What a translator asks of a tokenizer; ids come with whatever marks the model's sources end with."""

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]: ...

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]: ...

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]: ...

    def source_pieces(self, ids: Sequence[int]) -> list[str]: ...

    def target_pieces(self, ids: Sequence[int]) -> list[str]: ...


@dataclass(frozen=True)
class Translation:
    """A target, its score (the log-probability over the length rule's divisor) and its tokens.

    A text too long for the model is translated in `parts`. Its score is then the mean of theirs, each counted by the
    tokens of its source: the total log-probability cannot be told from scores that are divided by length.

    On request, `alignment` pairs the place of each of `tokens` with that of the one in `source_tokens` it came from.

    One that is not `finished` was stopped, it or a part of it, by the limit of length before it came to an end.
    """

    text: str
    score: float
    tokens: list[str]
    parts: int = 1
    source_tokens: list[str] | None = None
    alignment: Alignment | None = None
    finished: bool = True


@dataclass(frozen=True)
class Alternative:
    """A token that may come next, its log-probability, and the likeliest translation that goes on from it."""

    token: str
    log_probability: float
    translation: Translation


class TooLong(InputError):
    """A text that cannot be split: the `index`-th of those given as `name`."""

    def __init__(self, name: str, index: int, reason: str) -> None:
        super().__init__(name, index, reason)  # all three, so that it can be pickled
        self.name, self.index, self.reason = name, index, reason

    def __str__(self) -> str:
        return f"{self.name}[{self.index}] {self.reason}"


class Translator:
    """A model with its tokenizer. `t("one sentence")` gives its translation; `t.translate` takes many.

    `t.model` is the plain float32 model; what runs is a copy, made on first use for the `precision` asked for, and made
    again when the weights have changed since (through `.data` they change unseen). A translator that was loaded with
    rounded weights keeps these alone, until somebody asks for `t.model`. Nothing else is kept from call to call but the
    tokenizer's memory of words: threads may share a translator, and processes may be handed one.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        tokenizer: Text,
        device: str | torch.device = "cpu",
        precision: Precision = "fp32",
        about: About | None = None,
    ) -> None:
        self.device, self.about = pick_device(device), about or About()
        self.engine, self.tokenizer = Engine(model, self.device, precision), tokenizer

    @property
    def model(self) -> EncoderDecoder:
        return self.engine.model

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu", precision: Precision = "fp32") -> Translator:
        """A folder that `glassformer train` has made, or a local Hugging Face folder of a Marian model."""
        device, folder = pick_device(device), Path(folder)
        if not bundle.is_bundle(folder) and os.path.isfile(folder / "config.json"):
            from glassformer.pretrained.marian_text import load_marian

            made = cls(*load_marian(folder), device, precision)
            made.engine.again = unchanged(folder, lambda place: load_marian(place)[0])
            return made
        loaded = bundle.load(folder)
        made = cls(loaded.model, loaded.tokenizer, device, precision, About.of_recipe(loaded.recipe))
        made.engine.again = unchanged(folder, lambda place: bundle.load(place).model)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied as what it was made of; the copy that runs is made again on first use."""
        return type(self), (self.model, self.tokenizer, self.device, self.engine.precision, self.about)

    def __call__(self, text: str) -> str:
        return self.translate([one_string(text)])[0][0].text

    def translate(
        self,
        texts: Iterable[str],
        beam: int = 1,
        nbest: int = 1,
        length_penalty: float = 1.0,
        max_length: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
        progress: Callable[[int], None] | None = None,
        *,
        length_rule: Rule = "average",
        sampling: Sampling | None = None,
        prefix: str | Iterable[str] | None = None,
        repetition_penalty: float = 1.0,
        no_repeat_ngram: int = 0,
        alignments: bool = False,
        between_steps: Callable[[], None] | None = None,
    ) -> list[list[Translation]]:
        """The `nbest` best translations of each text (fewer where no more are possible), in the order given; an empty
        text stays empty.

        A text of more than `max_length` tokens (the model's own limit, if that is lower or none is given) is split at
        sentence ends, else at clauses, else at spaces, else anywhere; `progress` is told how many texts are done.

        With `sampling`, one translation is drawn instead. Each begins with `prefix`, one for all or one for each text,
        even where it says a thing twice that `no_repeat_ngram` forbids; of a text that is split, the first part does.
        What `between_steps` raises ends the search.
        """
        texts = strings(texts, "texts")
        check_batch(batch_tokens)
        search = Search(beam, nbest, length_penalty, length_rule, sampling, repetition_penalty, no_repeat_ngram)
        split = self.split(texts, self.limit(max_length))
        begun = self.begin(split, prefix)
        jobs = [(i, k) for i, parts in enumerate(split) for k in range(len(parts))]
        sources = [split[i][k].ids for i, k in jobs]
        written: list[list[list[Hypothesis]]] = [[[] for _ in parts] for parts in split]
        aligned: list[list[list[Alignment]]] = [[[] for _ in parts] for parts in split]
        left = [len(parts) for parts in split]
        done = left.count(0)
        prefixes = [begun[i] if k == 0 else [] for i, k in jobs]
        for rows, best in self.engine.write(sources, prefixes, search, batch_tokens, between_steps):
            places = self.engine.align([sources[n] for n in rows], best) if alignments else [[]] * len(rows)
            for n, hypotheses, found in zip(rows, best, places, strict=True):
                i, k = jobs[n]
                written[i][k], aligned[i][k] = hypotheses, found
                left[i] -= 1
                done += left[i] == 0
            if progress is not None:
                progress(done)
        return [
            self.assemble(parts, ranked, nbest, found if alignments else None)
            for parts, ranked, found in zip(split, written, aligned, strict=True)
        ]

    def stream(
        self,
        text: str,
        max_length: int | None = None,
        *,
        sampling: Sampling | None = None,
        prefix: str = "",
        repetition_penalty: float = 1.0,
        no_repeat_ngram: int = 0,
    ) -> Iterator[str]:
        """The translation of one text piece by piece, as it is written: the likeliest tokens, or drawn by `sampling`.

        Joined, the pieces are what `translate` gives with the same options.
        """
        search = Search(sampling=sampling, repetition_penalty=repetition_penalty, no_repeat_ngram=no_repeat_ngram)
        (parts,) = split = self.split([one_string(text)], self.limit(max_length))
        (begun,) = self.begin(split, one_string(prefix))
        return self.flow(parts, begun, search)

    def flow(self, parts: list[Part], begun: list[int], search: Search) -> Iterator[str]:
        whole = ""
        for before, part in zip([None, *parts], parts, strict=False):
            start = len(whole)
            for more in self.spell(self.engine.stream(part.ids, begun if before is None else [], search)):
                if before is not None and len(whole) == start:
                    more = seam(before, part, whole, more) + more
                whole += more
                yield more

    def spell(self, tokens: Iterable[int]) -> Iterator[str]:
        """The text of a growing target, each letter as soon as no later token can change it."""
        ids: list[int] = []
        text = shown = ""
        for token in tokens:
            ids.append(token)
            (text,) = self.tokenizer.decode_target([ids])
            # A letter whose bytes have not all come yet reads as the replacement character.
            if len(text) > len(shown) and not text.endswith("\ufffd"):
                yield text[len(shown) :]
                shown = text
        if len(text) > len(shown):
            yield text[len(shown) :]

    def alternatives(self, text: str, prefix: str = "", count: int = 5) -> list[Alternative]:
        """The `count` likeliest tokens after `prefix` in the translation of `text`, and where each would lead."""
        (parts,) = split = self.split([one_string(text)], self.limit())
        if len(parts) != 1:
            what = "is empty" if not parts else f"is longer than the {self.limit():,} tokens read at once"
            raise InputError(f"the text {what}; alternatives() looks at one text that is translated as a whole")
        (begun,) = self.begin(split, one_string(prefix))
        if len(begun) == self.room(len(parts[0].ids)):
            raise InputError(f"the prefix {prefix!r:.60} leaves no room for another token; shorten it")
        return [
            Alternative(self.tokenizer.target_pieces([token])[0], value, self.assemble(parts, [[way]], 1)[0])
            for token, value, way in self.engine.alternatives(parts[0].ids, begun, count)
        ]

    def score(
        self,
        texts: Iterable[str],
        targets: Iterable[str],
        length_penalty: float = 1.0,
        length_rule: Rule = "average",
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[float]:
        """The score that search would give each target as the translation of its text."""
        rule = LengthRule(length_penalty, length_rule)
        return [found.score(rule) for found in self.likelihoods(texts, targets, batch_tokens)]

    def likelihoods(
        self, texts: Iterable[str], targets: Iterable[str], batch_tokens: int = BATCH_TOKENS
    ) -> list[Likelihood]:
        """How likely the model finds each target as the translation of its text; an empty text's is empty for sure."""
        texts, targets = strings(texts, "texts"), strings(targets, "targets")
        check_batch(batch_tokens)
        if len(texts) != len(targets):
            raise InputError(f"{len(texts)} texts but {len(targets)} targets; give one each")
        sources, wanted = self.tokenizer.encode_source(texts), self.tokenizer.encode_target(targets)
        limit = self.limit()
        for i, (source, target) in enumerate(zip(sources, wanted, strict=True)):
            for name, length, most in (("texts", len(source), limit), ("targets", len(target), limit - 1)):
                if length > most:
                    raise TooLong(name, i, f"has {length:,} tokens, the model takes {most:,}; score it in pieces")
        found = [Likelihood(float("-inf") if target else 0.0, len(target)) for target in wanted]
        real = [i for i, text in enumerate(texts) if sources[i] and text.strip()]
        likely = self.engine.likelihoods([sources[i] for i in real], [wanted[i] for i in real], batch_tokens)
        for i, likelihood in zip(real, likely, strict=True):
            found[i] = likelihood
        return found

    def unfamiliar(self, texts: Sequence[str]) -> list[str]:
        """The words of `texts` that the model's training never met, each once; none where that is not known."""
        return self.tokenizer.unfamiliar(texts) if isinstance(self.tokenizer, Tokenizer) else []

    def limit(self, max_length: int | None = None) -> int:
        """The most source tokens translated at once."""
        if max_length is not None and max_length < SHORTEST:
            raise InputError(f"max_length={max_length} is too short to hold every character; give {SHORTEST} or more")
        own = self.engine.config.max_length
        return own if max_length is None else min(max_length, own)

    def split(self, texts: Sequence[str], limit: int) -> list[list[Part]]:
        """Each text as parts of at most `limit` tokens: most often one, none for white space alone."""
        encode = self.tokenizer.encode_source
        found: list[list[Part]] = []
        for text, ids in zip(texts, encode(texts), strict=True):
            if not ids or not text.strip():
                found.append([])
            elif len(ids) <= limit:
                found.append([Part(text, ids)])
            else:
                found.append(cut(text, limit, encode))
        return found

    def begin(self, split: list[list[Part]], prefix: str | Iterable[str] | None) -> list[list[int]]:
        """The ids that each text's translation must begin with; a space at their end is the next word's own."""
        given = [prefix or ""] * len(split) if prefix is None or isinstance(prefix, str) else strings(prefix, "prefix")
        if len(given) != len(split):
            raise InputError(f"{len(given)} prefixes for {len(split)} texts; give one for all, or one each")
        begun = self.tokenizer.encode_target([one.rstrip() for one in given])
        for parts, one, ids in zip(split, given, begun, strict=True):
            if parts and len(ids) > self.room(len(parts[0].ids)):
                raise InputError(
                    f"the prefix {one!r:.60} has {len(ids)} tokens, but the translation of {parts[0].text!r:.60} "
                    f"may have {self.room(len(parts[0].ids))}; shorten it"
                )
        return begun

    def room(self, length: int) -> int:
        """The longest translation tried for a source of `length` tokens."""
        return self.engine.room(length)

    def assemble(
        self,
        parts: list[Part],
        written: list[list[Hypothesis]],
        nbest: int,
        aligned: list[list[Alignment]] | None = None,
    ) -> list[Translation]:
        """A text's translations from those of its parts, the best with the best, the second with the second."""
        if not parts:
            nothing: list[Any] | None = None if aligned is None else []
            return [Translation("", 0.0, [], 1, nothing, nothing)] * nbest
        found = []
        for rank, ranked in enumerate(zip(*written, strict=False)):  # as many as the part with the fewest has
            texts = self.tokenizer.decode_target([h.ids for h in ranked])
            weight = sum(len(part.ids) for part in parts)
            score = sum(h.score * len(part.ids) for h, part in zip(ranked, parts, strict=True)) / weight
            tokens = [piece for h in ranked for piece in self.tokenizer.target_pieces(h.ids)]
            source_tokens: list[str] | None = None
            alignment: Alignment | None = None
            if aligned is not None:
                source_tokens, alignment, seen = [], [], 0
                for part, h, places in zip(parts, ranked, aligned, strict=True):
                    alignment += [(seen + t, len(source_tokens) + s) for t, s in places[rank]]
                    source_tokens += self.tokenizer.source_pieces(part.ids)
                    seen += len(h.ids)
            score = ranked[0].score if len(parts) == 1 else score
            finished = all(h.finished for h in ranked)
            text = joined(parts, texts)
            found.append(Translation(text, score, tokens, len(parts), source_tokens, alignment, finished))
        return found


def unchanged(folder: Path, load: Callable[[Path], EncoderDecoder]) -> Callable[[], EncoderDecoder]:
    """Loads the model of a folder a second time, if it still is the one that it was."""
    folder = folder.resolve()

    def told() -> list[tuple[str, int, int]]:
        files = [file for file in sorted(folder.iterdir()) if file.suffix in (".safetensors", ".bin", ".json")]
        return [
            (file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.name != "scores.json"
        ]

    before = told()

    def again() -> EncoderDecoder:
        if not folder.is_dir() or told() != before:
            raise WeightsError(f"{folder} is not what it was when it was loaded; load the translator again")
        return load(folder)

    return again


def check_batch(batch_tokens: int) -> None:
    if batch_tokens < 1:
        raise ConfigError(f"batch_tokens={batch_tokens} must be at least 1")


def pick_device(device: str | torch.device) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        picked = torch.device(device)
        torch.empty(0, device=picked)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {str(device)!r} cannot be used ({reason}); try cpu, or auto") from None
    return picked
