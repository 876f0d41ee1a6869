"""A run: the input is cut into shards, those that are not done are translated, and finished files are joined."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from glassformer.common.errors import ConfigError, RunError, check_choice, check_whole, why
from glassformer.common.report import Report, clock
from glassformer.decode.precision import Precision
from glassformer.deploy.bulk import workers
from glassformer.deploy.bulk.folder import OutputFolder
from glassformer.deploy.bulk.formats import ROWS, Format, Shard, make_format
from glassformer.deploy.bulk.sources import Source, check_output, find_sources
from glassformer.deploy.bulk.workers import BulkJob, Worker
from glassformer.pipelines.polyglot import language_pairs

SAMPLE = 2000  # characters from which the language is detected
REPORT_SECONDS = 60.0  # between two lines of progress, if there is no terminal


@dataclass(frozen=True)
class BulkResult:
    rows: int
    translated: int  # rows, by this run
    seconds: float


@dataclass(frozen=True)
class Plan:
    """A job with its languages, and its input cut into shards."""

    job: BulkJob
    sources: list[Source]
    digests: list[str]  # of the sources
    shards: list[Shard]
    format: Format

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)


def translate_bulk(job: BulkJob, report: Report | None = None) -> BulkResult:
    """Translate the rows of a file, or of a folder of files, into a folder; called again, it resumes."""
    report = report or Report(quiet=True)
    plan = make_plan(job, report)
    begin = time.monotonic()
    try:
        folder = OutputFolder(job.output, plan.sources, plan.shards, plan.format, manifest(plan))
        with folder.locked():
            left = [shard for shard in plan.shards if not folder.is_done(shard)]
            progress = Progress(plan.rows, sum(shard.rows for shard in left), report)
            try:
                for shard, part in translate_shards(plan, left, report):
                    folder.put(shard, part)
                    progress.add(shard.rows)
                report.show("putting the parts together", every=0)
                folder.join()
            except KeyboardInterrupt:
                kept = f"{progress.rows - progress.left:,} of {progress.rows:,} rows are kept"
                report.say(f"stopped; {kept} in {job.output}: give the same command again to go on")
                raise
            finally:
                report.clear()
    except OSError as error:
        raise RunError(
            f"{error.filename or job.output} cannot be written: {why(error)}; mend that and give the command again"
        ) from None
    return BulkResult(plan.rows, progress.done, time.monotonic() - begin)


def make_plan(job: BulkJob, report: Report) -> Plan:
    """Finds every mistake in the options and the input before anything is written."""
    check_whole("beam", job.beam, 1, "1 is greedy")
    check_whole("shard_rows", job.shard_rows, 1, f"{ROWS:,} is usual")
    check_choice("precision", job.precision, get_args(Precision))
    check_output(job.input, job.output)
    job = replace(job, to=workers.check_model(job.model, job.to))
    sources = find_sources(job.input)
    kind = sources[0].kind
    if kind == "text" and job.column is not None:
        raise ConfigError(f"--column {job.column}: text has no columns; leave it out, or give Parquet or JSONL")
    with closing(make_format(kind, job.column or "text", job.into)) as format:
        cuts = [
            format.cut(source, job.shard_rows, report.counting(f"reading {source.name}, lines")) for source in sources
        ]
        spans = [(i, span) for i, (_, spans) in enumerate(cuts) for span in spans]
        shards = [Shard(**asdict(span), number=number, source=i) for number, (i, span) in enumerate(spans)]
        texts = (text for shard in shards for text in format.texts(sources[shard.source], shard) if text)
        job = with_languages(job, texts, report)
    report.clear()
    return Plan(job, sources, [digest for digest, _ in cuts], shards, format)


def with_languages(job: BulkJob, texts: Iterator[str], report: Report) -> BulkJob:
    """The job with the languages that the box's models need, if not given detected from the first texts."""
    if job.model is not None:
        return replace(job, source=job.source or "")
    sample = ""
    while job.source is None and len(sample) < SAMPLE and (text := next(texts, "")):
        sample += text + "\n"
    ((source, target, notes),) = language_pairs([sample], job.to, job.source)
    if not source:
        raise ConfigError("the language of the texts cannot be told; name it: --from en")
    if source == target:
        raise ConfigError(f"{job.input} holds nothing to translate into `{job.to}`; is the language right? Say --from")
    for note in notes:
        report.say(note.text)
    if job.source is None:
        report.say(f"from `{source}` into `{target}`, by the first rows; --from would say otherwise")
    return replace(job, source=source, to=target)


def manifest(plan: Plan) -> dict[str, Any]:
    """What determines the output: a folder is resumed only if all of it is the same."""
    job, is_text = plan.job, plan.sources[0].kind == "text"
    options = {
        "from": job.source, "to": job.to, "model": job.model, "beam": job.beam, "precision": job.precision,
        "column": None if is_text else job.column or "text", "into": None if is_text else job.into,
        "shard_rows": job.shard_rows, "glassformer": job.version, "weights": workers.model_digest(job),
    }  # fmt: skip
    names = [source.name for source in plan.sources]
    return {"options": options, "input": dict(zip(names, plan.digests, strict=True))}


def translate_shards(plan: Plan, shards: Sequence[Shard], report: Report) -> Iterator[tuple[Shard, bytes]]:
    """The shards with their parts, in any order; no model is loaded if there are none."""
    job = plan.job
    if not shards:
        return
    devices = workers.choose_devices(job, len(shards))
    on_cpu = devices[0] == "cpu"
    if job.address is not None or (on_cpu and job.workers != 1 and len(shards) > 1 and workers.is_installed()):
        yield from workers.translate_on_ray(job, plan.sources, shards, report)
        return
    if len(devices) > 1:
        report.say(f"by {len(devices)} processes" + ("" if on_cpu else f" on {', '.join(dict.fromkeys(devices))}"))
        yield from workers.translate_in_processes(job, plan.sources, shards, devices)
        return
    with closing(Worker(job, plan.sources[0].kind, devices[0], job.threads)) as worker:
        for group in workers.group_shards(shards, devices[0]):
            yield from zip(group, worker.translate(plan.sources, group), strict=True)


class Progress:
    """The progress of a run: on a terminal a live line, elsewhere a line a minute."""

    def __init__(self, rows: int, left: int, report: Report) -> None:
        self.rows, self.left, self.report = rows, left, report
        self.done = 0  # by this run
        self.begin = self.reported = time.monotonic()
        if left < rows:
            report.say(f"{rows - left:,} of {rows:,} rows are there from an earlier run")

    def add(self, rows: int) -> None:
        self.done, self.left = self.done + rows, self.left - rows
        now = time.monotonic()
        rate = max(1, self.done) / (now - self.begin)
        line = f"{self.rows - self.left:,} of {self.rows:,} rows  {rate:,.0f} rows/s  {clock(self.left / rate)} left"
        self.report.show(line)
        if not self.report.live and now - self.reported >= REPORT_SECONDS:
            self.reported = now
            self.report.say(line)
