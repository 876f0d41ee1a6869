"""The server under load: clients that each send one sentence after the other, beside the bare call and a plain server.

Every contestant is a process of its own on this machine, started anew for each number of clients, so that nothing is
kept from before. The plain server answers each request by one call of the same translator, one after the other. The
clients speak HTTP by hand, for a library would take more of the processor than the server does.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from glassformer.common.errors import GlassformerError
from glassformer.pipelines.language.language import confident_language
from glassformer.pipelines.text import TextTranslator
from glassformer.pipelines.translator import Translator

CLIENTS = (1, 8, 64, 256)
BEAM = 4
FEWEST = 200  # sentences of a single client


@dataclass(frozen=True)
class Figure:
    """What one contestant did for so many clients."""

    name: str
    clients: int
    sentences: float  # per second
    median: float  # seconds from asking to the answer
    p95: float
    wrong: int  # answers that are not those of a text translator in Python
    one_list: float = math.nan  # sentences per second in Python as one list, before and after it


class Bare:
    """The bare call: the same sentences in Python, without a server."""

    def __init__(self, model: str, target: str, texts: Sequence[str]) -> None:
        self.texts, self.translator = texts, Translator.load(model, precision="auto", to=target)
        self.translator.translate(texts[:8], beam=BEAM)

    def speed(self) -> float:
        """Sentences a second as one list."""
        begin = time.perf_counter()
        self.translator.translate(self.texts, beam=BEAM)
        return len(self.texts) / (time.perf_counter() - begin)

    def alone(self) -> float:
        """The median seconds of one sentence."""
        seconds = []
        for text in self.texts[:FEWEST]:
            begin = time.perf_counter()
            self.translator.translate([text], beam=BEAM)
            seconds.append(time.perf_counter() - begin)
        return statistics.median(seconds)

    def answers(self) -> list[str]:
        """What a text translator, which cuts a line that holds several sentences, makes of each."""
        return TextTranslator(self.translator, detect=confident_language).translate(self.texts)


async def ask(
    address: str, texts: Sequence[str], source: str, target: str, clients: int
) -> tuple[list[float], list[str]]:
    """Each client takes the next sentence as soon as its last one is answered; the seconds of each, and the answers."""
    host, port = urlsplit(address).hostname, urlsplit(address).port
    left, seconds, answers = iter(range(len(texts))), [0.0] * len(texts), [""] * len(texts)

    async def client() -> None:
        reader, writer = await asyncio.open_connection(host, port)
        for i in left:
            body = json.dumps({"q": texts[i], "source": source, "target": target}).encode()
            head = f"POST /translate HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
            begin = time.perf_counter()
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            status, content = await answered(reader)
            if status != 200:
                raise GlassformerError(f"the server answered {status}: {content[:200]!r}")
            answers[i] = json.loads(content)["translatedText"]
            seconds[i] = time.perf_counter() - begin
        writer.close()

    await asyncio.gather(*(client() for _ in range(min(clients, len(texts)))))
    return seconds, answers


async def answered(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The status and the body of the next answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = re.search(r"(?im)^content-length: (\d+)", head)
    if length is None:
        raise GlassformerError(f"the server answered {head.partition(chr(13))[0]}")
    return int(head.split()[1]), await reader.readexactly(int(length[1]))


class Running(NamedTuple):
    """A server that is a process."""

    address: str
    pid: int


@contextmanager
def running(*words: str) -> Iterator[Running]:
    """A server as a process."""
    with subprocess.Popen([sys.executable, "-W", "ignore", "-m", *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://[\d.]+:\d+", process.stdout.readline())
            if found is None:
                raise GlassformerError(f"the server `{' '.join(words)}` did not start; see its message above")
            yield Running(found[0], process.pid)
        finally:
            process.kill()


def loaded(
    name: str, command: Sequence[str], way: tuple[str, str], texts: Sequence[str], made: Sequence[str], clients: int
) -> Figure:
    with running(*command) as server:
        asyncio.run(ask(server.address, ["One."], *way, 1))  # by then the model is there
        begin = time.perf_counter()
        seconds, answers = asyncio.run(ask(server.address, texts, *way, clients))
        spent = time.perf_counter() - begin
    wrong = sum(a != b for a, b in zip(answers, made, strict=True))
    ranked = sorted(seconds)
    return Figure(name, clients, len(texts) / spent, ranked[len(ranked) // 2], ranked[int(0.95 * len(ranked))], wrong)


def plain(model: str, target: str) -> None:
    """The plain server: a call for each request."""
    import threading

    import uvicorn
    from fastapi import FastAPI

    from glassformer.deploy.server.listen import listen, url

    translator = TextTranslator(Translator.load(model, precision="auto", to=target), detect=confident_language)
    lock, app = threading.Lock(), FastAPI()

    @app.post("/translate")
    def translate(asked: dict[str, str]) -> dict[str, str]:
        with lock:
            return {"translatedText": translator.translate([asked["q"]], beam=BEAM)[0]}

    with listen("127.0.0.1", 0) as bound:
        print(url(*bound.getsockname()[:2]), flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[bound])


if __name__ == "__main__":
    plain(*sys.argv[1:3])
