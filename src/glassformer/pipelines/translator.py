"""Sentence in, sentence out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Unpack

import torch

from glassformer.common.device import pick_device
from glassformer.common.errors import InputError
from glassformer.common.strings import one_string, strings
from glassformer.data import About, Directed, PairTokenizer, Tokenizer
from glassformer.decode import Hypothesis, LengthRule, Search
from glassformer.decode.engine import BATCH_TOKENS, Engine, Likelihood
from glassformer.decode.precision import Precision
from glassformer.decode.scoring import Alignment
from glassformer.decode.search import Rule, SearchOptions, check_stream, search_of
from glassformer.model import EncoderDecoder
from glassformer.pipelines import box
from glassformer.pipelines.language.cutting import Part, cut, seam
from glassformer.pipelines.translation import Alternative as Alternative
from glassformer.pipelines.translation import TooLong as TooLong
from glassformer.pipelines.translation import Translation as Translation
from glassformer.pipelines.translation import assemble, check_batch_tokens, opened, placeholders_of, spelt, toward
from glassformer.weights.hub import locate

SHORTEST = 8  # tokens; in fewer, not every single character can be spelt


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
        tokenizer: PairTokenizer,
        device: str | torch.device = "cpu",
        precision: Precision = "fp32",
        about: About | None = None,
    ) -> None:
        self.device, self.about = pick_device(device), about or About()
        self.engine, self.tokenizer = Engine(model, self.device, precision), tokenizer

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
        other, tokenizer = object.__new__(type(self)), toward(self.tokenizer, language)
        assert isinstance(tokenizer, Directed)
        vars(other).update(vars(self), tokenizer=tokenizer, about=tokenizer.card(self.about))
        return other

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
        """A folder that `glassformer train` has made, or a Hugging Face folder of a Marian, M2M100, NLLB or mBART
        model; where there is no such folder, one of the translators that come with glassformer: "en-de", "de-en",
        "en-zh", "zh-en"; and else a model of the hub, such as "Helsinki-NLP/opus-mt-en-de", fetched as `load_model`
        does.

        A model that translates into several languages has to be told which: `to="de"`. One that reads several too, from
        which: `source="en"`. What an `adapter` has learnt, a folder that a run with `train.lora_rank` has made, is
        added to the weights.
        """
        if not os.path.lexists(folder) and (way := box.directions().get(str(folder))) is not None:
            folder, to = box.folder(way.model), to or way.to
        device, folder = pick_device(device), locate(folder, revision, offline)
        found = opened(folder, source, to, device.type == "cpu", adapter)
        made = cls(found.model, found.tokenizer, device, precision, found.about)
        made.engine.again = found.again
        return made

    @property
    def _given(self) -> int:
        """The tokens with which every target begins: that of its language, where there is one."""
        return len(self.tokenizer.encode_target([""])[0])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied as what it was made of; the copy that runs is made again on first use."""
        return type(self), (self.model, self.tokenizer, self.device, self.engine.precision, self.about)

    def __call__(self, text: str) -> str:
        return self.translate([one_string(text)])[0][0].text

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
        text stays empty. What to look for is given whole as `search`, by name, such as `beam=4`, or both: a name wins.

        A text of more than `max_length` tokens (the model's own limit, if that is lower or none is given) is split at
        sentence ends, else at clauses, else at spaces, else anywhere; `progress` is told how many texts are done.

        Each begins with `prefix`, one for all or one for each text, even where it says a thing twice that
        `no_repeat_ngram` forbids; of a text that is split, the first part does. With `placeholders`, each that a text
        holds, of those that the model has learnt to copy, comes exactly once in its translation, and no other. What
        `between_steps` raises ends the search.
        """
        search = search_of(search, **options)
        texts = strings(texts, "texts")
        check_batch_tokens(batch_tokens)
        split = self.split(texts, self.max_source_length(max_length))
        prefixes = self._prefix_ids(split, prefix, search)
        jobs = [(i, k) for i, parts in enumerate(split) for k in range(len(parts))]
        sources = [split[i][k].ids for i, k in jobs]
        begun = [prefixes[i] if k == 0 else prefixes[i][: self._given] for i, k in jobs]
        held = placeholders_of(self.tokenizer, [split[i][k].text for i, k in jobs]) if placeholders else None
        written: list[list[list[Hypothesis]]] = [[[] for _ in parts] for parts in split]
        aligned: list[list[list[Alignment]]] = [[[] for _ in parts] for parts in split]
        left = [len(parts) for parts in split]
        for rows, best in self.engine.generate(
            sources, begun, search, given=self._given, placeholders=held, batch_tokens=batch_tokens,
            between_steps=between_steps,
        ):  # fmt: skip
            pairs = self.engine.align([sources[n] for n in rows], best) if alignments else [[]] * len(rows)
            for n, hypotheses, alignment in zip(rows, best, pairs, strict=True):
                i, k = jobs[n]
                written[i][k], aligned[i][k] = hypotheses, alignment
                left[i] -= 1
            if progress is not None:
                progress(left.count(0))
        return [
            assemble(self.tokenizer, split[i], written[i], search.nbest, aligned[i] if alignments else None)
            for i in range(len(texts))
        ]

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
        (parts,) = split = self.split([one_string(text)], self.max_source_length(max_length))
        (begun,) = self._prefix_ids(split, one_string(prefix), search)
        return self.__stream_parts(parts, begun, search)

    def __stream_parts(self, parts: list[Part], begun: list[int], search: Search) -> Iterator[str]:
        whole, given = "", self._given
        for before, part in zip([None, *parts], parts, strict=False):
            start = len(whole)
            tokens = self.engine.stream(part.ids, begun if before is None else begun[:given], search, given)
            for more in spelt(self.tokenizer, tokens):
                if before is not None and len(whole) == start:
                    more = seam(before, part, whole, more) + more
                whole += more
                yield more

    def alternatives(self, text: str, prefix: str = "", count: int = 5) -> list[Alternative]:
        """The `count` likeliest tokens after `prefix` in the translation of `text`, and where each would lead."""
        longest = self.max_source_length()
        (parts,) = split = self.split([one_string(text)], longest)
        if len(parts) != 1:
            what = "is empty" if not parts else f"is longer than the {longest:,} tokens read at once"
            raise InputError(f"the text {what}; alternatives() looks at one text that is translated as a whole")
        (begun,) = self._prefix_ids(split, one_string(prefix))
        if len(begun) == self.max_target_length(len(parts[0].ids)):
            raise InputError(f"the prefix {prefix!r:.60} leaves no room for another token; shorten it")
        return [
            Alternative(self.tokenizer.target_pieces([token])[0], value, assemble(self.tokenizer, parts, [[whole]])[0])
            for token, value, whole in self.engine.alternatives(parts[0].ids, begun, count, self._given)
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
        """How likely the model finds each target as the translation of its text; an empty text's is empty for sure."""
        texts, targets = strings(texts, "texts"), strings(targets, "targets")
        check_batch_tokens(batch_tokens)
        if len(texts) != len(targets):
            raise InputError(f"{len(texts)} texts but {len(targets)} targets; give one each")
        sources, wanted = self.tokenizer.encode_source(texts), self.tokenizer.encode_target(targets)
        limit = self.max_source_length()
        for i, (source, target) in enumerate(zip(sources, wanted, strict=True)):
            for name, length, most in (("texts", len(source), limit), ("targets", len(target), limit - 1)):
                if length > most:
                    raise TooLong(name, i, f"has {length:,} tokens, the model takes {most:,}; score it in pieces")
        given = self._given
        likelihoods = [Likelihood(float("-inf") if len(ids) > given else 0.0, len(ids) - given) for ids in wanted]
        real = [i for i, text in enumerate(texts) if sources[i] and text.strip()]
        likely = self.engine.likelihoods([sources[i] for i in real], [wanted[i] for i in real], batch_tokens, given)
        for i, likelihood in zip(real, likely, strict=True):
            likelihoods[i] = likelihood
        return likelihoods

    def unfamiliar(self, texts: Sequence[str]) -> list[str]:
        """The words of `texts` that the model's training never met, each once; none where that is not known."""
        return self.tokenizer.unfamiliar(texts) if isinstance(self.tokenizer, Tokenizer) else []

    def max_source_length(self, asked: int | None = None) -> int:
        """The most source tokens translated at once."""
        if asked is not None and asked < SHORTEST:
            raise InputError(f"max_length={asked} is too short to hold every character; give {SHORTEST} or more")
        own = self.engine.config.max_length
        return own if asked is None else min(asked, own)

    def max_target_length(self, length: int, search: Search | None = None) -> int:
        """The longest translation tried for a source of `length` tokens."""
        return self.engine.max_target_length(length, search)

    def split(self, texts: Sequence[str], limit: int) -> list[list[Part]]:
        """Each text as parts of at most `limit` tokens: most often one, none for white space alone."""
        encode = self.tokenizer.encode_source

        def parts(text: str, ids: list[int]) -> list[Part]:
            if not ids or not text.strip():
                return []
            return [Part(text, ids)] if len(ids) <= limit else cut(text, limit, encode)

        return [parts(text, ids) for text, ids in zip(texts, encode(texts), strict=True)]

    def _prefix_ids(
        self, split: list[list[Part]], prefix: str | Iterable[str] | None, search: Search | None = None
    ) -> list[list[int]]:
        """The ids that each text's translation must begin with; a space at their end is the next word's own."""
        given = [prefix or ""] * len(split) if prefix is None or isinstance(prefix, str) else strings(prefix, "prefix")
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
