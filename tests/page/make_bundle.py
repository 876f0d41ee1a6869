"""Makes the folder `bundle` beside this file, in some seconds: `python tests/page/make_bundle.py`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))

from small_run import train_here, write_recipe  # noqa: E402

CHANGES = ("model.layers=2", "model.dropout=0", "train.steps=200", "train.lr=0.005")
FILES = ("config.json", "model.safetensors", "source_words.txt", "tokenizer.json")


def make(place: Path) -> None:
    print(train_here(write_recipe(place), place / "run", *CHANGES, "train.save_every=200", "train.valid_every=200"))
    (HERE / "bundle").mkdir(exist_ok=True)
    for name in FILES:
        shutil.copy(place / "run" / name, HERE / "bundle" / name)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
