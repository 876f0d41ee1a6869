"""Workers: in this process, or on Ray with one for each core or GPU of a machine or a cluster.

On Ray each row of the dataset describes a shard; an actor translates it and returns its part, and the parts are
written by this process, in any order. If a worker dies, Ray starts another for the same shard.
"""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any, cast

from glassformer.common.device import pick_device
from glassformer.common.errors import ConfigError, DataError, GlassformerError, RunError, WeightsError, one_of
from glassformer.common.report import Report
from glassformer.common.version import __version__
from glassformer.decode import Search
from glassformer.decode.precision import Precision
from glassformer.deploy.bulk.formats import ROWS, Shard, make_format
from glassformer.deploy.bulk.sources import FileKind, Source
from glassformer.pipelines import box
from glassformer.pipelines.language.language import language_code
from glassformer.pipelines.text import TextTranslator
from glassformer.pipelines.translator import Translator
from glassformer.weights.pretrained.loader import is_multilingual

MODEL_FILES = ("*.safetensors", "*.bin", "*.npz", "*.spm", "*.model", "config.json", "tokenizer*.json", "vocab.json")
MOST_ON_GPU = 12  # processes; each has the model, and some hundreds of MB of PyTorch's own
SHARDS_ON_GPU = 8  # translated together
WAVE = 10_000  # shards that Ray gets at once
CONNECT_SECONDS = 10.0
STORE_BYTES = 1 << 29  # of memory that Ray's processes share; parts are small and soon written
ENVIRONMENT = {"RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_USAGE_STATS_ENABLED": "0"}  # no statistics are sent


@dataclass(frozen=True)
class BulkJob:
    """What to translate, and how. The second half, where it runs, does not change the output."""

    input: str
    output: Path
    to: str | None = None
    source: str | None = None
    model: str | None = None  # a folder or a name; the box's models if none
    column: str | None = None
    into: str = "translation"
    beam: int = 4
    precision: Precision = "auto"
    shard_rows: int = ROWS

    device: str = "auto"
    workers: int | None = None
    threads: int | None = None
    address: str | None = None
    version: str = __version__


class Worker:
    """A model, loaded once, that translates one shard after the other."""

    def __init__(self, job: BulkJob, kind: FileKind, device: str, threads: int | None) -> None:
        import torch

        if job.version != __version__:
            raise ConfigError(
                f"a worker has glassformer {__version__} and the run {job.version}; install the same on all machines"
            )
        if threads is not None:
            torch.set_num_threads(threads)
        self.format = make_format(kind, job.column or "text", job.into)
        self.translator, self.search = load_translator(job, device), Search(beam=job.beam)

    def translate(self, sources: Sequence[Source], shards: Sequence[Shard]) -> list[bytes]:
        """The parts of shards, which are translated together."""
        rows = [self.format.texts(sources[shard.source], shard) for shard in shards]
        texts = [text for one in rows for text in one if text is not None]
        made = iter(self.translator.translate(texts, search=self.search))
        parts = []
        for shard, one in zip(shards, rows, strict=True):
            translations = [None if text is None else next(made) for text in one]
            parts.append(self.format.part(sources[shard.source], shard, translations))
        return parts

    def close(self) -> None:
        self.format.close()


def load_translator(job: BulkJob, device: str) -> TextTranslator:
    if job.model is None:
        ways = box.route(job.source or "", job.to or "")
        steps = [Translator.load(box.folder(way.model), device, job.precision, to=way.to) for way in ways]
        return TextTranslator(*steps, source=job.source or "", target=job.to or "")
    source = job.source if job.source and is_multilingual(Path(job.model)) else None
    translator = Translator.load(job.model, device, job.precision, to=job.to, source=source)
    return TextTranslator(translator, source="" if source else job.source or "")


def check_model(model: str | None, to: str | None) -> str | None:
    """The code of the language to translate into; checks it and the model before anything is read."""
    if model is None:
        return None if to is None else language_code(to, box.LANGUAGES)
    if not os.path.lexists(model) and model not in box.directions():
        names = one_of(box.directions())
        raise WeightsError(f"there is no model {model}; name a folder that `glassformer train` has made, or {names}")
    return to


def model_digest(job: BulkJob) -> str:
    """Of the weights and vocabularies: a folder is not resumed with others."""
    if job.model is None:
        folders = [box.folder(way.model) for way in box.route(job.source or "", job.to or "")]
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


def is_installed() -> bool:
    return find_spec("ray") is not None and find_spec("pyarrow") is not None


def choose_devices(job: BulkJob, shards: int) -> list[str]:
    """The device of each process on this machine. A GPU has several: while one prepares a batch, another's is
    computed."""
    device = pick_device(job.device)
    if device.type == "cpu":
        return ["cpu"] * min(job.workers or 1, shards)
    import torch

    every = device.type == "cuda" and device.index is None
    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if every else [str(device)]
    workers = job.workers or max(1, min(MOST_ON_GPU * len(gpus), (os.cpu_count() or 1) - 1))
    return [gpus[i % len(gpus)] for i in range(min(workers, shards))]


def group_shards(shards: Sequence[Shard], device: str) -> list[list[Shard]]:
    """Those that are translated together: on a GPU several, so that batches are of sentences of one length."""
    size = SHARDS_ON_GPU if device.startswith("cuda") else 1
    return [list(shards[start : start + size]) for start in range(0, len(shards), size)]


_worker: Worker | GlassformerError | None = None  # of this process, where it is one of several


def _begin(job: BulkJob, kind: FileKind, devices: Queue[str], threads: int) -> None:
    global _worker
    try:
        _worker = Worker(job, kind, devices.get(), threads)
    except GlassformerError as error:  # raised here, it would be lost
        _worker = error


def _translate(sources: Sequence[Source], shards: Sequence[Shard]) -> list[bytes]:
    if isinstance(_worker, GlassformerError):
        raise _worker
    assert _worker is not None
    return _worker.translate(sources, shards)


def translate_in_processes(
    job: BulkJob, sources: Sequence[Source], shards: Sequence[Shard], devices: Sequence[str]
) -> Iterator[tuple[Shard, bytes]]:
    """Each shard with its part, by a process for each of `devices`, one GPU many times or several."""
    context = get_context("spawn")
    queue = context.Queue()
    for device in devices:
        queue.put(device)
    pool = ProcessPoolExecutor(len(devices), context, _begin, (job, sources[0].kind, queue, job.threads or 1))
    try:
        groups = {pool.submit(_translate, sources, group): group for group in group_shards(shards, devices[0])}
        for done in as_completed(groups):
            yield from zip(groups[done], done.result(), strict=True)
    except BrokenProcessPool:
        raise RunError(
            "a process has ended before its work was done, maybe for want of memory; give the same command again to "
            "go on, with fewer --workers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def translate_on_ray(
    job: BulkJob, sources: Sequence[Source], shards: Sequence[Shard], report: Report
) -> Iterator[tuple[Shard, bytes]]:
    """Each shard with its part, in the order in which they are finished."""
    if not is_installed():
        raise ConfigError(f"--address {job.address} needs Ray; run: pip install 'glassformer[bulk]'")
    import ray

    with ray_connection(job.address):
        pool = Pool.of(job, ray.cluster_resources(), len(shards))
        machines = sum(node["Alive"] for node in ray.nodes())
        report.say(f"by Ray: {pool.workers:,} x {pool.each}, on {count(machines, 'machine')}")
        for start in range(0, len(shards), WAVE):
            wave = {shard.number: shard for shard in shards[start : start + WAVE]}
            for number, part in translate_wave(job, sources, list(wave.values()), pool):
                yield wave.pop(number), part
            if wave:
                raise RunError(f"Ray has not given back {len(wave):,} shards; give the same command again to go on")


@dataclass(frozen=True)
class Pool:
    """How many workers there are, each with cores or a GPU."""

    workers: int
    threads: int
    device: str

    @property
    def each(self) -> str:
        return count(self.threads, "core") if self.device == "cpu" else "a GPU"

    @classmethod
    def of(cls, job: BulkJob, resources: dict[str, float], shards: int) -> Pool:
        """As many as the job says, or as fit, but not more than there are shards."""
        cores, gpus = int(resources.get("CPU", 1)), int(resources.get("GPU", 0))
        device = job.device if job.device != "auto" else "cuda" if gpus else "cpu"
        threads = job.threads or 1
        most = gpus if device != "cpu" else cores // threads
        pool = cls(min(job.workers or max(1, most), shards), threads, device)
        if pool.workers > most:
            raise ConfigError(
                f"workers={pool.workers} with {pool.each} each do not fit: Ray has {count(cores, 'core')} and "
                f"{count(gpus, 'GPU')}; give fewer --workers or --threads"
            )
        return pool


@contextmanager
def ray_connection(address: str | None) -> Iterator[None]:
    """Ray, started for this run alone, or the cluster at the address; its own messages are suppressed."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import ray
    import ray.data

    for handler in logging.getLogger("ray.data").handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setLevel(logging.ERROR)
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address is None:
        options |= {"include_dashboard": False, "object_store_memory": STORE_BYTES}
    try:
        if address is not None:
            check_address(address)
        with suppressed_stderr():
            ray.init(address=address or "local", **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = (str(error) or type(error).__name__).strip().splitlines()[0]
        raise RunError(
            f"Ray cannot be {'reached at ' + address if address else 'started'} ({reason}); "
            "`ray status` tells of a cluster, one that asks for its token wants RAY_AUTH_MODE=token here too, and "
            "--workers 1 does without"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def check_address(address: str) -> None:
    """Fails soon if nothing listens there; Ray itself would wait for minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()


@contextmanager
def suppressed_stderr() -> Iterator[None]:
    """Without what compiled code writes to standard error directly."""
    sys.stderr.flush()
    original, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(original, 2)
        os.close(original)
        os.close(null)


def count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def translate_wave(
    job: BulkJob, sources: Sequence[Source], shards: Sequence[Shard], pool: Pool
) -> Iterator[tuple[int, bytes]]:
    """The numbers and parts of shards, as workers finish them."""
    import ray

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    rows = [{"source": asdict(sources[shard.source]), "shard": asdict(shard)} for shard in shards]
    dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        RayWorker,
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=pool.workers),
        fn_constructor_args=(job, sources[0].kind, pool.device, pool.threads),
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
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
        raise RunError(
            f"a worker of Ray failed: {reason}; mend that and give the same command again to go on"
        ) from None


class RayWorker:
    """A worker as an actor of Ray Data: a batch is one shard, and yields its part or an error message."""

    def __init__(self, job: BulkJob, kind: FileKind, device: str, threads: int) -> None:
        # Loaded with the first shard: after an error here, Ray would start the actor again and again.
        self.load = cache(partial(Worker, job, kind, device, threads))

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        source, shard = Source(**batch["source"][0]), Shard(**batch["shard"][0])
        part, message = b"", ""
        try:
            (part,) = self.load().translate([source], [replace(shard, source=0)])
        except GlassformerError as error:
            message = str(error)
        return {"number": [shard.number], "part": [part], "error": [message]}
