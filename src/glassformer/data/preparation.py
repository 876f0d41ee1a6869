"""Making a store: read, filter, encode, write."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from glassformer.common.errors import ConfigError, DataError, why
from glassformer.common.version import child_environment
from glassformer.data.corpus import Corpus, Pair
from glassformer.data.labelled import LabelledTokenizer
from glassformer.data.protect import hide_in_pairs
from glassformer.data.readers import read_pairs
from glassformer.data.store import META, NUMBER, OFFSET, SIDES, VERSION, Store, read_meta
from glassformer.data.tokenizer import Flat, Tokenizer
from glassformer.data.vocabulary import SPECIALS, UNK

Chunk = tuple[int, list[Pair]]  # the number of a corpus, and some of its pairs

FILES = (*(f"{side}{end}" for side in SIDES for end in (".bin", ".offsets.bin")), "corpus.bin")
UNKNOWN = (SPECIALS[UNK], "[UNK]")  # as the families write what is in no vocabulary
CHUNK = 20_000
CHARACTERS_PER_TOKEN = 40  # a text with more than this per allowed token is too long; no need to encode it to know
RATIO_SLACK = 10  # tokens the longer side may have beyond the ratio, since short sentences vary more
ABANDONED = 3600.0  # seconds after which an unfinished preparation is taken for interrupted


@dataclass(frozen=True)
class FilterOptions:
    """Which pairs are left out. Lengths are in tokens, without start and end."""

    max_tokens: int = 256
    max_ratio: float = 3.0  # longer side to shorter side

    def __post_init__(self) -> None:
        for name in ("max_tokens", "max_ratio"):
            if not getattr(self, name) >= 1:
                raise ConfigError(f"filter.{name} {getattr(self, name)} must be at least 1")


def prepare(
    corpora: Sequence[Corpus],
    tokenizer: Tokenizer,
    folder: str | Path,
    options: FilterOptions | None = None,
    progress: Callable[[int], None] | None = None,
) -> Store:
    """The store in `folder`, made now unless it was made before from the same inputs, tokenizer and options.

    `progress` is told how many pairs have been read.
    """
    folder = Path(folder)
    options = options or FilterOptions()
    if isinstance(tokenizer, LabelledTokenizer):  # a label is always shorter than its text; all images are of one size
        longest = tokenizer.pixels or options.max_tokens
        options = dataclasses.replace(options, max_ratio=math.inf, max_tokens=longest)
    if not corpora:
        raise ConfigError("there is no corpus to prepare; name at least one")
    weights = [corpus.weight for corpus in corpora]
    # Changes when anything that enters the store changes. The weights do not: they act when batches are planned.
    inputs = [entry for corpus in corpora for entry in corpus_state(corpus)]
    described = [VERSION, inputs, dataclasses.asdict(options), tokenizer.fingerprint()]
    fingerprint = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
    meta = read_meta(folder)
    if meta is not None and meta["fingerprint"] == fingerprint:
        try:
            return Store(folder, weights, tokenizer.input_map)
        except DataError:
            pass  # damaged; prepared again below
    names = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    if names - {META, *FILES} or (names and meta is None and not names.issuperset(FILES)):
        raise DataError(f"{folder} exists and holds other files than a prepared corpus; choose another folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder.parent, prefix := f".{folder.name}.partial-")
        partial = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {why(error)}; choose another folder") from None
    try:
        counts = _write_store(Encoder(corpora, tokenizer, options), partial, progress)
        meta = {"version": VERSION, "fingerprint": fingerprint, "corpora": len(corpora), **counts}
        (partial / META).write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
        partial.chmod(0o755)
        # A folder in place is always a whole one: the old goes away first, the new arrives by one rename.
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {why(error)}; free some space or choose another folder") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Store(folder, weights, tokenizer.input_map)


def _write_store(encoder: Encoder, folder: Path, progress: Callable[[int], None] | None) -> dict[str, Any]:
    """Write all files but the description; return what it says of them."""
    report: Counter[str] = Counter()
    ends = dict.fromkeys(SIDES, 0)
    with ExitStack() as stack:
        files = {name: stack.enter_context((folder / name).open("wb")) for name in FILES}
        for side in SIDES:
            files[f"{side}.offsets.bin"].write(np.zeros(1, OFFSET).tobytes())
        for number, read, sides, left_out in map_in_order(encoder, _chunks(encoder.corpora, report)):
            kept = 0
            for side, (ids, lengths) in zip(SIDES, sides, strict=True):
                files[f"{side}.bin"].write(ids.tobytes())
                offsets = ends[side] + np.cumsum(lengths, dtype=OFFSET)
                files[f"{side}.offsets.bin"].write(offsets.tobytes())
                ends[side] += int(lengths.sum())
                kept = len(lengths)
            files["corpus.bin"].write(np.full(kept, number, NUMBER).tobytes())
            report.update(left_out)
            report["read"] += read
            report["kept"] += kept
            if progress is not None:
                progress(report["read"])
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
    counts = {key: report[key] for key in ("read", "kept", "bad", "empty", "too_long", "too_short", "mismatched")}
    counts |= {f"{side}_unknown": report[f"{side}_unknown"] for side in SIDES}
    counts |= {f"{side}_tokens": ends[side] for side in SIDES}
    if not counts["kept"]:
        raise DataError(
            f"no pair is left of the {counts['read']} read: {counts['empty']} with an empty side, "
            f"{counts['too_long']} longer than {encoder.options.max_tokens} tokens, "
            f"{counts['too_short']} without a token, "
            f"{counts['mismatched']} of unequal length; check the files, or relax the filter options"
        )
    return {"dtype": encoder.dtype.str, "pairs": counts["kept"], "report": counts}


def _chunks(corpora: Sequence[Corpus], counts: Counter[str]) -> Iterator[Chunk]:
    for number, corpus in enumerate(corpora):
        pairs = read_pairs(corpus, counts)
        while chunk := list(islice(pairs, CHUNK)):
            yield number, chunk


@dataclass(frozen=True)
class Encoder:
    """Filters and encodes a chunk of pairs, here or in another process."""

    corpora: Sequence[Corpus]
    tokenizer: Tokenizer
    options: FilterOptions

    @cached_property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The smallest that holds every id."""
        offset = self.tokenizer.input_map.offset if self.tokenizer.input_map else 0
        most = max(self.tokenizer.src_size, self.tokenizer.tgt_size) + offset
        return np.dtype("<u2" if most <= 1 << 16 else "<u4")

    @cached_property
    def unknown(self) -> list[list[int]]:
        """The ids of what is in no vocabulary, of sources and of targets; labels and pixels are none."""
        own: tuple[dict[int, str], ...] = ({}, {})
        if not isinstance(self.tokenizer, LabelledTokenizer):
            own = self.tokenizer.pieces
        elif not self.tokenizer.pixels:
            own = ({}, self.tokenizer.texts.pieces[1])
        return [[id for id, piece in side.items() if piece in UNKNOWN] for side in own]

    def __call__(self, job: Chunk) -> tuple[int, int, list[Flat], Counter[str]]:
        """The corpus's number, the pairs read, ids end to end and lengths of the pairs that pass, source then target,
        and how many did not pass and why. Monolingual texts have sources without ids."""
        number, chunk = job
        corpus, options = self.corpora[number], self.options
        marks, report = len(self.tokenizer.placeholders), Counter[str]()
        hidden = hide_in_pairs(chunk, corpus.protect, marks) if corpus.protect else chunk
        pairs = [pair for pair in hidden if pair[1].strip() and (corpus.monolingual or pair[0].strip())]
        report["empty"] = len(chunk) - len(pairs)
        limit = CHARACTERS_PER_TOKEN * options.max_tokens
        fitting = [pair for pair in pairs if max(map(len, pair)) <= limit]
        sides = self.tokenizer.for_corpus(corpus).encode_flat(fitting, self.dtype)
        if corpus.monolingual:
            sides = ((sides[0][0][:0], np.zeros_like(sides[0][1])), sides[1])
        shorter = sides[1][1] if corpus.monolingual else np.minimum(sides[0][1], sides[1][1])
        longer = np.maximum(sides[0][1], sides[1][1])
        too_long = longer > options.max_tokens
        too_short = ~too_long & (shorter == 0)
        ratio = min(options.max_ratio, options.max_tokens)  # no two sides that fit differ by more
        mismatched = ~too_long & ~too_short & (longer > ratio * shorter + RATIO_SLACK)
        report["too_long"] = len(pairs) - len(fitting) + int(too_long.sum())
        report["too_short"], report["mismatched"] = int(too_short.sum()), int(mismatched.sum())
        passed = ~(too_long | too_short | mismatched)
        kept = [(ids[np.repeat(passed, lengths)], lengths[passed]) for ids, lengths in sides]
        for side, (ids, _), unknown in zip(SIDES, kept, self.unknown, strict=True):
            report[f"{side}_unknown"] = int(np.isin(ids, unknown).sum())
        return number, len(chunk), kept, report


def corpus_state(corpus: Corpus) -> list[object]:
    """Changes when the corpus does."""
    options = {k: str(v) for k, v in dataclasses.asdict(corpus).items() if k != "weight"}
    return [options, *map(file_state, corpus.files)]


def file_state(file: str | Path) -> list[object]:
    path = Path(file)
    # A missing file is reported by the reader, which knows more about it.
    status = path.stat() if path.exists() else None
    return [str(path.absolute()), status and status.st_size, status and status.st_mtime_ns]


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove what interrupted preparations left behind, but not one that another process is writing."""
    for partial in (entry for entry in folder.iterdir() if entry.name.startswith(prefix)):
        ages = [time.time() - file.stat().st_mtime for file in (partial, *partial.glob("*"))]
        if min(ages) > ABANDONED:
            shutil.rmtree(partial, ignore_errors=True)


Job = TypeVar("Job")
Result = TypeVar("Result")

FEW_CORES = 4  # below, the threads of the tokenizers' library use them as well
FEW_JOBS = 4  # done here before a process would have started
MOST = 12  # processes; the one that reads cannot feed many more
SERVE = "from glassformer.data.preparation import serve_jobs; serve_jobs()"


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_order(work: Callable[[Job], Result], jobs: Iterable[Job], workers: int | None = None) -> Iterator[Result]:
    """The results of `work`, which can be pickled, in the order of `jobs`, a few of which are read ahead.

    `workers` processes do it; if none are named, one for each core but one, where there are several.
    """
    jobs = iter(jobs)
    few = list(islice(jobs, FEW_JOBS))
    count = workers or (min(MOST, cores() - 1) if cores() >= FEW_CORES else 1)
    if count == 1 or len(few) < FEW_JOBS:
        yield from map(work, chain(few, jobs))
        return
    idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
    ended = threading.Event()
    started = [start_worker(work) for _ in range(count)]
    for worker in started:
        idle.put(worker)

    def ask(job: Job) -> Result:
        worker = idle.get()
        try:
            send_pickle(worker.stdin, job)
            assert worker.stdout is not None
            result: Result = pickle.load(worker.stdout)
            return result
        except (OSError, EOFError, pickle.UnpicklingError):
            if ended.is_set():
                raise
            return work(job)  # an error of the work itself is then raised here, where it is understood
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(count)
    waiting: deque[Future[Result]] = deque()
    try:
        for job in chain(few, jobs):
            waiting.append(pool.submit(ask, job))
            if len(waiting) > 2 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        ended.set()
        for worker in started:
            worker.kill()
        pool.shutdown(cancel_futures=True)
        for worker in started:
            worker.communicate()


def start_worker(work: Callable[[Any], Any]) -> subprocess.Popen[bytes]:
    worker = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        env=child_environment() | {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with suppress(OSError):  # it has died; the first job sent to it reports that
        send_pickle(worker.stdin, work)
    return worker


def send_pickle(stream: Any, thing: Any) -> None:
    pickle.dump(thing, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def serve_jobs() -> None:
    """The other end: the work first, then its jobs, until there are none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it hears of it, and ends this
    given, answers = sys.stdin.buffer, sys.stdout.buffer
    try:
        work = pickle.load(given)
        while True:
            send_pickle(answers, work(pickle.load(given)))
    except (EOFError, BrokenPipeError):
        return
