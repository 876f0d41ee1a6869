"""`glassformer evaluate`: how good a model is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

from typer import Argument, Option

from glassformer.cli.options import Adapter, Device, Offline, Precision, Revision, Source, To, find_model, to_json


def evaluate(
    model: Annotated[
        str,
        Argument(help="A folder that glassformer train has made, a Hugging Face folder, or a name of the hub."),
    ],
    src: Annotated[Path | None, Option(help="A file of sentences, one a line (gzip and xz too).")] = None,
    ref: Annotated[Path | None, Option(help="Their reference translations, or labels, line by line.")] = None,
    split: Annotated[str | None, Option(help="Instead of files: test, valid or train of the model's recipe.")] = None,
    to: To = None,
    source: Source = None,
    beam: Annotated[int | None, Option(help="Beam width; the recipe's if not given.")] = None,
    length_penalty: Annotated[float | None, Option(help="Score divided by length to this power.")] = None,
    tokenize: Annotated[
        str | None, Option(help="BLEU's words by 13a, zh, ja-mecab, char or another of sacrebleu's.")
    ] = None,
    lowercase: Annotated[bool | None, Option("--lowercase", help="BLEU of lowercased text.")] = None,
    device: Device = "auto",
    precision: Precision = "fp32",
    calibrate: Annotated[
        bool, Option("--calibrate", help="Measure how sure translations are, and keep that in the folder.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print the scores as JSON.")] = False,
    adapter: Adapter = None,
    revision: Revision = None,
    offline: Offline = False,
) -> None:
    """Judge a model: of a translator BLEU, chrF and exact match, each with its confidence interval and signature.

    Of a decoder, perplexity and bits per byte of the texts in --src; of an encoder that fills gaps, accuracy and
    pseudo-perplexity of theirs; of a classifier, accuracy and macro F1, the labels of --src being in --ref, or both in
    one .npz of images.

    What is not given is as the model's recipe has it under [score]. The scores are added to scores.json in the folder
    of a model that glassformer train has made.
    """
    from glassformer.common.report import Report
    from glassformer.train.evaluation.calibration import table
    from glassformer.train.evaluation.evaluate import evaluate
    from glassformer.train.evaluation.metrics import Scores

    found = evaluate(
        find_model(model, revision, offline),
        src,
        ref,
        split=split,
        to=to,
        source=source,
        beam=beam,
        length_penalty=length_penalty,
        tokenize=tokenize,
        lowercase=lowercase,
        device=device,
        precision=cast(Any, precision),
        adapter=adapter,
        record=True,
        calibrate=calibrate,
        report=Report(),
    )
    scores = found.scores
    if as_json:
        told = {} if found.confidence is None else {"confidence": found.confidence.to_dict()}
        print(to_json(scores.to_dict() | told, indent=1))
    elif isinstance(scores, Scores):
        print(f"{scores}\n{scores.bleu_signature}\n{scores.chrf_signature}")
        if found.confidence is not None:
            print(f"\n{table(found.confidence)}")
    else:
        print(f"{scores}\n{scores.measured}")
