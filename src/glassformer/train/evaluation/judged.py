"""A model of one stack judged: what it makes of texts, gaps or labels that it is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from glassformer.common.errors import ConfigError, DataError
from glassformer.common.report import Report
from glassformer.common.strings import strings
from glassformer.data import Corpus, Tokenizer, read_pairs
from glassformer.data.exact_source import determined, limit
from glassformer.data.lines import read_lines
from glassformer.data.noise import ordinary
from glassformer.data.pictures import pictures, read_images
from glassformer.decode.precision import Precision
from glassformer.model import DecoderOnly, EncoderDecoder, Model
from glassformer.pipelines import Classifier, MaskFiller, TextGenerator
from glassformer.pipelines.filler import Recovered
from glassformer.train import Recipe
from glassformer.train.evaluation.measures import GapScores, LabelScores, Measures, TextScores
from glassformer.weights import bundle
from glassformer.weights.pretrained.loader import FAMILIES, read_config

CHUNK = 256  # texts or images looked at between two words on how far it is

Given = str | Path | Iterable[Any] | None


@dataclass(frozen=True)
class Loading:
    """How a model is loaded to be judged."""

    device: str
    precision: Precision
    adapter: str | Path | None = None


@dataclass(frozen=True)
class Judged:
    """The scores, what was read, what the model said of it, and what is right, where these are texts."""

    scores: Measures
    items: tuple[str, ...]
    told: tuple[str, ...] = ()
    right: tuple[str, ...] = ()


def kind_of(folder: Path) -> type[Model]:
    """What a folder holds, told by its config.json; where that says nothing, a translator is looked for."""
    if bundle.is_bundle(folder):
        return bundle.read_config(folder).kind
    settings = read_config(folder) if (folder / "config.json").is_file() else None
    family = FAMILIES.get(str(settings.values.get("model_type"))) if settings is not None else None
    return EncoderDecoder if settings is None or family is None else family(settings).model


def judge(
    folder: Path,
    kind: type[Model],
    items: Sequence[Any],
    labels: Sequence[str] | None,
    loading: Loading,
    report: Report,
    known: bool = False,
) -> Judged:
    """The model in a folder, which is of this kind, on texts or images; `labels` are theirs, for a classifier. `known`:
    the texts are of the source whose law is known."""

    def chunks(what: str) -> Iterable[Sequence[Any]]:
        for first in range(0, len(items), CHUNK):
            yield items[first : first + CHUNK]
            report.show(f"{what}: {min(first + CHUNK, len(items)):,} of {len(items):,}")

    if kind is DecoderOnly:
        refuse(labels, "a decoder is judged by texts alone")
        generator = TextGenerator.load(folder, loading.device, loading.precision, adapter=loading.adapter)
        found = [one for chunk in chunks("reading texts") for one in generator.likelihoods(chunk)]
        totals, tokens = [one.log_probability for one in found], sum(one.tokens for one in found)
        return Judged(TextScores.of(totals, tokens, items, limit(items) if known else None), tuple(items))
    if labels is None:
        filler = MaskFiller.load(folder, loading.device, adapter=loading.adapter)
        hidden = [one for chunk in chunks("filling gaps") for one in filler.recover(chunk)]
        likely = [one.likelihood for one in hidden]
        scores = GapScores.of(
            [one.log_probability for one in likely],
            [one.right for one in hidden],
            [one.tokens for one in likely],
            list(told_by_the_rest(bundle.load(folder).tokenizer, items, hidden, report)) if known else (),
        )
        return Judged(scores, tuple(items))
    classifier = Classifier.load(folder, loading.device, adapter=loading.adapter)
    if empty := sum(not label for label in labels):  # as training leaves them out
        report.say(f"left out: {empty:,} without a label")
        items = [item for item, label in zip(items, labels, strict=True) if label]
        labels = [label for label in labels if label]
    for label in labels:
        if label not in classifier.labels:
            raise DataError(f"the label {label!r:.60} is not one that the model knows: {', '.join(classifier.labels)}")
    ranked = [one for chunk in chunks("telling labels") for one in classifier.classify(chunk, top=1)]
    told = [best[0].name for best in ranked]
    names = [one if isinstance(one, str) else f"image {number}" for number, one in enumerate(items, 1)]
    return Judged(LabelScores.of(told, labels), tuple(names), tuple(told), tuple(labels))


def told_by_the_rest(
    tokenizer: Tokenizer, texts: Sequence[str], recovered: Sequence[Recovered], report: Report
) -> Iterator[bool]:
    """Of each gap that the rest of its text leaves no choice for, whether it is filled right."""
    pieces = [*ordinary(tokenizer.pieces[1])]
    for number, (ids, one) in enumerate(zip(tokenizer.encode_target(texts), recovered, strict=True), 1):
        report.show(f"trying other tokens: {number:,} of {len(texts):,}")
        yield from (right for right, only in zip(one.each, determined(ids, tokenizer, pieces), strict=True) if only)


def refuse(labels: Sequence[str] | None, why: str) -> None:
    if labels is not None:
        raise ConfigError(f"ref=... gives labels or translations, and {why}; leave it out")


def given_items(folder: Path, kind: type[Model], src: Given, ref: Given) -> tuple[str, list[Any], list[str] | None]:
    """What a caller gives: texts, one a line, and for a classifier their labels; or images with labels in an .npz."""
    if isinstance(src, str | Path) and Path(src).suffix == ".npz":
        images, labels = read_images(Path(src))
        return Path(src).name, list(images), labels
    name = Path(src).name if isinstance(src, str | Path) else "given texts"
    items = list(read_lines(Path(src))) if isinstance(src, str | Path) else list(src or [])
    if ref is not None:
        found = list(read_lines(Path(ref))) if isinstance(ref, str | Path) else strings(ref, "ref")
        if len(found) != len(items):
            raise DataError(f"{len(items):,} items but {len(found):,} labels; give one each")
        return name, items, found
    if kind is not DecoderOnly and bundle.is_bundle(folder) and bundle.read_config(folder).config.labels:
        raise ConfigError(f"{folder} tells labels: give the right ones too, ref=...")
    return name, items, None


def split_items(corpora: Sequence[Corpus]) -> tuple[list[Any], list[str] | None]:
    """The same of a split of a recipe."""
    if corpora[0].pictured:
        both = [pictures(corpus) for corpus in corpora]
        return list(chain.from_iterable(images for images, _ in both)), [name for _, names in both for name in names]
    pairs = list(chain.from_iterable(map(read_pairs, corpora)))
    if corpora[0].lone:
        return [text for _, text in pairs], None
    return [text for text, _ in pairs], [label for _, label in pairs]


def seen_in_training(corpora: tuple[Corpus, ...], recipe: Recipe, report: Report) -> int | None:
    """How many pairs of `corpora` are among the training pairs too; None where those cannot be read once more."""

    def pairs(corpora: tuple[Corpus, ...]) -> Iterator[tuple[str, str]]:
        for source, target in chain.from_iterable(map(read_pairs, corpora)):
            yield source.strip(), target.strip()

    if any(corpus.hub for corpus in recipe.data.train):  # it would be fetched a second time
        return None
    wanted, seen = Counter(pairs(corpora)), set()
    try:
        for number, pair in enumerate(pairs(recipe.data.train)):
            if pair in wanted:
                seen.add(pair)
            if number % 10_000 == 0:
                report.show(f"looking for them among the training pairs: {number:,}")
    except DataError:
        return None
    report.clear()
    return sum(wanted[pair] for pair in seen)
