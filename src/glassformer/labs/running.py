"""A lab run with several seeds, and all that a reader or a script wants to know of it."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from glassformer.common.errors import ConfigError
from glassformer.labs.lab import VERDICTS, Finding, Lab, Outcome
from glassformer.labs.seeds import SEEDS, Merged, merge
from glassformer.labs.spread import Spread

LARGEST_SEED = 2**31 - 1  # of the first; the others follow it
MOST_SEEDS = 100


@dataclass(frozen=True)
class Ran:
    lab: Lab
    found: Merged
    seeds: Sequence[int]
    seconds: float  # of all seeds together

    def as_dict(self, language: str = "en") -> dict[str, Any]:
        """Everything a reader or a script wants to know of it, ready for JSON."""

        def finite(value: float) -> float | str:
            return value if math.isfinite(value) else str(value)  # JSON has no infinity

        def told(spread: Spread) -> dict[str, Any]:
            return {"interval": [finite(spread.low), finite(spread.high)], "values": list(map(finite, spread.values))}

        named = self.found.named(language)
        return {
            **self.lab.as_dict(language),
            "seed": self.seeds[0],
            "seeds": list(self.seeds),
            "seconds": round(self.seconds, 2),
            "verdict": self.found.verdict.value,
            "verdict_text": VERDICTS[self.found.verdict].say(language),
            "summary": self.found.summary.say(language),
            "numbers": {name: finite(spread.mean) for name, spread in named.items()},
            "spreads": {name: told(spread) for name, spread in named.items()},
            "checks": [
                {
                    "text": judged.text.say(language),
                    "value": finite(judged.spread.mean),
                    **told(judged.spread),
                    "low": finite(judged.check.low),
                    "high": finite(judged.check.high),
                    "extent": judged.extent,
                    "passed": judged.outcome is Outcome.PASSED,
                    "outcome": judged.outcome.value,
                }
                for judged in self.found.checks
            ],
            "figure": self.found.figure.as_dict(language),
        }


def run(lab: Lab, seed: int = 0, seeds: int = SEEDS) -> Ran:
    """The experiment from `seed` and those that follow it, one after the other."""
    chosen = check_seeds(seed, seeds)
    tried = [run_seed(lab, each) for each in chosen]
    return ran_all(lab, chosen, tried)


Tried = tuple[Finding, float]  # what one seed gave, and the seconds it took


def ran_all(lab: Lab, seeds: Sequence[int], tried: Sequence[Tried]) -> Ran:
    return Ran(lab, merge([finding for finding, _ in tried]), seeds, sum(seconds for _, seconds in tried))


def run_seed(lab: Lab, seed: int) -> Tried:
    """The experiment from one seed, on one core; what was drawn or set for it alone is as before afterwards."""
    with on_one_core():
        begin = time.perf_counter()
        finding = lab.run(seed)
        return finding, time.perf_counter() - begin


def check_seeds(seed: int, seeds: int) -> range:
    """The seeds from the first on."""
    if not 1 <= seeds <= MOST_SEEDS:
        raise ConfigError(f"--seeds {seeds} is not between 1 and {MOST_SEEDS}; {SEEDS} is the usual number")
    if not 0 <= seed <= LARGEST_SEED:
        raise ConfigError(f"seed {seed} is not between 0 and {LARGEST_SEED}; 0 is the usual one")
    return range(seed, seed + seeds)


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

    from glassformer.common.version import __version__

    return {
        "glassformer": __version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, one core",
    }
