"""Makes the models beside this file, one of each kind that a version has written: `python tests/kept/make_kept.py`.

They are kept as they are, so that a later version shows that it reads them: a kind that is new is made, none is remade.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))

from small_run import RECIPE, train_here, write_recipe  # noqa: E402

from glassformer.pipelines.translator import Translator  # noqa: E402
from glassformer.weights import bundle  # noqa: E402

TEXTS = ["one", "three two one two four", "six five four", "two two five one"]
FILES = ("config.json", "model.safetensors", "recipe.toml", "source_words.txt", "tokenizer.json")
ONE = '[[data.train]]\nsrc = "train.en"\ntgt = "train.de"\n'
BOTH = (
    '[[data.train]]\nsrc = "train.en"\ntgt = "train.de"\nfrom = "en"\nto = "de"\n'
    '[[data.train]]\nsrc = "train.de"\ntgt = "train.en"\nfrom = "de"\nto = "en"\n'
)


def make(name: str, recipe: str) -> None:
    """A model as it is trained, and the same in int8."""
    with tempfile.TemporaryDirectory() as place:
        path = write_recipe(Path(place) / "corpus", recipe)
        train_here(path, Path(place) / "run", "data.valid=[]")
        folder = HERE / f"{name}-float32"
        folder.mkdir()
        for file in FILES:
            shutil.copy(Path(place) / "run" / file, folder / file)
    saved = (folder / "recipe.toml").read_text(encoding="utf-8").replace(place, "/corpus")
    (folder / "recipe.toml").write_text(saved, encoding="utf-8")
    bundle.pack(folder, HERE / f"{name}-int8")


def said(folder: Path) -> dict[str, list[str]]:
    """What a model makes of the texts, into each language that it knows."""
    tags = bundle.load(folder).tokenizer.tags or ("",)
    found = {}
    for to in tags:
        translator = Translator.load(folder, to=to or None)
        found[to] = [best[0].text for best in translator.translate(TEXTS, beam=2)]
    return found


if __name__ == "__main__":
    small = RECIPE.replace("d_model = 32", "d_model = 16").replace("d_ff = 64", "d_ff = 32")
    small = small.replace("steps = 60", "steps = 300").replace("dropout = 0.1", "dropout = 0.0")
    small = small.replace("max_length = 272", 'positions = "rotary"\nmax_length = 272')
    for name, recipe in {"one-way": small, "both-ways": small.replace(ONE, BOTH)}.items():
        if not (HERE / f"{name}-float32").exists():
            make(name, recipe)
    folders = sorted(path for path in HERE.iterdir() if path.is_dir() and (path / "config.json").is_file())
    (HERE / "said.json").write_text(json.dumps({f.name: said(f) for f in folders}, indent=1, ensure_ascii=False) + "\n")
