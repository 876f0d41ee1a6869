"""The labs behind the page: one runs at a time, in a thread of its own, and what it found is kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property
from typing import Any

import anyio

from glassformer.errors import ConfigError
from glassformer.labs import NAMES, Lab, find
from glassformer.labs.running import Ran, run
from glassformer.serve.asked import Language
from glassformer.serve.errors import Refused

MOST_KEPT = 64
WAITING = 64  # requests that may wait for a lab, each in a thread


class Labs:
    """Who asks for what is running waits for it; who asks for another lab is told to come again."""

    def __init__(self, names: tuple[str, ...] = NAMES, find: Callable[[str], Lab] = find) -> None:
        self.names, self.find = names, find
        self._kept: OrderedDict[tuple[str, int], Ran] = OrderedDict()
        self._running: tuple[str, int, Future[Ran]] | None = None
        self._lock = threading.Lock()

    @cached_property
    def turns(self) -> anyio.CapacityLimiter:
        """Apart from the model's turns, since a lab takes seconds. Made when first asked for, by a running server."""
        return anyio.CapacityLimiter(WAITING)

    def listed(self, language: Language) -> dict[str, Any]:
        labs = [self.find(name).as_dict(language) for name in self.names]
        with self._lock:
            kept = [
                {"name": name, "seed": seed, "verdict": ran.finding.verdict} for (name, seed), ran in self._kept.items()
            ]
            running = self._running and {"name": self._running[0], "seed": self._running[1]}
        return {"labs": labs, "kept": kept, "running": running}

    def ask(self, name: str, seed: int) -> Ran:
        """What this lab found with this seed, however long it takes."""
        try:
            lab = self.find(name)
        except ConfigError as error:
            message, _, hint = str(error).partition("; ")
            raise Refused(404, "no_lab", message, hint, name=name) from None
        with self._lock:
            if (lab.name, seed) in self._kept:
                self._kept.move_to_end((lab.name, seed))
                return self._kept[lab.name, seed]
            found = self._running
            if found is not None and found[:2] != (lab.name, seed):
                message = f"the lab {found[0]} (seed {found[1]}) is running, and only one runs at a time"
                raise Refused(409, "lab_busy", message, "try again when it is done", name=found[0], seed=found[1])
            if found is None:
                future: Future[Ran] = Future()
                self._running = (lab.name, seed, future)
        if found is not None:
            return found[2].result()
        try:
            ran = run(lab, seed)
        except BaseException as error:
            with self._lock:
                self._running = None
            future.set_exception(error)
            raise
        with self._lock:
            self._kept[lab.name, seed] = ran
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            self._running = None
        future.set_result(ran)
        return ran
