"""Translations judged for other commands: while training, at its end, and by `glassformer evaluate`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from glassformer.files import write_text

if TYPE_CHECKING:
    from glassformer.evaluate import Scores
    from glassformer.model import EncoderDecoder
    from glassformer.report import Report
    from glassformer.text import Corpus, Tokenizer
    from glassformer.train import Recipe
    from glassformer.train.loop import Judge
    from glassformer.train.recipe import Score


@dataclass(frozen=True)
class Judged:
    """Scores, what they were measured by, and (source, output, reference) for each sentence."""

    scores: Scores
    settings: Score
    rows: list[tuple[str, str, str]]


def pairs_of(corpora: tuple[Corpus, ...], recipe: Recipe | None) -> tuple[list[str], list[str]]:
    """Sources and references as a reader sees them: pieces that the data came cut into are joined."""
    from itertools import chain

    from glassformer.text import read_pairs

    sources, references = zip(*chain.from_iterable(map(read_pairs, corpora)), strict=True)
    if recipe is not None and recipe.tokenizer.kind == "words":
        references = tuple((line + " ").replace(recipe.tokenizer.join, "").removesuffix(" ") for line in references)
    return list(sources), list(references)


def judge(recipe: Recipe, tokenizer: Tokenizer) -> Judge:
    """BLEU of greedy translations of the validation pairs, for training to stop by."""
    from glassformer.evaluate import bleu_by, score
    from glassformer.translator import Translator

    if find_spec("sacrebleu") is not None:  # without it one can still train
        bleu_by(recipe.score.tokenize)
    loaded: list[tuple[list[str], list[str]]] = []

    def bleu(model: EncoderDecoder) -> float:
        if not loaded:
            loaded.append(pairs_of(recipe.data.valid, recipe))
        sources, references = loaded[0]
        translator = Translator(model, tokenizer, next(model.parameters()).device)
        outputs = [best[0].text for best in translator.translate(sources)]
        return score(outputs, references, recipe.score.tokenize, recipe.score.lowercase, interval=False).bleu

    return bleu


def judge_split(folder: Path, split: str, device: str, report: Report, precision: str = "fp32", **given: Any) -> Judged:
    """A bundle's scores on a split of its recipe; `given` are keys of [score] that are not to be the recipe's."""
    from glassformer.errors import DataError
    from glassformer.train.run import saved_recipe

    recipe = saved_recipe(folder)
    corpora = {"train": recipe.data.train, "valid": recipe.data.valid, "test": recipe.data.test}.get(split)
    if not corpora:
        raise DataError(f"the recipe in {folder} names no `{split}` pairs; give --src and --ref instead")
    return judge_pairs(folder, corpora, split, recipe, replace(recipe.score, **given), device, report, precision)


def judge_files(
    folder: Path, src: Path, ref: Path, device: str, report: Report, precision: str = "fp32", **given: Any
) -> Judged:
    """A translator's scores on two aligned files; a recipe, where the folder holds one, says what is not given."""
    from glassformer.errors import GlassformerError
    from glassformer.text import Corpus
    from glassformer.train.recipe import Score
    from glassformer.train.run import saved_recipe

    recipe = None
    if (folder / "recipe.toml").exists():
        try:
            recipe = saved_recipe(folder)
        except GlassformerError as error:
            report.say(f"{error}; judged without it")
    settings = replace(recipe.score if recipe else Score(), **given)
    corpora = (Corpus(src=src, tgt=ref),)
    return judge_pairs(folder, corpora, str(src), recipe, settings, device, report, precision)


def judge_pairs(
    folder: Path,
    corpora: tuple[Corpus, ...],
    name: str,
    recipe: Recipe | None,
    settings: Score,
    device: str,
    report: Report,
    precision: str,
) -> Judged:
    from glassformer.evaluate import bleu_by, score
    from glassformer.text.cutting import UNSPACED
    from glassformer.translator import Translator

    bleu_by(settings.tokenize)  # a wrong name is told before any work
    sources, references = pairs_of(corpora, recipe)
    letters = "".join("".join(references).split())
    if settings.tokenize == "13a" and 2 * len(UNSPACED.findall(letters)) > len(letters):
        report.say(
            "the references are written without spaces, and BLEU by 13a takes each line for a word; for Chinese give "
            '--tokenize zh, or write tokenize = "zh" under [score] in the recipe (ja-mecab for Japanese)'
        )
    translator = Translator.load(folder, device, cast(Any, precision))
    found = translator.translate(
        sources,
        beam=settings.beam,
        length_penalty=settings.length_penalty,
        progress=lambda done: report.show(f"translating {name}: {done:,} of {len(sources):,}"),
    )
    outputs = [best[0].text for best in found]
    scores = score(outputs, references, settings.tokenize, settings.lowercase)
    report.clear()
    return Judged(scores, settings, list(zip(sources, outputs, references, strict=True)))


def record(folder: Path, name: str, judged: Judged, report: Report, **details: Any) -> None:
    """Add a measurement to the bundle's scores.json, with what made it; into no other folder is written."""
    import torch

    from glassformer import __version__
    from glassformer.bundle import is_bundle, read_scores
    from glassformer.errors import WeightsError, why

    if not is_bundle(folder):
        return
    details |= {
        "beam": judged.settings.beam,
        "length_penalty": judged.settings.length_penalty,
        "versions": {"glassformer": __version__, "torch": torch.__version__},
    }
    try:
        known = read_scores(folder) | {name: judged.scores.to_dict() | details}
        write_text(folder / "scores.json", json.dumps(known, indent=1, ensure_ascii=False) + "\n")
    except WeightsError as error:  # the scores are still worth printing
        report.say(f"{error}; these scores are not recorded")
    except OSError as error:
        report.say(f"{folder / 'scores.json'} cannot be written: {why(error)}; these scores are not recorded")


def show_results(folder: Path, device: str, report: Report) -> None:
    """The end of a training run: its score on unseen pairs and a few translations, right ones and wrong ones."""
    from glassformer.train.run import saved_recipe

    if int(os.environ.get("RANK", "0")):
        return
    recipe = saved_recipe(folder)
    split = "test" if recipe.data.test else "valid"
    if not recipe.data.test and not recipe.data.valid:
        return
    judged = judge_split(folder, split, device, report)
    met = met_in_training(recipe.data.test or recipe.data.valid, recipe, report)
    details: dict[str, Any] = {"precision": "fp32", "command": f"glassformer evaluate {folder} --split {split}"}
    record(folder, split, judged, report, **details | ({} if met is None else {"met_in_training": met}))
    told = (
        ", never trained on"
        if met == 0
        else f" ({met:,} of {len(judged.rows):,} are also training pairs)"
        if met
        else ""
    )
    print(f"\n{split} pairs{told}:  {judged.scores}")
    show_samples(judged.rows, recipe.score.samples)


def met_in_training(corpora: tuple[Corpus, ...], recipe: Recipe, report: Report) -> int | None:
    """How many pairs of `corpora` are among the training pairs too; None where those cannot be read once more."""
    from collections import Counter
    from itertools import chain

    from glassformer.errors import DataError
    from glassformer.text import read_pairs

    def pairs(corpora: tuple[Corpus, ...]) -> Iterator[tuple[str, str]]:
        for source, target in chain.from_iterable(map(read_pairs, corpora)):
            yield source.strip(), target.strip()

    if any(corpus.hub for corpus in recipe.data.train):  # it would be fetched a second time
        return None
    wanted, met = Counter(pairs(corpora)), set()
    try:
        for number, pair in enumerate(pairs(recipe.data.train)):
            if pair in wanted:
                met.add(pair)
            if number % 10_000 == 0:
                report.show(f"looking for them among the training pairs: {number:,}")
    except DataError:
        return None
    report.clear()
    return sum(wanted[pair] for pair in met)


def show_samples(rows: list[tuple[str, str, str]], count: int) -> None:
    """Some right and some wrong translations, spread over the set."""
    wrong = [row for row in rows if row[1] != row[2]]
    right = [row for row in rows if row[1] == row[2]]
    few = wrong[:: max(1, len(wrong) // max(1, count // 4))][: max(count // 4, count - len(right))]
    many = right[:: max(1, len(right) // max(1, count - len(few)))][: count - len(few)]
    print()
    for source, output, _ in many:
        print(f"  ✓ {source}  →  {output}")
    for source, output, reference in few:
        print(f"  ✗ {source}  →  {output}\n      expected: {reference}")
