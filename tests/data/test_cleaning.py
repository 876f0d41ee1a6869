"""Cleaning a corpus: each rule removes what it names and spares its like; a run may be stopped anywhere."""

import gzip
import json
import lzma
import random
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from glassformer.common.errors import ConfigError, DataError
from glassformer.data import cleaning
from glassformer.data.cleaning import RULES, Cleaner, CleanOptions, HashSet, clean
from glassformer.data.corpus import Corpus
from glassformer.data.lexical import learn
from glassformer.data.readers import read_lines, zstd

HELD = "The committee met on Tuesday evening to discuss the new budget for schools"
PAIRS = {  # of each rule: pairs it removes, and pairs like them that it keeps
    "empty": ([("", "Haus"), ("...", "!"), (" \u200b", "x")], [("1", "1"), ("好", "gut")]),
    "encoding": ([("for you", "f\u00c3\u00bcr dich"), ("it\ufffds", "es")], [("São Paulo", "São Paulo"), ("Ä", "Ã")]),
    "length": ([("a" * 1001, "b" * 900)], [("a" * 1000, "b" * 900)]),
    "ratio": (
        [("Yes.", "Ja, das habe ich ihm gestern Abend schon gesagt, und dir auch."), ("Thanks", "谢谢" * 20)],
        [("OK", "In Ordnung"), ("This is a book about the history of the city.", "这是一本关于城市历史的书。")],
    ),
    "copied": (
        [("Click the red button now", "Click the red button now!")],
        [("New York Times", "New York Times"), ("He lives in New York City", "Er wohnt in New York City")],
    ),
    "language": (
        [
            ("I emailed you this morning.", "Te acabo de enviar un correo electrónico esta mañana."),
            ("Merci beaucoup pour votre aide et votre patience.", "Vielen Dank für Ihre Hilfe und Geduld."),
        ],
        [("I read the New York Times.", "Ich lese die New York Times."), ("Tom runs.", "Tom rennt.")],
    ),
    "numbers": (
        [("In 1987 it rained.", "1978 war es nass."), ("5 of us", "4 von uns"), ("over 300 miles", "weit weg")],
        [
            ("1,234.56 of 10,000", "1.234,56 von 10 000"), ("three cats", "3 Katzen"), ("3:30 pm", "15.30 Uhr"),
            ("1.5 million", "1 500 000"), ("on 1998-08-01", "am 01.08.1998"), ("the 1990s", "die 90er"),
            ("120 pesos", "hundertzwanzig Pesos"), ("at 9 pm", "um 21.00 Uhr"), ("250k users", "250.000 Nutzer"),
        ],
    ),
    "currency": (
        [("It costs $5.", "Es kostet 5 Euro."), ("USD 5.33", "5,33 EUR"), ("5 million pounds sterling", "5 Mio. Euro")],
        [("It costs $5.", "Es kostet 5 Dollar."), ("EUR 3", "3 €"), ("5 pounds", "5 Pfund")],
    ),
    "markup": (
        [("<b>Go</b>", "<b>Los"), ("%d files", "Dateien"), ("Hi {name}", "Hallo {nom}")],
        [("<a href='x'>Go</a>", "<a href='y'>Los</a>"), ("50 % of it", "50 % davon"), ("see <http://a.b>", "siehe http://a.b")],
    ),
    "held-out": (
        [(f"Yes: {HELD.upper()}!", "Ja, wirklich"), ("x", HELD), ("Good morning", "good  MORNING!")],
        [("Good morning", "Guten Morgen"), ("The committee met on Tuesday evening to eat", "Sie trafen sich")],
    ),
}  # fmt: skip


@pytest.fixture
def held_out(tmp_path):
    (tmp_path / "held").write_text(f"{HELD}.\nGood morning\n", encoding="utf-8")
    return cleaning.read_held_out([str(tmp_path / "held")])


@pytest.mark.parametrize("rule", PAIRS)
def test_a_rule_removes_what_it_names_and_spares_its_like(rule, held_out):
    removed, kept = PAIRS[rule]
    target = "zh" if rule == "ratio" else "de"
    cleaner = Cleaner(CleanOptions("en", target, (rule,)), held_out)
    rows, gone, _ = cleaner.sift([*removed, *kept])
    assert [row.texts for row in rows] == [tuple(map(cleaning.normalize, pair)) for pair in kept]
    assert len(gone[rule]) == len(removed)


def test_every_rule_is_tested():
    assert {*PAIRS, "sentence", "alignment", *cleaning.DOUBLES} == set(RULES)


def test_lines_that_are_sentences():
    good = ["Es regnet.", "»Wer ist da?«", "Im Jahr 1990 starb er.", "3 Leute kamen!"]
    bad = ["es regnet.", "Kapitel", "Sie wohnte in der St.", "Am 3.", "Geboren ca.", "Er sah z. B."]
    options = CleanOptions("de", rules=("sentence", "ratio"))
    rows, gone, _ = Cleaner(options).sift([("", line) for line in good + bad])
    assert [row.texts[0] for row in rows] == good
    assert len(gone["sentence"]) == len(bad)


def test_numbers_agree_however_they_are_written():
    """And a number that is another one is found, in each way of writing."""
    rng = random.Random(0)
    styles = (lambda n: f"{n:,}", lambda n: f"{n:,}".replace(",", "."), lambda n: f"{n:,}".replace(",", " "), str)
    cleaner = Cleaner(CleanOptions("en", "de", ("numbers",)))
    for _ in range(500):
        number = rng.randrange(1000, 10**9)
        other = number + rng.randrange(1, 9) * 10 ** rng.randrange(3)
        one, two = rng.choice(styles), rng.choice(styles)
        assert cleaner.sift([(f"of {one(number)} x", f"von {two(number)} x")])[0]
        lost = other - number not in (0, 12, 120, 1200, 1900)
        assert bool(cleaner.sift([(f"of {one(number)} x", f"von {two(other)} x")])[0]) is not lost


def test_normalising_changes_no_meaning():
    assert cleaning.normalize("\ufeffa\u00a0 b\tc\x00\u00ad ") == "a b c"
    assert cleaning.normalize("u\u0308") == "ü"
    kept = "“Straße” 👩\u200d💻 x² ½ ﬁ 한글 می\u200cخواهم"
    assert cleaning.normalize(kept) == kept


def test_the_set_of_hashes_is_a_set():
    rng, plain, packed = np.random.default_rng(0), set(), HashSet()
    for size in (0, 1, 500, 3, 4000, 20, 700):
        given = rng.integers(0, 3000, size).astype(np.uint64)
        expected = [int(h) not in plain and int(h) not in map(int, given[:n]) for n, h in enumerate(given)]
        new = packed.unseen(given)
        assert new.tolist() == expected
        packed.add(given[new])
        plain.update(map(int, given))
    assert sum(map(len, packed.runs)) == len(plain)
    assert len(packed.runs) <= np.log2(len(plain))


def aligned(count, rng):
    """Sentences of a language, each with its words in another in another order."""
    for _ in range(count):
        words = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in rng.choices(range(400), k=rng.randrange(6, 15))]
        yield " ".join(words), " ".join(f"{word[::-1]}en" for word in rng.sample(words, len(words)))


def test_the_lexical_model_knows_wrong_pairs():
    pairs = [(a.split(), b.split()) for a, b in aligned(4000, random.Random(0))]
    model = learn(pairs[:3000])
    good = model.score(pairs[3000:])
    bad = model.score([(a, b) for (a, _), (_, b) in pairwise(pairs[3000:])])
    assert np.mean(good > np.quantile(bad, 0.99)) > 0.99
    assert np.isnan(model.score([(["unknown"] * 5, ["words"] * 5), ([], [])])).all()
    assert learn(pairs[:100]) is None


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """3,000 pairs, in small chunks: every 49th of the wrong partner, every 40th a near double."""
    monkeypatch.setattr(cleaning, "CHUNK", 600)
    pairs = list(aligned(3000, random.Random(1)))
    for n in range(0, 2950, 49):
        pairs[n] = (pairs[n][0], pairs[n + 20][1])
    for n in range(30, 3000, 40):
        pairs[n] = (pairs[n - 25][0].upper() + "!", pairs[n - 25][1])
    for side, name in enumerate(("src", "tgt")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return Corpus(src=tmp_path / "src", tgt=tmp_path / "tgt")


RUN = CleanOptions("en", "de", tuple(name for name in RULES if name not in ("sentence", "language")))


def test_wrong_partners_and_doubles_go(corpus, tmp_path):
    report = clean(corpus, tmp_path / "out", RUN)
    assert report == json.loads((tmp_path / "out" / "report.json").read_text())
    sides = [[*read_lines(tmp_path / "out" / f"train.{language}")] for language in ("en", "de")]
    wrong = sum(
        {word[::-1] + "en" for word in source.lower().strip("!").split()}.isdisjoint(target.split())
        for source, target in zip(*sides, strict=True)
    )
    assert wrong <= 25  # of 61
    assert report["rules"]["alignment"]["removed"] <= 61 - wrong + 20
    assert 65 <= report["rules"]["near-duplicate"]["removed"] <= 75
    assert report["read"] == 3000 == report["kept"] + sum(rule["removed"] for rule in report["rules"].values())
    assert all(len(rule["examples"]) == min(5, rule["removed"]) for rule in report["rules"].values())


def test_a_stopped_run_goes_on_to_the_same_bytes(corpus, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    clean(corpus, whole, RUN, workers=2)

    def stop(text):
        if "kept" in text:
            raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            clean(corpus, parts, RUN, 1, stop)
        for name in ("train.en", "hashes.partial"):  # what a chunk had half written
            with (parts / name).open("ab") as file:
                file.write(b"half a li")
    clean(corpus, parts, RUN, 1)
    assert {file.name: file.read_bytes() for file in parts.iterdir()} == {
        file.name: file.read_bytes() for file in whole.iterdir()
    }
    before = (parts / "train.en").stat().st_mtime_ns
    clean(corpus, parts, RUN)  # nothing is left to do
    assert (parts / "train.en").stat().st_mtime_ns == before


def test_the_order_of_the_rules_given_changes_nothing(corpus, tmp_path):
    names = list(RUN.rules)
    random.Random(3).shuffle(names)
    clean(corpus, tmp_path / "a", RUN)
    clean(corpus, tmp_path / "b", CleanOptions("en", "de", tuple(names)))
    assert (tmp_path / "a" / "train.en").read_bytes() == (tmp_path / "b" / "train.en").read_bytes()


PACK = {"gz": gzip.compress, "xz": lzma.compress, "zst": lambda data: zstd().compress(data, codec="zstd", asbytes=True)}


@pytest.mark.parametrize(("pack", "format"), [("gz", "text"), ("xz", "tsv"), ("zst", "jsonl")])
def test_what_is_written_is_read_again(corpus, tmp_path, pack, format):
    options = CleanOptions("en", "de", ("empty",), format=format, compress=pack)
    for side in ("src", "tgt"):
        (tmp_path / side).write_bytes(PACK[pack]((tmp_path / side).read_bytes()))
    clean(corpus, tmp_path / "out", options)
    names = {"text": ("src", "tgt"), "tsv": ("tsv",), "jsonl": ("jsonl",)}[format]
    files = [f"train.{'en' if name == 'src' else 'de' if name == 'tgt' else name}.{pack}" for name in names]
    again = Corpus(**{name: tmp_path / "out" / file for name, file in zip(names, files, strict=True)})
    clean(again, tmp_path / "again", CleanOptions("en", "de", ("empty",)))
    for side, language in (("src", "en"), ("tgt", "de")):
        assert [*read_lines(tmp_path / side)] == [*read_lines(tmp_path / "again" / f"train.{language}")]


def test_memory_does_not_grow_with_the_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(cleaning, "CHUNK", 500)
    monkeypatch.setattr(cleaning, "SAMPLE", 200)
    peaks = []
    for count in (2_000, 8_000):
        (tmp_path / "text").write_text("".join(f"Line {n * 7919} of a long text.\n" for n in range(count)))
        tracemalloc.start()
        clean(Corpus(text=tmp_path / "text"), tmp_path / f"out{count}", CleanOptions("en", rules=("empty", "length")))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] + 16 * 8_000  # but for the hashes


def test_a_folder_is_not_written_over(corpus, tmp_path):
    clean(corpus, tmp_path / "out", CleanOptions("en", "de", ("empty",)))
    with pytest.raises(DataError, match="other options"):
        clean(corpus, tmp_path / "out", CleanOptions("en", "de", ("empty", "length")))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.en").write_text("mine")
    with pytest.raises(DataError, match="name another folder"):
        clean(corpus, tmp_path / "mine", CleanOptions("en", "de", ("empty",)))
    assert (tmp_path / "mine" / "train.en").read_text() == "mine"


@pytest.mark.parametrize(
    "wrong", [{"max_ratio": 0.5}, {"alignment": 1.0}, {"min_characters": 0}, {"rules": ("langage",)}]
)
def test_options_are_checked(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong)) if "rules" not in wrong else "did you mean `language`"):
        CleanOptions("en", "de", **wrong)
