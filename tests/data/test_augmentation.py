"""Augmented and synthetic pairs: numbers agree, targets are clean, copies are whole, and a seed gives one result."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from glassformer.common.errors import ConfigError
from glassformer.data.augmentation import CHANGES, SLOTS, TABLES, augment, synthetic
from glassformer.data.protect import spans
from glassformer.pipelines.language.invariants import Invariants

DIRECTIONS = [("en", "de"), ("de", "en"), ("en", "zh"), ("zh", "en")]
ON_BOTH_SIDES = {
    "capitals",
    "title case",
    "no stop",
    "joined",
    "list",
    "label",
    "heading",
    "quotation",
    "copy",
    "emoji",
}
UNKNOWN = {  # kinds that a source language lacks
    "en": set(),
    "de": {"American", "British", "title case"},
    "zh": {"American", "British", "title case", "no apostrophe", "capitals", "misspelling"},
}
SENTENCES = """
The colour of Anna's "organised" car is grey. | Annas "geordnetes" Auto ist grau. | 安娜"整齐的"汽车是灰色的。
He said “no”. | Er sagte „nein“. | 他说了“不”。
Don’t you travel? | Geht's dir gut? | 你不旅行吗？
Nobody answered the telephone yesterday. | Gestern ging niemand ans Telefon. | 昨天没有人接电话。
Run `make test` in the folder 12. | Führen Sie `make test` im Ordner 12 aus. | 在文件夹 12 中运行 `make test`。
house | Haus | 房子
The center is closed | Das Zentrum ist geschlossen | 中心已关闭
"""


def pairs_of(source: str, target: str) -> list[tuple[str, str]]:
    rows = [dict(zip(("en", "de", "zh"), line.split(" | "), strict=True)) for line in SENTENCES.strip().splitlines()]
    return [(row[source], row[target]) for row in rows] * 15


@pytest.mark.parametrize(("source", "target"), DIRECTIONS)
def test_the_sides_of_a_template_agree(source: str, target: str) -> None:
    kinds, faults = set(), []
    for left, right, kind in synthetic(source, target, 250, seed=5):
        kinds.add(kind)
        assert not {slot[1] for slot in re.finditer(r"<([A-Za-z_]+)\d?>", left + right)} & SLOTS.keys()
        assert not re.search("[\xa0\u202f]", left + right)
        if Invariants(left, (source, target)).faults(right):
            faults.append((left, right))
    assert kinds == TABLES["templates"].keys() - {"bare"}
    assert faults == []


def test_a_wrong_side_would_be_seen() -> None:
    pairs = [(left, right) for left, right, _ in synthetic("en", "de", 200, seed=5) if re.search(r"\d", left)]
    wrong = [(left, re.sub(r"\d+", lambda digits: f"{digits[0]}7", right)) for left, right in pairs]
    assert len(wrong) > 50
    assert all(Invariants(left, ("en", "de")).faults(right) for left, right in wrong)


@pytest.mark.parametrize(("source", "target"), DIRECTIONS)
def test_noise_is_on_the_source_alone(source: str, target: str) -> None:
    found = defaultdict(list)
    pairs = pairs_of(source, target)
    targets = {right for _, right in pairs}
    for kind in CHANGES:
        for left, right, told in augment(pairs, source, target, seed=3, kinds=[kind]):
            assert told == kind
            assert kind in ON_BOTH_SIDES or right in targets
            assert (left, right) not in pairs
            found[kind].append((left, right))
    assert found.keys() == CHANGES.keys() - UNKNOWN[source]
    for left, right in found["capitals"]:
        code = re.compile("`.*`")
        assert code.sub("", left).isupper()
        assert code.sub("", right).isupper() or target == "zh"
    assert all(any(left == right.replace(two, one) for one, two in pairs) for left, right in found["list"])
    for left, right in found["no stop"]:
        assert left[-1] not in ".。?？"
        assert right[-1] not in ".。"


@pytest.mark.parametrize(("source", "target"), DIRECTIONS)
def test_code_addresses_and_numbers_are_whole(source: str, target: str) -> None:
    for left, right, _ in augment(pairs_of(source, target), source, target, seed=1):
        assert all(left[start:end] in right for start, end in spans(left))
        assert not Invariants(left, (source, target)).faults(right), (left, right)


def test_what_templates_copy_is_whole_after_noise() -> None:
    pairs = [(left, right) for left, right, kind in synthetic("en", "de", 900, seed=4) if kind == "copy"]
    copied = re.compile(r"\S*[#/\\@_]\S*\w")
    changed = list(
        augment(pairs * 3, "en", "de", kinds=["lower case", "misspelling", "title case", "capitals", "no stop"])
    )
    assert len(changed) > len(pairs)
    assert not [pair for pair in changed if any(one not in pair[0] for one in copied.findall(pair[1]))]


def test_joined_pairs_have_the_same_sentences() -> None:
    pairs = [(f"This is sentence number {n} of many in one text.", f"Das ist Satz Nummer {n}.") for n in range(100)]
    for left, right, _ in augment(pairs, "en", "de", kinds=["joined"]):
        assert re.findall(r"\d+", left) == re.findall(r"\d+", right)
        assert 2 <= left.count(".") == right.count(".") <= 4


def test_a_seed_gives_one_result() -> None:
    pairs = pairs_of("en", "de")
    first = list(augment(pairs, "en", "de", seed=2, rate=0.5))
    assert first == list(augment(iter(pairs), "en", "de", seed=2, rate=0.5))
    assert first != list(augment(pairs, "en", "de", seed=3, rate=0.5))
    assert 0.3 * len(pairs) < len(first) < 0.7 * len(pairs)
    assert list(synthetic("en", "de", 50, seed=2)) == list(synthetic("en", "de", 90, seed=2))[:50]


def test_other_languages_get_values_alone() -> None:
    made = list(synthetic("ca", "nl", 100))
    assert {kind for *_, kind in made} == {"bare"}
    assert any(" de " in left and re.search(r"\d [a-z]+ \d{4}", right) for left, right, _ in made)  # 3 de gener de 1984
    assert list(augment([("Bon dia a tothom.", "Goedemorgen allemaal.")] * 20, "ca", "nl"))


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(ConfigError, match="no augmentation `capital`"):
        list(augment([], "en", "de", kinds=["capital"]))
