"""A worker process that runs labs for a server: the one core and the seed that a lab sets stay within the process."""

from __future__ import annotations

import traceback
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from glassformer.common.errors import RunError
from glassformer.labs.run import init_process, run
from glassformer.labs.seeds import SEEDS

Reports = dict[str, dict[str, Any]]  # by language


class LabWorker:
    """Starts the process with the first lab and keeps it for the next, since the imports take seconds."""

    def __init__(self) -> None:
        self.process: SpawnProcess | None = None

    def run(self, name: str, seed: int, seeds: int = SEEDS) -> Reports:
        """The lab's reports, however long they take; the caller runs one lab at a time."""
        if self.process is None or not self.process.is_alive():
            self.close()
            context = get_context("spawn")
            self.pipe, other = context.Pipe()
            process = context.Process(target=answer_requests, args=(other,), daemon=True)
            process.start()
            other.close()  # so that the end of the process is seen
            self.process = process
        reports: Reports = {}
        try:
            self.pipe.send((name, seed, seeds))
            reports = self.pipe.recv()
        except (OSError, EOFError):  # it has ended, perhaps before that can be seen; the next lab must not meet it
            self.close()
        if not reports:
            raise RunError(f"the lab {name} (seed {seed}) broke off; the terminal that serves it may say why")
        return reports

    def close(self) -> None:
        """End it, whatever it is doing."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.join()


def answer_requests(pipe: Connection) -> None:
    """Answer each request until there can be no more."""
    from glassformer.labs import find
    from glassformer.labs.figures import matplotlib_installed, svg

    init_process()
    while True:
        try:
            name, seed, seeds = pipe.recv()
        except EOFError:
            return
        try:
            lab_run = run(find(name), seed, seeds)
            figure = lab_run.finding.figure
            reports = {
                language: lab_run.as_dict(language) | {"svg": svg(figure, language) if matplotlib_installed() else None}
                for language in ("en", "zh")
            }
        except Exception:  # whatever breaks in a lab, the next request is still answered
            traceback.print_exc()
            reports = {}
        pipe.send(reports)
