"""Measure what chapter 0 of the handbook tells: models of before beside the Transformer, on one thread.

python docs/before/measure.py                     one seed: some minutes
python docs/before/measure.py --seeds 3 --write   the tables and the figure of the chapter; then docs/refresh.py
python docs/before/measure.py --layer cuda        only the time of a layer, on a GPU where there is one
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.append(str(FOLDER.parent / "build"))

import before_rows  # noqa: E402
import torch  # noqa: E402
import trials  # noqa: E402
from transformer import Task  # noqa: E402

STEPS = 300
SEEDS = (100, 102, 104, 101, 103)  # nothing was chosen by them
LISTS = (1, 2, 4, 6, 8, 10, 12)  # digits in a list
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)


def measured(seeds: Sequence[int], steps: int = STEPS, tell: Callable[[str], None] = print) -> dict[str, Any]:
    """All that the chapter shows, with one thread: then processor seconds mean the same on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        task = Task()
        found: dict[str, Any] = {"steps": steps, "lists": LISTS, "lengths": LENGTHS}
        found["layer"] = [trials.seconds_of_a_layer(length) for length in LENGTHS]
        found["weights"] = {
            kind: sum(weight.numel() for weight in make(task.tokenizer.tgt_size).parameters())
            for kind, make in trials.MODELS.items()
        }
        found |= {trial: {kind: [] for kind in trials.MODELS} for trial in ("translate", "keep")}
        for seed in seeds:
            for kind in trials.MODELS:
                found["translate"][kind].append(trials.translate(kind, task, steps, seed))
                found["keep"][kind].append(trials.keep_lists(kind, task, steps, seed, LISTS))
                tell(f"seed {seed}, {kind}: {found['translate'][kind][-1]}, lists {found['keep'][kind][-1]}")
        return found
    finally:
        torch.set_num_threads(threads)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=1, help=f"how often each model is trained, at most {len(SEEDS)}")
    options.add_argument("--steps", type=int, default=STEPS, help="of training")
    options.add_argument("--layer", metavar="DEVICE", help="time one layer on this device, cpu or cuda, and end")
    options.add_argument("--write", action="store_true", help=f"keep what was found in {before_rows.MEASURED.name}")
    asked = options.parse_args()
    if not 1 <= asked.seeds <= len(SEEDS) or asked.steps < 1:
        options.error(f"--seeds {asked.seeds} --steps {asked.steps}: 1 to {len(SEEDS)} seeds, at least 1 step")
    if asked.layer == "cuda" and not torch.cuda.is_available():
        options.error("--layer cuda: PyTorch sees no GPU here")
    if asked.layer:
        torch.set_num_threads(1)
        for length in LENGTHS:
            times = trials.seconds_of_a_layer(length, asked.layer)
            print(f"{length:5} tokens  " + "  ".join(f"{name} {1000 * each:8.2f} ms" for name, each in times.items()))
        return 0
    found = measured(SEEDS[: asked.seeds], asked.steps, lambda line: print(line, flush=True))
    for table in before_rows.TABLES:
        print(f"\n{before_rows.markdown(found, table, 'en')}")
    if asked.write:
        command = f"python docs/before/measure.py --seeds {asked.seeds} --steps {asked.steps} --write"
        about = {"command": command, "torch": torch.__version__, "machine": platform.machine()}
        before_rows.MEASURED.write_text(json.dumps(about | before_rows.rounded(found)) + "\n", encoding="utf-8")
        print(f"kept in docs/before/{before_rows.MEASURED.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
