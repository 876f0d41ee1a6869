"""Workers: in this process, or on Ray with one for each core or GPU of a machine or a cluster.

On Ray each row of the dataset describes a shard; an actor translates it and returns the part, and the parts are
written here in any order. If a worker dies, Ray starts another for the same shard."""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from glassformer.common.errors import ConfigError, DataError, GlassformerError, RunError, WeightsError, one_of
from glassformer.common.report import Report
from glassformer.common.version import __version__
from glassformer.decode import Search
from glassformer.decode.precision import Precision
from glassformer.deploy.bulk.formats import Format, JsonLines, Parquet, Shard, TextLines
from glassformer.deploy.bulk.sources import Kind, Source
from glassformer.pipelines import box
from glassformer.pipelines.language.language import language_code
from glassformer.pipelines.text import TextTranslator
from glassformer.pipelines.translator import Translator
from glassformer.weights.pretrained.loader import is_multilingual

MODEL_FILES = ("*.safetensors", "*.bin", "*.spm", "*.model", "config.json", "tokenizer*.json", "vocab.json")


@dataclass(frozen=True)
class Job:
    """How texts are translated; workers on other machines are told it whole."""

    model: str | None  # by its folder or name; the box's if none
    source: str
    target: str | None
    beam: int
    precision: Precision
    kind: Kind
    column: str
    into: str
    version: str = __version__

    def format(self) -> Format:
        made: dict[Kind, Format] = {
            "text": TextLines(),
            "jsonl": JsonLines(self.column, self.into),
            "parquet": Parquet(self.column, self.into),
        }
        return made[self.kind]

    def load(self, device: str) -> TextTranslator:
        if self.model is not None:
            spoken = self.source or None if is_multilingual(Path(self.model)) else None
            one = Translator.load(self.model, device, self.precision, to=self.target, source=spoken)
            return TextTranslator(one, source="" if spoken else self.source)
        assert self.target is not None
        hops = [
            Translator.load(box.folder(way.model), device, self.precision, to=way.to)
            for way in box.route(self.source, self.target)
        ]
        return TextTranslator(*hops, source=self.source, target=self.target)


class Worker:
    """A model, loaded once, that makes one part after the other."""

    def __init__(self, job: Job, device: str, threads: int | None) -> None:
        import torch

        if job.version != __version__:
            raise ConfigError(
                f"a worker has glassformer {__version__} and the run {job.version}; install the same on all machines"
            )
        if threads is not None:
            torch.set_num_threads(threads)
        self.format, self.translator, self.search = job.format(), job.load(device), Search(beam=job.beam)

    def made(self, source: Source, shard: Shard) -> bytes:
        return self.format.made(source, shard, lambda texts: self.translator.translate(texts, search=self.search))

    def close(self) -> None:
        self.format.close()


def check_model(model: str | None, to: str | None) -> str | None:
    """The language to translate into as it is called here, if it can be; asked before anything is read."""
    if model is None:
        return None if to is None else language_code(to, box.LANGUAGES)
    if not os.path.lexists(model) and model not in box.directions():
        names = one_of(box.directions())
        raise WeightsError(f"there is no model {model}; name a folder that `glassformer train` has made, or {names}")
    return to


def model_digest(job: Job) -> str:
    """Of the weights and words that translate: with others, a folder is not gone on with."""
    if job.model is None:
        assert job.target is not None
        folders = [box.folder(way.model) for way in box.route(job.source, job.target)]
    elif os.path.lexists(job.model):
        folders = [Path(job.model)]
    else:
        folders = [box.folder(box.directions()[job.model].model)]
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted({path for name in MODEL_FILES for path in folder.glob(name)}):
            with path.open("rb") as file:
                digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


WAVE = 10_000  # shards that Ray is told of at once
PATIENCE = 10.0  # seconds
STORE = 1 << 29  # bytes of memory that processes share here; parts are small and soon written
QUIET = {"RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_USAGE_STATS_ENABLED": "0"}  # nothing is sent anywhere


@dataclass(frozen=True)
class Place:
    """Where workers run, as it was asked for."""

    device: str
    workers: int | None
    threads: int | None
    address: str | None


def is_installed() -> bool:
    return find_spec("ray") is not None and find_spec("pyarrow") is not None


def on_cluster(
    job: Job, sources: Sequence[Source], left: Sequence[Shard], place: Place, report: Report
) -> Iterator[tuple[Shard, bytes]]:
    """The parts of the shards, as they come."""
    if not is_installed():
        raise ConfigError(f"--address {place.address} needs Ray; run: pip install 'glassformer[bulk]'")
    import ray

    with connected(place):
        pool = Pool.of(place, ray.cluster_resources(), len(left))
        report.say(f"by Ray: {pool.workers:,} x {pool.each}, on {count(alive(ray.nodes()), 'machine')}")
        for start in range(0, len(left), WAVE):
            wave = {shard.number: shard for shard in left[start : start + WAVE]}
            for number, made in parts(job, sources, list(wave.values()), pool):
                yield wave.pop(number), made
            if wave:
                raise RunError(f"Ray has not given back {len(wave):,} shards; give the same command again to go on")


@dataclass(frozen=True)
class Pool:
    """So many workers, each with cores or a GPU."""

    workers: int
    threads: int
    device: str

    @property
    def each(self) -> str:
        return count(self.threads, "core") if self.device == "cpu" else "a GPU"

    @classmethod
    def of(cls, place: Place, there: dict[str, float], shards: int) -> Pool:
        """As many as were asked for, else as fit; more than there is work for would only wait."""
        gpus = int(there.get("GPU", 0))
        device = place.device if place.device != "auto" else "cuda" if gpus else "cpu"
        threads = place.threads or 1
        most = gpus if device != "cpu" else int(there.get("CPU", 1)) // threads
        pool = cls(min(place.workers or max(1, most), shards), threads, device)
        if pool.workers > most:
            room = f"{count(int(there.get('CPU', 0)), 'core')} and {count(gpus, 'GPU')}"
            raise ConfigError(
                f"workers={pool.workers} with {pool.each} each do not fit: Ray has {room}; "
                "give fewer --workers or --threads"
            )
        return pool


@contextmanager
def connected(place: Place) -> Iterator[None]:
    """Ray, started here for this run alone, or the cluster at the address; what it says is said by us."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    import ray
    import ray.data

    for handler in logging.getLogger("ray.data").handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setLevel(logging.ERROR)
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if place.address is None:
        options |= {"include_dashboard": False, "object_store_memory": STORE}
    try:
        if place.address is not None:
            knock(place.address)
        with hushed():
            ray.init(address=place.address or "local", **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        told = (str(error) or type(error).__name__).strip().splitlines()[0]
        raise RunError(
            f"Ray cannot be {'reached at ' + place.address if place.address else 'started'} ({told}); "
            "`ray status` tells of a cluster, one that asks for its token wants RAY_AUTH_MODE=token here too, and "
            "--workers 1 does without"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def knock(address: str) -> None:
    """Whether anybody is there: Ray itself would wait for minutes."""
    host, colon, port = address.partition("://")[2].rpartition(":") if "://" in address else address.rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()


@contextmanager
def hushed() -> Iterator[None]:
    """Without what compiled code writes to standard error past Python."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def alive(nodes: list[dict[str, Any]]) -> int:
    return sum(1 for node in nodes if node["Alive"])


def count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def parts(job: Job, sources: Sequence[Source], shards: Sequence[Shard], pool: Pool) -> Iterator[tuple[int, bytes]]:
    """One part after the other, as workers finish them."""
    import ray

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    rows = [{"source": asdict(sources[shard.source]), "shard": asdict(shard)} for shard in shards]
    dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        Making,
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=pool.workers),
        fn_constructor_args=(job, pool.device, pool.threads),
        num_cpus=pool.threads if pool.device == "cpu" else 1,
        num_gpus=0 if pool.device == "cpu" else 1,
    )
    try:
        for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=1):
            for row in cast(Any, batch).to_pylist():
                if row["error"]:
                    raise DataError(row["error"])
                yield row["number"], row["part"]
    except ray.exceptions.RayError as error:
        told = (str(error).strip() or type(error).__name__).splitlines()[-1]
        raise RunError(f"a worker of Ray failed: {told}; mend that and give the same command again to go on") from None


class Making:
    """A worker as an actor of Ray Data: a batch is one shard, and gives one part, or what is wrong with it."""

    def __init__(self, job: Job, device: str, threads: int) -> None:
        self.worker: Worker | None = None
        self.error = ""
        try:
            self.worker = Worker(job, device, threads)
        except GlassformerError as error:
            self.error = str(error)  # a mistake that trying again does not mend

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        source, shard = Source(**batch["source"][0]), Shard(**batch["shard"][0])
        made, error = b"", self.error
        if self.worker is not None:
            try:
                made = self.worker.made(source, shard)
            except GlassformerError as wrong:
                error = str(wrong)
        return {"number": [shard.number], "part": [made], "error": [error]}
