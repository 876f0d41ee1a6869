"""Damaged files and bodies of requests: each is read, or refused in words, in little time and memory.

A process of its own reads the files of one format, one after the other. It is killed where it does not end, and begun
again where it died. The bodies go to a server, a process too, which has a third as many to read.
"""

from __future__ import annotations

import lzma
import multiprocessing
import os
import resource
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import httpx

from benchmarks.serving import running
from glassformer.common.errors import GlassformerError

ROOT = Path(__file__).parents[1]
sys.path[:0] = map(str, (ROOT / "tests" / "support", ROOT / "tests" / "pipelines" / "documents"))
from bodies import BODIES, kept_headers  # noqa: E402
from documents import DOCUMENTS  # noqa: E402
from mutations import json_mutations, mutations, tensor_mutations  # noqa: E402

SLOW, LARGE = 5.0, 1000  # seconds of the processor and megabytes that no file may take
KILLED = 30.0  # seconds after which a process is ended
ROOM = 4 << 30  # bytes more than at the start that a process may reserve, so that the machine stays usable


class Format(NamedTuple):
    """`prepare` is given an empty folder; it gives the bytes of a whole file, and what reads changed ones."""

    prepare: Callable[[Path], tuple[bytes, Callable[[bytes], object]]]
    mutate: Callable[[bytes, int, int], Iterator[bytes]] = mutations


class Trial(NamedTuple):
    number: int
    end: str  # read, refused, or what went wrong
    seconds: float
    megabytes: float


def bundle_file(name: str, file: str, place: Path) -> tuple[bytes, Callable[[bytes], object]]:
    """A file of a bundle: it is loaded, and translates."""
    from glassformer.pipelines.translator import Translator
    from glassformer.train.folder import saved_recipe
    from glassformer.weights import bundle

    shutil.copytree(ROOT / name, place, dirs_exist_ok=True)
    tags = bundle.load(place).tokenizer.tags

    def read(changed: bytes) -> object:
        (place / file).write_bytes(changed)
        if file == "scores.json":
            return bundle.read_scores(place)
        if file == "recipe.toml":
            saved_recipe(place)
        return Translator.load(place, to=tags[0] if tags else None).translate(["two three ☃"], max_new_tokens=8)

    whole = place / file
    return whole.read_bytes() if whole.is_file() else lzma.decompress(Path(f"{whole}.xz").read_bytes()), read


def document(suffix: str, place: Path) -> tuple[bytes, Callable[[bytes], object]]:
    """A document, translated by a stand-in."""
    from standins import StandIn, upper

    from glassformer.pipelines.documents import translate_bytes

    return DOCUMENTS[suffix].encode(), lambda changed: translate_bytes(Path(f"a{suffix}"), changed, StandIn(upper))


BUNDLES = {
    "words": "tests/kept/one-way-float32",
    "words-int8": "tests/kept/both-ways-int8",
    "pieces": "tests/docs/demo",
    "box": "src/glassformer/pipelines/box/en-de",
}
MUTATE = {"config.json": json_mutations, "tokenizer.json": json_mutations, "model.safetensors": tensor_mutations}
FILES = (*MUTATE, "tokenizer.json.xz", "source_words.txt", "source_words.txt.xz", "recipe.toml", "scores.json")
FILE_FORMATS: dict[str, Format] = {
    f"{kind}/{file}": Format(partial(bundle_file, name, file), MUTATE.get(file, mutations))
    for kind, name in BUNDLES.items()
    for file in FILES
    if any((ROOT / name / f"{file}{end}").is_file() for end in ("", ".xz"))  # the text of a small one is damaged too
} | {f"document{suffix}": Format(partial(document, suffix)) for suffix in DOCUMENTS}
FORMATS = (*FILE_FORMATS, *(f"body {name}" for name in BODIES))


def memory(key: str, process: int | str) -> int:
    """A figure of a process, in kilobytes."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))


def processor_time(process: int | str) -> float:
    """Seconds of a process and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def attempt(read: Callable[[bytes], object], changed: bytes, number: int, process: int | str = "self") -> Trial:
    Path(f"/proc/{process}/clear_refs").write_text("5", encoding="ascii")  # the most memory is counted from here
    before, begin = memory("VmRSS", process), processor_time(process)
    try:
        read(changed)
        end = "read"
    except GlassformerError:
        end = "refused"
    except BaseException as error:  # a panic of a Rust library is no Exception
        end = f"{type(error).__name__}: {error}"[:120]
    seconds, most = processor_time(process) - begin, memory("VmHWM", process)
    return Trial(number, end, seconds, (most - before) / 1000)


def work(name: str, seed: int, count: int, first: int, results: Connection) -> None:
    """Read the files of one format from the `first` on, and send what becomes of each."""
    import warnings

    warnings.simplefilter("ignore")
    with TemporaryDirectory() as folder:
        data, read = FILE_FORMATS[name].prepare(Path(folder))
        read(data)
        resource.setrlimit(resource.RLIMIT_AS, (1024 * memory("VmSize", "self") + ROOM,) * 2)
        for number, changed in enumerate(FILE_FORMATS[name].mutate(data, seed, count)):
            if number >= first:
                results.send(attempt(read, changed, number))


def trials(name: str, seed: int, count: int) -> Iterator[Trial]:
    spawned, number = multiprocessing.get_context("spawn"), 0
    while number < count:
        results, theirs = spawned.Pipe(duplex=False)
        process = spawned.Process(target=work, args=(name, seed, count, number, theirs))
        process.start()
        theirs.close()
        patience = 10 * KILLED  # it has to start
        end = "never ended"
        while number < count and results.poll(patience):
            try:
                yield results.recv()
            except EOFError:
                end = "died"
                break
            number, patience = number + 1, KILLED
        if number < count:
            yield Trial(number, end, KILLED, 0)
            number += 1
        process.kill()
        process.join()


def posted(name: str, seed: int, count: int) -> Iterator[Trial]:
    """The bodies of one route, one after the other."""
    path, content = BODIES[name]

    def read(changed: bytes) -> None:
        answer = client.post(request.url, content=changed, headers=kept_headers(request))
        if answer.status_code >= 400:
            raise (GlassformerError if answer.status_code < 500 else RuntimeError)(answer.text)

    command = ("glassformer", "serve", str(ROOT / BUNDLES["pieces"]), "--port", "0")
    with running(*command) as server, httpx.Client(timeout=KILLED) as client:
        request = httpx.Request("POST", server.address + path, **content)
        httpx.post(request.url, timeout=10 * KILLED, **content).raise_for_status()  # the first may start processes
        mutate = json_mutations if "json" in content else mutations
        for number, changed in enumerate(mutate(request.read(), seed, count)):
            yield attempt(read, changed, number, server.pid)


class Outcome(NamedTuple):
    read: int
    refused: int
    slow: list[int]  # the numbers of the files
    large: list[int]
    uncaught: dict[str, list[int]]
    slowest: float
    largest: float

    @property
    def good(self) -> bool:
        return not (self.slow or self.large or self.uncaught)


def measured(name: str, seed: int, count: int) -> Outcome:
    kind, _, route = name.partition(" ")
    found = [*posted(route, seed, -(-count // 3))] if kind == "body" else [*trials(name, seed, count)]
    ends = Counter(trial.end for trial in found)
    uncaught = {
        end: [trial.number for trial in found if trial.end == end] for end in ends if end not in ("read", "refused")
    }
    return Outcome(
        ends["read"],
        ends["refused"],
        [trial.number for trial in found if trial.seconds > SLOW],
        [trial.number for trial in found if trial.megabytes > LARGE],
        uncaught,
        max(trial.seconds for trial in found),
        max(trial.megabytes for trial in found),
    )
