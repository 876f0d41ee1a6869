"""`python -m benchmarks export`: random models go out, and come to the same."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import chain
from typing import Annotated

import typer


def exports(
    to: Annotated[str, typer.Option(help="The format.")] = "ctranslate2",
    configs: Annotated[int, typer.Option(help="Random models over the grid of configurations.", min=1)] = 30,
    sentences: Annotated[int, typer.Option(help="Sentences that each is checked with.", min=1)] = 200,
    model: Annotated[
        list[str] | None, typer.Option(help="A translator to export too: a folder, or a name of the box.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcomes as JSON.")] = False,
) -> None:
    """Exports of random models, each checked or refused with its reason; and three faults that the check must find."""
    from benchmarks.export import faults, grid, outcome

    found = []
    for one in chain((outcome(name, to, sentences, name) for name in model or ()), grid(to, configs, sentences)):
        found.append(one)
        if not as_json:
            print(f"{one}", flush=True)
    seeded = faults(to, min(sentences, 20))
    missed = [name for name, one in seeded.items() if not one.failed]
    if as_json:
        print(json.dumps({"exports": [asdict(one) for one in found], "missed faults": missed}, indent=1))
    else:
        for name in seeded:
            print(f"{name}: {'NOT NOTICED' if name in missed else 'found by the check'}")
        exported = [one for one in found if not one.refused and not one.failed]
        print(
            f"\n{len(exported)} exported, {sum(one.equal for one in exported):,} of "
            f"{sum(one.sentences for one in exported):,} targets equal and {sum(one.tied for one in exported):,} tied; "
            f"{sum(bool(one.refused) for one in found)} refused; {sum(bool(one.failed) for one in found)} failed"
        )
    if missed or any(one.failed for one in found):
        raise typer.Exit(1)
