"""`glassformer export`: a model for another system, checked there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from glassformer.cli.options import Offline, Revision, find_model, to_json
from glassformer.deploy.export.formats import FORMATS


def export(
    model: Annotated[
        str,
        Argument(
            help="A folder that glassformer train has made, a Hugging Face folder, a name of the hub or of the box."
        ),
    ],
    to: Annotated[str, Option(help=f"The format: {', '.join(FORMATS)}.")],
    out: Annotated[Path, Option(help="The folder to write, which must not be there yet, or be empty.")],
    language: Annotated[
        str | None, Option(help="Of a model that knows several languages: the one to translate into.")
    ] = None,
    quantization: Annotated[
        str | None,
        Option(help="How weights are stored, such as int8; which there are depends on the format."),
    ] = None,
    family: Annotated[
        str | None,
        Option(help="Of huggingface: the family to be written as, such as marian; else the first that fits."),
    ] = None,
    check: Annotated[
        Path | None,
        Option(help="Sentences to check with, one a line; else the model's own text, else random tokens."),
    ] = None,
    sentences: Annotated[int | None, Option(help="Check with so many; 200 if not given, of a file all.")] = None,
    force: Annotated[
        bool, Option("--force", help="Replace an earlier export; anything else in the place is moved aside.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print the report as JSON.")] = False,
    revision: Revision = None,
    offline: Offline = False,
) -> None:
    """Write a model for another system and check it there: both translate the same sentences, and must agree.

    What the format cannot say is refused with the reason. What was compared, and the figures, stand in report.json
    beside what was written; the folder gets its name only when the check has passed.
    """
    from glassformer.common.report import Report
    from glassformer.deploy.export.run import export

    options: dict[str, Any] = {"family": family, "quantization": quantization}
    made = export(
        find_model(model, revision, offline) if revision or offline else model,
        to,
        out,
        language=language,
        check=check,
        sentences=sentences,
        force=force,
        report=Report(),
        **{name: value for name, value in options.items() if value is not None},
    )
    if as_json:
        print(to_json(made.report, indent=1))
        return
    for name, figures in made.report["figures"].items():
        if isinstance(figures, str):
            print(f"{name:8} {figures}")
        if isinstance(figures, dict):
            print(f"{name:8} {'  '.join(f'{key} {format_value(value)}' for key, value in figures.items())}")
    if made.aside is not None:
        print(f"what stood in {out} is now in {made.aside}")
    print(f"{out}: {readable(made.size)}, checked with {made.report['compared']}")


def format_value(value: Any) -> str:
    return f"{value:.1e}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def readable(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.0f} kB"
