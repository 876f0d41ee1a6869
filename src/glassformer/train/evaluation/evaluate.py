"""Evaluation of a trained model on a split, files or lists, and BLEU on the validation pairs during training."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from glassformer.common.arguments import checked
from glassformer.common.errors import ConfigError, DataError, WeightsError, why
from glassformer.common.files import write_text
from glassformer.common.report import Report
from glassformer.common.version import __version__
from glassformer.data import Corpus, Tokenizer, read_pairs
from glassformer.data.exact_source import determined_tokens, least_loss
from glassformer.data.noise import text_pieces
from glassformer.decode import Search
from glassformer.decode.precision import Precision
from glassformer.model import DecoderOnly, EncoderDecoder, Model
from glassformer.pipelines import Classifier, MaskFiller, TextGenerator
from glassformer.pipelines.confidence import Confidence
from glassformer.pipelines.filler import Recovered
from glassformer.pipelines.translator import Translator
from glassformer.train import Recipe
from glassformer.train.evaluation.calibration import calibrate, keep_confidence
from glassformer.train.evaluation.metrics import (
    BaseScores,
    GapScores,
    LabelScores,
    Scores,
    TextScores,
    make_bleu,
    score,
)
from glassformer.train.evaluation.references import (
    given_items,
    given_pairs,
    in_language,
    joined_texts,
    model_kind,
    mostly_unspaced,
    readable_recipe,
    recipe_split,
    refuse_labels,
    split_items,
)
from glassformer.train.loop import Judge
from glassformer.train.options import Score, Tokenize
from glassformer.weights import bundle
from glassformer.weights.bundle import is_bundle, read_scores
from glassformer.weights.hub import locate
from glassformer.weights.pretrained.loader import is_multilingual

CHUNK = 256  # texts or images looked at between two words on how far it is
CHINESE = ("zh", "zho")  # as models call it


@dataclass(frozen=True)
class Task:
    """What `gf.evaluate` was given: the model, how to load it, and what to judge it by."""

    folder: Path
    src: str | Path | Iterable[Any] | None
    ref: str | Path | Iterable[str] | None
    split: str | None
    to: str | None
    source: str | None
    device: str
    precision: Precision
    adapter: str | Path | None
    report: Report
    calibrate: bool = False


@dataclass(frozen=True)
class Evaluation:
    """What `gf.evaluate` finds: the `scores`, with their signatures, and every translation beside its reference.

    `name` says which pairs: a split of the recipe, or two files. `settings` is the recipe's [score] as it was used. Of
    a model that does not translate, `scores` says by `measured` how it was judged; a classifier's labels are the
    `hypotheses`, the right ones the `references`.
    """

    name: str
    scores: Scores | BaseScores
    settings: Score
    precision: str
    sources: tuple[str, ...]
    hypotheses: tuple[str, ...]
    references: tuple[str, ...]
    confidence: Confidence | None = None  # with `calibrate`


@checked
def evaluate(
    folder: str | Path,
    src: str | Path | Iterable[str] | None = None,
    ref: str | Path | Iterable[str] | None = None,
    *,
    split: str | None = None,
    to: str | None = None,
    source: str | None = None,
    beam: int | None = None,
    length_penalty: float | None = None,
    tokenize: str | None = None,
    lowercase: bool | None = None,
    device: str = "auto",
    precision: Precision = "fp32",
    adapter: str | Path | None = None,
    record: bool = False,
    calibrate: bool = False,
    report: Report | None = None,
) -> Evaluation:
    """Translate and compare, as `glassformer evaluate` does: BLEU, chrF and exact match, with signatures and intervals;
    of other models, what fits them. A decoder: perplexity and bits per byte of texts. An encoder that fills gaps:
    accuracy and pseudo-perplexity, each token hidden in turn. A classifier: accuracy and macro F1, `ref` being labels,
    or `src` an .npz of `images` and `labels`.

    The pairs are those of `src` and `ref`, two files or two lists of sentences, else of a `split` of the recipe in the
    folder: test, if none is named, valid or train. Of a model that translates into several languages, one is judged at
    a time: `to`; one that reads several is told from which, `source`. What is not given is as the recipe has it under
    [score]. With an `adapter`, the model is judged with what that has learnt. With `record`, the scores are added to
    scores.json in the folder. With `calibrate`, how sure the model's translations are is measured on these pairs, and
    kept in the folder. A `report` is told how far it is.

        found = gf.evaluate("runs/demo", ["twenty-one"], ["einundzwanzig"], beam=4)
        print(found.scores, found.scores.bleu_signature, found.hypotheses)
    """
    folder, report = locate(folder), report or Report(quiet=True)
    task = Task(folder, src, ref, split, to, source, device, precision, adapter, report, calibrate)
    if calibrate and adapter is not None:
        raise ConfigError("calibrate=True is for the model alone; give no adapter")
    options = {"beam": beam, "length_penalty": length_penalty, "tokenize": tokenize, "lowercase": lowercase}
    asked = {name: value for name, value in options.items() if value is not None}
    if (kind := model_kind(folder)) is not EncoderDecoder:
        for option, value in ({"to": to, "source": source, "calibrate": calibrate or None} | asked).items():
            if value is not None:
                raise ConfigError(f"{option}={value} is for translations, and {folder} does not translate")
        found = evaluate_other(task, kind)
    else:
        found = evaluate_translator(task, asked)
    report.clear()
    if adapter is not None:
        found = replace(found, name=f"{found.name} with the adapter {Path(adapter).resolve().name}")
    if record:
        record_scores(folder, found, report)
    return found


def evaluate_translator(task: Task, asked: dict[str, Any]) -> Evaluation:
    """Translate and score; `asked` overrides the settings of the recipe."""
    folder, src, ref, to, source, report = task.folder, task.src, task.ref, task.to, task.source, task.report
    if (src is None) != (ref is None):
        raise ConfigError("src=... and ref=... go together: sources and their references, line by line")
    recipe: Recipe | None
    pairs: Iterable[tuple[str, str]]
    if src is None or ref is None:
        name = task.split or "test"
        recipe, corpora = recipe_split(folder, name)
        if corpora[0].monolingual:
            raise DataError(f"the `{name}` texts of the recipe have no translations; give src=... and ref=... instead")
        corpora = in_language(corpora, "to", to)
        if is_multilingual(folder):
            corpora = in_language(corpora, "source", source)
            source = corpora[0].from_
        if (to := corpora[0].to) is not None:
            name = f"{name} {corpora[0].from_ or ''}-{to}"
        pairs = chain.from_iterable(map(read_pairs, corpora))
    elif task.split is not None:
        raise ConfigError("give either src=... and ref=..., or split=..., not both")
    else:
        recipe = readable_recipe(folder, report)
        name, pairs = given_pairs(src, ref)
    settings = replace(recipe.score if recipe else Score(), **asked)
    if "tokenize" not in asked:
        settings = replace(settings, tokenize=bleu_tokenizer(settings, to))
    search = Search(beam=settings.beam, length_penalty=settings.length_penalty)
    make_bleu(settings.tokenize)  # report a wrong name before any work
    sources, references = joined_texts(pairs, recipe)
    if settings.tokenize == "13a" and mostly_unspaced(references):
        report.say(
            "the references are written without spaces, and BLEU by 13a takes each line for a word; for Chinese give "
            '--tokenize zh, or write tokenize = "zh" under [score] in the recipe (ja-mecab for Japanese)'
        )
    translator = Translator.load(folder, task.device, task.precision, to=to, source=source, adapter=task.adapter)

    def progress(done: int) -> None:
        report.show(f"translating {name}: {done:,} of {len(sources):,}")

    made = [best[0] for best in translator.translate(sources, search=search, progress=progress)]
    hypotheses = tuple(one.text for one in made)
    scores, confidence = score(hypotheses, references, settings.tokenize, settings.lowercase), None
    if task.calibrate:
        confidence = calibrate(made, references, mostly_unspaced(references))
        keep_confidence(folder, translator.to or translator.about.target, confidence)
    texts = tuple(sources), hypotheses, tuple(references)
    return Evaluation(name, scores, settings, task.precision, *texts, confidence)


def evaluate_other(task: Task, kind: type[Model]) -> Evaluation:
    """The same of a model that does not translate."""
    if task.src is not None and task.split is not None:
        raise ConfigError("give either src=..., or split=..., not both")
    exact = False
    if task.src is not None:
        name, items, labels = given_items(task.folder, kind, task.src, task.ref)
    else:
        refuse_labels(None if task.ref is None else [], "a split has its own")
        name = task.split or "test"
        corpora = recipe_split(task.folder, name)[1]
        items, labels = split_items(corpora)
        exact = all(corpus.exact for corpus in corpora)
    if kind is DecoderOnly:
        refuse_labels(labels, "a decoder is judged by texts alone")
        scores: BaseScores = score_texts(task, items, exact)
    elif labels is None:
        scores = score_gaps(task, items, exact)
    else:
        return evaluate_classifier(task, name, items, labels)
    return Evaluation(name, scores, Score(), task.precision, tuple(items), (), ())


def in_chunks(items: Sequence[Any], what: str, report: Report) -> Iterator[Sequence[Any]]:
    for first in range(0, len(items), CHUNK):
        yield items[first : first + CHUNK]
        report.show(f"{what}: {min(first + CHUNK, len(items)):,} of {len(items):,}")


def score_texts(task: Task, texts: Sequence[str], exact: bool) -> TextScores:
    """The likelihood of texts by a decoder; `exact`: they are of the source whose probabilities are known."""
    generator = TextGenerator.load(task.folder, task.device, task.precision, adapter=task.adapter)
    found = [one for chunk in in_chunks(texts, "reading texts", task.report) for one in generator.likelihoods(chunk)]
    totals, tokens = [one.log_probability for one in found], sum(one.tokens for one in found)
    return TextScores.of(totals, tokens, texts, least_loss(texts) if exact else None)


def score_gaps(task: Task, texts: Sequence[str], exact: bool) -> GapScores:
    """How an encoder fills each token of texts, hidden in turn."""
    filler = MaskFiller.load(task.folder, task.device, adapter=task.adapter)
    hidden = [one for chunk in in_chunks(texts, "filling gaps", task.report) for one in filler.recover(chunk)]
    return GapScores.of(
        [one.likelihood.log_probability for one in hidden],
        [one.right for one in hidden],
        [one.likelihood.tokens for one in hidden],
        list(determined_gaps(bundle.load(task.folder).tokenizer, texts, hidden, task.report)) if exact else (),
    )


def evaluate_classifier(task: Task, name: str, items: Sequence[Any], labels: Sequence[str]) -> Evaluation:
    """The likeliest label of each text or image beside the right one."""
    classifier = Classifier.load(task.folder, task.device, adapter=task.adapter)
    if empty := sum(not label for label in labels):  # as training leaves them out
        task.report.say(f"left out: {empty:,} without a label")
        items = [item for item, label in zip(items, labels, strict=True) if label]
        labels = [label for label in labels if label]
    for label in labels:
        if label not in classifier.labels:
            raise DataError(f"the label {label!r:.60} is not one that the model knows: {', '.join(classifier.labels)}")
    chunks = in_chunks(items, "telling labels", task.report)
    hypotheses = [best[0].name for chunk in chunks for best in classifier.classify(chunk, top=1)]
    names = tuple(one if isinstance(one, str) else f"image {number}" for number, one in enumerate(items, 1))
    scores = LabelScores.of(hypotheses, labels)
    return Evaluation(name, scores, Score(), task.precision, names, tuple(hypotheses), tuple(labels))


def determined_gaps(
    tokenizer: Tokenizer, texts: Sequence[str], recovered: Sequence[Recovered], report: Report
) -> Iterator[bool]:
    """Of each gap that the rest of its text leaves no choice for, whether it is filled right."""
    pieces = [*text_pieces(tokenizer.pieces[1])]
    for number, (ids, one) in enumerate(zip(tokenizer.encode_target(texts), recovered, strict=True), 1):
        report.show(f"trying other tokens: {number:,} of {len(texts):,}")
        yield from (
            right for right, only in zip(one.each, determined_tokens(ids, tokenizer, pieces), strict=True) if only
        )


def bleu_tokenizer(settings: Score, to: str | None) -> Tokenize:
    """How BLEU finds words of the language `to`: one recipe may have targets with spaces and without."""
    chinese = to is not None and re.split("[-_]", to)[0] in CHINESE
    return "zh" if chinese and settings.tokenize == "13a" else settings.tokenize


def record_scores(folder: Path, found: Evaluation, report: Report, **details: Any) -> None:
    """Add a measurement to the bundle's scores.json, with what made it; into no other folder is written."""
    if not is_bundle(folder):
        return
    if isinstance(found.scores, Scores):
        details |= {"beam": found.settings.beam, "length_penalty": found.settings.length_penalty}
    details |= {"precision": found.precision, "versions": {"glassformer": __version__, "torch": torch.__version__}}
    try:
        known = read_scores(folder) | {found.name: found.scores.to_dict() | details}
        write_text(folder / "scores.json", json.dumps(known, indent=1, ensure_ascii=False) + "\n")
    except WeightsError as error:  # the scores are still worth printing
        report.say(f"{error}; these scores are not recorded")
    except OSError as error:
        report.say(f"{folder / 'scores.json'} cannot be written: {why(error)}; these scores are not recorded")


def validation_bleu(recipe: Recipe, tokenizer: Tokenizer) -> Judge:
    """BLEU of greedy translations of the validation pairs, for training to stop by."""
    if find_spec("sacrebleu") is not None:  # without it one can still train
        make_bleu(recipe.score.tokenize)
    ways: dict[tuple[str | None, str | None], list[Corpus]] = {}
    for corpus in sorted(recipe.data.valid, key=lambda corpus: str(corpus.to)):
        ways.setdefault((tokenizer.for_corpus(corpus).source, corpus.to), []).append(corpus)

    @cache
    def texts(way: tuple[str | None, str | None]) -> tuple[list[str], list[str]]:
        return joined_texts(chain.from_iterable(map(read_pairs, ways[way])), recipe)

    def bleu(model: EncoderDecoder) -> float:
        found = []
        for way, corpora in ways.items():
            sources, references = texts(way)
            translator = Translator(model, tokenizer.for_corpus(corpora[0]), next(model.parameters()).device)
            outputs = [best[0].text for best in translator.translate(sources)]
            cut = bleu_tokenizer(recipe.score, corpora[0].to)
            found.append(score(outputs, references, cut, recipe.score.lowercase, interval=False).bleu)
        return sum(found) / len(found)

    return bleu
