"""`glassformer translate` with a model: lines, options, files, pipes and signals."""

import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from small_run import PATIENCE, command, launch
from tiny_translators import LIMIT, sentences

from glassformer.decode import Sampling
from glassformer.pipelines.translator import Translator

STOPPED = "stopped by the length limit"  # a warning that this model, which seldom finds an end, gives nearly always


@pytest.fixture
def translate(cli, model):
    return partial(cli, "translate", model)


def printed(translator: Translator, *texts: str) -> str:
    """The lines that texts are printed as: nothing in one may look like the end of a line."""
    return "".join(translator(text).replace("\n", " ").replace("\r", " ") + "\n" for text in texts)


def warnings(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if STOPPED not in line]


def test_each_line_of_standard_input_is_translated(translate, translator):
    chance = random.Random(1)
    lines = ["", "  ", "中文 👩‍👩‍👧‍👦", "two words\r", "a\0b", "\u2028 not a line end", "﷽", *sentences(60, seed=7)]
    lines += [" ".join(sentences(8, seed=seed)) for seed in range(3)]
    chance.shuffle(lines)
    code, out, err = translate(stdin="\n".join(lines))
    assert code == 0, err
    assert out == printed(translator, *(line.removesuffix("\r") for line in lines))
    assert f"longer than the {LIMIT} tokens" in err
    assert "3 lines were split" in err


def test_arguments_scores_n_best_and_json(translate, translator):
    texts = ["the dog", "", "a red house"]
    expected = translator.translate(texts, beam=3, nbest=2)
    wide = ["--beam", "3", "--nbest", "2"]
    rows = [line.split("\t") for line in translate(*texts, *wide, "--scores")[1].removesuffix("\n").split("\n")]
    assert [row[:2] for row in rows] == [[str(i), str(k)] for i in (1, 2, 3) for k in (1, 2)]
    assert [float(row[2]) for row in rows] == pytest.approx([one.score for best in expected for one in best], abs=1e-3)
    code, out, err = translate(*wide, "--json", stdin="\n".join(texts))
    objects = [json.loads(line) for line in out.splitlines()]
    assert (code, warnings(err)) == (0, [])
    assert [row["source"] for row in objects] == texts
    for row, best in zip(objects, expected, strict=True):
        assert [(t["text"], t["finished"]) for t in row["translations"]] == [(t.text, t.finished) for t in best]


def test_compressed_input_with_bytes_that_are_not_text(translate, translator, tmp_path):
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"the dog\nthe \xff dog\ndog \xfe\n\n"))
    code, out, err = translate("--input", tmp_path / "in.gz", "--output", tmp_path / "out")
    assert (code, out) == (0, "")
    lines = ["the dog", "the \ufffd dog", "dog \ufffd", ""]
    assert (tmp_path / "out").read_bytes().decode() == printed(translator, *lines)
    (warning,) = warnings(err)
    assert warning.startswith("line 2: not UTF-8 (byte 5 of the line is 0xff)")


def test_a_line_of_more_than_ten_megabytes_is_refused_after_those_before_it(translate, translator):
    code, out, err = translate(stdin=b"the dog\n\na cat\n" + b"x" * 10_100_000 + b"\nlate\n")
    assert (code, out) == (2, printed(translator, "the dog", "", "a cat"))
    (error,) = warnings(err)
    assert "line 4: longer than 10,000,000 bytes" in error


def test_a_line_is_answered_as_it_arrives_and_ctrl_c_is_quiet(model, translator):
    pipe = subprocess.PIPE
    with launch(command("translate", model), stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            for line in ("the dog", "", "a red house"):
                process.stdin.write(line.encode() + b"\n")
                process.stdin.flush()
                assert process.stdout.readline().decode() == printed(translator, line)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=PATIENCE) == 130
            assert warnings(process.stderr.read().decode()) == []
        finally:
            process.kill()


def test_a_reader_that_goes_away_is_no_error(model, tmp_path):
    (tmp_path / "in").write_text("\n".join(sentences(3000, seed=8)), encoding="utf-8")
    pipe = subprocess.PIPE
    with launch(command("translate", model, "--input", tmp_path / "in"), stdout=pipe, stderr=pipe) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert warnings(process.stderr.read().decode()) == []
        assert process.wait(timeout=PATIENCE) == 141


def test_every_option_does_what_the_translator_does(translate, translator):
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
    outputs = set()
    for words, options in cases:
        _, out, err = translate(*texts, "--precision", "fp32", "--json", *words)
        assert warnings(err) == []
        rows = [json.loads(line)["translations"][0] for line in out.splitlines()]
        expected = [best[0] for best in translator.translate(texts, **options)]
        assert [row["text"] for row in rows] == [one.text for one in expected]
        assert [row["score"] for row in rows] == pytest.approx([one.score for one in expected], abs=1e-4)
        outputs.add(out)
    assert len(outputs) >= len(cases) - 1  # --max-length 8 may change nothing
    for precision in ("int8", "auto"):
        assert translate("the dog", "--precision", precision)[1].count("\n") == 1


def test_alignments_as_pairs_and_as_json(translate, translator):
    texts = ["the dog", "", "a red house"]
    options = ["--beam", "2", "--nbest", "2", "--alignments", "--precision", "fp32"]
    expected = translator.translate(texts, beam=2, nbest=2, alignments=True)
    pairs = [" ".join(f"{s}-{t}" for t, s in one.alignment or []) for best in expected for one in best]
    assert [row.split("\t")[-1] for row in translate(*texts, *options)[1].split("\n")[:-1]] == pairs
    assert pairs[2] == ""
    for line, best in zip(translate(*texts, *options, "--json")[1].splitlines(), expected, strict=True):
        for shown, one in zip(json.loads(line)["translations"], best, strict=True):
            assert [tuple(pair) for pair in shown["alignment"]] == one.alignment
            assert (shown["tokens"], shown["source_tokens"]) == (one.tokens, one.source_tokens)


def test_a_full_disk_is_one_line_and_leaves_the_old_file(translate, tmp_path):
    (tmp_path / "out").write_text("before", encoding="utf-8")
    (tmp_path / "in").write_text("\n".join(sentences(60, seed=2)), encoding="utf-8")
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # a file may not grow beyond, as on a disk that is full
    try:
        code, _, err = translate("--input", tmp_path / "in", "--output", tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    assert code == 2
    assert warnings(err)[-1] == f"glassformer: {tmp_path / 'out'} cannot be written: File too large"
    assert (tmp_path / "out").read_text() == "before"
    code, _, err = translate("a cat", "--output", "/dev/full")
    assert (code, warnings(err)) == (2, ["glassformer: /dev/full cannot be written: the disk is full"])


def test_a_run_that_fails_keeps_the_old_file_and_its_own_part(translate, translator, tmp_path):
    (tmp_path / "out").write_text("before", encoding="utf-8")
    (tmp_path / "in").write_bytes(b"the dog\na cat\n" + b"x" * 10_100_000)
    for name in ("out.partial", "out.partial1"):  # an earlier one is not replaced either
        code, _, err = translate("--input", tmp_path / "in", "--output", tmp_path / "out")
        assert code == 2
        partial_file, error = warnings(err)
        assert partial_file == f"what was translated before is in {tmp_path / name}"
        assert "line 3: longer than 10,000,000 bytes" in error
        assert (tmp_path / name).read_text(encoding="utf-8") == printed(translator, "the dog", "a cat")
    assert (tmp_path / "out").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 4


def test_an_output_may_be_a_link_a_pipe_or_a_device(translate, translator, tmp_path):
    (tmp_path / "out").write_text("before", encoding="utf-8")
    (tmp_path / "link").symlink_to("out")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    for output in (tmp_path / "link", tmp_path / "pipe", os.devnull):
        assert translate("a cat", "--output", output)[0] == 0
    in_pipe, in_file = os.read(reader, 1 << 16).decode(), (tmp_path / "out").read_text(encoding="utf-8")
    assert in_pipe == in_file == printed(translator, "a cat")
    assert (tmp_path / "link").is_symlink()
    os.close(reader)


@pytest.mark.parametrize("name", ["stdin", "stdout", "stderr"])
def test_a_stream_closed_by_the_shell_is_an_empty_one(translate, monkeypatch, name):
    monkeypatch.setattr(f"sys.{name}", None)  # as Python has it then
    code, out, _ = translate(*([] if name == "stdin" else ["a cat"]))
    getattr(sys, name).close()
    assert (code, bool(out)) == (0, name == "stderr")


def test_on_a_terminal_it_says_what_it_waits_for(translate, translator, monkeypatch):
    master, slave = os.openpty()
    os.write(master, b"a cat\n\x04")
    with open(slave) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        code, out, err = translate()
    assert (code, out) == (0, printed(translator, "a cat"))
    assert warnings(err) == ["type lines to translate; Ctrl-D ends it"]
    os.close(master)


def test_every_line_of_an_argument_is_translated(translate, translator):
    lines = ["the dog", "", "a cat", "a red house", ""]
    assert translate("the dog\n\na cat\r\n", "a red house", "")[1] == printed(translator, *lines)


def test_a_translation_stopped_by_the_length_limit(translate, translator):
    lines = sentences(40, seed=11)
    stopped = [i for i, best in enumerate(translator.translate(lines), 1) if not best[0].finished]
    assert len(stopped) > 1
    code, _, err = translate(*lines)
    assert code == 0
    assert err.splitlines() == [
        f"line {stopped[0]}: the translation was stopped by the length limit before its end",
        f"{len(stopped):,} translations were stopped by the length limit",
    ]


def test_words_that_training_never_met_are_listed_once(cli, model, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    (tmp_path / "model" / "recipe.toml").write_text('[about]\npurpose = "dogs and houses"\n', encoding="utf-8")
    many = " ".join(f"{letter}q" for letter in "abcdefghij")
    for texts, unknown in (
        (["the dog"], ""),
        (["Hello, the dog", "how is the dog? hello"], "Hello, how, is"),
        ([many], "aq, bq, cq, dq, eq, fq, gq, hq and 2 more"),
    ):
        code, out, err = cli("translate", tmp_path / "model", *texts)
        assert (code, len(out.splitlines())) == (0, len(texts))
        learnt = "this model learnt dogs and houses; it may not know: "
        assert [line for line in err.splitlines() if "know" in line] == ([learnt + unknown] if unknown else [])


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["text", "--batch-tokens", "0"], "--batch-tokens 0"),
        (["text", "--max-length", "3"], "--max-length 3 is too short"),
        (["text", "--sample", "--beam", "2"], "use --beam 1, not 2"),
        (["text", "--top-k", "3"], "--top-k says how to draw at random; add --sample"),
        (["text", "--sample", "--temperature", "0"], "--temperature 0.0 must be above 0"),
        (["text", "--precision", "int4"], "--precision 'int4' is not one of"),
        (["text", "--prefix", "the dog " * 50], "shorten it"),
        (["--nbest", "2", "text"], "--nbest 2 must lie between 1 and --beam 1; --beam 2 is wide enough"),
        (["--input", "here", "text"], "not both"),
        (["--input", "nowhere.txt"], "nowhere.txt does not exist"),
        (["--input", "same", "--output", "same"], "the input file itself"),
        (["text", "--output", "no/such/file"], "no/such/file cannot be written: there is no folder no/such"),
        (["text", "--output", "."], ". cannot be written: Is a directory"),
        (["--input", "."], ". is a folder; name the text file inside it"),
    ],
)
def test_a_mistake_is_one_line(cli, model, tmp_path, monkeypatch, words, error):
    """Values of search options: tests/decode/test_search_options.py."""
    monkeypatch.chdir(tmp_path)
    Path("same").write_text("a cat\n")
    assert error in cli.fails("translate", model, *words)
    assert Path("same").read_text() == "a cat\n"
