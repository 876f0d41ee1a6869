"""`glassformer lab`: what is said of Transformers, put to the test."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from glassformer.cli.options import to_json
from glassformer.cli.trace import Language
from glassformer.common.errors import ConfigError, RunError, WeightsError, why
from glassformer.common.files import read_json, write_text

if TYPE_CHECKING:
    from rich.console import Console

    from glassformer.labs.experiment import Lab
    from glassformer.labs.run import LabRun


def lab(
    names: Annotated[list[str] | None, Argument(help="Labs to run; none lists them all.")] = None,
    everything: Annotated[bool, Option("--all", help="Run every lab.")] = False,
    seed: Annotated[int, Option(help="The first seed; another one draws other weights and data.")] = 0,
    seeds: Annotated[int, Option(help="How many seeds; a verdict needs several.")] = 5,
    out: Annotated[
        Path | None, Option(metavar="DIR", help="Write report.html, report.json and a figure per lab here.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print what was found as JSON.")] = False,
    lang: Annotated[Language, Option("--lang", help="Language of the labs.")] = "en",
) -> None:
    """Put the claims that tutorials make to the test: each a small experiment with numbers and a verdict."""
    from glassformer.labs import NAMES, find
    from glassformer.labs.run import seed_range, versions

    wanted = list({one.name: one for one in map(find, NAMES if everything else names or [])}.values())
    chosen = seed_range(seed, seeds)
    if not wanted:
        if out is not None:
            raise ConfigError("--out needs labs to report on: name some, or give --all")
        print_labs([find(name) for name in NAMES], lang, as_json)
        return
    if out is not None:
        check_folder(out, wanted)
    command = shlex.join(["glassformer", "lab", *(["--all"] if everything else [one.name for one in wanted])])
    command += f" --seed {seed} --seeds {seeds}" + (f" --lang {lang}" if lang != "en" else "")
    if out is not None:
        command += f" --out {shlex.quote(str(out))}"
    runs: list[LabRun] = []
    try:
        run_all(wanted, chosen, lang, as_json, runs)
    finally:  # after Ctrl-C too: what has been found is not lost
        found: dict[str, Any] = {"command": command, "seed": seed, "seeds": list(chosen), "versions": versions()}
        content = to_json(found | {"labs": [one.as_dict(lang) for one in runs]}, indent=1)
        if out is not None and runs:
            write_report(out, runs, content, command, lang)
    if as_json:
        print(content)
    else:
        from glassformer.labs.report import phrase

        print("\n" + (phrase("to report", lang) if out is None else phrase("reported", lang, out / "report.html")))


def print_labs(labs: list[Lab], language: str, as_json: bool) -> None:
    if as_json:
        print(to_json({"labs": [one.as_dict(language) for one in labs]}, indent=1))
        return
    from glassformer.labs.report import phrase

    for one in labs:
        print(f"{one.name:{max(len(each.name) for each in labs)}}  {one.title.say(language)}")
    print("\n" + phrase("to run", language, labs[0].name))


def run_all(labs: list[Lab], seeds: range, language: str, quiet: bool, runs: list[LabRun]) -> None:
    """Each added to `runs` and printed as soon as it and those before it are done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from glassformer.labs.run import run_labs

    console = Console(highlight=False, markup=False, emoji=False)
    words = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), words, BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(labs[0].title.say(language), total=len(labs) * len(seeds))

        def on_seed(lab: Lab) -> None:
            bar.update(task, advance=1, description=lab.title.say(language))

        for one in run_labs(labs, seeds, on_seed):
            runs.append(one)
            if not quiet:
                print_run(one, language, console)
    if len(labs) > 1 and not quiet:
        print_tally(runs, language, console)


def print_run(run: LabRun, language: str, console: Console) -> None:
    from rich.cells import cell_len
    from rich.padding import Padding
    from rich.table import Column, Table
    from rich.text import Text

    from glassformer.common.strings import wrap
    from glassformer.labs.experiment import VERDICTS
    from glassformer.labs.report import MARKS, format_bounds, format_seeds, phrase
    from glassformer.labs.spread import format_spread

    one, finding = run.lab, run.finding
    console.print(Text(f"{one.title.say(language)}", "bold"), Text(f"({one.name})", "dim"))

    def show(content: Table | Text, above: int = 0, below: int = 1) -> None:
        console.print(Padding(content, (above, 0, below, 2), expand=False))

    # Chinese has no spaces: what is too long is folded, and goes on in the next line.
    grid = Table.grid(Column(style="dim", no_wrap=True), Column(overflow="fold"), padding=(0, 2))
    texts = {"claim": one.claim, "prediction": one.prediction, "measured": finding.summary}
    width = max(20, min(100, console.width - 6) - max(cell_len(phrase(word, language)) for word in texts))
    for word, text in texts.items():
        grid.add_row(phrase(word, language), wrap(text.say(language), width))  # rich would break Chinese only at spaces
    show(grid, below=0)
    numbers = Table.grid(Column(overflow="fold"), Column(justify="right", no_wrap=True), padding=(0, 2))
    for name, value in finding.named_numbers(language).items():
        numbers.add_row(name, format_spread(value))
    show(numbers, above=1)
    checks = Table.grid(padding=(0, 2))
    for justify in ("left", "left", "right", "left"):
        checks.add_column(justify=justify, no_wrap=justify == "right", overflow="fold")
    for merged in finding.checks:
        mark = Text(MARKS[merged.outcome], MARK_COLOURS[merged.outcome])
        extent = f" ({phrase('extent', language)})" if merged.check.extent else ""
        limits = format_bounds(merged.check, language)
        checks.add_row(mark, merged.check.text.say(language) + extent, format_spread(merged.spread), limits)
    show(checks)
    verdict = Text(VERDICTS[finding.verdict].say(language), f"bold {COLOURS[finding.verdict.name]}")
    colon, comma = ("：", "，") if language == "zh" else (": ", ", ")
    made = comma.join((format_seeds(run.seeds, language), phrase("seconds", language, f"{run.seconds:.1f}")))
    show(Text.assemble(phrase("verdict", language) + colon, verdict, (f"  {made}", "dim")))


COLOURS = {"HOLDS": "green", "LIMITED": "yellow", "FAILS": "red", "OPEN": "magenta"}
MARK_COLOURS = {"passed": "green", "failed": "red", "open": "magenta"}


def print_tally(runs: list[LabRun], language: str, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    from glassformer.labs.experiment import VERDICTS

    table = Table.grid(padding=(0, 2))
    for one in runs:
        verdict = one.finding.verdict
        table.add_row(
            one.lab.name, Text(VERDICTS[verdict].say(language), COLOURS[verdict.name]), one.lab.title.say(language)
        )
    console.print(table)


def check_folder(out: Path, labs: list[Lab]) -> None:
    """Refuse, before the labs run, a folder that the report cannot be written to."""
    from glassformer.labs.figures import require_matplotlib

    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out} is a file; name a folder for the report")
    taken = [
        name for name in ("report.json", "report.html", *(f"{one.name}.svg" for one in labs)) if (out / name).exists()
    ]
    if taken and not holds_report(out):
        raise ConfigError(f"--out {out} holds another {taken[0]}, which no lab has written; choose another folder")
    require_matplotlib()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"--out {out} cannot be made ({why(error)}); choose another folder") from None


def holds_report(folder: Path) -> bool:
    """Whether the reports in `folder` are ours to replace."""
    try:
        command = (read_json(folder / "report.json") or {}).get("command")
    except WeightsError:
        return False
    return isinstance(command, str) and command.startswith("glassformer lab")


def write_report(out: Path, runs: list[LabRun], content: str, command: str, language: str) -> None:
    from glassformer.labs.figures import svg
    from glassformer.labs.report import html

    figures = {one.lab.name: svg(one.finding.figure, language) for one in runs}
    # The first says whose the others are.
    files = {"report.json": content + "\n", "report.html": html(runs, figures, language, command)}
    files |= {f"{name}.svg": figure for name, figure in figures.items()}
    try:
        for name, text in files.items():
            write_text(out / name, text)
    except OSError as error:
        raise RunError(f"--out {out} cannot be written ({why(error)}); choose another folder") from None
