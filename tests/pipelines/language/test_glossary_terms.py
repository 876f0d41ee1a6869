"""A glossary's file, and where its terms stand in a text."""

import pytest

from glassformer.common.errors import DataError
from glassformer.pipelines.language.invariants import Glossary

TERMS = Glossary(
    {"kernel": "Kern", "Linux kernel": "Linux-Kern", "Go": "Go", "go": "gehen", "C++": "C++", "内核": "kernel"}
)


def found(text, terms=TERMS):
    return [(text[start:end], target) for start, end, target in terms.find(text)]


def test_terms_are_words_of_their_own_and_the_longest_wins():
    assert found("The Linux kernel is a kernel, not kernels or a subkernel.") == [
        ("Linux kernel", "Linux-Kern"),
        ("kernel", "Kern"),
    ]
    assert found("Use C++, not C++x.") == [("C++", "C++"), ("C++", "C++")]  # a sign has no border
    assert found("新内核很快") == [("内核", "kernel")]
    assert found("die内核a") == [("内核", "kernel")]


def test_capitals_as_written_come_first():
    assert found("Go and go, KERNEL and GO.") == [("Go", "Go"), ("go", "gehen"), ("KERNEL", "Kern"), ("GO", "Go")]
    assert found("", TERMS) == found("kernel", Glossary({})) == []


@pytest.mark.parametrize(
    ("language", "term", "forms", "others"),
    [
        ("en", "kernel", ["kernel", "kernels", "Kernels", "KERNELS", "kernel's"], ["subkernel", "kernelize", "kern"]),
        ("en", "city", ["city", "cities", "CITIES", "City"], ["cit", "citizen"]),
        ("en", "mailbox", ["mailbox", "Mailboxes"], ["mailboxed"]),
        ("en", "open file", ["open files", "Open File"], ["opens file"]),
        ("de", "Datei", ["Datei", "Dateien", "DATEIEN"], ["Dateisystem"]),
        ("de", "Tag", ["Tage", "Tagen", "Tages", "tags"], ["Tagung"]),
        ("zh", "内核", ["内核", "内核们"], ["内"]),
        ("", "kernel", ["kernel"], ["kernels"]),
    ],
)
def test_plurals_and_capitals_are_forms_of_a_term(language, term, forms, others):
    glossary = Glossary({term: "X", "other": "Y"})
    for form in forms:
        assert [target for *_, target in glossary.find(f"a {form}, b", language)] == ["X"], form
    assert [form for form in others if glossary.find(f"a {form}, b", language)] == []


def test_terms_that_no_translation_holds_are_listed():
    assert TERMS.unused(["Der KERN ist da.", "Gehen wir"]) == ["Linux kernel", "Go", "C++", "内核"]
    assert TERMS.unused(["kernel"], ["kernel", "内核"]) == ["kernel"]


def test_a_file_is_read(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("\ufeff# English\tGerman\n\nkernel\tKern\r\n  file system \t Dateisystem\t\n", encoding="utf-8")
    assert Glossary.load(path).terms == {"kernel": "Kern", "file system": "Dateisystem"}
    assert Glossary.load(path) == Glossary({"kernel": "Kern", "file system": "Dateisystem"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"a\tb\nkernel Kern\n", r"terms.tsv, line 2: 'kernel Kern' has no TAB; write source term, TAB"),
        (b"a\tb\tc\n", "line 1: .* has 3 columns"),
        (b"\n\tb\n", "line 2: the source term is empty; fill it in"),
        (b"a\t \n", "line 1: the target term is empty"),
        (b"a\tb\nc\td\na\te\n", "line 3: 'a' is 'e' here and 'b' in line 1; keep one"),
        (b"a\t\xff\n", r"is not UTF-8 \(byte 3\); save it as UTF-8"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, text, reason):
    path = tmp_path / "terms.tsv"
    path.write_bytes(text)
    with pytest.raises(DataError, match=reason):
        Glossary.load(path)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(DataError, match=r"none.tsv does not exist; is the path right"):
        Glossary.load(tmp_path / "none.tsv")
    with pytest.raises(DataError, match="cannot be read"):
        Glossary.load(tmp_path)
