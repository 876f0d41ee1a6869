"""`glassformer translate` as a user runs it: real processes, pipes and files."""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_run import PATIENCE, call, command, launch
from tiny_translators import LIMIT, sentences, tiny_bundle

from glassformer.decode import Sampling
from glassformer.pipelines.translator import Translator


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_bundle(tmp_path_factory.mktemp("translate") / "model")


@pytest.fixture(scope="module")
def translator(model):
    return Translator.load(model)


def run(*words: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return call(command("translate", *words), input=stdin, text=False, encoding=None)


def printed(translator: Translator, line: str) -> str:
    """The line a text is printed as: nothing in it may look like the end of a line."""
    return translator(line).replace("\n", " ").replace("\r", " ")


def here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> str:
    """What the command prints, run in this process."""
    from glassformer.cli import main

    monkeypatch.setattr("sys.argv", ["glassformer", "translate", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert (ended.value.code, said(err)) == (0, [])
    return out


def said(stderr: str | bytes) -> list[str]:
    """What is told, but that a translation was stopped: this model seldom finds an end."""
    lines = (stderr.decode() if isinstance(stderr, bytes) else stderr).splitlines()
    return [line for line in lines if "stopped by the length limit" not in line]


def test_a_file_is_its_lines_translated_one_by_one(model, translator):
    chance = random.Random(1)
    lines = ["", "  ", "中文 👩‍👩‍👧‍👦", "two words\r", "a\0b", "\u2028 not a line end", "﷽", *sentences(60, seed=7)]
    lines += [" ".join(sentences(8, seed=seed)) for seed in range(3)]
    chance.shuffle(lines)
    done = run(model, stdin="\n".join(lines).encode())
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().split("\n") == [printed(translator, line.removesuffix("\r")) for line in lines] + [""]
    assert f"longer than the {LIMIT} tokens" in done.stderr.decode()
    assert "3 lines were split" in done.stderr.decode()


def test_arguments_scores_n_best_and_json(model, translator, capsys, monkeypatch):
    texts = ["the dog", "", "a red house"]
    found = translator.translate(texts, beam=3, nbest=2)
    wide = ["--beam", "3", "--nbest", "2"]
    plain = here(capsys, monkeypatch, model, *texts, *wide, "--scores").removesuffix("\n")
    rows = [line.split("\t") for line in plain.split("\n")]
    assert [row[:2] for row in rows] == [[str(i), str(k)] for i in (1, 2, 3) for k in (1, 2)]
    assert [float(row[2]) for row in rows] == pytest.approx([one.score for best in found for one in best], abs=1e-3)
    done = run(model, *wide, "--json", stdin="\n".join(texts).encode())
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["source"] for one in objects] == texts
    assert [[t["text"] for t in one["translations"]] for one in objects] == [[t.text for t in b] for b in found]
    assert [[t["finished"] for t in one["translations"]] for one in objects] == [[t.finished for t in b] for b in found]
    assert said(done.stderr) == []


def test_files_in_and_out_with_bytes_that_are_no_text(model, translator, tmp_path):
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"the dog\nthe \xff dog\ndog \xfe\n\n"))
    done = run(model, "--input", tmp_path / "in.gz", "--output", tmp_path / "out")
    assert done.returncode == 0
    lines = ["the dog", "the \ufffd dog", "dog \ufffd", ""]
    assert (tmp_path / "out").read_bytes().decode() == "".join(printed(translator, line) + "\n" for line in lines)
    assert done.stdout == b""
    told = said(done.stderr)
    assert len(told) == 1
    assert told[0].startswith("line 2: not UTF-8 (byte 5 of the line is 0xff)")


def test_a_line_of_more_than_ten_megabytes_is_refused_after_those_before_it(model, translator):
    done = run(model, stdin=b"the dog\n\na cat\n" + b"x" * 10_100_000 + b"\nlate\n")
    assert done.returncode == 2
    assert done.stdout.decode() == "".join(printed(translator, line) + "\n" for line in ("the dog", "", "a cat"))
    assert "line 4: longer than 10,000,000 bytes" in done.stderr.decode()
    assert len(said(done.stderr)) == 1


def test_a_line_is_answered_as_it_arrives_and_ctrl_c_is_quiet(model, translator):
    pipe = subprocess.PIPE
    with launch(command("translate", model), stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            for line in ("the dog", "", "a red house"):
                process.stdin.write(line.encode() + b"\n")
                process.stdin.flush()
                assert process.stdout.readline().decode() == printed(translator, line) + "\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=PATIENCE) == 130
            assert said(process.stderr.read()) == []
        finally:
            process.kill()


def test_a_reader_that_goes_away_is_no_error(model, tmp_path):
    (tmp_path / "in").write_text("\n".join(sentences(3000, seed=8)), encoding="utf-8")
    pipe = subprocess.PIPE
    words = command("translate", model, "--input", tmp_path / "in")
    with launch(words, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert said(process.stderr.read()) == []
        assert process.wait(timeout=PATIENCE) == 141


def test_every_option_does_what_the_translator_does(model, translator, capsys, monkeypatch):
    texts = ["the dog", "a red house"]
    cases: list[tuple[list[str], dict[str, Any]]] = [
        (["--prefix", "the cat "], {"prefix": "the cat "}),
        (["--no-repeat-ngram", "1"], {"no_repeat_ngram": 1}),
        (["--repetition-penalty", "1.5"], {"repetition_penalty": 1.5}),
        (["--beam", "3", "--length-rule", "gnmt", "--length-penalty", "2"],
         {"beam": 3, "length_rule": "gnmt", "length_penalty": 2.0}),
        (["--sample", "--temperature", "0.7", "--top-k", "9", "--top-p", "0.8", "--seed", "4"],
         {"sampling": Sampling(0.7, 9, 0.8, 4)}),
        (["--sample"], {"sampling": Sampling()}),
        (["--max-length", "8"], {"max_length": 8}),
    ]  # fmt: skip
    seen = set()
    for words, options in cases:
        out = here(capsys, monkeypatch, model, *texts, "--precision", "fp32", "--json", *words)
        found = [json.loads(line)["translations"][0] for line in out.splitlines()]
        expected = [best[0] for best in translator.translate(texts, **options)]
        assert [one["text"] for one in found] == [one.text for one in expected]
        assert [one["score"] for one in found] == pytest.approx([one.score for one in expected], abs=1e-4)
        seen.add(out)
    assert len(seen) >= len(cases) - 1  # --max-length 8 may change nothing
    for precision in ("int8", "auto"):
        assert here(capsys, monkeypatch, model, "the dog", "--precision", precision).count("\n") == 1


def test_alignments_as_pairs_and_as_json(model, translator, capsys, monkeypatch):
    texts = ["the dog", "", "a red house"]
    options = ["--beam", "2", "--nbest", "2", "--alignments", "--precision", "fp32"]
    found = translator.translate(texts, beam=2, nbest=2, alignments=True)
    rows = [row.split("\t") for row in here(capsys, monkeypatch, model, *texts, *options).split("\n")[:-1]]
    pairs = [" ".join(f"{s}-{t}" for t, s in one.alignment or []) for best in found for one in best]
    assert [row[-1] for row in rows] == pairs
    assert pairs[2] == ""
    objects = [json.loads(line) for line in here(capsys, monkeypatch, model, *texts, *options, "--json").splitlines()]
    for one, best in zip(objects, found, strict=True):
        for shown, expected in zip(one["translations"], best, strict=True):
            assert [tuple(pair) for pair in shown["alignment"]] == expected.alignment
            assert shown["tokens"] == expected.tokens
            assert shown["source_tokens"] == expected.source_tokens


def run_here(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> object:
    from glassformer.cli import main

    monkeypatch.setattr("sys.argv", ["glassformer", "translate", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_a_full_disk_is_one_line_and_leaves_the_old_file(model, tmp_path, monkeypatch, capsys):
    (tmp_path / "out").write_text("before", encoding="utf-8")
    (tmp_path / "in").write_text("\n".join(sentences(60, seed=2)), encoding="utf-8")
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # a file may not grow beyond, as on a disk that is full
    try:
        code = run_here(monkeypatch, model, "--input", tmp_path / "in", "--output", tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    assert code == 2
    err = said(capsys.readouterr().err)
    assert err[-1] == f"glassformer: {tmp_path / 'out'} cannot be written: File too large"
    assert (tmp_path / "out").read_text() == "before"
    assert run_here(monkeypatch, model, "a cat", "--output", "/dev/full") == 2
    assert said(capsys.readouterr().err) == ["glassformer: /dev/full cannot be written: the disk is full"]


def test_a_run_that_fails_keeps_the_old_file_and_what_it_has(model, translator, tmp_path, monkeypatch, capsys):
    (tmp_path / "out").write_text("before", encoding="utf-8")
    (tmp_path / "in").write_bytes(b"the dog\na cat\n" + b"x" * 10_100_000)
    wanted = "".join(printed(translator, line) + "\n" for line in ("the dog", "a cat"))
    for name in ("out.partial", "out.partial1"):  # an earlier one is not replaced either
        assert run_here(monkeypatch, model, "--input", tmp_path / "in", "--output", tmp_path / "out") == 2
        told = said(capsys.readouterr().err)
        assert told[0] == f"what was translated before is in {tmp_path / name}"
        assert "line 3: longer than 10,000,000 bytes" in told[1]
        assert (tmp_path / name).read_text(encoding="utf-8") == wanted
    assert (tmp_path / "out").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 4


def test_an_output_may_be_a_link_a_pipe_or_a_device(model, translator, tmp_path, monkeypatch):
    (tmp_path / "out").write_text("before", encoding="utf-8")
    (tmp_path / "link").symlink_to("out")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    for name in ("link", "pipe"):
        assert run_here(monkeypatch, model, "a cat", "--output", tmp_path / name) == 0
    wanted = printed(translator, "a cat") + "\n"
    assert os.read(reader, 1 << 16).decode() == (tmp_path / "out").read_text(encoding="utf-8") == wanted
    assert (tmp_path / "link").is_symlink()
    assert run_here(monkeypatch, model, "a cat", "--output", os.devnull) == 0
    os.close(reader)


@pytest.mark.parametrize("name", ["stdin", "stdout", "stderr"])
def test_a_stream_closed_by_the_shell_is_an_empty_one(model, monkeypatch, capsys, name):
    monkeypatch.setattr(f"sys.{name}", None)  # as Python has it then
    assert run_here(monkeypatch, model, *([] if name == "stdin" else ["a cat"])) == 0
    getattr(sys, name).close()
    assert bool(capsys.readouterr().out) == (name == "stderr")


def test_on_a_terminal_it_says_what_it_waits_for(model, translator, monkeypatch, capsys):
    master, slave = os.openpty()
    os.write(master, b"a cat\n\x04")
    with open(slave) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        assert run_here(monkeypatch, model) == 0
    out, err = capsys.readouterr()
    assert out == printed(translator, "a cat") + "\n"
    assert said(err) == ["type lines to translate; Ctrl-D ends it"]
    os.close(master)


def test_every_line_of_an_argument_is_translated(model, translator, capsys, monkeypatch):
    lines = ["the dog", "", "a cat", "a red house", ""]
    out = here(capsys, monkeypatch, model, "the dog\n\na cat\r\n", "a red house", "")
    assert out.split("\n") == [*(printed(translator, line) for line in lines), ""]


def test_a_translation_stopped_by_the_length_limit_is_told(model, translator, capsys, monkeypatch):
    lines = sentences(40, seed=11)
    stopped = [i for i, best in enumerate(translator.translate(lines), 1) if not best[0].finished]
    assert len(stopped) > 1
    assert run_here(monkeypatch, model, *lines) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"line {stopped[0]}: the translation was stopped by the length limit before its end",
        f"{len(stopped):,} translations were stopped by the length limit",
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["text", "--beam", "0"], "--beam 0 must be at least 1; 1 is greedy search"),
        (["text", "--nbest", "0"], "--nbest 0 must be at least 1"),
        (["text", "--batch-tokens", "0"], "--batch-tokens 0"),
        (["text", "--max-length", "3"], "--max-length 3 is too short"),
        (["text", "--length-rule", "mean"], "--length-rule 'mean' is not one of"),
        (["text", "--length-penalty", "nan"], "--length-penalty nan must be a finite number"),
        (["text", "--repetition-penalty", "0"], "--repetition-penalty 0.0 must be above 0"),
        (["text", "--no-repeat-ngram", "-1"], "--no-repeat-ngram -1 must be at least 0; 0 allows every repetition"),
        (["text", "--sample", "--beam", "2"], "use --beam 1, not 2"),
        (["text", "--top-k", "3"], "--top-k says how to draw at random; add --sample"),
        (["text", "--sample", "--temperature", "0"], "--temperature 0.0 must be above 0"),
        (["text", "--precision", "int4"], "--precision 'int4' is not one of"),
        (["text", "--prefix", "the dog " * 50], "shorten it"),
        (["--nbest", "2", "text"], "--nbest 2 must lie between 1 and --beam 1; --beam 2 is wide enough"),
        (["--input", "here", "text"], "not both"),
        (["--input", "nowhere.txt"], "nowhere.txt does not exist"),
        (["--device", "gpu", "text"], "--device gpu cannot be used"),
        (["--input", "same", "--output", "same"], "the input file itself"),
        (["text", "--output", "no/such/file"], "no/such/file cannot be written: there is no folder no/such"),
        (["text", "--output", "."], ". cannot be written: Is a directory"),
        (["--input", "."], ". is a folder; name the text file inside it"),
    ],
)
def test_a_mistake_is_one_line(model, tmp_path, monkeypatch, capsys, words, told):
    from glassformer.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "same").write_text("a cat\n")
    monkeypatch.setattr("sys.argv", ["glassformer", "translate", str(model), *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
    assert os.path.getsize(tmp_path / "same") == 6
