"""The labs over HTTP: one runs at a time, in its own process, and its result is cached.

GET  /api/labs         the labs: what each claims, and the cached results
POST /api/labs/{name}  run one, or answer from the cache
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, Path, Request, Response

from glassformer.common.errors import ConfigError, RunError
from glassformer.common.strings import Language
from glassformer.deploy.server.admission import cancel_on_disconnect
from glassformer.deploy.server.errors import RequestError
from glassformer.deploy.server.requests import LabRequest
from glassformer.deploy.server.responses import json_response
from glassformer.labs import NAMES, find
from glassformer.labs.worker import LabWorker, Reports

CACHE_SIZE = 64
LabName = Annotated[str, Path(pattern="^[a-z][a-z_-]{1,39}$", description="A lab's name, as GET /api/labs gives it.")]


class LabRunner:
    """Requests for the running lab share its result. Requests for another lab are refused meanwhile."""

    def __init__(self) -> None:
        self.worker = LabWorker()
        self.execute: Callable[[str, int], Reports] = self.worker.run
        self._cache: OrderedDict[tuple[str, int], Reports] = OrderedDict()
        self._running: tuple[str, int, asyncio.Task[Reports]] | None = None

    async def list(self, language: Language) -> dict[str, Any]:
        labs = await anyio.to_thread.run_sync(lambda: [find(name).as_dict(language) for name in NAMES])
        kept = [{key: found["en"][key] for key in ("name", "seed", "verdict")} for found in self._cache.values()]
        running = self._running and {"name": self._running[0], "seed": self._running[1]}
        return {"labs": labs, "kept": kept, "running": running}

    async def run(self, name: str, seed: int) -> Reports:
        """The result of a lab with a seed. The lab goes on when its client disconnects."""
        try:
            lab = await anyio.to_thread.run_sync(find, name)
        except ConfigError as error:
            raise RequestError.from_user_error(error, 404, "no_lab", name=name) from None
        if (lab.name, seed) in self._cache:
            self._cache.move_to_end((lab.name, seed))
            return self._cache[lab.name, seed]
        if self._running is None:
            task = asyncio.create_task(self._run(lab.name, seed))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # marks the error as seen
            self._running = (lab.name, seed, task)
        elif self._running[:2] != (lab.name, seed):
            busy, with_seed, _ = self._running
            message = f"the lab {busy} (seed {with_seed}) is running, and only one runs at a time"
            raise RequestError(409, "lab_busy", message, "try again when it is done", name=busy, seed=with_seed)
        return await asyncio.shield(self._running[2])

    async def _run(self, name: str, seed: int) -> Reports:
        try:
            found = self._cache[name, seed] = await anyio.to_thread.run_sync(self.execute, name, seed)
        except RunError as error:
            raise RequestError.from_user_error(error, 500, "lab_broke", name=name, seed=seed) from None
        finally:
            self._running = None
        if len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)
        return found


def add_lab_routes(router: APIRouter, labs: LabRunner) -> None:
    @router.get("/api/labs")
    async def list_labs(request: Request, lang: Language = "en") -> Response:
        return json_response(request, await labs.list(lang))

    @router.post("/api/labs/{name}")
    async def run_lab(request: Request, name: LabName, asked: LabRequest) -> Response:
        with cancel_on_disconnect(request):
            found = await labs.run(name, asked.seed)
        return json_response(request, found[asked.lang])
