"""What a target must or must not say: which rule wins where they meet."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_model import END, SRC, tiny

import glassformer as gf
from glassformer.common.errors import InputError
from glassformer.decode import score, stream
from glassformer.decode.search import NO_TOKEN, PlaceholderTable, without_repeats


@given(
    st.integers(0, 30),
    st.integers(1, 4),
    st.lists(st.lists(st.sampled_from([0, 1, 3, 4]), max_size=6), min_size=2, max_size=2),
    st.integers(1, 3),
)
@settings(max_examples=12, deadline=None)
def test_a_prefix_may_repeat_itself_and_what_follows_may_not(seed, beam, prefix, ngram):
    model = tiny(seed)
    options = {"prefix": prefix, "no_repeat_ngram": ngram, "max_new_tokens": 9}
    for i, found in enumerate(gf.generate(model, SRC, beam=beam, nbest=beam, **options)):
        given = len(prefix[i])
        for h in found:
            assert h.ids[:given] == prefix[i]
            assert h.score > float("-inf")
            said = [1, *h.ids]  # the start token counts as said
            grams = [tuple(said[k : k + ngram]) for k in range(len(said) - ngram + 1)]
            new = range(max(0, given + 2 - ngram), len(grams))  # those whose last token is not the prefix's
            assert all(grams[k] not in grams[:k] for k in new)
            if h.finished:
                assert h.score == pytest.approx(score(model, SRC[i : i + 1], [h.ids])[0], abs=1e-4)
    assert list(stream(model, SRC[:1], prefix=prefix[0], no_repeat_ngram=ngram, max_new_tokens=9)) == (
        gf.generate(model, SRC[:1], prefix=prefix[:1], no_repeat_ngram=ngram, max_new_tokens=9)[0][0].ids
    )


@pytest.mark.parametrize("beam", [1, 3])
def test_the_end_is_no_repetition(beam):
    """Where every other token has been said, a target ends; even if its beginning is the end token, as BART's is."""
    for start in (1, END):
        for (best,) in gf.generate(tiny(start_id=start), SRC, no_repeat_ngram=1, max_new_tokens=9, beam=beam):
            assert best.finished
            assert len(set(best.ids)) == len(best.ids) <= 4


@pytest.mark.parametrize("beam", [1, 3])
def test_without_an_end_a_ban_that_leaves_nothing_gives_way(beam):
    model = tiny(kind=gf.DecoderOnly, end_id=None)
    for (best,) in gf.generate(model, SRC[:1, :1], no_repeat_ngram=1, max_new_tokens=9, beam=beam):
        assert len(best.ids) == 9
        assert sorted([3, *best.ids[:4]]) == [0, 1, 2, 3, 4]
        assert best.score > float("-inf")


def test_a_prefix_that_could_not_be_kept_is_refused():
    with pytest.raises(InputError, match=r"the prefix \[3, 2, 4\] goes on after the end token 2"):
        gf.generate(tiny(), SRC, prefix=[[3, 2, 4], []], max_new_tokens=5)
    model = tiny(force_end=True)
    with pytest.raises(InputError, match=r"a prefix of 5 tokens does not fit max_new_tokens=5.*the last is the end"):
        gf.generate(model, SRC, prefix=[[3] * 5, []], max_new_tokens=5)
    assert gf.generate(model, SRC, prefix=[[3] * 4, [3, 3, 3, 3, END]], max_new_tokens=5)[1][0].ids == [3] * 4
    with pytest.raises(InputError, match="a prefix of 2 tokens does not fit max_new_tokens=1"):
        stream(tiny(), SRC[:1], max_new_tokens=1, prefix=[3, 3])


def banned_by_hand(history, n):
    """The tokens that would repeat an n-gram of what a row has said."""
    seen = {tuple(history[i : i + n]) for i in range(len(history) - n + 1)}
    return {gram[-1] for gram in seen if history[len(history) - n + 1 :] == list(gram[:-1])}


@pytest.mark.parametrize("seed", range(4))
def test_bans_touch_only_what_is_banned(seed):
    """The few logits that change are those that a plain loop finds, whatever else a row has said."""
    chance = random.Random(seed)
    found = 0
    for _ in range(150):
        rows, size, room = chance.randint(1, 5), chance.choice([4, 6, 60]), chance.randint(1, 12)
        n = chance.randint(1, 3)
        step, end = chance.randint(0, room - 1), chance.choice([0, size - 1, NO_TOKEN])
        said = [[chance.randrange(4) for _ in range(step)] for _ in range(rows)]
        history = torch.tensor([row + [NO_TOKEN] * (room - step) for row in said])
        logits = torch.randn(rows, size)
        held = logits.clone()
        for row, own in enumerate(said):
            banned = banned_by_hand(own, n) - {end} if step >= n - 1 else set()
            if len(banned) < size:
                held[row, sorted(banned)] = float("-inf")
                found += bool(banned)
        assert torch.equal(without_repeats(logits, history, torch.tensor([step]), n, end), held)
        ids = torch.tensor(chance.sample([id for id in range(size) if id != end], 2))
        wanted = torch.rand(rows, 2) < 0.5
        kept = PlaceholderTable(ids, wanted).hold(held, logits, history, torch.tensor([room - step]), end)
        for row, own in enumerate(said):
            missing = [id for id in ids[wanted[row]].tolist() if id not in own]
            for token in range(size):
                if token in ids.tolist():
                    right = logits[row, token] if token in missing else float("-inf")
                elif missing and (token == end or len(missing) >= room - step - 1):
                    right = float("-inf")
                else:
                    right = held[row, token]
                assert kept[row, token] == right
    assert found > 50
