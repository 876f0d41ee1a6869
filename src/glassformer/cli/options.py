"""Options that several commands share: which model, on which device, and how to search."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from glassformer.common.errors import ConfigError

Revision = Annotated[str | None, typer.Option(help="Of a model of the hub: a branch, a tag or a commit.")]
Offline = Annotated[
    bool, typer.Option("--offline", help="Fetch nothing; of the hub's models, take those in the cache.")
]
Adapter = Annotated[
    Path | None,
    typer.Option(help="Add what an adapter has learnt: a folder of a run with train.lora_rank on this very model."),
]
To = Annotated[str | None, typer.Option(help="Of a model that knows several languages, or of the box: into which.")]
Source = Annotated[str | None, typer.Option("--from", help="Of a model that reads several languages: from which.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
Precision = Annotated[str, typer.Option(help="auto, fp32, bf16 or int8 (CPU).")]
LengthPenalty = Annotated[float, typer.Option(help="Score divided by length to this power.")]
Rule = Annotated[str, typer.Option(help="What counts as length: average, or gnmt for (5 + n) / 6.")]
RepetitionPenalty = Annotated[float, typer.Option(help="Above 1: said tokens become less likely.")]
Temperature = Annotated[float | None, typer.Option(help="With --sample: below 1 safer, above 1 wilder.")]
TopK = Annotated[int | None, typer.Option(help="With --sample: draw from so many likeliest tokens.")]
TopP = Annotated[float | None, typer.Option(help="With --sample: draw from this share of probability.")]
Seed = Annotated[int | None, typer.Option(help="With --sample: the same seed draws the same.")]
# As models are called, and few texts are: and/or is none.
_HUB = re.compile(r"(?=.*/.*[-_0-9])[A-Za-z][\w.-]*/[A-Za-z0-9][\w.-]*")


def find_model(model: str, revision: str | None = None, offline: bool = False) -> str:
    """The folder of a model of the hub, which is fetched if it must be; what is no such name stays as it is."""
    from glassformer.weights.hub import locate

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        folder = str(locate(model, revision, offline))
    for one in said:
        print(one.message, file=sys.stderr)
    return folder


def looks_like_hub(word: str) -> bool:
    """Whether a word among texts and files is meant as the name of a model."""
    from glassformer.pipelines.documents.formats import is_document
    from glassformer.weights.hub import hub_name

    if word.startswith("hf://"):
        return True
    return _HUB.fullmatch(word) is not None and hub_name(word) is not None and not is_document(Path(word))


def sampling_options(sample: bool, **options: Any) -> dict[str, Any]:
    """The options of drawing that were given, which go with --sample."""
    given = {name: value for name, value in options.items() if value is not None}
    if given and not sample:
        raise ConfigError(f"--{next(iter(given)).replace('_', '-')} says how to draw at random; add --sample")
    return given
