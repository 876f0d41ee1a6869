"""`glassformer make`: from corpora to a translator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from glassformer.cli.options import Device


def make(
    pair: Annotated[str, Argument(help="The two languages, such as ca-nl; the translator goes both ways.")],
    data: Annotated[
        Path,
        Option(
            help="A folder of corpora: NAME.ca with NAME.nl, or NAME/train.ca with NAME/train.nl; NAME/mono.ca is text "
            "of one language; NAME/valid and NAME/test are held out. gzip, xz and Zstandard too."
        ),
    ],
    out: Annotated[Path, Option(help="The folder to write; the translator comes to OUT/model.")],
    plan: Annotated[
        Path | None,
        Option(help="A TOML file of corpora and settings that are not the usual ones; `small`: for a CPU, in minutes."),
    ] = None,
    change: Annotated[
        list[str] | None,
        Option("--set", help="Change a setting: --set student.train.steps=9000", metavar="KEY=VALUE"),
    ] = None,
    device: Device = "auto",
) -> None:
    """Make a translator, both ways, of what a folder of corpora holds.

    glassformer make ca-nl --data corpora --out runs/ca-nl

    The corpora are cleaned, pairs are added as people write them, a large model learns from them and translates text of
    one language, and a small one learns from all of it. It is packed in int8 and scored. Each stage is a command that
    is shown. When it is stopped, in whatever way, the same command goes on.
    """
    from glassformer.train.make import make as run
    from glassformer.train.make import read_plan

    run(read_plan(pair, data, out, plan, change or [], device))
    print(f"the translator is in {out / 'model'}: glassformer translate {out / 'model'}")
