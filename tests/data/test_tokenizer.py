"""Any text survives encoding and decoding; nothing in a text is taken for something else."""

from __future__ import annotations

import tempfile
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.common.errors import ConfigError, DataError, InputError
from glassformer.data import END, PAD, START, UNK, Tokenizer, TokenizerOptions
from glassformer.data.tokenizer import SHARED_WORDS
from glassformer.data.vocabulary import BYTES, SPECIALS, sample_pairs

NOUNS = [
    a + b for a in ("river", "mount", "garden", "winter", "letter") for b in ("", "ain", "stone", "light", "works")
]
PAIRS = [
    (
        f"The {noun}s don't see {number} <pad> <0x41> things, 今天天气很好 ok.",
        f"Die {noun}en sehen {number * 7} Dinge nicht!",
    )
    for noun in NOUNS
    for number in range(30)
]
KINDS = [("bpe", True), ("bpe", False), ("unigram", True), ("unigram", False)]
ODD = [
    "",
    " ",
    "  a  b ",
    "\t\n\r\n\x00",
    "▁a▁ ▁",
    "<0x41>",
    "<0xE2><0x98><0x83>",
    "<pad></s><s><unk> <pad>",
    "今天天气很好。" * 40,
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "שלום ‏مرحبا",
    "e\u0301\ufeff\u2028x",
    "a" * 500,
    "don't it’s l'eau 'quoted'",
    "1,234.50 €",
    "\U0010ffff\ue000",
]


def make(kind: str, joint: bool) -> Tokenizer:
    return Tokenizer.train(PAIRS, TokenizerOptions(kind, 340 if joint else 309, joint))  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: f"{kind[0]}-{'joint' if kind[1] else 'separate'}")
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return make(*request.param)


alphabet = st.characters(exclude_categories=("Cs",))
familiar = st.sampled_from(
    [" ", "  ", "the", "<", "0x41", ">", "<pad>", "</s>", "▁", "'", "t", "1", "今", "天", "\n", "\u00a0"]
)
texts = st.lists(st.one_of(st.text(alphabet), familiar)).map("".join)


@settings(max_examples=100, deadline=None)
@given(text=texts)
def test_round_trip(tokenizer: Tokenizer, text: str) -> None:
    for encode, decode in (
        (tokenizer.encode_source, tokenizer.decode_source),
        (tokenizer.encode_target, tokenizer.decode_target),
    ):
        [ids] = encode([text])
        assert decode([ids]) == [text]
        assert all(id > UNK for id in ids)
        # Word by word with a memory is what the Rust library does with the whole text.
        side = tokenizer._source if encode == tokenizer.encode_source else tokenizer._target
        assert side.rust.encode(text, add_special_tokens=False).ids == ids


def test_odd_texts(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode_target(tokenizer.encode_target(ODD)) == ODD
    assert [tokenizer._target.rust.decode(ids) for ids in tokenizer.encode_target(ODD)] == ODD


def test_reserved_ids(tokenizer: Tokenizer) -> None:
    assert (PAD, START, END, UNK) == (0, 1, 2, 3)
    assert tokenizer.source_pieces(range(260)) == [*SPECIALS, *BYTES]
    learnt = tokenizer.source_pieces(range(260, tokenizer.src_size))
    assert not any("<" in piece and len(piece.strip("▁<")) for piece in learnt)


def test_what_no_text_yields_is_decoded_all_the_same(tokenizer: Tokenizer) -> None:
    ids, snowman = tokenizer.encode_target(["Die Dinge", "☃"])
    assert tokenizer.decode_target([[START, *ids, END, PAD, PAD], snowman[:-1]]) == ["Die Dinge", "\ufffd"]
    assert tokenizer.decode_source(tokenizer.encode_source(["a\ud800b \udfff", "c"])) == ["a\ufffdb \ufffd", "c"]


SPECIAL_PIECES = [*SPECIALS, "<2de>", "<2pt-BR>", "[MASK]", "<extra_id_0>", "<extra_id_12>"]


@pytest.fixture(scope="module", params=[*KINDS, ("words", True), ("words", False)], ids=str)
def marked(request: pytest.FixtureRequest) -> Tokenizer:
    """A tokenizer that has every special piece, and texts that spell them."""
    kind, joint = request.param
    spelt = [(" ".join(SPECIAL_PIECES), " ".join(reversed(SPECIAL_PIECES)))] * 9
    options = TokenizerOptions(kind, 100 if kind == "words" else 330, joint)
    return Tokenizer.train([*PAIRS, *spelt], options, None, ["de", "pt-BR"], SPECIAL_PIECES[-3:])


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_special_pieces_are_no_text(marked: Tokenizer, data: st.DataObject) -> None:
    for pieces, decode in zip(marked.pieces, (marked.decode_source, marked.decode_target), strict=True):
        special = [id for id, piece in pieces.items() if piece in SPECIAL_PIECES]
        assert len(special) == len(SPECIAL_PIECES)
        ids = data.draw(st.lists(st.one_of(st.sampled_from(special), st.sampled_from(sorted(pieces)))))
        assert decode([ids]) == decode([[id for id in ids if id not in special]])
        assert set(decode([[id] for id in special])) == {""}
    texts = data.draw(st.lists(st.sampled_from([*SPECIAL_PIECES, "Die", "x"]), max_size=5).map(" ".join))
    special = {id for id, piece in marked.pieces[1].items() if piece in SPECIAL_PIECES} - {UNK}
    assert not special.intersection(marked.encode_target([texts])[0])


def test_save_and_load(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert again.fingerprint() == tokenizer.fingerprint()
    assert again.encode_source(ODD) == tokenizer.encode_source(ODD)
    assert again.encode_target(ODD) == tokenizer.encode_target(ODD)
    assert (again.src_size, again.tgt_size) == (tokenizer.src_size, tokenizer.tgt_size)
    name = "tokenizer.json" if tokenizer.joint else "tokenizer.tgt.json"
    rust = tokenizers.Tokenizer.from_file(str(tmp_path / name))
    assert rust.encode("Die Dinge!").ids == tokenizer.encode_target(["Die Dinge!"])[0]


def test_sizes_and_pieces() -> None:
    joint = make("bpe", True)
    assert joint.src_size == joint.tgt_size == 340
    pieces = joint.source_pieces(joint.encode_source(["The 42 things, ☃"])[0])
    assert "".join(pieces) == "▁The▁42▁things,▁<0xE2><0x98><0x83>"
    assert {"▁The", "2", ",", "<0xE2>"} <= set(pieces)
    [ids] = joint.encode_target(["Die\n"])
    assert "".join(joint.target_pieces(ids)) == "▁Die<0x0A>"


def test_bpe_training_repeats_exactly() -> None:
    assert make("bpe", False).fingerprint() == make("bpe", False).fingerprint()
    assert make("bpe", True).fingerprint() != make("bpe", False).fingerprint()


def test_few_words_have_the_ids_that_they_have_among_many() -> None:
    words = [f"{letter}{number}\ud800" for letter in "abcxyzä" for number in range(9)]
    assert len(words) > SHARED_WORDS
    together, one_by_one = make("bpe", True).encode_source(words), make("bpe", True)
    assert together == [one_by_one.encode_source([word])[0] for word in words]
    assert len(set(map(tuple, together))) == len(words)


@pytest.mark.parametrize("options", [TokenizerOptions("bpe", 270), TokenizerOptions("words", 100, joint=False)])
def test_flat_ids_are_the_lists_end_to_end(options: TokenizerOptions) -> None:
    pairs = [("a b a cab", "ab  ba\tc"), (" a", "b "), ("cab", "xy ä"), ("b a c", "a b cab")] * 30
    made = Tokenizer.train(pairs, options, languages=["de"])
    pairs.append(("x\ud800y", "half of a pair"))
    for tokenizer in (made, made.toward("de")):
        flat = tokenizer.encode_flat(pairs, np.dtype("<u2"))
        lists = tokenizer.encode_source([s for s, _ in pairs]), tokenizer.encode_target([t for _, t in pairs])
        for (ids, lengths), expected in zip(flat, lists, strict=True):
            assert ids.dtype == "<u2"
            assert ids.tolist() == list(chain.from_iterable(expected))
            assert lengths.tolist() == list(map(len, expected))
    assert [len(part) for side in made.encode_flat([], np.dtype("<u2")) for part in side] == [0, 0, 0, 0]


def test_words() -> None:
    options = TokenizerOptions("words", 12)
    pairs = [("a b@@ c <pad>", "d e@@ f@@ g"), ("a a x", "d d y")]
    words = Tokenizer.train(pairs, options)
    assert words.src_size == 12
    [ids] = words.encode_target(["d e@@ f@@ g  <pad> </s> nothing"])
    assert ids[-3:] == [UNK, UNK, UNK]
    assert words.decode_target([ids[:-3], [START, ids[0], END], []]) == ["d efg", "d", ""]
    assert words.target_pieces(ids[:2]) == ["d", "e@@"]
    assert words._target.rust.decode(ids[:-3]) == "d efg"
    with tempfile.TemporaryDirectory() as folder:
        words.save(folder)
        assert Tokenizer.load(folder).decode_target([ids[:-3]]) == ["d efg"]


def test_vocabulary_larger_than_the_data_allows() -> None:
    for kind in ("bpe", "unigram"):
        with pytest.raises(ConfigError, match="larger than the data allows") as caught:
            Tokenizer.train(PAIRS, TokenizerOptions(kind, 20_000))  # type: ignore[arg-type]
        allowed = int(str(caught.value).split("at most ")[1].split(",")[0])
        assert Tokenizer.train(PAIRS, TokenizerOptions(kind, allowed)).src_size == allowed  # type: ignore[arg-type]


def test_wrong_options_and_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean `unigram`"):
        TokenizerOptions("unigramm")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="vocab_size"):
        TokenizerOptions(vocab_size=0)
    with pytest.raises(ConfigError, match="too small"):
        Tokenizer.train(PAIRS, TokenizerOptions("bpe", 270))
    with pytest.raises(DataError, match="no text"):
        Tokenizer.train([("", "")], TokenizerOptions())
    with pytest.raises(DataError, match="is it a model folder"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match="is not a tokenizer"):
        Tokenizer.load(tmp_path)
    with pytest.raises(InputError, match="ids must lie in"):
        make("bpe", True).decode_target([[9999]])


def test_sample_is_spread_evenly() -> None:
    told: list[int] = []
    kept = sample_pairs(((str(n), "") for n in range(100_000)), 1_000, told.append)
    numbers = [int(source) for source, _ in kept]
    assert 500 <= len(numbers) <= 1_000
    assert {b - a for a, b in pairwise(numbers)} == {128}
    assert told[-1] == 100_000
    assert sample_pairs([("x" * 9_999, "y")], 5)[0] == ("x" * 2_000, "y")
