"""Makes the folder `bundle` beside this file, in a minute or two: `python tests/pipelines/text/make_bundle.py`."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

from small_run import RECIPE, train_here  # noqa: E402

WORDS = {
    "red": "rot",
    "house": "haus",
    "runs": "läuft",
    "tree": "baum",
    "and": "und",
    "small": "klein",
    "file": "datei",
}
CODES = ["`make`", "{name}", "%s", "https://a.example/b", "`a b`", "--all", "$HOME", "<br>"]
FILES = ("config.json", "model.safetensors", "recipe.toml", "source_words.txt", "tokenizer.json")


def pair(chance: random.Random) -> tuple[str, str]:
    """A sentence of words, numbers and code, and the same in the other language, word by word."""
    source, target = [], []
    for _ in range(chance.randint(1, 7)):
        kind = chance.random()
        word = chance.choice(list(WORDS))
        if kind < 0.12:
            word = chance.choice(CODES)
        elif kind < 0.24:
            word = str(chance.randint(1, 99))
        source.append(word)
        target.append(WORDS.get(word, word))
    return " ".join(source) + ".", " ".join(target) + "."


def write_corpus(folder: Path, name: str, pairs: int, seed: int) -> None:
    chance = random.Random(seed)
    both = [pair(chance) for _ in range(pairs)]
    for side, suffix in enumerate(("en", "de")):
        (folder / f"{name}.{suffix}").write_text("".join(one[side] + "\n" for one in both), encoding="utf-8")


SECTIONS = {
    '[[data.train]]\nsrc = "train.en"\ntgt = "train.de"\n': (
        '[[data.train]]\nsrc = "train.en"\ntgt = "train.de"\nfrom = "en"\nto = "de"\nprotect = 0.7\n'
        '[[data.train]]\nsrc = "train.de"\ntgt = "train.en"\nfrom = "de"\nto = "en"\nprotect = 0.7\n'
    ),
    'src = "valid.en"\ntgt = "valid.de"\n': 'src = "valid.en"\ntgt = "valid.de"\nfrom = "en"\nto = "de"\n',
    'kind = "words"': 'kind = "bpe"\nvocab_size = 360\nplaceholders = 4',
    "steps = 60": "steps = 2500",
    "dropout = 0.1": "dropout = 0.0",
    "batch_tokens = 256": "batch_tokens = 768",
    "valid_every = 20": "valid_every = 2500",
    "save_every = 10": "save_every = 2500",
}


def make(place: Path) -> None:
    write_corpus(place, "train", 4000, seed=1)
    write_corpus(place, "valid", 20, seed=2)
    recipe = RECIPE
    for old, new in SECTIONS.items():
        assert old in recipe
        recipe = recipe.replace(old, new)
    (place / "recipe.toml").write_text(recipe, encoding="utf-8")
    print(train_here(place / "recipe.toml", place / "run"))
    (HERE / "bundle").mkdir(exist_ok=True)
    for name in FILES:
        shutil.copy(place / "run" / name, HERE / "bundle" / name)
    saved = HERE / "bundle" / "recipe.toml"
    saved.write_text(saved.read_text(encoding="utf-8").replace(f"{place}/", ""), encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
