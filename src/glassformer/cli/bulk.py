"""`glassformer bulk`: millions of rows, on as many cores as there are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

from typer import Argument, Option

from glassformer.cli.options import Offline, Precision, Revision, find_model, to_json


def bulk(
    input: Annotated[
        str,
        Argument(
            help="A file or a folder of Parquet, JSONL or text (one text a line; gzip and xz too); s3:// and gs:// too."
        ),
    ],
    output: Annotated[
        Path,
        Argument(help="A folder: each file comes there by its own name. One that was begun is gone on with."),
    ],
    to: Annotated[str | None, Option(help="Language to translate into: en, de or zh.")] = None,
    source: Annotated[
        str | None, Option("--from", help="Language of the texts, all of them; told by the first if none.")
    ] = None,
    model: Annotated[
        str | None,
        Option(help="A folder of glassformer train, a Marian folder, en-de, or a name of the hub; the box's if none."),
    ] = None,
    column: Annotated[str | None, Option(help="Of Parquet and JSONL: the column to translate. [default: text]")] = None,
    into: Annotated[str, Option(help="Of Parquet and JSONL: the new column, for the translations.")] = "translation",
    beam: Annotated[int, Option(help="Beam width; 1 is greedy, and faster.")] = 4,
    precision: Precision = "auto",
    workers: Annotated[
        int | None,
        Option(
            min=1,
            max=100_000,
            help="Processes with a model each; by Ray a core each, on a GPU several if none. 1: this process alone.",
        ),
    ] = None,
    threads: Annotated[int | None, Option(min=1, max=1024, help="Cores for each worker.")] = None,
    address: Annotated[
        str | None, Option(help="A Ray cluster to run on: auto, or its address, such as 10.0.0.1:6379.")
    ] = None,
    device: Annotated[str, Option(help="auto, cpu or cuda.")] = "auto",
    shard_rows: Annotated[
        int, Option(help="Rows that are translated and kept together at most; what is half done is done again.")
    ] = 1000,
    as_json: Annotated[bool, Option("--json", help="At the end, rows and seconds as JSON.")] = False,
    revision: Revision = None,
    offline: Offline = False,
) -> None:
    """Translate a file or a folder of Parquet, JSONL or text, row by row, of any size.

    glassformer bulk reviews.parquet out --to de --column review

    Rows keep their order and all their columns, and get one more, `translation`; text becomes text, one line each, and
    an empty line stays empty. When it is stopped, in whatever way, the same command goes on: what is written is not
    done again. On a GPU several processes share it. With Ray (pip install 'glassformer[bulk]') there is a worker for
    each core, or on all machines of a cluster.
    """
    from dataclasses import asdict

    from glassformer.common.report import Report, clock
    from glassformer.deploy.bulk import BulkJob, translate_bulk

    report = Report()
    model = None if model is None else find_model(model, revision, offline)
    job = BulkJob(
        input, output, to, source, model, column, into, beam, cast(Any, precision), shard_rows, device, workers,
        threads, address,
    )  # fmt: skip
    result = translate_bulk(job, report)
    if as_json:
        print(to_json(asdict(result)))
    elif result.translated:
        rate = f"{result.translated / result.seconds:,.0f} rows/s"
        report.say(
            f"{result.rows:,} rows are in {output}; {result.translated:,} now, in {clock(result.seconds)}, {rate}"
        )
    else:
        report.say(f"{result.rows:,} rows are in {output}; nothing was left to do")
