"""The Transformer that a reader builds: its steps run, code makes its rows, and the last file is the shipped model."""

import ast
import math
import re
import runpy
from pathlib import Path

import build_pages
import build_rows
import compare
import fences
import grow
import growing
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from glassformer.model.embedding import sinusoid

ROOT = Path(__file__).parents[2]
WHOLE = growing.WHOLE.read_text(encoding="utf-8")
OURS = {"glassformer.data", "glassformer.data.numerals"}
# What a reader might get wrong, and how a comparison must notice.
FAULTS = {
    "no scale": ("/ math.sqrt(q.shape[-1])", "* 1.0"),
    "scale by the whole width": ("math.sqrt(q.shape[-1])", "math.sqrt(q.shape[-1] * self.heads)"),
    "no residual": ("return x + sublayer(self.norm(x))", "return sublayer(self.norm(x))"),
    "norm by D - 1": ("(x - mean).square().mean(-1, keepdim=True)", "x.var(-1, keepdim=True)"),
    "no causal mask": ("torch.ones(length, length, dtype=torch.bool).tril()", "torch.ones(length, length).bool()"),
    "no padding mask": ("(ids != PAD)[:, None, None, :]", "(ids == ids)[:, None, None, :]"),
    "heads not transposed": (".transpose(1, 2).flatten(2)", ".flatten(2).view(x.shape)"),
    "positions from one": ("torch.arange(length, dtype", "1 + torch.arange(length, dtype"),
    "embedding not scaled": ("* math.sqrt(self.tokens.embedding_dim)", "* 1.0"),
    "another eps": ("eps=1e-5", "eps=1e-6"),
    "no last norm": ("return self.norm(x)\n", "return x\n"),
}


@pytest.fixture(scope="module")
def names():
    return growing.names_after(growing.STEPS)


def test_the_file_is_what_the_steps_give_and_short():
    assert growing.assembled(growing.STEPS) == WHOLE
    assert WHOLE.count("\n") <= 300
    assert [step.stem[:2] for step in growing.STEPS] == [f"{number:02}" for number in range(1, len(growing.STEPS) + 1)]
    assert [step.stem[3:] for step in growing.STEPS[:-1]] == list(build_rows.PARTS)


def test_of_ours_the_file_imports_corpus_and_tokenizer_alone():
    tree = ast.parse(WHOLE)
    found = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    found |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {str(name) for name in found if str(name).startswith("glassformer")} == OURS


def test_file_and_notebooks_are_fresh():
    stale = [file.name for file, text in build_pages.wanted().items() if file.read_text(encoding="utf-8") != text]
    assert stale == [], "run: python docs/build/build_pages.py"


def test_each_step_stands_in_one_page_in_order():
    for language in build_pages.LANGUAGES:
        pages = build_pages.pages(language)
        assert [step for page in pages for step in build_pages.steps_of(page)] == growing.STEPS
        for page in pages[1:]:  # each part has its row in the page that tells of it
            marks = fences.included(page.read_text(encoding="utf-8"))
            rows = [int(mark.name.split("-")[1]) for mark in marks if mark.kind == "rows"]
            assert rows == [int(step.stem[:2]) for step in build_pages.steps_of(page) if step != growing.STEPS[-1]]


def test_a_step_trains_and_has_its_row(task, capsys):
    before, found = (build_rows.measured(step, task, [7], 10, {}) for step in (1, 4))
    assert found.losses[0] < found.curves[0][0][1] - 0.5
    grow.say(found, before)
    assert capsys.readouterr().out.split()[0] == "4"


@pytest.mark.long
def test_every_step_trains_and_has_its_row(capsys):
    rows = grow.grow(seeds=[7], training=10, tell=grow.say, held_out=12)
    assert len(rows) == len(build_rows.PARTS) >= 10
    for row in rows[1:]:
        assert row.losses[0] < row.curves[0][0][1] - 0.5, f"step {row.step} learned nothing"
    assert rows[9].losses[0] < rows[8].losses[0] + 1  # the source is read, and nothing has broken
    assert [row.right is not None for row in rows] == [False] * 13 + [True] * 2
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == [str(row.step) for row in rows]


def test_the_rows_of_the_pages_are_measured_with_five_seeds():
    rows = build_rows.kept()
    assert [row.part for row in rows] == list(build_rows.PARTS)
    assert all(len(row.losses) == len(row.curves) >= 5 for row in rows)
    table = build_rows.markdown(rows, "en", 1, len(rows))
    assert table in (ROOT / "docs" / "en" / "build" / "index.md").read_text(encoding="utf-8")
    losses = {row.part: row.loss for row in rows}
    assert losses["frequent"] > losses["average"] > losses["encoder"], "the pages say so in words"
    assert losses["attention"] > losses["scale"], "the page says that the scale takes something out of the way"


def row(step: int, losses: list[float], right: list[float] | None = None) -> build_rows.Row:
    return build_rows.Row(step, build_rows.part_of(step), 1, losses, [[(0, loss)] for loss in losses], right)


def test_a_verdict_follows_the_numbers():
    before = row(2, [2.0, 2.1, 1.9])
    assert build_rows.change(before, None)[0] == "first"
    assert build_rows.change(row(3, [1.0, 1.1, 0.9]), before)[0] == "helps"
    assert build_rows.change(row(3, [3.0, 3.1, 2.9]), before)[0] == "hurts"
    assert build_rows.change(row(3, [1.9, 2.3, 1.8]), before)[0] == "unclear"
    verdict, mean, half = build_rows.change(row(3, [1.0, 1.2, 1.1]), before)
    differences = torch.tensor([-1.0, -0.9, -0.8])
    assert (verdict, round(mean, 6)) == ("helps", -0.9)
    assert math.isclose(half, 4.303 * float(differences.std()) / math.sqrt(3), rel_tol=1e-5)
    writes = row(14, [0.2] * 3, [0.5, 0.6, 0.7])
    assert build_rows.change(writes, row(13, [0.2] * 3))[0] == "writes"
    assert build_rows.change(row(15, [0.2] * 3, [0.6, 0.7, 0.8]), writes)[0] == "helps"
    assert "–" in build_rows.cells(row(3, [1.0]), row(2, [2.0]), "en"), "one seed gives no verdict"


def test_the_built_file_is_the_shipped_model(demo):
    found = compare.compare(demo, WHOLE, pairs=60, beamed=8)  # of 200 and 40, which the command takes
    assert found.logits <= 1e-5
    assert found.rounded <= compare.ROUNDING
    assert (found.greedy, found.pairs) == (60, 60)
    assert (found.beam, found.beamed) == (8, 8)
    assert found.same


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_file_is_noticed(fault, demo):
    right, wrong = FAULTS[fault]
    assert WHOLE.count(right) >= 1
    found = compare.compare(demo, WHOLE.replace(right, wrong), pairs=8, beamed=1)
    assert found.logits > 100 * compare.TOLERANCE
    assert not found.same


def test_the_command_compares_and_its_exit_says_so(demo, tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(WHOLE.replace("x + sublayer", "sublayer"), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["compare.py", str(demo), "--pairs", "5", "--file", str(tmp_path / "mine.py")])
    assert compare.main() == 1
    assert capsys.readouterr().out.splitlines()[-1] == "NOT the same model"
    monkeypatch.setattr("sys.argv", ["compare.py", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        compare.main()
    assert ended.value.code == 2
    assert "make demo" in capsys.readouterr().err


def test_the_file_translates_from_the_command_line(demo, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [str(growing.WHOLE), str(demo), "twenty-one"])
    runpy.run_path(str(growing.WHOLE), run_name="__main__")
    assert capsys.readouterr().out == "einundzwanzig\n"


def test_adam_takes_the_steps_of_torch(names):
    torch.manual_seed(0)
    ours = nn.Linear(5, 3)
    theirs = nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    mine, other = names["Adam"](ours.parameters()), torch.optim.Adam(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step in range(1, 21):
        x, rate = torch.randn(4, 5), names["learning_rate"](step, 64)
        for group in other.param_groups:
            group["lr"] = rate
        other.zero_grad()
        ours(x).square().sum().backward()
        theirs(x).square().sum().backward()
        mine.step(rate)
        other.step()
    assert torch.allclose(ours.weight, theirs.weight, atol=1e-6)
    rates = [names["learning_rate"](step, 64) for step in range(1, 301)]
    assert rates.index(max(rates)) == 99
    assert math.isclose(max(rates), 0.3 * 64**-0.5 * 100**-0.5)


def test_parts_are_those_of_torch(names):
    torch.manual_seed(0)
    x = torch.randn(2, 5, 8)
    assert torch.allclose(names["softmax"](x), x.softmax(-1), atol=1e-6)
    assert torch.allclose(names["LayerNorm"](8)(x), F.layer_norm(x, (8,)), atol=1e-6)
    assert torch.equal(names["sinusoid"](50, 16), sinusoid(50, 16))
    labels = torch.tensor([[3, 1, 0, 0, 0], [7, 6, 5, 4, 0]])
    for smoothing in (0.0, 0.1):
        wanted = F.cross_entropy(x.flatten(0, 1), labels.flatten(), ignore_index=0, label_smoothing=smoothing)
        assert torch.isclose(names["loss"](x, labels, smoothing), wanted, atol=1e-6)


def test_the_file_after_a_step_is_printed(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["grow.py", "--file", "3"])
    assert grow.main() == 0
    printed = capsys.readouterr().out
    assert re.findall(r"^class (\w+)", printed, re.M) == ["Task", "Config", "Attention", "Transformer"]
    assert "Average" not in printed
