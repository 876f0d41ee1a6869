"""`glassformer clean`: a table of what each rule removed; what cannot be read is told, or left out and counted."""

import json

import pytest


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.en").write_text("Hello world.\nIt costs $5.\nHELLO world\n", encoding="utf-8")
    (tmp_path / "a.de").write_text("Hallo Welt.\nEs kostet 5 €.\nHallo Welt!\n", encoding="utf-8")
    return tmp_path, (
        "clean",
        tmp_path / "a.en",
        tmp_path / "a.de",
        "--source",
        "en",
        "--target",
        "de",
        "--out",
        tmp_path / "out",
    )


def test_two_files(cli, files):
    tmp_path, command = files
    code, out, err = cli(*command)
    assert (code, err) == (0, "")
    rows = dict(line.split()[:2] for line in out.splitlines() if line[:1].islower() and "%" in line)
    assert rows.pop("currency") == rows.pop("near-duplicate") == "1"
    assert set(rows.values()) == {"0"}
    assert "1 of 3 kept" in out
    assert (tmp_path / "out" / "train.de").read_text(encoding="utf-8") == "Hallo Welt.\n"
    code, out, _ = cli(*command, "--json")
    assert json.loads(out)["rules"]["currency"] == {"removed": 1, "examples": [["It costs $5.", "Es kostet 5 €."]]}


def test_only_and_without(cli, files):
    tmp_path, command = files
    assert "3 of 3 kept" in cli(*command, "--rules", "length,empty")[1]
    assert "2 of 3 kept" in cli(*command[:-1], tmp_path / "other", "--without", "currency")[1]
    assert "did you mean `currency`" in cli.fails(*command[:-1], tmp_path / "x", "--without", "currencies")
    assert "no rule is left" in cli.fails(*command[:-1], tmp_path / "x", "--rules", "empty", "--without", "empty")


def test_one_file(cli, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"x": "Good evening", "y": "Guten Abend"}\n', encoding="utf-8")
    pairs = ("clean", tmp_path / "a.jsonl", "--source", "en", "--target", "de", "--columns", "x,y", "--format", "tsv")
    assert "1 of 1 kept" in cli(*pairs, "--out", tmp_path / "out")[1]
    assert (tmp_path / "out" / "train.tsv").read_text() == "Good evening\tGuten Abend\n"
    (tmp_path / "text").write_text("A line.\nno sentence\n", encoding="utf-8")
    text = ("clean", tmp_path / "text", "--source", "en", "--sentences", "--out", tmp_path / "one")
    assert "1 of 2 kept" in cli(*text)[1]
    assert "neither .tsv nor .jsonl" in cli.fails(*text, "--target", "de")


def test_what_cannot_be_read(cli, files):
    tmp_path, command = files
    (tmp_path / "a.de").write_bytes("Hallo Welt.\nf\xfcr 5 \xa4.\nHallo\n".encode("latin-1"))
    assert "a.de, line 2: not UTF-8" in cli.fails(*command)
    assert "1 lines could not be read" in cli(*command, "--skip-bad")[1]
    (tmp_path / "a.de").write_text("Hallo Welt.\n", encoding="utf-8")
    assert "other files or with other options" in cli.fails(*command)
    assert "line 2 has no partner" in cli.fails(*command[:-1], tmp_path / "x")
    assert "did you mean `a.en`" in cli.fails("clean", tmp_path / "b.en", *command[2:-1], tmp_path / "x")
