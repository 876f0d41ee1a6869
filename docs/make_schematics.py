"""Draw the schematics of the model, docs/figures/schematic-NAME.en.svg and .zh.svg, from a pass of it.

python docs/make_schematics.py            writes those that are not fresh
python docs/make_schematics.py --check    writes nothing, names them, and exits with 1 if there are any
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from glassformer import ModelConfig
from glassformer.explain.schematic import DRAWINGS
from glassformer.explain.schematic.forward_pass import record_calls

FIGURES = Path(__file__).resolve().parent / "figures"
# The demo's sizes; the drawings have letters in their place.
SIZES = {"vocab_size": 480, "d_model": 128, "heads": 4, "d_ff": 512, "layers": 2}


def drawn() -> Iterator[tuple[Path, str]]:
    """Each file and what belongs into it: our model's, which is Pre-LN, and one layer of the paper's."""
    pre, post = record_calls(ModelConfig(norm="pre", **SIZES)), record_calls(ModelConfig(norm="post", **SIZES))
    wanted = [(kind, kind, pre) for kind in DRAWINGS] + [("post", "encoder-layer", post)]
    for name, kind, found in wanted:
        for language in ("en", "zh"):
            yield FIGURES / f"schematic-{name}.{language}.svg", DRAWINGS[kind](found, language).svg()


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="write nothing, name what is not fresh, exit 1 if any is")
    asked = options.parse_args()
    stale = [(file, svg) for file, svg in drawn() if not file.exists() or file.read_text(encoding="utf-8") != svg]
    for file, svg in stale:
        if not asked.check:
            file.write_text(svg, encoding="utf-8")
        print(f"{file.name} is not fresh" if asked.check else f"drew docs/figures/{file.name}")
    return 1 if asked.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
