"""A worker process that runs labs for a server: the one core and the seed that a lab sets stay within the process.

python -m glassformer.labs.worker       reads a name, a first seed and how many seeds a line; answers with reports
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from typing import Any

from glassformer.common.errors import RunError
from glassformer.labs.seeds import SEEDS

Reports = dict[str, dict[str, Any]]  # by language


class LabWorker:
    """Starts the process with the first lab and keeps it for the next, since the imports take seconds."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def run(self, name: str, seed: int, seeds: int = SEEDS) -> Reports:
        """The lab's reports, however long they take; the caller runs one lab at a time."""
        if self.process is not None and self.process.poll() is not None:
            self.close()
        process = self.process = self.process or start_process()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"name": name, "seed": seed, "seeds": seeds}) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except (OSError, ValueError):  # it has ended, or has been closed meanwhile
            answer = ""
        if not answer:  # its end may be seen before it is over; the next lab must not meet it dying
            self.close()
        reports: Reports = json.loads(answer or "{}")
        if not reports:
            raise RunError(f"the lab {name} (seed {seed}) broke off; the terminal that serves it may say why")
        return reports

    def close(self) -> None:
        """End it, whatever it is doing."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                stream.close()


def start_process() -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "glassformer.labs.worker"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="ascii",
        # A Ctrl-C at the terminal is the server's, which ends this too.
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


def main() -> None:
    """Answer each line of stdin until it closes; what a lab prints goes to stderr."""
    from glassformer.labs import find
    from glassformer.labs.figures import matplotlib_installed, svg
    from glassformer.labs.run import run

    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            lab_run = run(find(request["name"]), request["seed"], request["seeds"])
            figure = lab_run.finding.figure
            reports = {
                language: lab_run.as_dict(language) | {"svg": svg(figure, language) if matplotlib_installed() else None}
                for language in ("en", "zh")
            }
        except Exception:  # whatever breaks in a lab, the next request is still answered
            traceback.print_exc()
            reports = {}
        answers.write(json.dumps(reports) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
