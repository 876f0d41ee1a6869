"""`glassformer lab` as a user runs it."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
from functools import partial

import pytest
import torch

from glassformer.labs import NAMES, find, sinusoids
from glassformer.labs.experiment import VERDICTS, Check, Finding
from glassformer.labs.figures import Figure, Text
from glassformer.labs.run import run, run_labs


@pytest.fixture
def run_lab(cli, tmp_path, monkeypatch):
    """`glassformer lab` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return partial(cli, "lab")


@pytest.fixture
def instead(monkeypatch):
    """Another experiment in the place of a lab's own."""

    def put(experiment):
        monkeypatch.setattr(sinusoids, "run", experiment)

    return put


@pytest.mark.parametrize("language", ["en", "zh"])
def test_without_names_it_lists_every_lab_in_a_line(run_lab, language):
    code, out, error = run_lab("--lang", language)
    lines = out.splitlines()
    assert (code, error) == (0, "")
    assert [line.split()[0] for line in lines[: len(NAMES)]] == [find(name).name for name in NAMES]
    for name, line in zip(NAMES, lines, strict=False):
        assert line.endswith(find(name).title.say(language))
    assert "glassformer lab --all" in lines[-1]
    listed = json.loads(run_lab("--json", "--lang", language)[1])["labs"]
    assert listed == [find(name).as_dict(language) for name in NAMES]


def test_a_lab_prints_its_claim_numbers_checks_and_verdict(run_lab, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    code, out, error = run_lab("sinusoids")
    assert (code, error) == (0, "")
    words = " ".join(out.split())
    finding = run(find("sinusoids")).finding
    verdict = f"Verdict: {finding.verdict} seeds 0 to 4"
    for text in (sinusoids.CLAIM.claim.en, sinusoids.CLAIM.prediction.en, finding.summary.en, verdict):
        assert text in words
    for name in finding.numbers:
        assert name.en in words
    assert out.count("✓") == sum(check.outcome == "passed" for check in finding.checks)
    assert "--out" in out.splitlines()[-1]


@pytest.mark.parametrize("columns", [62, 80])
def test_in_chinese(run_lab, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    unbroken = Text("", "位置编码经过一个固定的旋转，" * 9)  # no space anywhere, and a comma after every 13 signs
    monkeypatch.setattr(sinusoids, "CLAIM", dataclasses.replace(sinusoids.CLAIM, prediction=unbroken))
    code, out, _ = run_lab("sinusoids", "--lang", "zh")
    assert code == 0
    assert sinusoids.CLAIM.title.zh in out
    assert f"结论：{VERDICTS[run(find('sinusoids')).finding.verdict].zh}" in out
    finding = run(find("sinusoids")).finding
    for text in (*finding.numbers, sinusoids.CLAIM.claim, sinusoids.CLAIM.prediction, finding.summary):
        assert "".join(text.zh.split()) in "".join(out.split())  # nothing is cut off at the end of a line
    assert "--out" in out.splitlines()[-1]


def test_json_is_what_the_lab_returned(run_lab):
    code, out, _ = run_lab("sinusoids", "sinusoids", "--json", "--seed", "3", "--seeds", "2", "--lang", "zh")
    content = json.loads(out)
    (found,) = content["labs"]
    expected = json.loads(json.dumps(run(find("sinusoids"), 3, 2).as_dict("zh")))
    assert code == 0
    assert found.pop("seconds") > 0
    del expected["seconds"]
    assert found == expected
    assert content["seed"] == 3
    assert content["seeds"] == found["seeds"] == [3, 4]
    assert content["command"] == "glassformer lab sinusoids --seed 3 --seeds 2 --lang zh"
    assert set(content["versions"]) == {"glassformer", "torch", "python", "machine"}


def test_out_holds_a_report_a_figure_and_the_numbers(run_lab, tmp_path):
    code, out, _ = run_lab("sinusoids", "--out", "some/report")
    folder = tmp_path / "some" / "report"
    assert code == 0
    assert sorted(file.name for file in folder.iterdir()) == ["report.html", "report.json", "sinusoids.svg"]
    assert json.loads((folder / "report.json").read_text(encoding="utf-8"))["labs"][0]["seeds"] == [0, 1, 2, 3, 4]
    figure = (folder / "sinusoids.svg").read_text(encoding="utf-8")
    assert figure in (folder / "report.html").read_text(encoding="utf-8")
    assert out.splitlines()[-1].endswith("report.html")


@pytest.mark.parametrize("name", ["report.html", "report.json", "sinusoids.svg"])
def test_out_replaces_nothing_that_no_lab_has_written(run_lab, tmp_path, name):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("[]")
    code, _, error = run_lab("sinusoids", "--out", "mine")
    assert code == 2
    assert f"--out mine holds another {name}, which no lab has written; choose another folder" in error
    assert [path.read_text() for path in (tmp_path / "mine").iterdir()] == ["[]"]


def test_out_replaces_a_report_of_before(run_lab, tmp_path):
    assert run_lab("sinusoids", "--out", "ours")[0] == run_lab("sinusoids", "--seed", "1", "--out", "ours")[0] == 0
    assert json.loads((tmp_path / "ours" / "report.json").read_text(encoding="utf-8"))["seed"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sinusoid"], "did you mean `sinusoids`?"),
        (["sinusoids", "nothing_like_it"], "there is no lab `nothing_like_it`"),
        (["sinusoids", "--seed", "-1"], "seed -1 is not between 0 and"),
        (["sinusoids", "--seeds", "0"], "--seeds 0 is not between 1 and"),
        (["sinusoids", "--out", "file"], "--out file is a file"),
        (["sinusoids", "--out", "file/below"], "--out file/below cannot be made"),
        (["--out", "folder"], "--out needs labs"),
    ],
)
def test_a_mistake_is_an_error_of_one_line_before_anything_runs(run_lab, tmp_path, instead, arguments, message):
    instead(lambda seed: pytest.fail("it ran"))
    (tmp_path / "file").write_text("mine")
    code, out, error = run_lab(*arguments)
    assert (code, out) == (2, "")
    assert error.count("\n") == 1
    assert message in error
    assert (tmp_path / "file").read_text() == "mine"


def test_without_matplotlib_a_report_names_what_to_install(run_lab, monkeypatch, instead):
    instead(lambda seed: pytest.fail("it ran"))
    monkeypatch.setattr("glassformer.labs.figures.find_spec", lambda name: None)
    code, _, error = run_lab("sinusoids", "--out", "folder")
    assert code == 2
    assert "pip install 'glassformer[plot]'" in error


def test_a_claim_that_does_not_hold_is_a_result_not_an_error(run_lab, instead):
    checks = [Check(Text("it is [small]", "它很小"), float("inf"), high=1), Check(Text("always", "总是"), 2, low=1)]
    instead(
        lambda seed: Finding({Text("size [of it]", "大小"): float("inf")}, checks, Figure([]), Text("Large.", "很大。"))
    )
    code, out, _ = run_lab("sinusoids")
    assert code == 0
    assert "does not hold" in out
    assert "✗" in out
    assert "✓" in out
    assert "size [of it]" in out
    code, out, _ = run_lab("sinusoids", "--json")
    assert json.loads(out)["labs"][0]["numbers"] == {"size [of it]": "inf"}
    assert json.loads(run_lab("sinusoids", "--json", "--lang", "zh")[1])["labs"][0]["numbers"] == {"大小": "inf"}


@pytest.mark.long
def test_several_labs_share_two_processes_and_come_in_order(run_lab):
    code, out, error = run_lab("teacher_forcing", "sinusoids", "--json", "--seeds", "2")
    content = json.loads(out)["labs"]
    assert (code, error) == (0, "")
    assert [one["name"] for one in content] == ["teacher_forcing", "sinusoids"]
    expected = json.loads(json.dumps(run(find("teacher_forcing"), 0, 2).as_dict("en")))
    assert content[0]["numbers"] == expected["numbers"]


def test_what_takes_times_runs_alone_and_last():
    order = []

    def lab(name, alone):
        def experiment(seed):
            order.append((name, seed, multiprocessing.active_children()))
            return sinusoids.run(seed)

        return dataclasses.replace(find("sinusoids"), name=name, run=experiment, alone=alone)

    done = list(run_labs([lab("clock", True), lab("plain", False)], range(2), lambda lab: None))
    assert [one.lab.name for one in done] == ["plain", "clock"]
    assert order == [("plain", 0, []), ("plain", 1, []), ("clock", 0, []), ("clock", 1, [])]


def test_an_interrupt_is_quiet(run_lab, instead):
    def interrupted(seed):
        raise KeyboardInterrupt

    instead(interrupted)
    assert run_lab("sinusoids") == (130, "", "")


def test_a_lab_leaves_chance_and_threads_as_they_were():
    def untidy(seed):
        torch.manual_seed(99)
        torch.rand(3)
        torch.set_num_threads(threads + 1)
        return sinusoids.run(seed)

    threads = torch.get_num_threads()
    before = torch.random.get_rng_state()
    run(dataclasses.replace(find("sinusoids"), run=untidy), 0, 1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads
