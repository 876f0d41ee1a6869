"""`glassformer trace` as a user runs it: another folder, a fresh process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from glassformer.cli import main


def run(folder, *arguments):
    environment = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "COLUMNS")}
    return subprocess.run(
        [sys.executable, "-m", "glassformer", "trace", *arguments],
        cwd=folder, env=environment | {"PYTHONIOENCODING": "utf-8"}, capture_output=True, encoding="utf-8", timeout=60,
    )  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """The same in this process, which has torch loaded already: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run_here(*arguments):
        monkeypatch.setattr(sys, "argv", ["glassformer", "trace", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, error = capsys.readouterr()
        return ended.value.code or 0, out, error

    return run_here


def test_the_story_in_english(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("A Transformer by hand")
    assert "decoder.blocks.0.cross_attention.pattern" in done.stdout
    assert "\x1b[" not in done.stdout
    assert done.stderr == ""


def test_the_story_in_chinese(here):
    code, out, _ = here("--lang", "zh")
    assert code == 0
    assert "交叉注意力" in out


def test_json_to_stdout(tmp_path):
    done = run(tmp_path, "--json", "-", "--name", "*.pattern")
    assert done.returncode == 0, done.stderr
    tensors = json.loads(done.stdout, parse_constant=pytest.fail)["tensors"]
    assert [tensor["name"].split(".")[-1] for tensor in tensors] == ["pattern"] * 3
    assert tensors[2]["shape"] == [2, 2, 4, 3]
    assert tensors[2]["axes"] == ["sentence", "head", "query:tgt", "key:src"]


def test_json_to_a_file(here):
    assert here("--json", "all.json") == (0, "", "")
    whole = json.loads(Path("all.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    by_name = {tensor["name"]: tensor for tensor in whole["tensors"]}
    assert whole["vocabulary"][0] == "<pad>"
    assert by_name["decoder.blocks.0.self_attention.masked"]["values"][0][0][0][1:] == ["-inf"] * 3
    assert by_name["encoder.blocks.0.self_attention.pattern"]["values"][1][0][0][2] == 0
    assert all(set(tensor) == {"name", "shape", "axes", "formula", "inputs", "values"} for tensor in whole["tensors"])


def test_one_name(here):
    code, out, _ = here("--name", "decoder.*.hidden")
    assert code == 0
    assert out.startswith("decoder.blocks.0.feed_forward.hidden")
    assert "encoder" not in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--lang", "fr"), ("'fr'", "'en'", "'zh'")),
        (("--name", "*.patern"), ("`*.patern`", "`encoder.blocks.0.self_attention.pattern`")),
        (("--json", os.path.join("no", "such", "folder.json")), ("cannot write", "folder that exists")),
    ],
)
def test_mistakes_are_met_with_the_fix(here, arguments, told):
    code, out, error = here(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in error
    assert all(word in error for word in told), error


def test_help_does_not_wait_for_torch():
    code = "import sys, glassformer.cli.trace; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
