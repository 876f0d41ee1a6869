"""Labs in a process of their own: what one sets for itself, its one core and its seed, touches nobody else.

python -m glassformer.labs.apart        reads a name, a seed and how many a line; answers a line with the reports
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import traceback
from typing import Any

from glassformer.common.errors import RunError
from glassformer.labs.seeds import SEEDS

Reports = dict[str, dict[str, Any]]  # by language


class Apart:
    """The process: begun with the first lab, kept for the next, since the imports take seconds."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def run(self, name: str, seed: int, seeds: int = SEEDS) -> Reports:
        """What the lab found, however long it takes; one at a time."""
        with self._lock:
            if self.process is not None and self.process.poll() is not None:
                self.close()
            process = self.process = self.process or begin()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps({"name": name, "seed": seed, "seeds": seeds}) + "\n")
                process.stdin.flush()
                said = process.stdout.readline()
            except (OSError, ValueError):  # it has ended, or has been closed meanwhile
                said = ""
            if not said:  # its end may be seen before it is over; the next lab must not meet it dying
                self.close()
        reports: Reports = json.loads(said or "{}")
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


def begin() -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "glassformer.labs.apart"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="ascii",
        # A Ctrl-C at the terminal is the server's, which ends this too.
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


def main() -> None:
    """Answer until nobody asks any more; what a lab prints goes to stderr."""
    from glassformer.labs import find
    from glassformer.labs.running import run

    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            ran = run(find(asked["name"]), asked["seed"], asked["seeds"])
            said = {language: ran.as_dict(language) for language in ("en", "zh")}
        except Exception:  # whatever breaks in a lab, the next one is still answered
            traceback.print_exc()
            said = {}
        answers.write(json.dumps(said) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
