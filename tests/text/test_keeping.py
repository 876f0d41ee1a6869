"""What a translation must hold, and whether it does."""

import pytest

from glassformer.text.glossary import Glossary
from glassformer.text.keeping import Keeping


def lost(source, target, glossary=None, languages=("en", "de")):
    faults = Keeping(source, languages, glossary).faults(target)
    return [source[one.start : one.end] for one in faults.lost], faults.invented


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("Run `make` 3 times.", "Führen Sie `make` 3 mal aus.", ([], False)),
        ("Run `make` 3 times.", "Führen Sie make 3 mal aus.", (["`make`"], False)),
        ("Run `make` 3 times.", "Führen Sie `make` 4 mal aus.", (["3"], True)),
        ("Run `make`.", "`make` und `make`.", ([], True)),
        ("Run it.", "`Führen` Sie es aus.", ([], True)),
        ("Run it.", "Führen ` Sie es aus.", ([], True)),
        ("{a} {a}", "{a}", (["{a}", "{a}"], False)),
        ("See https://a.b/c", "Siehe https://a.b/cd", (["https://a.b/c"], True)),
        ("on 12/31/2026", "am 31.12.", (["12/31/2026"], True)),
    ],
)
def test_faults_are_told(source, target, told):
    assert lost(source, target) == told


def test_chinese_words_may_follow_at_once():
    assert lost("Set $PATH now.", "立即设置$PATH变量。", languages=("en", "zh")) == ([], False)
    assert lost("Set $PATH now.", "立即设置$PATHS变量。", languages=("en", "zh")) == (["$PATH"], True)


def test_another_script_is_kept_in_a_text_that_is_not_written_in_it():
    assert lost("Read it in 简体中文.", "Lesen Sie es auf 简体中文.") == ([], False)
    assert lost("Read it in 简体中文.", "用 Sim body 阅读它。", languages=("en", "zh")) == (["简体中文"], False)
    assert Keeping("[简体中文](README.zh-CN.md)", ("en", "zh")).wordless
    assert lost("请阅读 README。", "Read the README.", languages=("zh", "en")) == ([], False)


def test_terms_are_what_the_glossary_says():
    terms = Glossary({"kernel": "Kern", "Go": "Go", "x": "`y` 2"})
    assert lost("The kernel and `kernel`.", "Der Kern und `kernel`.", terms) == ([], False)
    assert lost("The kernel.", "Der Kernel.", terms) == (["kernel"], False)
    assert lost("Go and `Go x`", "und `Go x`", terms) == (["Go"], False)
    assert lost("an x here", "ein `y` 2 hier", terms) == ([], False)
    assert lost("an x 2 here", "ein `y` 2 hier", terms) == (["2"], False)


def test_hidden_and_filled_in_again():
    keeping = Keeping("Run `make` 1,234 times in {dir}.", ("en", "de"))
    marks = "\ue000\ue001\ue002"
    assert [one.fill for one in keeping.items] == ["`make`", "1.234", "{dir}"]
    assert keeping.hidden(keeping.items, marks) == "Run \ue000 \ue001 times in \ue002."
    assert keeping.hidden(keeping.items[1:2], marks) == "Run `make` \ue000 times in {dir}."
    assert keeping.filled("\ue002: \ue001 mal \ue000", keeping.items, marks) == "{dir}: 1.234 mal `make`"
    assert keeping.filled("\ue002: \ue001 mal", keeping.items, marks) is None
    assert keeping.filled("\ue002: \ue001\ue001 mal \ue000", keeping.items, marks) is None
    assert keeping.joined(keeping.between()) == "Run `make` 1.234 times in {dir}."
    assert not keeping.wordless
    assert Keeping("`make` 12 — {a}", ("en", "de")).wordless


def test_signs_that_make_code_of_words_are_taken_out():
    assert (
        Keeping("Run `make` now.", ("en", "de")).plain("`make` jetzt `laufen` lassen") == "`make` jetzt laufen lassen"
    )
