"""What a server does, counted for Prometheus and written line by line for people who look for something later."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.deploy.server.queue import Queue

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)  # seconds
LONGEST = 200  # characters of an address that are logged


class Meter:
    """The figures of one server, under their names at /metrics."""

    def __init__(self, queue: Queue | None = None) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        self.requests = Counter(
            "glassformer_requests", "Requests answered.", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "glassformer_request_seconds",
            "Seconds from a request's head to its answer's end.",
            ["path"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.running = Gauge(
            "glassformer_requests_running", "Requests that are being answered.", registry=self.registry
        )
        if queue is not None:
            told: dict[str, tuple[str, Callable[[], float]]] = {
                "waiting_tokens": ("Tokens of sentences that wait for the model.", lambda: queue.waiting),
                "batches_run": ("Batches translated so far.", lambda: queue.batches),
                "sentences_run": ("Sentences translated so far.", lambda: queue.sentences),
                "sentences_kept": ("Sentences answered from memory so far.", lambda: queue.found),
            }
            for name, (text, value) in told.items():
                Gauge(f"glassformer_{name}", text, registry=self.registry).set_function(value)

    def told(self) -> tuple[bytes, str]:
        """All figures as text, and the kind of text it is."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self.registry), CONTENT_TYPE_LATEST


class Metered:
    """Around everything else: `paths` are counted under their own names, all others as one."""

    def __init__(
        self, app: ASGIApp, meter: Meter | None, paths: Callable[[], frozenset[str]], log: Callable[[str], None] | None
    ) -> None:
        self.app, self.meter, self.paths, self.log = app, meter, paths, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 499  # nobody waited for an answer, if there is none

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        if self.meter is not None:
            self.meter.running.inc()
        try:
            await self.app(scope, receive, watched)
        except Exception:
            status = 500 if status == 499 else status
            raise
        finally:
            spent = time.perf_counter() - begin
            if self.meter is not None:
                path = scope["path"] if scope["path"] in self.paths() else "other"
                self.meter.running.dec()
                self.meter.requests.labels(path, status).inc()
                self.meter.seconds.labels(path).observe(spent)
            if self.log is not None:
                self.log(json.dumps(line(scope, status, spent), ensure_ascii=True))


def line(scope: Scope, status: int, spent: float) -> dict[str, Any]:
    """A request as it is logged: no text that was translated, no key, and no name by which a file can be fetched."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "client": (scope.get("client") or ("",))[0],
        "method": scope["method"],
        "path": re.sub("^(/download_file/).*", r"\1...", scope["path"], flags=re.DOTALL)[:LONGEST],
        "status": status,
        "ms": round(1000 * spent, 1),
    }
