"""Translations judged for other commands: while training, at its end, and by `glassformer evaluate`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from glassformer.evaluate import Scores
    from glassformer.model import EncoderDecoder
    from glassformer.text import Corpus, Tokenizer
    from glassformer.train import Recipe, Report
    from glassformer.train.loop import Judge


def pairs_of(corpora: tuple[Corpus, ...], recipe: Recipe) -> tuple[list[str], list[str]]:
    """Sources and references as a reader sees them: pieces that the data came cut into are joined."""
    from itertools import chain

    from glassformer.text import read_pairs

    sources, references = zip(*chain.from_iterable(map(read_pairs, corpora)), strict=True)
    if recipe.tokenizer.kind == "words":
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


def judge_split(
    folder: Path,
    split: str,
    device: str,
    report: Report,
    beam: int | None = None,
    penalty: float | None = None,
    precision: str = "fp32",
) -> tuple[Scores, list[tuple[str, str, str]]]:
    """A bundle's scores on a split of its recipe, and (source, output, reference) for each sentence."""
    from glassformer.errors import DataError
    from glassformer.train.run import saved_recipe

    recipe = saved_recipe(folder)
    corpora = {"train": recipe.data.train, "valid": recipe.data.valid, "test": recipe.data.test}.get(split)
    if not corpora:
        raise DataError(f"the recipe in {folder} names no `{split}` pairs; give --src and --ref instead")
    return judge_pairs(folder, corpora, split, device, report, beam, penalty, precision)


def judge_pairs(
    folder: Path,
    corpora: tuple[Corpus, ...],
    name: str,
    device: str,
    report: Report,
    beam: int | None,
    penalty: float | None,
    precision: str,
) -> tuple[Scores, list[tuple[str, str, str]]]:
    import torch

    from glassformer.evaluate import score
    from glassformer.train.run import saved_recipe
    from glassformer.translator import Translator

    recipe = saved_recipe(folder)
    sources, references = pairs_of(corpora, recipe)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    translator = Translator.load(folder, device, cast(Any, precision))
    found = translator.translate(
        sources,
        beam=beam or recipe.score.beam,
        length_penalty=recipe.score.length_penalty if penalty is None else penalty,
        progress=lambda done: report.show(f"translating {name}: {done:,} of {len(sources):,}"),
    )
    outputs = [best[0].text for best in found]
    scores = score(outputs, references, recipe.score.tokenize, recipe.score.lowercase)
    report.clear()
    return scores, list(zip(sources, outputs, references, strict=True))


def judge_files(
    folder: Path,
    src: Path,
    ref: Path,
    device: str,
    report: Report,
    beam: int | None,
    penalty: float | None,
    precision: str,
) -> tuple[Scores, list[tuple[str, str, str]]]:
    """A bundle's scores on two aligned files."""
    from glassformer.text import Corpus

    return judge_pairs(folder, (Corpus(src=src, tgt=ref),), str(src), device, report, beam, penalty, precision)


def record(
    folder: Path,
    name: str,
    scores: Scores,
    report: Report,
    beam: int | None = None,
    length_penalty: float | None = None,
    **details: Any,
) -> None:
    """Add a measurement to the bundle's scores.json, with what made it; None is the recipe's value."""
    import torch

    from glassformer import __version__
    from glassformer.bundle import read_scores, why, write_text
    from glassformer.errors import WeightsError
    from glassformer.train.run import saved_recipe

    search = saved_recipe(folder).score
    details |= {
        "beam": beam or search.beam,
        "length_penalty": search.length_penalty if length_penalty is None else length_penalty,
        "versions": {"glassformer": __version__, "torch": torch.__version__},
    }
    try:
        known = read_scores(folder) | {name: scores.to_dict() | details}
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
    scores, rows = judge_split(folder, split, device, report)
    met = met_in_training(recipe.data.test or recipe.data.valid, recipe, report)
    details: dict[str, Any] = {"precision": "fp32", "command": f"glassformer evaluate {folder} --split {split}"}
    record(folder, split, scores, report, **details | ({} if met is None else {"met_in_training": met}))
    told = ", never trained on" if met == 0 else f" ({met:,} of {len(rows):,} are also training pairs)" if met else ""
    print(f"\n{split} pairs{told}:  {scores}")
    show_samples(rows, recipe.score.samples)


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
