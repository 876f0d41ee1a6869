"""A lab run once, and all that a reader or a script wants to know of it."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from glassformer.errors import ConfigError
from glassformer.labs.lab import VERDICTS, Finding, Lab

LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Ran:
    lab: Lab
    finding: Finding
    seed: int
    seconds: float

    def as_dict(self, language: str = "en") -> dict[str, Any]:
        """Everything a reader or a script wants to know of one run, ready for JSON."""

        def finite(value: float) -> float | str:
            return value if math.isfinite(value) else str(value)  # JSON has no infinity

        return {
            **self.lab.as_dict(language),
            "seed": self.seed,
            "seconds": round(self.seconds, 2),
            "verdict": self.finding.verdict.value,
            "verdict_text": VERDICTS[self.finding.verdict].say(language),
            "summary": self.finding.summary.say(language),
            "numbers": {name: finite(value) for name, value in self.finding.named(language).items()},
            "checks": [
                {
                    "text": check.text.say(language),
                    "value": finite(check.value),
                    "low": finite(check.low),
                    "high": finite(check.high),
                    "extent": check.extent,
                    "passed": check.passed,
                }
                for check in self.finding.checks
            ],
            "figure": self.finding.figure.as_dict(language),
        }


def run(lab: Lab, seed: int) -> Ran:
    """The experiment from its seed, on one core; what was drawn or set for it alone is as before afterwards."""
    check_seed(seed)
    with on_one_core():
        begin = time.perf_counter()
        finding = lab.run(seed)
        return Ran(lab, finding, seed, time.perf_counter() - begin)


def check_seed(seed: int) -> None:
    if not 0 <= seed <= LARGEST_SEED:
        raise ConfigError(f"seed {seed} is not between 0 and {LARGEST_SEED}; 0 is the usual one")


@contextmanager
def on_one_core() -> Iterator[None]:
    """Tensors this small gain nothing from more, and lose much where others are at work.

    torch's random state and number of threads are restored at the end whatever happens. A thread that is born meanwhile
    keeps the one core, so a server runs its labs apart.
    """
    import torch

    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        try:
            torch.set_num_threads(1)
            yield
        finally:
            torch.set_num_threads(threads)


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    import torch

    import glassformer

    return {
        "glassformer": glassformer.__version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, one core",
    }
