"""What search returns can be, and says whether it ended by itself."""

import pytest
import torch
from tiny_model import END, SRC, eager, tiny

import glassformer as gf
from glassformer.common.errors import InputError
from glassformer.decode import stream


@pytest.mark.parametrize("how", ["greedy", "beam", "sampling"])
def test_a_target_says_whether_it_ended_or_was_cut_off(how):
    options = {"greedy": {}, "beam": {"beam": 3, "nbest": 3}, "sampling": {"sampling": gf.Sampling(seed=1)}}[how]
    never, soon = (eager(tiny(output_bias=True), fond) for fond in (-50.0, 50.0))
    for found in gf.generate(never, SRC, max_new_tokens=4, **options):
        assert [(len(h.ids), h.finished) for h in found] == [(4, False)] * len(found)
    for found in gf.generate(soon, SRC, max_new_tokens=4, **options):
        assert (found[0].ids, found[0].finished) == ([], True)
        assert all(h.finished or len(h.ids) == 4 for h in found)
    (found,), _ = gf.generate(soon, SRC, max_new_tokens=1, **(options | {"nbest": 1}))
    assert found.finished  # in the last place there is


def test_an_end_that_the_limit_forces_is_no_end_of_its_own():
    model = eager(tiny(output_bias=True, force_end=True), -50.0)
    for beam in (1, 3):
        for (best,) in gf.generate(model, SRC, max_new_tokens=4, beam=beam):
            assert (len(best.ids), best.finished) == (3, False)
    eager(model, 50.0)
    assert all(best.finished for (best,) in gf.generate(model, SRC, max_new_tokens=4))


def test_without_an_end_token_nothing_ends():
    model = tiny(kind=gf.DecoderOnly, end_id=None)
    assert [best.finished for (best,) in gf.generate(model, SRC, max_new_tokens=4, beam=2)] == [False, False]


def test_a_stream_returns_what_it_has_written():
    def written(tokens):
        hypothesis = yield from tokens
        told.append(hypothesis)

    for fond, finished in ((-50.0, False), (50.0, True)):
        model, told = eager(tiny(1, output_bias=True), fond), []
        ids = list(written(stream(model, SRC[:1], max_new_tokens=9, prefix=[3, 4])))
        ((expected,),) = gf.generate(model, SRC[:1], max_new_tokens=9, prefix=[[3, 4]])
        assert told == [expected]
        assert (expected.ids, expected.finished) == (ids, finished)


def test_n_best_never_holds_what_cannot_be():
    """A sentence may have fewer targets than asked for; every one it has is possible and keeps its prefix."""
    fewer = 0
    for seed in range(8):
        model = tiny(seed, size=9)
        for options in (
            {"beam": 4, "max_new_tokens": 2, "prefix": [[7, 8], [5]]},
            {"beam": 8, "max_new_tokens": 1},
            {"beam": 8, "max_new_tokens": 3, "prefix": [[3, 3, 3], [3, 2]], "no_repeat_ngram": 1},
        ):
            for i, found in enumerate(gf.generate(model, SRC, nbest=options["beam"], **options)):
                wanted = [id for id in options.get("prefix", [[], []])[i] if id != END]
                assert 1 <= len(found) <= options["beam"]
                fewer += len(found) < options["beam"]
                assert all(h.score > float("-inf") and h.ids[: len(wanted)] == wanted for h in found)
                assert len({tuple(h.ids) + (END,) * h.finished for h in found}) == len(found)
    assert fewer > 8


@pytest.mark.parametrize("options", [{}, {"beam": 3, "nbest": 3}, {"sampling": gf.Sampling()}])
@pytest.mark.parametrize("value", [float("-inf"), float("nan")])
def test_where_no_target_is_possible_that_is_said(options, value):
    model = tiny(output_bias=True)
    with torch.no_grad():
        model.head.bias[:] = value
    with pytest.raises(InputError, match=r"source 0 has no possible target.*are the weights finite"):
        gf.generate(model, SRC, max_new_tokens=3, **options)
    model = eager(tiny(output_bias=True), 0.0)
    with torch.no_grad():
        model.head.bias[4] = float("-inf")
    with pytest.raises(InputError, match=r"source 1 has no possible target.*prefix \[4\]"):
        gf.generate(model, SRC, max_new_tokens=3, prefix=[[3], [4]], **options)


@pytest.mark.parametrize("how", ["greedy", "beam", "sampling"])
def test_the_log_probability_of_each_token_is_the_models(how, kernels):
    """As one parallel pass over the finished target has it; without a prefix, whose tokens are certain."""
    options = {"greedy": {}, "beam": {"beam": 3, "nbest": 3}, "sampling": {"sampling": gf.Sampling(seed=1)}}[how]
    model = eager(tiny(output_bias=True), 1.0)
    lengths = set()
    for i, found in enumerate(gf.generate(model, SRC, max_new_tokens=7, **options)):
        for one in found:
            tgt = torch.tensor([[model.config.start_id, *one.ids]])
            expected = model(SRC[i : i + 1], tgt)[0].log_softmax(-1)[range(len(one.ids)), one.ids]
            assert one.log_probabilities == pytest.approx(expected.tolist(), abs=1e-5)
            lengths.add(len(one.ids))
    assert max(lengths) > 1
