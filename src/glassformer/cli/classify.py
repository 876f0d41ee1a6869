"""`glassformer classify`: what a text or an image is."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

import typer

from glassformer.cli.options import Adapter, Device, Offline, Revision, find_model, given_lines, line_by_line, to_json


def classify(
    model: Annotated[
        str,
        typer.Argument(
            help="A folder that glassformer train has made by objective = 'classify' or 'image'; a Hugging Face "
            "folder, or a name of the hub, of ViT."
        ),
    ],
    items: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEXT | IMAGE]...",
            help="Texts; or, of a model of images, files: PNG and other pictures, or .npy. Without any, lines of "
            "standard input.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="Labels of each, the likeliest first.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    device: Device = "auto",
    adapter: Adapter = None,
    revision: Revision = None,
    offline: Offline = False,
) -> None:
    """Label texts, or images, with an encoder: the likeliest label of each, with its probability.

    glassformer classify runs/kinds "March 3, 2021"

    glassformer classify runs/digits seven.png

    Every text or image gives one line: label, probability and the text, with a TAB between; with --top N, N lines.
    --json gives one object a line: {"text": ..., "labels": [{"name": ..., "probability": ...}]}, and of an image its
    file as "image".
    """
    from glassformer.common.report import Report
    from glassformer.pipelines import Classifier

    classifier = Classifier.load(find_model(model, revision, offline), device, adapter=adapter)
    what = "image" if classifier.reads_images else "text"
    for chunk in line_by_line(given_lines(items or [], Report()), partial(classifier.classify, top=top)):
        for item, labels in chunk:
            if as_json:
                print(to_json({what: item, "labels": [vars(one) for one in labels]}))
                continue
            for one in labels:
                print(f"{one.name}\t{one.probability:.1%}\t{item}")
        sys.stdout.flush()
