"""A run: what is read is cut into shards, what is not done is translated, and what is whole is put together."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

from glassformer.common.errors import ConfigError, RunError, check_choice, check_whole, why
from glassformer.common.report import Report, clock
from glassformer.decode.precision import Precision
from glassformer.deploy.bulk.folder import OutputFolder
from glassformer.deploy.bulk.formats import ROWS, Cut, Shard
from glassformer.deploy.bulk.sources import Source, check_apart, find
from glassformer.deploy.bulk.workers import Job, Place, Worker, check_model, is_installed, model_digest, on_cluster
from glassformer.pipelines.polyglot import language_pairs

SAMPLE = 2000  # characters that tell the language
EVERY = 60.0  # seconds between two words on the progress, where there is no terminal


@dataclass(frozen=True)
class Asked:
    """What is to become of the `input`. Where it runs, the second half, changes nothing in the output."""

    input: str
    output: Path
    to: str | None = None
    source: str | None = None
    model: str | None = None
    column: str | None = None
    into: str = "translation"
    beam: int = 4
    precision: Precision = "auto"
    shard_rows: int = ROWS

    device: str = "auto"
    workers: int | None = None
    threads: int | None = None
    address: str | None = None


@dataclass(frozen=True)
class Outcome:
    """Rows in all, and those of them that this run has translated, in so many seconds."""

    rows: int
    translated: int
    seconds: float


@dataclass(frozen=True)
class Work:
    """What a run is about: its files, cut."""

    job: Job
    sources: list[Source]
    cuts: list[Cut]
    shards: list[Shard]

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)


def translate_bulk(asked: Asked, report: Report | None = None) -> Outcome:
    """Translate the rows of a file, or of a folder of files, into a folder; called again, it goes on where it was
    stopped."""
    report = report or Report(quiet=True)
    work = prepare(asked, report)
    begin = time.monotonic()
    try:
        with OutputFolder(asked.output, work.sources, work.shards, work.job.format(), manifest(asked, work)) as folder:
            left = [shard for shard in work.shards if not folder.is_done(shard)]
            progress = Progress(work.rows, sum(shard.rows for shard in left), report)
            try:
                for shard, made in translated(asked, work, left, report):
                    folder.put(shard, made)
                    progress.add(shard.rows)
                report.show("putting the parts together", every=0)
                folder.join()
            except KeyboardInterrupt:
                report.say(f"stopped; {progress.kept} in {asked.output}: give the same command again to go on")
                raise
            finally:
                report.clear()
    except OSError as error:
        raise RunError(
            f"{error.filename or asked.output} cannot be written: {why(error)}; mend that and give the command again"
        ) from None
    return Outcome(work.rows, progress.done, time.monotonic() - begin)


def prepare(asked: Asked, report: Report) -> Work:
    """Everything that can be wrong is told here, before anything is written."""
    check_whole("beam", asked.beam, 1, "1 is greedy")
    check_whole("shard_rows", asked.shard_rows, 1, f"{ROWS:,} is usual")
    check_choice("precision", asked.precision, get_args(Precision))
    check_apart(asked.input, asked.output)
    to = check_model(asked.model, asked.to)
    sources = find(asked.input)
    kind = sources[0].kind
    if kind == "text" and asked.column is not None:
        raise ConfigError(f"--column {asked.column}: text has no columns; leave it out, or give Parquet or JSONL")
    job = Job(asked.model, "", to, asked.beam, asked.precision, kind, asked.column or "text", asked.into)
    with closing(job.format()) as format:
        cuts = list[Cut]()
        for source in sources:
            cuts.append(format.cut(source, asked.shard_rows, report.counting(f"reading {source.name}, lines")))
        spans = [(i, span) for i, cut in enumerate(cuts) for span in cut.spans]
        shards = [Shard(**asdict(span), number=number, source=i) for number, (i, span) in enumerate(spans)]
        texts = (text for shard in shards for text in format.texts(sources[shard.source], shard) if text)
        job = with_languages(job, asked, texts, report)
    report.clear()
    return Work(job, sources, cuts, shards)


def with_languages(job: Job, asked: Asked, texts: Iterator[str], report: Report) -> Job:
    """From which language into which: said, or, for the box, told by the beginning of the texts; all rows alike."""
    if job.model is not None:
        return replace(job, source=asked.source or "")
    sample = ""
    while asked.source is None and len(sample) < SAMPLE and (text := next(texts, "")):
        sample += text + "\n"
    ((source, target, notes),) = language_pairs([sample], job.target, asked.source)
    if not source:
        raise ConfigError("the language of the texts cannot be told; name it: --from en")
    if source == target:
        raise ConfigError(
            f"{asked.input} holds nothing to translate into `{asked.to}`; is the language right? Say --from"
        )
    for note in notes:
        report.say(note.text)
    if asked.source is None:
        report.say(f"from `{source}` into `{target}`, by the first rows; --from would say otherwise")
    return replace(job, source=source, target=target)


def manifest(asked: Asked, work: Work) -> dict[str, Any]:
    """What makes the output what it is: a folder is gone on with only where all of it is the same."""
    job = work.job
    options = {
        "from": job.source, "to": job.target, "model": job.model, "beam": job.beam, "precision": job.precision,
        "column": None if job.kind == "text" else job.column, "into": None if job.kind == "text" else job.into,
        "shard_rows": asked.shard_rows, "glassformer": job.version, "weights": model_digest(job),
    }  # fmt: skip
    return {
        "options": options,
        "input": {source.name: cut.digest for source, cut in zip(work.sources, work.cuts, strict=True)},
    }


def translated(asked: Asked, work: Work, left: Sequence[Shard], report: Report) -> Iterator[tuple[Shard, bytes]]:
    """The parts, in any order; nothing is loaded where nothing is left to do."""
    if not left:
        return
    place = Place(asked.device, asked.workers, asked.threads, asked.address)
    if asked.address is not None or (asked.workers != 1 and len(left) > 1 and is_installed()):
        yield from on_cluster(work.job, work.sources, left, place, report)
        return
    if (asked.workers or 1) > 1:
        report.say("Ray is not installed, so this is one process; for more: pip install 'glassformer[bulk]'")
    with closing(Worker(work.job, asked.device, asked.threads)) as worker:
        for shard in left:
            yield shard, worker.made(work.sources[shard.source], shard)


class Progress:
    """How far a run is: on a terminal in a live line, elsewhere in a line a minute."""

    def __init__(self, rows: int, left: int, report: Report) -> None:
        self.rows, self.left, self.report = rows, left, report
        self.done = 0  # by this run
        self.begin = self.said = time.monotonic()
        if left < rows:
            report.say(f"{rows - left:,} of {rows:,} rows are there from an earlier run")

    @property
    def kept(self) -> str:
        return f"{self.rows - self.left:,} of {self.rows:,} rows are kept"

    def add(self, rows: int) -> None:
        self.done, self.left = self.done + rows, self.left - rows
        now = time.monotonic()
        rate = max(1, self.done) / (now - self.begin)
        line = f"{self.rows - self.left:,} of {self.rows:,} rows  {rate:,.0f} rows/s  {clock(self.left / rate)} left"
        self.report.show(line)
        if not self.report.live and now - self.said >= EVERY:
            self.said = now
            self.report.say(line)
