"""A stranger's document, read by a process of its own.

Reading takes as long as it takes: a few kilobytes that no person would write can keep a parser busy for hours, and
nothing else of its process runs meanwhile. So a server has it read elsewhere, with an end to the time and the memory,
and for as long as someone waits for it. The process asks for the texts that it finds, line by line as JSON, and is
answered; it never sees a translator, and no file.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.common.errors import DataError
from glassformer.pipelines.documents.formats import translate_bytes
from glassformer.pipelines.documents.html import translate_fragments
from glassformer.pipelines.documents.passage import TextTranslating

LOOK = 0.25  # seconds after which it is asked whether anyone still waits
TOO_MUCH = "it takes too long to read, or too much memory; cut it into several"
PART = 65_536  # bytes read at a time


@dataclass(frozen=True)
class Bounds:
    seconds: int = 60  # of the processor
    bytes: int = 1_000_000_000  # of memory


def translate_apart(
    given: bytes | list[str],
    suffix: str,
    translator: TextTranslating,
    check: Callable[[], None],
    bounds: Bounds | None = None,
) -> bytes | list[str]:
    """The document `given`, or pieces of HTML, translated. `check` is called now and then: what it raises ends it."""
    bounds = bounds or Bounds()
    head = {"suffix": suffix, "seconds": bounds.seconds, "bytes": bounds.bytes}
    sent = given if isinstance(given, bytes) else json.dumps(given).encode()
    head |= {"length": len(sent), "pieces": isinstance(given, list)}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "glassformer.pipelines.documents.apart"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a Ctrl-C is meant for the one who waits
    )
    try:
        with process:
            assert process.stdin is not None
            try:
                process.stdin.write(json.dumps(head).encode() + b"\n" + sent)
                process.stdin.flush()
                return answering(process, translator, check)
            finally:
                process.kill()
    except BrokenPipeError:  # it has ended while it was told something
        raise DataError(TOO_MUCH) from None


def answering(
    process: subprocess.Popen[bytes], translator: TextTranslating, check: Callable[[], None]
) -> bytes | list[str]:
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        told = json.loads(line_of(process.stdout.fileno(), check))
        if "error" in told:
            raise DataError(told["error"])
        if "pieces" in told:
            return list(told["pieces"])
        if "made" in told:
            return str(told["made"]).encode("utf-8", "replace")
        process.stdin.write(json.dumps(translator.translate(told["texts"])).encode() + b"\n")
        process.stdin.flush()


def line_of(source: int, check: Callable[[], None]) -> bytes:
    """The next line that the process writes; it writes one, and waits for the answer."""
    found: list[bytes] = []
    while not found or not found[-1].endswith(b"\n"):
        while not select.select([source], [], [], LOOK)[0]:
            check()
        found.append(os.read(source, PART))
        if not found[-1]:
            raise DataError(TOO_MUCH)
    return b"".join(found)


class Asking:
    """A translator that is at the other end of a pipe."""

    def translate(self, texts: list[str], *, progress: Callable[[int], None] | None = None) -> list[str]:
        tell({"texts": texts})
        return [str(one) for one in json.loads(sys.stdin.buffer.readline())]


def tell(what: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(what).encode() + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    head = json.loads(sys.stdin.buffer.readline())
    bound(head["seconds"], head["bytes"])
    given = sys.stdin.buffer.read(head["length"])
    try:
        if head["pieces"]:
            tell({"pieces": translate_fragments(json.loads(given), Asking())})
        else:
            made, _ = translate_bytes(Path(f"document{head['suffix']}"), given, Asking())
            tell({"made": made.decode("utf-8")})
    except DataError as error:
        tell({"error": str(error).partition(": ")[2] or str(error)})
    except RecursionError:
        tell({"error": "too much lies within each other in it"})


def bound(seconds: int, size: int) -> None:
    """No more than so many seconds of the processor, and so much memory; no file is written; others go first."""
    import resource

    os.nice(10)

    for what, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, size), (resource.RLIMIT_FSIZE, 0)):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    main()
