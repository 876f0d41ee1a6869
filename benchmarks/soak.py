"""Many requests of all kinds to one server: each answer beside that of a single run, and the server's memory.

Clients take requests drawn by a seed: a text, a long one, an array, HTML, another language, a document that is fetched
afterwards, a wrong request, one that is left before its answer. What each must be answered is found before, one after
the other, by the same interface without a server, so that an answer that was lost, or given to somebody else, is seen.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from benchmarks.serving import answered, running
from glassformer.common.errors import GlassformerError
from glassformer.deploy.server.admission import RequestState
from glassformer.deploy.server.directions import box_directions
from glassformer.deploy.server.errors import RequestError
from glassformer.deploy.server.libre import LibreApi
from glassformer.deploy.server.queue import Queue
from glassformer.deploy.server.translation_service import TranslationService
from glassformer.pipelines.documents.formats import translate_bytes

FIRST = 5_000  # requests, after which the memory is taken to compare with
CLIENTS = 16
LEFT = "left"  # the kind of request whose answer nobody waits for
FILE = "document"
KINDS = {"text": 50, "long": 3, "array": 8, "html": 8, "other language": 8, "detected": 8, FILE: 2, "wrong": 7, LEFT: 6}
FORM = "7d93b1"  # what lies between the parts of a form


class Request(NamedTuple):
    kind: str
    body: bytes
    status: int
    answer: Any  # None where nobody waits for it

    @property
    def sent(self) -> bytes:
        """All of it, as it goes over the line."""
        path, kind = ("/translate", "application/json")
        if self.kind == FILE:
            path, kind = ("/translate_file", f"multipart/form-data; boundary={FORM}")
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(self.body)}"
        return f"{head}\r\n\r\n".encode() + self.body


@dataclass
class Soaked:
    """What a server did with many requests."""

    kinds: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    other: list[str] = field(default_factory=list)  # requests that were answered otherwise than alone
    first: float = 0.0  # MB
    last: float = 0.0
    seconds: float = 0.0

    @property
    def failures(self) -> int:
        return sum(count for status, count in self.statuses.items() if status >= 500)


def requests(texts: Sequence[str], count: int, seed: int) -> list[Request]:
    """So many different ones, with what each is answered alone."""
    draw = random.Random(seed)
    alone = LibreApi(TranslationService(box_directions("cpu", "en-de", ["en-de"], "auto"), Queue()))
    made = []
    for kind in draw.choices(list(KINDS), list(KINDS.values()), k=count):
        asked = drawn(kind, texts, draw)
        if kind == LEFT:
            made.append(Request(kind, json.dumps(asked).encode(), 0, None))
            continue
        if kind == FILE:
            page = f"# {asked['q']}\n\n- {draw.choice(texts)}\n- `{draw.randrange(1000)}`\n".encode()
            by = alone.service.translator("en", "de", RequestState())
            made.append(Request(kind, form(page), 200, translate_bytes(Path("page.md"), page, by)[0]))
            continue
        try:
            status, answer = 200, alone.translate(asked, RequestState())
        except RequestError as error:
            status, answer = error.status, {"error": error.message}
        made.append(Request(kind, json.dumps(asked).encode(), status, answer))
    alone.service.queue.close()
    return made


def drawn(kind: str, texts: Sequence[str], draw: random.Random) -> dict[str, Any]:
    """The fields of a request."""
    asked: dict[str, Any] = {"q": draw.choice(texts), "source": "en", "target": "de"}
    if kind == "long":
        asked["q"] = "\n".join(draw.choices(texts, k=12))
    elif kind == "array":
        asked["q"] = draw.choices(texts, k=draw.randint(1, 6))
    elif kind == "html":
        asked |= {"q": f"<p>{asked['q']} <b class='x'>Save it.</b></p>", "format": "html"}
    elif kind == "other language":
        asked |= {"q": f"Datei {draw.randrange(1000)} speichern", "source": "de", "target": "en"}
    elif kind == "detected":
        asked["source"] = "auto"
    elif kind == "wrong":
        wrong: tuple[dict[str, Any], ...] = (
            {"q": ""}, {"q": []}, {"target": "xx"}, {"source": "xx"}, {"format": "pdf"}, {"alternatives": 99},
            {"q": 3}, {"target": None},
        )  # fmt: skip
        asked |= draw.choice(wrong)
    return asked


def form(page: bytes) -> bytes:
    """A form that sends a page of Markdown."""
    fields = {"source": b"en", "target": b"de", "file": page}
    parts = []
    for name, value in fields.items():
        called = '; filename="page.md"' if name == "file" else ""
        head = f'--{FORM}\r\nContent-Disposition: form-data; name="{name}"{called}\r\n\r\n'
        parts.append(head.encode() + value + b"\r\n")
    return b"".join(parts) + f"--{FORM}--\r\n".encode()


def memory(pid: int) -> float:
    """What a process holds of the machine's memory, in MB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    if found is None:
        raise GlassformerError(f"the memory of process {pid} cannot be read")
    return int(found[1]) / 1000


async def soak(
    address: str, pid: int, asked: Sequence[Request], told: Callable[[int], None], clients: int = CLIENTS
) -> Soaked:
    host, port = urlsplit(address).hostname, urlsplit(address).port
    done, left = Soaked(), iter(enumerate(asked))

    async def client() -> None:
        reader, writer = await asyncio.open_connection(host, port)
        for i, request in left:
            writer.write(request.sent)
            if request.kind == LEFT:
                await asyncio.sleep(0.001 * (i % 50))
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
                reader, writer = await asyncio.open_connection(host, port)
            else:
                status, content = await answered(reader)
                answer = json.loads(content)
                if request.kind == FILE and status == 200:
                    place = urlsplit(answer["translatedFileUrl"]).path
                    writer.write(f"GET {place} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
                    status, answer = await answered(reader)
                done.statuses[status] += 1
                if (status, answer) != (request.status, request.answer):
                    done.other.append(f"{request.body[:200]!r}: {status} {answer!r:.200}")
            done.kinds[request.kind] += 1
            if i + 1 == min(FIRST, len(asked)):
                done.first = memory(pid)
            told(i + 1)
        writer.close()

    begin = asyncio.get_running_loop().time()
    await asyncio.gather(*(client() for _ in range(clients)))
    done.seconds = asyncio.get_running_loop().time() - begin
    done.last = memory(pid)
    return done


def soaked(texts: Sequence[str], count: int, different: int, seed: int, say: Callable[[str], None]) -> Soaked:
    """A server of its own, and so many requests, drawn from so many different ones."""
    say(f"{different:,} requests alone")
    pool = requests(texts, different, seed)
    asked = random.Random(seed + 1).choices(pool, k=count)

    def told(number: int) -> None:
        if number % 1000 == 0:
            say(f"{number:,} of {count:,}")

    with running("glassformer", "serve", "en-de", "--only", "api", "--port", "0") as server:
        return asyncio.run(soak(server.address, server.pid, asked, told))
