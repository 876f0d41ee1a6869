"""The labs behind the page: one runs at a time, in a process of its own, and what it found is kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import anyio

from glassformer.common.errors import ConfigError, RunError
from glassformer.common.strings import Language
from glassformer.deploy.server.errors import Refused, refusal
from glassformer.labs import NAMES, find
from glassformer.labs.worker import LabWorker, Reports

MOST_KEPT = 64


class Labs:
    """Who asks for what is running waits for it; who asks for another lab is told to come again."""

    def __init__(self) -> None:
        self.worker = LabWorker()
        self.run: Callable[[str, int], Reports] = self.worker.run
        self._kept: OrderedDict[tuple[str, int], Reports] = OrderedDict()
        self._running: tuple[str, int, asyncio.Task[Reports]] | None = None

    async def listed(self, language: Language) -> dict[str, Any]:
        labs = await anyio.to_thread.run_sync(lambda: [find(name).as_dict(language) for name in NAMES])
        kept = [{key: found["en"][key] for key in ("name", "seed", "verdict")} for found in self._kept.values()]
        running = self._running and {"name": self._running[0], "seed": self._running[1]}
        return {"labs": labs, "kept": kept, "running": running}

    async def ask(self, name: str, seed: int) -> Reports:
        """What this lab found with this seed, however long it takes; it goes on where nobody waits any more."""
        try:
            lab = await anyio.to_thread.run_sync(find, name)
        except ConfigError as error:
            raise refusal(404, "no_lab", error, name=name) from None
        if (lab.name, seed) in self._kept:
            self._kept.move_to_end((lab.name, seed))
            return self._kept[lab.name, seed]
        if self._running is None:
            task = asyncio.create_task(self._run(lab.name, seed))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # who waits is told, if any
            self._running = (lab.name, seed, task)
        elif self._running[:2] != (lab.name, seed):
            busy, with_seed, _ = self._running
            message = f"the lab {busy} (seed {with_seed}) is running, and only one runs at a time"
            raise Refused(409, "lab_busy", message, "try again when it is done", name=busy, seed=with_seed)
        return await asyncio.shield(self._running[2])

    async def _run(self, name: str, seed: int) -> Reports:
        try:
            found = self._kept[name, seed] = await anyio.to_thread.run_sync(self.run, name, seed)
        except RunError as error:
            raise refusal(500, "lab_broke", error, name=name, seed=seed) from None
        finally:
            self._running = None
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    def close(self) -> None:
        self.worker.close()
