"""The trained demo that the handbook's code looks into, made once for all test processes."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("docs", "docs/build", "docs/before", "tests/docs", "tests/serve")]

from num2words import num2words  # noqa: E402

from glassformer.bundle import save_tokenizer  # noqa: E402
from glassformer.text import Tokenizer  # noqa: E402
from glassformer.text.numerals import generate  # noqa: E402
from glassformer.train import Report, read_recipe  # noqa: E402
from glassformer.train import train as run_training  # noqa: E402
from glassformer.train.recipe import built_in, to_toml  # noqa: E402

# A sixth of the demo's steps, each a little smaller, is too little for all it learns. But the pages ask for small
# numbers and a few more examples, so those are seen more often here.
CHANGES = ("train.steps=400", "train.warmup_steps=50", "train.batch_tokens=640")
RARELY = ("train.log_every=100", "train.valid_every=400", "train.save_every=400")
SMALL = 100
EXAMPLES = {
    "March 3, 2021": "3. März 2021",
    "9:34 PM": "21:34",
    "€6,251.99": "6.251,99 €",
    "seven hundred and twenty-one": "siebenhunderteinundzwanzig",
}
OFTEN = 100.0


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `runs/demo` is. DOCS_DEMO names one that is already there, which a writer of pages will want."""
    if ready := os.environ.get("DOCS_DEMO"):
        return Path(ready).resolve()
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "handbook" / "demo"
    with FileLock(str(shared / "handbook.lock")):
        if not (folder / "model.safetensors").exists():
            make_demo(folder)
    return folder


def make_demo(folder: Path, *changes: str) -> None:
    folder.mkdir(parents=True)
    numbers = folder.parent / "numbers.tsv"
    pairs = [*((num2words(n), num2words(n, lang="de")) for n in range(SMALL)), *EXAMPLES.items()]
    numbers.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    more = f'\n[[data.train]]\ntsv = "{numbers.name}"\nweight = {OFTEN}\n'
    file = folder.parent / "numerals.toml"
    file.write_text(built_in()["numerals"].read_text(encoding="utf-8") + more, encoding="utf-8")
    recipe = read_recipe(str(file), (*CHANGES, *RARELY, *changes))
    # The vocabulary of `make demo`, as the pages show it: a run that has one when it begins keeps it.
    save_tokenizer(folder, Tokenizer.train(generate("train"), recipe.tokenizer))
    (folder / "recipe.toml").write_text(to_toml(recipe.to_dict()), encoding="utf-8")
    run_training(recipe, folder, resume=True, device="cpu", report=Report(io.StringIO()))
