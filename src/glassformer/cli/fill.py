"""`glassformer fill`: what could stand in the gaps of a text."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from typer import Argument, Option

from glassformer.cli.options import Adapter, Device, Offline, Revision, find_model, line_by_line, to_json


def fill(
    model: Annotated[
        str,
        Argument(
            help="A folder that glassformer train has made by objective = 'masked'; a Hugging Face folder, or a name "
            "of the hub, of BERT, RoBERTa or DistilBERT."
        ),
    ],
    texts: Annotated[
        list[str] | None,
        Argument(metavar="[TEXT]...", help="Texts with gaps, written [MASK]; without any, standard input."),
    ] = None,
    top: Annotated[int, Option(help="Fillings of each gap, the likeliest first.")] = 5,
    as_json: Annotated[bool, Option("--json", help="One JSON object a line.")] = False,
    device: Device = "auto",
    adapter: Adapter = None,
    revision: Revision = None,
    offline: Offline = False,
) -> None:
    """Fill the gaps of texts with an encoder: the likeliest words for each, with their probabilities.

    glassformer fill runs/bert "Paris is the [MASK] of France"

    Of several gaps each is filled by itself, the others still open; in the texts shown they have their likeliest.
    --json gives one object a line: {"text": ..., "gaps": [[{"token": ..., "probability": ..., "text": ...}]]}.
    """
    from glassformer.pipelines import MaskFiller

    filler = MaskFiller.load(find_model(model, revision, offline), device, adapter=adapter)
    for text, gaps in line_by_line(texts or [], partial(filler.fill, top=top)):
        if as_json:
            print(to_json({"text": text, "gaps": [[vars(one) for one in ranked] for ranked in gaps]}))
            continue
        for number, ranked in enumerate(gaps, 1):
            if len(gaps) > 1:
                print(f"gap {number} of {len(gaps)}: {text}")
            width = max(len(one.token) for one in ranked)
            for one in ranked:
                print(f"{one.probability:6.1%}  {one.token:{width}}  {one.text}")
