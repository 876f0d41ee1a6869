"""What the READMEs show runs: their Python in one session, their commands in a folder with the demo's model."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
from pathlib import Path

import fences
import pyarrow.parquet
import pytest
from runner import run_command, run_page
from tiny_published import bert, gpt2

from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.data.numerals import generate
from glassformer.model import EncoderOnly, ModelConfig
from glassformer.weights import bundle

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "README.zh-CN.md")
SLOW = bool(os.environ.get("DOCS_SLOW"))
QUICK = {"trace", "translate", "score", "lab"}
LONG = {"bench"}  # hours, or a GPU: tests/test_house.py sees that these exist
SHOWN = re.compile(r"^(\S.*?) +# ('.*')$", re.M)


def text(readme: str) -> str:
    return (ROOT / readme).read_text(encoding="utf-8")


def python(readme: str) -> list[fences.Fence]:
    return [block for block in fences.read(text(readme)) if block.kind == "python"]


def test_both_readmes_show_the_same_python() -> None:
    trees = [[ast.dump(ast.parse(block.body)) for block in python(readme)] for readme in READMES]
    assert trees[0] == trees[1]
    assert len(trees[0]) >= 2


def kinds(folder: Path) -> None:
    """A classifier that has learnt nothing."""
    tokenizer = Tokenizer.train([("", "March 3, 2021")], TokenizerOptions(vocab_size=262))
    size = tokenizer.tgt_size
    model = EncoderOnly(ModelConfig(vocab_size=size, d_model=16, heads=2, d_ff=32, layers=1, labels=2, tied=False))
    bundle.save(folder, model, bundle.weights(model), tokenizer, labels=("date", "number"))


def test_the_python_runs(demo: Path, tmp_path: Path) -> None:
    marian(tmp_path / "opus-mt-en-de")
    gpt2(tmp_path / "gpt2-folder")
    bert(tmp_path / "bert-folder")
    kinds(tmp_path / "runs" / "kinds")
    used = run_page(ROOT / "README.md", demo, tmp_path, SLOW)
    shown = [found.groups() for block in python("README.md") for found in SHOWN.finditer(block.body)]
    assert shown
    for code, value in shown:
        assert eval(code, used) == ast.literal_eval(value), code


def test_the_recipe_trains_on_a_thousand_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [[block.body for block in fences.read(text(readme)) if block.kind == "toml"] for readme in READMES]
    assert shown[0] == shown[1]
    (recipe,) = shown[0]
    (tmp_path / "my.toml").write_text(recipe, encoding="utf-8")
    pairs = generate("train", size=1_000)
    for side, name in enumerate(("my.en", "my.de")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    less = ("--set", "tokenizer.vocab_size=400")  # numerals have few words
    less += () if SLOW else ("--set", "train.steps=3")
    for words in (("train", "my.toml", "--out", "runs/own", *less), ("translate", "runs/own", "a sentence of yours")):
        line = shlex.join(("glassformer", *words))
        run_command(line, ROOT / "README.md", fences.Fence("console", (), line, 1, False), SLOW)


def commands(readme: str) -> list[str]:
    lines = [line for block in fences.read(text(readme)) if block.kind == "text" for line in block.body.splitlines()]
    return [line.split("   ")[0] for line in lines if line.startswith("glassformer ")]


@pytest.mark.parametrize("line", dict.fromkeys(line for readme in READMES for line in commands(readme)))
def test_a_command_runs(line: str, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = line.split()[1]
    if "runs/own" in line:
        pytest.skip("run with the recipe, by a test of its own")
    if re.search(r" MODEL | [a-z-]+/(gpt2|bert)", line):
        pytest.skip("a model of the hub, or one that is not named")
    if name in LONG or (name not in QUICK and not SLOW):
        pytest.skip("takes minutes; make docs-test runs it" if name not in LONG else "takes hours, or a GPU")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("# Where is the nearest station?\n", encoding="utf-8")
    for folder in ("demo", "mine"):
        if f"--out runs/{folder}" not in line and name != "demo":
            shutil.copytree(demo, tmp_path / "runs" / folder)
    kinds(tmp_path / "runs" / "kinds" if "--out runs/kinds" not in line else tmp_path / "other")
    if name == "bulk":
        pyarrow.parquet.write_table(pyarrow.table({"review": ["It works."]}), tmp_path / "reviews.parquet")
    if "--resume" in line:
        begun = "glassformer train numerals --out runs/mine --set train.steps=4 --set train.save_every=2"
        run_command(begun, ROOT / "README.md", fences.Fence("console", (), begun, 1, False), SLOW)
    for name, words in (("a.en", "twenty-one"), ("a.de", "einundzwanzig"), ("lines.txt", "twenty-one")):
        (tmp_path / name).write_text(f"{words}\n", encoding="utf-8")
    readme = next(readme for readme in READMES if line in commands(readme))
    block = fences.Fence("console", (), line, text(readme).partition(line)[0].count("\n") + 1, False)
    run_command(line, ROOT / readme, block, SLOW)


def marian(folder: Path) -> None:
    """A Hugging Face folder of the smallest kind."""
    from transformers import MarianConfig, MarianMTModel

    sizes = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in
             (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))}  # fmt: skip
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
    MarianMTModel(
        MarianConfig(vocab_size=32, d_model=8, max_position_embeddings=256, **sizes, **special)
    ).save_pretrained(folder)
