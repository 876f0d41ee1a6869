"""python -m benchmarks: the figures, each beside its peers'."""

from __future__ import annotations

import sys

from benchmarks.commands import bench
from glassformer.common.errors import GlassformerError


def main() -> None:
    try:
        bench(prog_name="python -m benchmarks")
    except GlassformerError as error:
        sys.exit(f"benchmarks: {error}")


if __name__ == "__main__":
    main()
