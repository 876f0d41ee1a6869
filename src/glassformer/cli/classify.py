"""`glassformer classify`: what a text or an image is."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from typer import Argument, Option

from glassformer.cli.options import Adapter, Device, Offline, Revision, find_model, line_by_line, to_json


def classify(
    model: Annotated[
        str,
        Argument(
            help="A folder that glassformer train has made by objective = 'classify' or 'image'; a Hugging Face "
            "folder, or a name of the hub, of ViT."
        ),
    ],
    items: Annotated[
        list[str] | None,
        Argument(
            metavar="[TEXT | IMAGE]...",
            help="Texts; or, of a model of images, files: PNG and other pictures, or .npy. Without any, lines of "
            "standard input.",
        ),
    ] = None,
    top: Annotated[int, Option(help="Labels of each, the likeliest first.")] = 1,
    as_json: Annotated[bool, Option("--json", help="One JSON object a line.")] = False,
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
    from glassformer.pipelines import Classifier

    classifier = Classifier.load(find_model(model, revision, offline), device, adapter=adapter)
    what = "image" if classifier.reads_images else "text"
    for item, labels in line_by_line(items or [], partial(classifier.classify, top=top)):
        if as_json:
            print(to_json({what: item, "labels": [vars(one) for one in labels]}))
            continue
        for one in labels:
            print(f"{one.name}\t{one.probability:.1%}\t{item}")
