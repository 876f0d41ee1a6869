"""How a search is asked for on the command line: what `generate` and `translate` have in common."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from glassformer.common.errors import ConfigError

LengthPenalty = Annotated[float, typer.Option(help="Score divided by length to this power.")]
Rule = Annotated[str, typer.Option(help="What counts as length: average, or gnmt for (5 + n) / 6.")]
RepetitionPenalty = Annotated[float, typer.Option(help="Above 1: said tokens become less likely.")]
Temperature = Annotated[float | None, typer.Option(help="With --sample: below 1 safer, above 1 wilder.")]
TopK = Annotated[int | None, typer.Option(help="With --sample: draw from so many likeliest tokens.")]
TopP = Annotated[float | None, typer.Option(help="With --sample: draw from this share of probability.")]
Seed = Annotated[int | None, typer.Option(help="With --sample: the same seed draws the same.")]


def given_drawing(sample: bool, **options: Any) -> dict[str, Any]:
    """The options of drawing that were given, which go with --sample."""
    given = {name: value for name, value in options.items() if value is not None}
    if given and not sample:
        raise ConfigError(f"--{next(iter(given)).replace('_', '-')} says how to draw at random; add --sample")
    return given
