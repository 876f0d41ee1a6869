"""Grow the Transformer step by step, train each for some seconds, and print a row for it.

python docs/build/grow.py                     every step, one seed: a few minutes
python docs/build/grow.py --seeds 5           with intervals and verdicts
python docs/build/grow.py --file 6            the file as it is after step 6
python docs/build/grow.py --seeds 5 --write   the rows that the pages and figures show; then docs/refresh.py
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import build_rows as table
import growing
import torch

TRAINING = 300  # steps of training after each part
FIRST_SEED = 100  # nothing was chosen by these seeds


def grow(
    seeds: Sequence[int],
    training: int = TRAINING,
    tell: Callable[[table.Row, table.Row | None], None] | None = None,
    held_out: int | None = None,
) -> list[table.Row]:
    """Every step of the build, in order, measured on so many of the held-out pairs, or on all of them."""
    # With one thread the same machine gives the same rows; matrices this small gain little from a second.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        task: Any = growing.names_after(growing.STEPS[:1])["Task"]()  # type: ignore[operator]
        task.held_out = task.held_out[:held_out]
        models: dict[int, object] = {}
        found: list[table.Row] = []
        for step in range(1, len(table.PARTS) + 1):
            row = table.measured(step, task, seeds, training, models)
            if tell is not None:
                tell(row, found[-1] if found else None)
            found.append(row)
        return found
    finally:
        torch.set_num_threads(threads)


def say(row: table.Row, before: table.Row | None) -> None:
    step, part, weights, loss, moved, verdict, right = table.cells(row, before, "en")
    print(f"{step:>4}  {part:42}{weights:>9}{loss:>8}  {moved:<16}  {verdict:<22}{right:>7}", flush=True)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=1, help="how often each step is trained, at most 10")
    options.add_argument("--steps", type=int, default=TRAINING, help="of training, a multiple of 10")
    options.add_argument("--file", type=int, metavar="STEP", help="print the file as it is after this step, and end")
    options.add_argument("--write", action="store_true", help=f"keep the rows in docs/build/{table.MEASURED.name}")
    asked = options.parse_args()
    if asked.file is not None:
        if not 1 <= asked.file <= len(growing.STEPS):
            options.error(f"--file {asked.file}: there are steps 1 to {len(growing.STEPS)}")
        print(growing.assembled(growing.STEPS[: asked.file]), end="")
        return 0
    if not 1 <= asked.seeds <= max(table.STUDENT):
        options.error(f"--seeds {asked.seeds}: choose 1 to {max(table.STUDENT)}")
    if asked.steps < 10 or asked.steps % 10:
        options.error(f"--steps {asked.steps}: the curve has a point for each tenth; choose a multiple of 10")
    names = table.HEADS.en.split(" | ")
    print(f"{names[0]:>4}  {names[1]:42}{names[2]:>9}{names[3]:>8}  {names[4]:<16}  {names[5]:<22}{names[6]:>7}")
    found = grow(range(FIRST_SEED, FIRST_SEED + asked.seeds), asked.steps, say)
    if asked.write:
        command = f"python docs/build/grow.py --seeds {asked.seeds} --steps {asked.steps} --write"
        kept = {"command": command, "torch": torch.__version__, "rows": [table.as_dict(row) for row in found]}
        table.MEASURED.write_text(json.dumps(kept, indent=None, separators=(",", ":")) + "\n", encoding="utf-8")
        print(f"kept in docs/build/{table.MEASURED.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
