"""Tokens that a target must hold exactly once, against plain Python that writes out the rule."""

from functools import partial
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_model import END, SRC, eager, tiny

import glassformer as gf
from glassformer.common.errors import InputError
from glassformer.decode import Sampling, recorded, score
from glassformer.decode.generation import prepare_search
from glassformer.decode.search import Placeholders

IDS = (4, 5, 6)  # of a vocabulary of 8
WANTED = [(), (4,), (6, 4), (4, 5, 6)]


def model_of(seed, fond=0.0):
    return eager(tiny(seed, size=8, output_bias=True), fond)


def holds(ids, wanted):
    return sorted(id for id in ids if id in IDS) == sorted(wanted)


def reference(model, src, wanted, limit):
    """Greedy search as one would write it down: the likeliest of the tokens that may come."""
    said, total = [], 0.0
    for step in range(limit):
        logits = model(src, torch.tensor([[1, *said]]))[0, -1].log_softmax(-1).tolist()
        missing = [id for id in wanted if id not in said]
        may = [id for id in range(8) if id not in IDS and (id != END or not missing)] + missing
        if missing and len(missing) >= limit - step - 1:
            may = missing
        token = max(may, key=lambda id: logits[id])
        total += logits[token]
        if token == END:
            return said, total / (len(said) + 1)
        said.append(token)
    return said, total / limit


@given(st.integers(0, 30), st.sampled_from(WANTED), st.sampled_from(WANTED), st.sampled_from([-4.0, 0.0, 4.0]))
@settings(max_examples=25, deadline=None)
def test_greedy_search_writes_what_the_rule_says(seed, one, other, fond):
    model = model_of(seed, fond)
    found = gf.generate(model, SRC, placeholders=Placeholders(IDS, (one, other)), max_new_tokens=6)
    for i, (wanted, (best,)) in enumerate(zip((one, other), found, strict=True)):
        ids, value = reference(model, SRC[i : i + 1], wanted, 6)
        assert best.ids == ids
        assert best.score == pytest.approx(value, abs=1e-4)
        assert holds(best.ids, wanted)


@pytest.mark.parametrize("wanted", WANTED)
def test_a_beam_that_forgets_nothing_finds_the_best_of_all(wanted):
    model, limit = model_of(3, 1.0), 4
    every = [list(ids) for n in range(limit) for ids in product([i for i in range(8) if i != END], repeat=n)]
    every = [ids for ids in every if holds(ids, wanted)]
    values = score(model, SRC[:1].expand(len(every), -1), every)
    (found,) = gf.generate(
        model, SRC[:1], beam=600, nbest=600, max_new_tokens=limit, placeholders=Placeholders(IDS, (wanted,))
    )
    ended = [h for h in found if h.finished]
    ranked = sorted(zip(values, every, strict=True), reverse=True)
    assert [h.ids for h in ended] == [ids for _, ids in ranked]
    assert [h.score for h in ended] == pytest.approx([value for value, _ in ranked], abs=1e-4)
    assert all(holds(h.ids, wanted) for h in found)


@given(
    st.integers(0, 30),
    st.lists(st.lists(st.sampled_from(IDS), unique=True), min_size=2, max_size=2),
    st.sampled_from([{"beam": 2}, {"beam": 5, "nbest": 5}, {"sampling": Sampling(2.0, seed=1)}, {"no_repeat_ngram": 1},
                     {"beam": 3, "no_repeat_ngram": 2}, {"repetition_penalty": 1.5}, {"sampling": Sampling(top_k=1)}]),
    st.integers(4, 9),
    st.sampled_from([-6.0, 0.0, 6.0]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_every_search_holds_each_exactly_once(seed, wanted, options, limit, fond):
    model = model_of(seed, fond)
    both = Placeholders(IDS, tuple(map(tuple, wanted)))
    for own, found in zip(
        wanted, gf.generate(model, SRC, placeholders=both, max_new_tokens=limit, **options), strict=True
    ):
        assert found
        assert all(holds(h.ids, own) for h in found)


def test_a_target_is_the_same_in_any_company():
    model = model_of(5)
    for beam in (1, 3):
        together = gf.generate(model, SRC, placeholders=Placeholders(IDS, ((4,), (5, 6))), beam=beam, max_new_tokens=8)
        alone = gf.generate(model, SRC[1:], placeholders=Placeholders(IDS, ((5, 6),)), beam=beam, max_new_tokens=8)
        assert together[1][0].ids == alone[0][0].ids


def test_a_prefix_counts_and_wins():
    model = model_of(2, 6.0)
    both = Placeholders(IDS, ((4, 5), (6,)))
    found = gf.generate(model, SRC, placeholders=both, prefix=[[3, 5], [4]], max_new_tokens=8)
    assert found[0][0].ids[:2] == [3, 5]
    assert holds(found[0][0].ids, (4, 5))
    assert sorted(id for id in found[1][0].ids if id in IDS) == [4, 6]  # the 4 was asked for


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_without_an_end_writes_them_too(beam):
    model = tiny(size=8, kind=gf.DecoderOnly, end_id=None)
    found = gf.generate(model, SRC, placeholders=Placeholders(IDS, ((4, 5), ())), beam=beam, max_new_tokens=4)
    assert holds(found[0][0].ids, (4, 5))
    assert holds(found[1][0].ids, ())
    forced = tiny(size=8, force_end=True)
    found = gf.generate(forced, SRC, placeholders=Placeholders(IDS, ((4, 5), ())), beam=beam, max_new_tokens=3)
    assert holds(found[0][0].ids, (4, 5))


def test_a_recording_serves_other_placeholders_too():
    """Where there is no GPU, the recorded steps run unrecorded."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, src = model_of(7, -2.0).to(device), SRC.to(device)
    recorder = recorded.Recorder(model)
    for beam in (1, 3):
        search = gf.Search(beam=beam)
        for wanted in (((4,), (5, 6)), ((5, 6), ()), ((), (4,))):
            held = Placeholders(IDS, wanted)
            with torch.inference_mode():
                done = recorder.run(beam, 9, partial(prepare_search, model, src, None, search, 9, placeholders=held), 2)
                found = done.hypotheses()
            plain = gf.generate(model, src, beam=beam, max_new_tokens=9, placeholders=held, prefix=[[], []])
            assert [h[0].ids for h in found] == [h[0].ids for h in plain]
            assert all(holds(h[0].ids, own) for h, own in zip(found, wanted, strict=True))
    assert len(recorder.recordings) == 2


def test_what_cannot_be_held_is_refused():
    for held, reason in (
        (Placeholders(IDS, ((4, 5, 6), ())), "target 0 needs 3 tokens .* but max_new_tokens=2; allow more"),
        (Placeholders(IDS, ((4,),)), "placeholders for 1 targets, but 2 sources"),
        (Placeholders((4,), ((5,), ())), r"target 0 should hold \[5\], not among the placeholders \[4\]"),
        (Placeholders((9,), ((), ())), "the placeholder 9 is outside the vocabulary of 8"),
    ):
        with pytest.raises(InputError, match=reason):
            gf.generate(model_of(0), SRC, placeholders=held, max_new_tokens=2)
