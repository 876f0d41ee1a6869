"""`glassformer translate` as a user runs it: real processes, pipes and files."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest
from small_run import command
from test_translator_text import LIMIT, sentences, tiny_bundle

from glassformer.translator import Translator


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bundle(tmp_path_factory.mktemp("translate") / "model")


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return Translator.load(model)


def run(*words: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command("translate", *words), input=stdin, capture_output=True, timeout=60)


def printed(translator: Translator, line: str) -> str:
    """The line a text is printed as: nothing in it may look like the end of a line."""
    return translator(line).replace("\n", " ").replace("\r", " ")


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


def test_arguments_scores_n_best_and_json(model: Path, translator: Translator) -> None:
    texts = ["the dog", "", "a red house"]
    found = translator.translate(texts, beam=3, nbest=2)
    wide = ["--beam", "3", "--nbest", "2"]
    plain = run(model, *texts, *wide, "--scores").stdout.decode().removesuffix("\n")
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
    with subprocess.Popen(command("translate", model), stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            for line in ("the dog", "", "a red house"):
                process.stdin.write(line.encode() + b"\n")
                process.stdin.flush()
                assert process.stdout.readline().decode() == printed(translator, line) + "\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 130
            assert process.stderr.read() == b""
        finally:
            process.kill()


def test_a_reader_that_goes_away_is_no_error(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("\n".join(sentences(3000, seed=8)), encoding="utf-8")
    pipe = subprocess.PIPE
    words = command("translate", model, "--input", tmp_path / "in")
    with subprocess.Popen(words, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=20) == 141


@pytest.mark.parametrize(
    ("words", "said"),
    [
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
