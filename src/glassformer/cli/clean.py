"""`glassformer clean`: a corpus without what teaches something wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

from typer import Argument, Option

from glassformer.cli.options import to_json
from glassformer.common.errors import ConfigError, check_names


def clean(
    corpus: Annotated[
        str,
        Argument(
            metavar="SOURCE",
            help="The file of sources; or one of pairs (.tsv, .jsonl), a dataset's name on the Hugging Face hub, or, "
            "without --target, text of one language. gzip, xz and Zstandard too.",
        ),
    ],
    out: Annotated[Path, Option(help="The folder to write. What was begun there is gone on with.")],
    source: Annotated[str, Option(help="Code of the sources' language, such as en.")],
    targets: Annotated[Path | None, Argument(metavar="TARGET", help="The file of targets.")] = None,
    target: Annotated[str | None, Option(help="Code of the targets' language; none: text of one language.")] = None,
    held_out: Annotated[
        list[Path] | None, Option(help="A file of text to keep out of the corpus; may be given several times.")
    ] = None,
    rules: Annotated[str | None, Option(help="Only these rules, with commas between.")] = None,
    without: Annotated[list[str] | None, Option(help="All rules but this; may be given several times.")] = None,
    sentences: Annotated[
        bool, Option("--sentences", help="Only lines that begin and end as a sentence does: the rule `sentence`.")
    ] = False,
    min_characters: Annotated[int, Option(min=1, help="The shortest line.")] = 1,
    max_characters: Annotated[int, Option(min=1, help="The longest line.")] = 1000,
    max_ratio: Annotated[
        float, Option(min=1, help="The longer side to the shorter; a Chinese character counts three letters.")
    ] = 2.0,
    alignment: Annotated[float, Option(help="The share of pairs that the rule `alignment` removes at most.")] = 0.05,
    format: Annotated[str, Option(help="Of what is written: text (a file for each side), tsv or jsonl.")] = "text",
    compress: Annotated[str, Option(help="Of what is written: none, gz, xz or zst.")] = "none",
    columns: Annotated[
        str | None,
        Option(help="Of .jsonl and datasets: the two columns. [default: src,tgt; of datasets the languages]"),
    ] = None,
    config: Annotated[str | None, Option(help="Of a dataset: its configuration, such as de-en.")] = None,
    skip_bad: Annotated[bool, Option("--skip-bad", help="Leave out, and count, lines that cannot be read.")] = False,
    examples: Annotated[int, Option(min=0, help="Removed pairs to show for each rule.")] = 5,
    workers: Annotated[int | None, Option(min=1, max=64, help="Processes; one for each core but one if none.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Leave out of a corpus what teaches a translator something wrong.

    glassformer clean europarl.en.xz europarl.de.xz --source en --target de --out clean --held-out valid.en

    Wrong languages, wrong alignment, other numbers or currencies, copies, doubles, held-out text and more. Each rule is
    counted, with examples, in a table and in report.json. Of several rules that a pair breaks, the first counts. When
    it is stopped, in whatever way, the same command goes on.
    """
    from glassformer.common.report import Report
    from glassformer.data.cleaning import RULES, CleanOptions
    from glassformer.data.cleaning import clean as clean_corpus
    from glassformer.data.corpus import Corpus

    check_names(without or (), RULES)
    chosen = rules.split(",") if rules else [name for name in RULES if name != "sentence"]
    chosen = [name for name in [*chosen, *(["sentence"] if sentences else [])] if name not in (without or ())]
    if not chosen:
        raise ConfigError("no rule is left; name fewer with --without")
    if targets is not None and target is None:
        raise ConfigError(f"two files are pairs: name the language of {targets} with --target")
    options = CleanOptions(
        source, target, tuple(chosen), max_ratio, min_characters, max_characters, alignment,
        tuple(map(str, held_out or ())), cast(Any, format), cast(Any, compress), examples,
    )  # fmt: skip
    report = Report()
    given = corpus_options(corpus, targets, source, target, columns, config)
    result = clean_corpus(Corpus(**given, skip_bad=skip_bad), out, options, workers, report.show)
    report.clear()
    print(to_json(result)) if as_json else print_table(result, out)


def corpus_options(
    name: str, targets: Path | None, source: str, target: str | None, columns: str | None, config: str | None
) -> dict[str, Any]:
    """The corpus that the arguments mean, by the names of its files."""
    if targets is not None:
        return {"src": name, "tgt": targets}
    if target is None:
        return {"text": name}
    keys = columns.split(",") if columns else ["src", "tgt"]
    if len(keys) != 2:
        raise ConfigError(f"columns={columns} must be two names, with a comma between")
    stem = name.removesuffix(".gz").removesuffix(".xz").removesuffix(".zst")
    if stem.endswith(".tsv"):
        return {"tsv": name}
    if stem.endswith(".jsonl"):
        return {"jsonl": name, "src_key": keys[0], "tgt_key": keys[1]}
    if Path(name).exists() or name.count("/") != 1:
        raise ConfigError(f"{name} is one file, neither .tsv nor .jsonl; name the file of the targets behind it")
    keys = keys if columns else [source, target]
    return {"hub": name, "config": config, "src_key": keys[0], "tgt_key": keys[1]}


def print_table(result: dict[str, Any], out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name, width in {"rule": max(map(len, result["rules"])), "removed": 7, "share": 5}.items():
        table.add_column(name, no_wrap=True, min_width=width)
    table.add_column("examples", no_wrap=True, overflow="ellipsis")
    for name, one in result["rules"].items():
        share = f"{one['removed'] / max(result['read'], 1):.2%}"
        table.add_row(name, f"{one['removed']:,}", share, "\n".join(" | ".join(e)[:150] for e in one["examples"][:2]))
    console = Console(markup=False, highlight=False)
    console.print(table)
    if result["alignment"]:
        console.print(f"alignment: {result['alignment']}")
    bad = f", {result['bad']:,} lines could not be read" if result["bad"] else ""
    console.print(f"{result['kept']:,} of {result['read']:,} kept in {out}, {result['normalised']:,} normalised{bad}")
