"""`glassformer translate` as a user runs it: real processes, pipes and files."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from small_run import PATIENCE, call, command, launch
from test_translator_text import LIMIT, sentences, tiny_bundle

from glassformer.decode import Sampling
from glassformer.translator import Translator


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bundle(tmp_path_factory.mktemp("translate") / "model")


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
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
    assert (ended.value.code, err) == (0, "")
    return out


def test_a_file_is_its_lines_translated_one_by_one(model: Path, translator: Translator) -> None:
    chance = random.Random(1)
    lines = ["", "  ", "中文 👩‍👩‍👧‍👦", "two words\r", "a\0b", "\u2028 not a line end", "﷽", *sentences(60, seed=7)]
    lines += [" ".join(sentences(8, seed=seed)) for seed in range(3)]
    chance.shuffle(lines)
    done = run(model, stdin="\n".join(lines).encode())
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().split("\n") == [printed(translator, line.removesuffix("\r")) for line in lines] + [""]
    assert f"longer than the {LIMIT} tokens" in done.stderr.decode()
    assert "3 lines were split" in done.stderr.decode()


def test_arguments_scores_n_best_and_json(
    model: Path, translator: Translator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert done.stderr == b""


def test_files_in_and_out_with_bytes_that_are_no_text(model: Path, translator: Translator, tmp_path: Path) -> None:
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"the dog\nbad \xff byte\nworse \xfe\n\n"))
    done = run(model, "--input", tmp_path / "in.gz", "--output", tmp_path / "out")
    assert done.returncode == 0
    lines = ["the dog", "bad \ufffd byte", "worse \ufffd", ""]
    assert (tmp_path / "out").read_bytes().decode() == "".join(printed(translator, line) + "\n" for line in lines)
    assert done.stdout == b""
    told = done.stderr.decode().splitlines()
    assert len(told) == 1
    assert told[0].startswith("line 2: not UTF-8 (byte 5 of the line is 0xff)")


def test_a_line_of_more_than_ten_megabytes_is_refused_after_those_before_it(
    model: Path, translator: Translator
) -> None:
    done = run(model, stdin=b"the dog\n\na cat\n" + b"x" * 10_100_000 + b"\nlate\n")
    assert done.returncode == 2
    assert done.stdout.decode() == "".join(printed(translator, line) + "\n" for line in ("the dog", "", "a cat"))
    assert "line 4: longer than 10,000,000 bytes" in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1


def test_a_line_is_answered_as_it_arrives_and_ctrl_c_is_quiet(model: Path, translator: Translator) -> None:
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
            assert process.stderr.read() == b""
        finally:
            process.kill()


def test_a_reader_that_goes_away_is_no_error(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("\n".join(sentences(3000, seed=8)), encoding="utf-8")
    pipe = subprocess.PIPE
    words = command("translate", model, "--input", tmp_path / "in")
    with launch(words, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=PATIENCE) == 141


def test_every_option_does_what_the_translator_does(
    model: Path, translator: Translator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_alignments_as_pairs_and_as_json(
    model: Path, translator: Translator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["text", "--beam", "0"], "beam=0 must be at least 1"),
        (["text", "--nbest", "0"], "nbest=0 must lie between"),
        (["text", "--batch-tokens", "0"], "batch_tokens=0"),
        (["text", "--max-length", "3"], "max_length=3 is too short"),
        (["text", "--length-rule", "mean"], "length_rule='mean' is not one of"),
        (["text", "--length-penalty", "nan"], "length_penalty=nan must be a finite number"),
        (["text", "--repetition-penalty", "0"], "repetition_penalty=0.0 must be above 0"),
        (["text", "--no-repeat-ngram", "-1"], "no_repeat_ngram=-1 cannot be negative"),
        (["text", "--sample", "--beam", "2"], "leave --beam 2 out"),
        (["text", "--top-k", "3"], "--top-k says how to draw at random; add --sample"),
        (["text", "--sample", "--temperature", "0"], "temperature=0.0 must be above 0"),
        (["text", "--precision", "int4"], "precision='int4' is not one of"),
        (["text", "--prefix", "the dog " * 50], "shorten it"),
        (["--nbest", "2", "text"], "--beam 2"),
        (["--input", "here", "text"], "not both"),
        (["--input", "nowhere.txt"], "nowhere.txt does not exist"),
        (["--device", "gpu", "text"], "'gpu' cannot be used"),
        (["--input", "same", "--output", "same"], "the input file itself"),
        (["text", "--output", "no/such/folder"], "cannot be written"),
    ],
)
def test_a_mistake_is_one_line(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    from glassformer.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "same").write_text("a cat\n")
    monkeypatch.setattr("sys.argv", ["glassformer", "translate", str(model), *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert os.path.getsize(tmp_path / "same") == 6
