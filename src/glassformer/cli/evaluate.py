"""`glassformer evaluate`: how good a model's translations are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from glassformer.errors import ConfigError, DataError


def evaluate(
    model: Annotated[Path, typer.Argument(help="A folder that glassformer train has made, or a Marian folder.")],
    src: Annotated[Path | None, typer.Option(help="A file of source sentences, one a line (gzip and xz too).")] = None,
    ref: Annotated[Path | None, typer.Option(help="Their reference translations, line by line.")] = None,
    split: Annotated[
        str | None, typer.Option(help="Instead of files: test, valid or train of the model's recipe.")
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam width; the recipe's if not given.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Score divided by length to this power.")] = None,
    tokenize: Annotated[
        str | None, typer.Option(help="BLEU's words by 13a, zh, ja-mecab, char or another of sacrebleu's.")
    ] = None,
    lowercase: Annotated[bool | None, typer.Option("--lowercase", help="BLEU of lowercased text.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    precision: Annotated[str, typer.Option(help="auto, fp32, bf16 or int8 (CPU).")] = "fp32",
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Translate and compare: BLEU, chrF and exact match, each with its confidence interval and signature.

    What is not given is as the model's recipe has it under [score]. The scores are added to scores.json in the folder
    of a model that glassformer train has made.
    """
    from glassformer.cli.judging import judge_files, judge_split, record
    from glassformer.report import Report
    from glassformer.translator import Translator

    if (src is None) != (ref is None):
        raise ConfigError("--src and --ref go together: sources and their references, line by line")
    if src is not None and split is not None:
        raise ConfigError("give either --src and --ref, or --split, not both")
    report = Report()
    asked = {"beam": beam, "length_penalty": length_penalty, "tokenize": tokenize, "lowercase": lowercase}
    given = {key: value for key, value in asked.items() if value is not None}
    if src is not None and ref is not None:
        name = f"{src.name} {ref.name}"
        judged = judge_files(model, src, ref, device, report, precision, **given)
    else:
        name = split or "test"
        if name not in ("train", "valid", "test"):
            raise DataError(f"--split {name}: a recipe has train, valid and test")
        if not (model / "recipe.toml").exists():
            Translator.load(model)  # says what is wrong with it, if that is it
            raise DataError(f"{model} holds no recipe that would name `{name}` pairs; give --src and --ref instead")
        judged = judge_split(model, name, device, report, precision, **given)
    record(model, name, judged, report, precision=precision)
    scores = judged.scores
    if as_json:
        print(json.dumps(scores.to_dict(), indent=1))
    else:
        print(f"{scores}\n{scores.bleu_signature}\n{scores.chrf_signature}")
