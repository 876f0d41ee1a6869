"""`glassformer train`: a recipe in, a translator out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glassformer.cli.models import Device
from glassformer.common.errors import ConfigError


def train(
    recipe: Annotated[str, typer.Argument(help="A built-in recipe's name, such as numerals, or a TOML file.")] = "",
    out: Annotated[Path | None, typer.Option(help="The run's folder; at the end it is the model.")] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a key of the recipe: --set train.steps=60", metavar="KEY=VALUE"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where --out stands.")] = False,
    device: Device = "auto",
) -> None:
    """Train a model from text: a translator, or by train.objective what else a recipe asks for.

    Built-in recipes: numerals, numerals-gpt, numerals-bert, numerals-t5, numerals-classify, digits-vit (which need no
    data), multi30k, multi30k-raw, tatoeba-en-de, tatoeba-en-zh, docs-gpt, docs-bert, box-en-de, box-en-de-more,
    box-en-de-taught, box-en-de-last, box-en-zh, box-en-zh-more, box-en-zh-taught, box-en-zh-last, box-teacher.
    For your own files, write a recipe like the README's. Several processes: torchrun --nproc-per-node 2 -m glassformer
    train ...
    """
    from glassformer.cli.results import show_results
    from glassformer.common.report import Report
    from glassformer.train import read_recipe
    from glassformer.train import train as run
    from glassformer.train.evaluation.evaluate import validation_bleu
    from glassformer.train.folder import saved_recipe

    changes = tuple(change or ())
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
