"""`glassformer train`: a recipe in, a translator out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from glassformer.cli.options import Device
from glassformer.common.errors import ConfigError

if TYPE_CHECKING:
    from glassformer.common.report import Report
    from glassformer.train.evaluation.evaluate import Evaluation


def train(
    recipe: Annotated[str, Argument(help="A built-in recipe's name, such as numerals, or a TOML file.")] = "",
    out: Annotated[Path | None, Option(help="The run's folder; at the end it is the model.")] = None,
    change: Annotated[
        list[str] | None,
        Option("--set", help="Change a key of the recipe: --set train.steps=60", metavar="KEY=VALUE"),
    ] = None,
    resume: Annotated[bool, Option("--resume", help="Go on where --out stands.")] = False,
    skip_bad: Annotated[
        bool,
        Option("--skip-bad", help="Go on without lines of the corpora that cannot be read; they are counted."),
    ] = False,
    device: Device = "auto",
) -> None:
    """Train a model from text: a translator, or by train.objective what else a recipe asks for.

    Built-in recipes: numerals, numerals-gpt, numerals-bert, numerals-t5, numerals-classify, digits-vit (which need no
    data), multi30k, multi30k-raw, tatoeba-en-de, tatoeba-en-zh, docs-gpt, docs-bert.
    For your own files, write a recipe like the README's. Several processes: torchrun --nproc-per-node 2 -m glassformer
    train ...
    """
    from glassformer.common.report import Report
    from glassformer.train import read_recipe
    from glassformer.train import train as run
    from glassformer.train.evaluation.evaluate import validation_bleu
    from glassformer.train.folder import saved_recipe

    changes = (*(change or ()), *(("data.skip_bad=true",) if skip_bad else ()))
    if not recipe:
        if not (resume and out):
            from glassformer.train import built_in

            raise ConfigError(f"name a recipe: {', '.join(built_in())} or a TOML file (or --resume --out FOLDER)")
        loaded = saved_recipe(out, changes)
    else:
        loaded = read_recipe(recipe, changes)
    folder = out or Path("runs") / Path(recipe).stem
    report = Report()
    run(loaded, folder, resume=resume, device=device, report=report, make_judge=validation_bleu)
    show_results(folder, device, report)


def show_results(folder: Path, device: str, report: Report) -> None:
    """A run's score on what it has not seen, recorded with it, and a few translations or labels, right and wrong."""
    from glassformer.pipelines import kind_and_config
    from glassformer.train.evaluation.evaluate import evaluate, record_scores
    from glassformer.train.evaluation.metrics import Scores
    from glassformer.train.evaluation.references import directions, in_language, seen_in_training
    from glassformer.train.folder import saved_recipe

    if int(os.environ.get("RANK", "0")):
        return
    recipe = saved_recipe(folder)
    split = "test" if recipe.data.test else "valid"
    corpora = recipe.data.test or recipe.data.valid
    if not corpora or (corpora[0].monolingual and kind_and_config(folder) is None):  # which has no one right answer
        return
    for source, to in directions(folder, corpora):
        found = evaluate(folder, split=split, to=to, source=source, device=device, report=report)
        along = in_language(corpora, "to", to)
        seen = seen_in_training(along if source is None else in_language(along, "source", source), recipe, report)
        way = (f" --from {source}" if source else "") + (f" --to {to}" if to else "")
        command = f"glassformer evaluate {folder} --split {split}{way}"
        details: dict[str, Any] = {"command": command}
        record_scores(folder, found, report, **details | ({} if seen is None else {"met_in_training": seen}))
        remark = ", never trained on" if seen == 0 else ""
        what = "pairs" if isinstance(found.scores, Scores) else "images" if corpora[0].has_images else "texts"
        if seen:
            remark = f" ({seen:,} of {len(found.sources):,} are also training {what})"
        print(f"\n{found.name} {what}{remark}:  {found.scores}")
        show_samples(found, recipe.score.samples)


def show_samples(found: Evaluation, count: int) -> None:
    """Some right and some wrong translations, spread over the set."""
    if not found.hypotheses:
        return
    rows = list(zip(found.sources, found.hypotheses, found.references, strict=True))
    wrong = [row for row in rows if row[1] != row[2]]
    right = [row for row in rows if row[1] == row[2]]
    few = wrong[:: max(1, len(wrong) // max(1, count // 4))][: max(count // 4, count - len(right))]
    many = right[:: max(1, len(right) // max(1, count - len(few)))][: count - len(few)]
    print()
    for source, output, _ in many:
        print(f"  ✓ {source}  →  {output}")
    for source, output, reference in few:
        print(f"  ✗ {source}  →  {output}\n      expected: {reference}")
