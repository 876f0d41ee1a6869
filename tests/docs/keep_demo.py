"""python tests/docs/keep_demo.py runs/demo    keeps a demo that was just trained for the tests of the handbook"""

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from glassformer.weights import bundle

KEPT = Path(__file__).parent / "demo"
WEIGHTS = "model.safetensors"
WHOLE, HALF = torch.float32, torch.float16
WORTH_KEEPING = (
    "config.json",
    "metrics.jsonl",
    "recipe.toml",
    "scores.json",
    "source_words.txt",
    "tokenizer.json",
    WEIGHTS,
)


def cast(file: Path, dtype: torch.dtype) -> None:
    """What was learnt is stored as `dtype`; what is computed, the table of positions, stays as it is."""
    tensors = load_file(file)
    cast = {name: one if name.endswith("positions.table") else one.to(dtype) for name, one in tensors.items()}
    bundle.write_weights(file.parent, cast, json.loads((file.parent / "config.json").read_bytes()))


def keep(folder: Path) -> None:
    for name in WORTH_KEEPING:
        shutil.copyfile(folder / name, KEPT / name)
    cast(KEPT / WEIGHTS, HALF)


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
