"""A folder: whole files only, none twice, nothing of others' replaced, and what went wrong is told."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import standins
from documents import DOCUMENTS
from mutations import mutations

from glassformer.cli.translate import translate_files
from glassformer.common.errors import ConfigError, DataError
from glassformer.common.files import PARTIAL
from glassformer.common.report import Report
from glassformer.pipelines.documents import translate_folder
from glassformer.pipelines.documents.segments import run_task


class Dropping(standins.StandIn):
    """Goes away after so many calls."""

    def __init__(self, calls):
        super().__init__(standins.upper)
        self.calls = calls

    def translate(self, texts, *, progress=None):
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return super().translate(texts, progress=progress)


@pytest.fixture
def docs(tmp_path):
    docs = tmp_path / "docs"
    (docs / "deep" / "er").mkdir(parents=True)
    (docs / "a.md").write_text("one\n")
    (docs / "deep" / "b.html").write_text("<p>two</p>")
    (docs / "deep" / "er" / "c.txt").write_text("three\n")
    (docs / "image.png").write_bytes(b"\x89PNG\0one")
    script = docs / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    (docs / "empty.md").write_text("")
    return docs


def files_of(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and not file.name.startswith(".")
    }


def through(docs, out, change=standins.upper, **options):
    translator = standins.StandIn(change)
    return translate_folder(docs, out, translator, options=options), translator


def test_documents_are_translated_and_other_files_copied(docs, tmp_path):
    outcome, _ = through(docs, tmp_path / "new" / "out")
    assert files_of(tmp_path / "new" / "out") == {
        "a.md": b"ONE\n", "deep/b.html": b"<p>TWO</p>", "deep/er/c.txt": b"THREE\n",
        "image.png": b"\x89PNG\0one", "run.sh": b"#!/bin/sh\n", "empty.md": b"",
    }  # fmt: skip
    assert outcome.translated == ["a.md", "empty.md", "deep/b.html", "deep/er/c.txt"]
    assert outcome.copied == ["image.png", "run.sh"]
    assert os.access(tmp_path / "new" / "out" / "run.sh", os.X_OK)


def test_what_is_finished_is_not_made_again_until_its_source_or_an_option_changes(docs, tmp_path):
    out = tmp_path / "out"
    through(docs, out, beam=4)
    outcome, translator = through(docs, out, beam=4)
    assert (translator.asked, len(outcome.kept)) == ([], 6)
    (docs / "a.md").write_text("four\n")
    outcome, translator = through(docs, out, beam=4)
    assert (translator.asked, outcome.translated) == (["four"], ["a.md"])
    outcome, translator = through(docs, out, beam=5)
    assert (sorted(translator.asked), len(outcome.kept)) == (["four", "three", "two"], 2)
    (out / "a.md").unlink()
    assert through(docs, out, beam=5)[0].translated == ["a.md"]


def test_damaged_documents_are_translated_or_named(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    for suffix, text in DOCUMENTS.items():
        for number, data in enumerate(mutations(text.encode(), seed=len(suffix), count=20)):
            (docs / f"{number}{suffix}").write_bytes(data)
    result, _ = through(docs, tmp_path / "out")
    assert sorted([*result.translated, *result.failed]) == sorted(one.name for one in docs.iterdir())
    assert {*files_of(tmp_path / "out")} == {*result.translated}
    assert all(reason.startswith(f"{docs / name}: ") for name, reason in result.failed.items())
    for suffix in DOCUMENTS:
        assert any(name.endswith(suffix) for name in result.translated)


@pytest.mark.parametrize("error", [AssertionError("one"), OverflowError("one"), RecursionError(), MemoryError()])
def test_whatever_a_parser_stumbles_over_is_an_error_of_its_document(error):
    def parse():
        yield ["one"]
        raise error

    with pytest.raises(DataError, match=r"it cannot be parsed: .*(one|in it|several)"):
        run_task(parse(), standins.StandIn(str))
    with pytest.raises(type(error)):  # but no error of the translator's is one of the document
        run_task(parse(), standins.StandIn(lambda text: exec("raise error", {"error": error})))


def test_a_run_that_was_stopped_goes_on(docs, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        translate_folder(docs, out, Dropping(2))
    (out / "deep" / PARTIAL.format("0")).write_text("half")
    outcome, translator = through(docs, out)
    assert translator.asked == ["three"]
    assert outcome.kept == ["a.md", "empty.md", "image.png", "run.sh", "deep/b.html"]
    assert not list(out.rglob(PARTIAL.format("*")))
    through(docs, tmp_path / "whole")
    assert files_of(out) == files_of(tmp_path / "whole")


def test_a_file_that_was_noted_but_not_put_in_place_is_made(docs, tmp_path):
    out = tmp_path / "out"
    through(docs, out)
    (docs / "a.md").write_text("new\n")
    old = (out / "a.md").read_bytes()
    through(docs, out)
    (out / "a.md").write_bytes(old)  # as if the process had ended between the two
    outcome, _ = through(docs, out)
    assert outcome.translated == ["a.md"]
    assert (out / "a.md").read_bytes() == b"NEW\n"


def test_a_torn_line_of_the_record_costs_one_file_only(docs, tmp_path):
    out = tmp_path / "out"
    through(docs, out)
    record = out / ".glassformer-translated.jsonl"
    lines = record.read_bytes().splitlines(keepends=True)
    assert json.loads(lines[-1])["name"] == "deep/er/c.txt"
    (out / "deep" / "er" / "c.txt").unlink()
    record.write_bytes(b"".join(lines)[:-20])
    outcome, _ = through(docs, out)
    assert (outcome.translated, len(outcome.kept), outcome.failed) == (["deep/er/c.txt"], 5, {})
    assert len(through(docs, out)[0].kept) == 6


def test_what_people_have_written_there_is_never_replaced(docs, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.md").write_text("mine")
    outcome, _ = through(docs, out)
    assert list(outcome.failed) == ["a.md"]
    assert "written or changed by someone else" in outcome.failed["a.md"]
    assert (out / "a.md").read_text() == "mine"
    (out / "deep" / "b.html").write_text("mended")
    assert "deep/b.html" in through(docs, out)[0].kept  # the source is the same: what was mended stays
    (docs / "deep" / "b.html").write_text("<p>new</p>")
    assert set(through(docs, out)[0].failed) == {"a.md", "deep/b.html"}
    assert (out / "deep" / "b.html").read_text() == "mended"


def test_bad_files_are_told_and_the_others_made(docs, tmp_path, capsys):
    (docs / "bad.md").write_bytes(b"\xff\xfe\x00")
    (docs / "latin.txt").write_bytes("é".encode("latin-1"))
    (docs / "loop").symlink_to(docs)
    (docs / "nowhere.md").symlink_to(docs / "gone")
    (docs / "linked.md").symlink_to(docs / "a.md")
    (docs / ".hidden").mkdir()
    os.mkfifo(docs / "pipe.md")
    with pytest.raises(DataError, match=r"2 files could not be made: bad\.md, latin\.txt"):
        translate_files([docs], standins.StandIn(standins.upper), None, tmp_path / "out", Report(), to="de")
    told = capsys.readouterr().err
    assert "5 translated, 2 copied" in told
    assert "left out (hidden, or a link that leads to no file): .hidden/, loop/, nowhere.md, pipe.md" in told
    assert "not UTF-8" in told
    assert (tmp_path / "out" / "linked.md").read_text() == "ONE\n"
    assert not (tmp_path / "out" / "bad.md").exists()
    several = [docs / name for name in ("bad.md", "a.md", "latin.txt", "empty.md")]
    with pytest.raises(DataError, match=r"bad\.md: (?s:.*)\n.*latin\.txt: not UTF-8"):
        translate_files(several, standins.StandIn(standins.upper), None, tmp_path / "several", Report())
    assert files_of(tmp_path / "several") == {"a.md": b"ONE\n", "empty.md": b""}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_told(docs, tmp_path):
    (docs / "a.md").chmod(0)
    outcome, _ = through(docs, tmp_path / "out")
    assert "Permission denied" in outcome.failed["a.md"]


def test_an_output_folder_within_the_source_is_not_translated_itself(docs):
    for _ in range(2):
        outcome, _ = through(docs, docs / "de")
        assert len(outcome.translated) + len(outcome.kept) + len(outcome.copied) == 6
    assert not (docs / "de" / "de").exists()


def test_two_runs_do_not_write_to_one_folder(docs, tmp_path):
    class Second(standins.StandIn):
        def translate(self, texts, *, progress=None):
            with pytest.raises(DataError, match="another run is writing to this folder"):
                through(docs, tmp_path / "out")
            return super().translate(texts)

    assert not translate_folder(docs, tmp_path / "out", Second(standins.upper)).failed


def commanded(paths, output=None, out=None):
    translate_files([Path(path) for path in paths], standins.StandIn(standins.upper), output, out, Report(quiet=True))


def test_files_go_where_they_are_told(docs, tmp_path, capsysbinary):
    commanded([docs / "a.md"])
    assert capsysbinary.readouterr().out == b"ONE\n"
    commanded([docs / "a.md"], output=tmp_path / "x.md")
    assert (tmp_path / "x.md").read_text() == "ONE\n"
    commanded([docs / "a.md", docs / "deep" / "b.html"], out=tmp_path / "some")
    assert sorted(files_of(tmp_path / "some")) == ["a.md", "b.html"]


def test_what_is_not_clear_is_asked_before_anything_is_written(docs, tmp_path):
    same = docs / "deep" / "a.md"
    same.write_text("x")
    for paths, places, told in [
        ([docs], {}, "name the folder to write to with --out"),
        ([docs], {"out": docs}, "is the folder itself"),
        ([docs], {"out": docs / "a.md"}, "is a file; name a folder"),
        ([docs, docs / "a.md"], {"out": tmp_path / "o"}, "one folder alone"),
        ([docs / "a.md"], {"output": docs / "a.md"}, "is the document itself"),
        ([docs / "a.md"], {"out": docs}, "is the document itself"),
        ([docs / "a.md"], {"output": tmp_path}, "is a folder; name a file"),
        ([docs / "a.md"], {"output": tmp_path / "x.md", "out": tmp_path / "o"}, "either --output"),
        ([docs / "a.md", docs / "empty.md"], {}, "2 files; name the folder"),
        ([docs / "a.md", same], {"out": tmp_path / "o"}, "another of the files is called a.md too"),
        ([docs / "image.png"], {}, r"kind `\.png` cannot be translated; there are \.txt"),
        ([docs / "a.md"], {"output": tmp_path / "no" / "x.md"}, "there is no folder"),
    ]:
        with pytest.raises((ConfigError, DataError), match=told):
            commanded(paths, **places)
    assert not (tmp_path / "o").exists()


# Translates a folder a little slowly, so that it can be killed: SOURCE OUTPUT.
SLOWLY = """
import sys, time
from pathlib import Path
import standins
from glassformer.pipelines.documents import translate_folder

translator = standins.StandIn(lambda text: time.sleep(0.004) or text.upper())
outcome = translate_folder(Path(sys.argv[1]), Path(sys.argv[2]), translator, options={"to": "de"})
print(len(outcome.translated), len(outcome.kept), flush=True)
assert not outcome.failed, outcome.failed
"""


def begin(docs, out):
    words = [sys.executable, "-c", SLOWLY, docs, out]
    return subprocess.Popen(words, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("killed", [(9, 30), pytest.param((1, 9, 17, 30, 42), marks=pytest.mark.long)], ids=len)
def test_a_folder_of_fifty_files_that_is_killed_ends_complete_and_identical(tmp_path, killed):
    docs, out = tmp_path / "docs", tmp_path / "out"
    for i in range(50):
        file = docs / f"part{i % 5}" / f"{i}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"# Heading {i}\n\nWord {k} of *file* {i}, see [this](x{k}).\n\n" for k in range(3)))
    kills, seen = 0, 0
    for wanted in killed:  # killed as soon as so many files are there
        run = begin(docs, out)
        while len(files_of(out)) < wanted and run.poll() is None:
            time.sleep(0.002)
        assert run.poll() is None, "the run ended before it could be killed"
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
        run.stdout.close()
        kills += 1
        whole = files_of(out)
        assert len(whole) >= max(wanted, seen)
        seen = len(whole)
        for name, made in whole.items():  # what is there is there to its end
            assert made == standins.through(name, (docs / name).read_bytes())[0].encode()
    run = begin(docs, out)
    told, _ = run.communicate(timeout=120)
    assert run.returncode == 0
    translated, kept = map(int, told.split())
    assert translated + kept == 50
    assert kept >= seen - 1
    assert kills == len(killed)
    undisturbed = begin(docs, tmp_path / "whole")
    undisturbed.communicate(timeout=120)
    assert files_of(out) == files_of(tmp_path / "whole")
    assert len(files_of(out)) == 50
    assert not [file for file in out.rglob(".*") if file.name != ".glassformer-translated.jsonl"]
