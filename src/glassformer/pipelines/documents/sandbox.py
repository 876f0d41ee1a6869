"""A document from a stranger, parsed in a worker process with limited time and memory.

A few kilobytes that no person would write can keep a parser busy for hours, and nothing else of its process runs
meanwhile. So a server lets a worker process parse, with limits, and only while someone waits for the result. Messages
are JSON. The worker sends the texts that it finds and receives their translations; it has no translator and no files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from glassformer.common.errors import DataError
from glassformer.pipelines.documents.formats import translate_bytes
from glassformer.pipelines.documents.html import translate_fragments
from glassformer.pipelines.documents.segments import SupportsTranslate

POLL = 0.25  # seconds between two calls of `check`
LIMIT_EXCEEDED = "it takes too long to read, or too much memory; cut it into several"


@dataclass(frozen=True)
class Limits:
    seconds: int = 60  # of the processor
    bytes: int = 1_000_000_000  # of memory


def translate_in_sandbox(
    document: bytes | list[str],
    suffix: str,
    translator: SupportsTranslate,
    check: Callable[[], None],
    limits: Limits | None = None,
    requested: Sequence[list[str]] = (),
) -> bytes | list[str]:
    """A document, or pieces of HTML, translated. `check` is called often; an exception from it ends the worker. The
    texts that each piece sends to the translator are added to its list of `requested`."""
    header = {"suffix": suffix, "fragments": isinstance(document, list), **asdict(limits or Limits())}
    ours, theirs = Pipe()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "glassformer.pipelines.documents.sandbox", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a Ctrl-C is meant for the process that waits
    )
    theirs.close()
    with ours, process:
        try:
            send(ours, header)
            ours.send_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
            while "texts" in (message := receive(ours, check)):
                send(ours, translator.translate(message["texts"]))
        except (EOFError, BrokenPipeError, ConnectionResetError):  # the worker has ended
            raise DataError(LIMIT_EXCEEDED) from None
        finally:
            process.kill()
    if "error" in message:
        raise DataError(message["error"])
    for into, texts in zip(requested, message.get("requested", ()), strict=False):
        into += texts
    result = message["result"]
    return list(result) if isinstance(document, list) else str(result).encode("utf-8", "replace")


def send(connection: Connection, message: Any) -> None:
    connection.send_bytes(json.dumps(message).encode())


def receive(connection: Connection, check: Callable[[], None]) -> Any:
    while not connection.poll(POLL):
        check()
    return json.loads(connection.recv_bytes())


@dataclass(frozen=True)
class RemoteTranslator:
    """The translator at the other end of the connection."""

    connection: Connection

    def translate(self, texts: list[str], *, progress: Callable[[int], None] | None = None) -> list[str]:
        send(self.connection, {"texts": texts})
        return [str(text) for text in json.loads(self.connection.recv_bytes())]


def main() -> None:
    connection = Connection(int(sys.argv[1]))
    header = json.loads(connection.recv_bytes())
    set_limits(header["seconds"], header["bytes"])
    content = connection.recv_bytes()
    translator = RemoteTranslator(connection)
    try:
        if header["fragments"]:
            texts = json.loads(content)
            requested: list[list[str]] = [[] for _ in texts]
            result = translate_fragments(texts, translator, requested)
            send(connection, {"result": result, "requested": requested})
        else:
            translation, _ = translate_bytes(Path(f"document{header['suffix']}"), content, translator)
            send(connection, {"result": translation.decode("utf-8")})
    except DataError as error:
        send(connection, {"error": str(error).removeprefix(f"document{header['suffix']}: ")})


def set_limits(seconds: int, size: int) -> None:
    """Limits the time of the processor and the memory, forbids to write files, and yields to other processes."""
    import resource

    os.nice(10)
    for kind, limit in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, size), (resource.RLIMIT_FSIZE, 0)):
        _, hard = resource.getrlimit(kind)
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, limit))


if __name__ == "__main__":
    main()
