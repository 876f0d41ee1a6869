"""`glassformer bulk` in one process, or several: its output row by row, and its errors."""

import gzip
import json
import lzma
import random
import shutil
from pathlib import Path

import pytest
from small_run import OLD, WORDS

import glassformer as gf
from glassformer.pipelines import box

chance = random.Random(7)
TEXTS = [" ".join(chance.choices(list(WORDS), k=chance.randint(1, 6))) for _ in range(57)]
TEXTS[5], TEXTS[20], TEXTS[-1] = "", "one two. three four.\tfive", ""
BULK = ("bulk", "--model", OLD, "--workers", 1, "--shard-rows", 10, "--beam", 1)


@pytest.fixture(scope="module")
def translations():
    """The translations of the same texts in Python."""
    return gf.TextTranslator(gf.Translator.load(OLD, precision="auto")).translate(TEXTS, beam=1)


def lines(path: Path) -> list[str]:
    *whole, last = path.read_text(encoding="utf-8").split("\n")
    assert last == ""
    return whole


def write_rows(path: Path, texts: list[str]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [{"id": i, "text": text, "deep": {"a": [i, 0.10]}} for i, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return rows


def test_text_becomes_text_line_by_line(cli, tmp_path, translations):
    (tmp_path / "a.txt").write_text("\ufeff" + "\n".join(TEXTS) + "\n", encoding="utf-8")
    code, out, err = cli(*BULK, tmp_path / "a.txt", tmp_path / "out")
    assert (code, out) == (0, "")
    assert "57 rows are in" in err
    assert lines(tmp_path / "out" / "a.txt") == translations
    assert translations[5] == ""
    code, _, err = cli(*BULK, tmp_path / "a.txt", tmp_path / "out")
    assert code == 0
    assert "nothing was left to do" in err
    left = {path.name for path in (tmp_path / "out" / ".glassformer-bulk").iterdir()}
    assert left == {"asked.json", "lock"}


def test_compressed_files_keep_their_names(cli, tmp_path, translations):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "_SUCCESS").write_text("of another program")
    text = "\r\n".join(TEXTS[:30]).encode()  # without a last line end
    (tmp_path / "in" / "a.en.gz").write_bytes(gzip.compress(text))
    (tmp_path / "in" / "deep" / "b.xz").write_bytes(lzma.compress("\n".join([*TEXTS[30:], ""]).encode()))
    (tmp_path / "in" / "empty.txt").write_bytes(b"")
    assert cli(*BULK, tmp_path / "in", tmp_path / "out")[0] == 0
    assert gzip.decompress((tmp_path / "out" / "a.en.gz").read_bytes()).decode() == "\n".join([*translations[:30], ""])
    assert lzma.decompress((tmp_path / "out/deep/b.xz").read_bytes()).decode() == "\n".join([*translations[30:], ""])
    assert (tmp_path / "out" / "empty.txt").read_bytes() == b""


def test_jsonl_keeps_every_byte_of_a_row_and_adds_a_field(cli, tmp_path, translations):
    write_rows(tmp_path / "a.jsonl", TEXTS)
    with (tmp_path / "a.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"text": null , "n": 1.50e3 }')
    code, out, _ = cli(*BULK, "--json", tmp_path / "a.jsonl", tmp_path / "out")
    assert code == 0
    assert json.loads(out)["rows"] == 59
    made, given = lines(tmp_path / "out" / "a.jsonl"), (tmp_path / "a.jsonl").read_text(encoding="utf-8").split("\n")
    assert [json.loads(line)["translation"] for line in made[:57]] == translations
    assert all(new.startswith(old.rstrip(" }")) for new, old in zip(made, given, strict=True))
    assert made[57:] == ["", '{"text": null , "n": 1.50e3, "translation": null}']


def test_parquet_keeps_all_columns_and_adds_one(cli, tmp_path, translations):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"id": range(58), "words": [*TEXTS, None], "deep": [{"a": [i]} for i in range(58)]}
    table = pa.table(columns).replace_schema_metadata({"k": "v"})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=13)
    options = (*BULK, "--column", "words", "--into", "de")
    assert cli(*options, tmp_path / "a.parquet", tmp_path / "out")[0] == 0
    made = pq.read_table(tmp_path / "out" / "a.parquet")
    assert made.drop_columns("de").equals(pq.read_table(tmp_path / "a.parquet"), check_metadata=True)
    assert made.column("de").to_pylist() == [*translations, None]
    assert pq.ParquetFile(tmp_path / "out" / "a.parquet").num_row_groups == 1
    pq.write_table(table.slice(0, 0), tmp_path / "none.parquet")
    assert cli(*options, tmp_path / "none.parquet", tmp_path / "none")[0] == 0
    assert pq.read_table(tmp_path / "none").column_names == ["id", "words", "deep", "de"]


def test_pyarrow_reads_an_address(cli, tmp_path, translations):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for folder in ("texts", "tables"):
        (tmp_path / folder).mkdir()
    (tmp_path / "texts" / "a.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    (tmp_path / "texts" / "b.txt.gz").write_bytes(gzip.compress("\n".join([*TEXTS, ""]).encode()))
    pq.write_table(pa.table({"text": TEXTS}), tmp_path / "tables" / "a.parquet")
    for folder in ("texts", "tables"):
        assert cli(*BULK, f"file://{tmp_path}/{folder}", tmp_path / "out" / folder)[0] == 0
    assert lines(tmp_path / "out/texts/a.txt") == translations
    assert gzip.decompress((tmp_path / "out/texts/b.txt.gz").read_bytes()).decode() == "\n".join([*translations, ""])
    assert pq.read_table(tmp_path / "out/tables/a.parquet").column("translation").to_pylist() == translations
    assert "cannot be read" in cli.fails(*BULK, f"file://{tmp_path}/none", tmp_path / "other")
    assert "cannot be reached" in cli.fails(*BULK, "nowhere://a/b", tmp_path / "other")
    assert "name a folder of this machine" in cli.fails(*BULK, tmp_path / "texts", "s3://bucket/out")


def test_mistakes_in_the_input_are_found_before_anything_is_written(cli, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def fails(name: str, *options: object) -> str:
        error = cli.fails(*BULK, *options, tmp_path / name, tmp_path / "out")
        assert not (tmp_path / "out").exists()
        return error

    assert "does not exist" in fails("nothing.txt")
    for name, data, error in (
        ("a.jsonl", b'{"text": "one"}\n{"txt": "one"}\n', "a.jsonl, line 2: there is no `text`; did you mean `txt`?"),
        ("b.jsonl", b'{"text": "one"}\n{"text": 1\n', "line 2: not JSON"),
        ("c.jsonl", b'{"text": ["one"]}\n', "line 1: `text` is a list, not a text"),
        ("d.jsonl", b'{"text": "one", "translation": "eins"}\n', "name another for the translations with --into"),
        ("a.parquet", b"PAR1 and no more", "a.parquet cannot be read as Parquet"),
        ("a.txt", b"one\ntw\xf6\n", "a.txt, line 2: not UTF-8"),
        ("c.txt", gzip.compress(b"one\n" * 9)[:-9], "the compressed file is damaged"),
        ("table.csv", b"text\none\n", "`.csv` is not read in bulk"),
    ):
        (tmp_path / name).write_bytes(data)
        assert error in fails(name)
    pq.write_table(pa.table({"text": [1], "t": ["one"]}), tmp_path / "b.parquet")
    assert "`text` is int64, not text; name another with --column" in fails("b.parquet")
    assert "there is no `tex`; did you mean `text`?" in fails("b.parquet", "--column", "tex")
    (tmp_path / "b.txt").write_bytes(b"one\n")
    assert "text has no columns" in fails("b.txt", "--column", "x")
    (tmp_path / "mixed").mkdir()
    for name in ("a.jsonl", "b.txt"):
        (tmp_path / name).rename(tmp_path / "mixed" / name)
    assert "a.jsonl is jsonl and b.txt is text" in fails("mixed")
    assert "there is no model nowhere" in fails("mixed/b.txt", "--model", "nowhere")
    assert "lies in" in cli.fails(*BULK, tmp_path / "mixed", tmp_path / "mixed" / "out")


def test_a_folder_continues_only_with_the_same_command(cli, tmp_path):
    source, out = tmp_path / "a.txt", tmp_path / "out"
    source.write_text("one\ntwo\n")
    assert cli(*BULK, source, out)[0] == 0
    before = (out / "a.txt").read_bytes()
    error = cli.fails(*BULK, "--beam", 2, source, out)
    assert "was begun with --beam 1, and now it is --beam 2; give the command as it was, or name a new folder" in error
    source.write_text("one\nthree\n")
    assert "a.txt has changed since" in cli.fails(*BULK, source, out)
    assert (out / "a.txt").read_bytes() == before
    wrong = tmp_path / "wrong"
    way = ("bulk", source, wrong, "--workers", 1, "--model", box.folder("en-de"))
    assert "say into which: --to 'de'" in cli.fails(*way)
    assert cli(*way, "--to", "de")[0] == 0, "a folder in which nothing was done is begun anew"
    assert len(lines(wrong / "a.txt")) == 2
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    assert "holds files that are no translations" in cli.fails(*BULK, source, other)
    assert [path.name for path in other.iterdir()] == ["mine.txt"]
    assert "is a file; name a folder" in cli.fails(*BULK, source, other / "mine.txt")


def test_the_box_detects_the_language_of_the_first_rows(cli, tmp_path):
    (tmp_path / "a.txt").write_text("Where is the nearest station?\n\nOpen the file. It is here.\n")
    code, _, err = cli("bulk", tmp_path / "a.txt", tmp_path / "out", "--to", "de", "--workers", 1)
    assert code == 0
    assert "from `en` into `de`" in err
    made = lines(tmp_path / "out" / "a.txt")
    assert made[:2] == ["Wo ist der nächste Bahnhof?", ""]
    assert "Datei" in made[2]
    assert "into which language" in cli.fails("bulk", tmp_path / "a.txt", tmp_path / "other")
    assert "is the language right?" in cli.fails("bulk", tmp_path / "a.txt", tmp_path / "other", "--to", "en")


def test_without_ray_processes_of_this_machine_do_it(cli, tmp_path, translations, monkeypatch):
    monkeypatch.setattr("glassformer.deploy.bulk.workers.is_installed", lambda: False)
    (tmp_path / "a.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    code, _, err = cli(*BULK, "--workers", 2, "--shard-rows", 2, tmp_path / "a.txt", tmp_path / "out")
    assert code == 0
    assert "by 2 processes" in err
    assert lines(tmp_path / "out" / "a.txt") == translations
    damaged = tmp_path / "damaged"
    shutil.copytree(OLD, damaged)
    (damaged / "model.safetensors").write_bytes(b"not weights")
    told = ("bulk", "--model", damaged, "--workers", 2, "--shard-rows", 2, tmp_path / "a.txt", tmp_path / "none")
    assert "cannot be read as safetensors" in cli(*told)[2]
    error = cli.fails(*BULK, "--address", "auto", tmp_path / "a.txt", tmp_path / "other")
    assert "--address auto needs Ray; run: pip install 'glassformer[bulk]'" in error
