"""What the READMEs show runs: their Python in one session, their commands in a folder with the demo's model."""

import ast
import os
import re
import shutil
from pathlib import Path

import fences
import pyarrow.parquet
import pytest
from runner import run_command, run_page

from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.model import EncoderOnly, ModelConfig
from glassformer.weights import bundle

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "README.zh-CN.md")
PAGES = ("docs/en/commands.md", "docs/zh/commands.md")
SLOW = bool(os.environ.get("DOCS_SLOW"))
QUICK = {"trace", "translate", "score", "lab"}
SHOWN = re.compile(r"^(\S.*?) +# ('.*')$", re.M)


def text(readme: str) -> str:
    return (ROOT / readme).read_text(encoding="utf-8")


def python(readme: str) -> list[fences.Fence]:
    return [block for block in fences.read(text(readme)) if block.kind == "python"]


def blocks(readme: str) -> list[tuple[str, str]]:
    return [(block.kind, block.body) for block in fences.read(text(readme)) if block.kind != "python"]


def test_both_readmes_show_the_same():
    trees = [[ast.dump(ast.parse(block.body)) for block in python(readme)] for readme in READMES]
    assert trees[0] == trees[1]
    assert blocks(READMES[0]) == blocks(READMES[1])


@pytest.mark.parametrize("readme", READMES)
def test_a_readme_is_read_in_a_minute(readme):
    assert len(text(readme).splitlines()) <= 120
    assert "\nmake test\n" in text(readme), ".ci/run reads the test command there"


def make_classifier(folder: Path) -> None:
    """A classifier that has learnt nothing."""
    tokenizer = Tokenizer.train([("", "March 3, 2021")], TokenizerOptions(vocab_size=262))
    size = tokenizer.tgt_size
    model = EncoderOnly(ModelConfig(vocab_size=size, d_model=16, heads=2, d_ff=32, layers=1, labels=2, tied=False))
    bundle.save(folder, model, bundle.weights(model), tokenizer, labels=("date", "number"))


@pytest.mark.parametrize("readme", READMES)
def test_every_block_of_a_readme_runs(readme, demo, tmp_path):
    used = run_page(ROOT / readme, demo, tmp_path, SLOW)
    shown = [found.groups() for block in python(readme) for found in SHOWN.finditer(block.body)]
    assert shown
    for code, value in shown:
        assert eval(code, used) == ast.literal_eval(value), code


def commands(page: str) -> list[str]:
    lines = [line for block in fences.read(text(page)) if block.kind == "text" for line in block.body.splitlines()]
    return [line.split("   ")[0] for line in lines if line.startswith("glassformer ")]


def test_both_languages_list_the_same_commands():
    assert commands(PAGES[0]) == commands(PAGES[1])


def test_the_commands_exist_with_their_options():
    from typer.main import get_command

    from glassformer.cli import app

    known = get_command(app).commands
    named = set()
    for line in commands(PAGES[0]):
        name, *words = line.split()[1:]
        options = {option for parameter in known[name].params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, line
        named.add(name)
    assert named >= {name for name, one in known.items() if not one.hidden} - {"keys"}


@pytest.mark.parametrize("line", dict.fromkeys(commands(PAGES[0])))
def test_a_command_runs(line, demo, tmp_path, monkeypatch):
    name = line.split()[1]
    if re.search(r" MODEL | [a-z-]+/(gpt2|bert)", line):
        pytest.skip("a model of the hub, or one that is not named")
    if name not in QUICK and not SLOW:
        pytest.skip("takes minutes; make docs-test runs it")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("# Where is the nearest station?\n", encoding="utf-8")
    for folder in ("demo", "mine"):
        if f"--out runs/{folder}" not in line and name != "demo":
            shutil.copytree(demo, tmp_path / "runs" / folder)
    make_classifier(tmp_path / "runs" / "kinds" if "--out runs/kinds" not in line else tmp_path / "other")
    if name == "bulk":
        pyarrow.parquet.write_table(pyarrow.table({"review": ["It works."]}), tmp_path / "reviews.parquet")
    if "--resume" in line:
        first = "glassformer train numerals --out runs/mine --set train.steps=4 --set train.save_every=2"
        run_command(first, ROOT / "README.md", fences.Fence("console", (), first, 1, False), SLOW)
    for name, words in (("a.en", "twenty-one"), ("a.de", "einundzwanzig"), ("lines.txt", "twenty-one")):
        (tmp_path / name).write_text(f"{words}\n", encoding="utf-8")
    block = fences.Fence("console", (), line, text(PAGES[0]).partition(line)[0].count("\n") + 1, False)
    run_command(line, ROOT / PAGES[0], block, SLOW)
