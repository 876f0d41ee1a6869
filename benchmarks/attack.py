"""The server under attack: how long another client waits for `GET /health`, and how often it gets no answer.

Slow bodies: attackers send the head of a translation, then a byte of its body every second, and come back when they are
sent away. Idle connections: attackers connect all at once and say nothing. The other client opens a connection for each
request, from the attackers' own address, which is the harder case.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from benchmarks.serving import running
from glassformer.deploy.server.keys import add_key

SLOW, IDLE = 510, 2_000  # connections
HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
LATE = 30.0  # seconds after which the other client gives up


class Waits(NamedTuple):
    """The seconds that another client waited for each answer, and the requests that got none."""

    attack: str
    seconds: list[float]
    lost: int

    @property
    def p99(self) -> float:
        return sorted(self.seconds)[int(0.99 * len(self.seconds))] if self.seconds else LATE

    @property
    def median(self) -> float:
        return statistics.median(self.seconds or [LATE])


async def health(host: str, port: int) -> bool:
    """Whether a client of its own gets its answer."""
    writer = None
    try:
        async with asyncio.timeout(LATE):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(HEALTH)
            return (await reader.read()).startswith(b"HTTP/1.1 200")
    except OSError:  # TimeoutError is one
        return False
    finally:
        if writer is not None:
            writer.close()


async def waits(attack: str, host: str, port: int, requests: int, pause: float) -> Waits:
    """Ask again and again."""
    seconds, lost = list[float](), 0
    for _ in range(requests):
        begin = time.perf_counter()
        if await health(host, port):
            seconds.append(time.perf_counter() - begin)
        else:
            lost += 1
        await asyncio.sleep(pause)
    return Waits(attack, seconds, lost)


@asynccontextmanager
async def attackers(each: Coroutine[Any, Any, None], *others: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one) for one in (each, *others)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def slow_body(host: str, port: int) -> None:
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(HEAD)
                while not reader.at_eof():
                    writer.write(b" ")
                    await writer.drain()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(1.0):  # `wait_for` of Python 3.11 may lose what cancels it
                            await reader.read(1000)
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.1)


async def under_slow_bodies(host: str, port: int, requests: int, count: int) -> Waits:
    async with attackers(*(slow_body(host, port) for _ in range(count))):
        await asyncio.sleep(2.0)
        return await waits(f"{count} slow bodies", host, port, requests, 0.1)


async def under_idle_connections(host: str, port: int, requests: int, count: int) -> Waits:
    """The first request goes out while the last of the connections are made."""
    writers = [made[1] for made in await asyncio.gather(*(asyncio.open_connection(host, port) for _ in range(count)))]
    try:
        return await waits(f"{count} idle connections", host, port, requests, 0.0)
    finally:
        for writer in writers:
            writer.transport.abort()


async def attacked(address: str, requests: int, rounds: int, slow: int = SLOW, many: int = IDLE) -> list[Waits]:
    """What another client got in quiet, under slow bodies, and at once after each crowd of idle connections."""
    host, port = place_of(address)
    quiet = await waits("no attack", host, port, requests, 0.0)
    under = await under_slow_bodies(host, port, requests, slow)
    idle = [await under_idle_connections(host, port, 1, many) for _ in range(rounds)]
    first = Waits(idle[0].attack, [one for found in idle for one in found.seconds], sum(found.lost for found in idle))
    return [quiet, under, first]


def measured(model: str, requests: int, rounds: int, slow: int = SLOW, many: int = IDLE) -> list[Waits]:
    """The same with a server of its own that asks for keys."""
    with TemporaryDirectory() as folder:
        keys = Path(folder, "keys.json")
        add_key(keys, "someone")
        with running("glassformer", "serve", model, "--only", "api", "--port", "0", "--keys", str(keys)) as server:
            asyncio.run(waits("start", *place_of(server.address), requests=20, pause=0.05))
            return asyncio.run(attacked(server.address, requests, rounds, slow, many))


def place_of(address: str) -> tuple[str, int]:
    place = urlsplit(address)
    return str(place.hostname), int(place.port or 80)
