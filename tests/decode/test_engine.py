"""A model and the copy of it that runs: one truth, held once."""

import weakref
from collections import namedtuple

import pytest
import torch
from tiny_model import tiny

import glassformer as gf
import glassformer.decode.engine as module
from glassformer.decode import Search, beam
from glassformer.decode.engine import Engine, batches, can_mix, default_batch_tokens
from glassformer.decode.generation import run_search
from glassformer.decode.program import ProgramWriter

CPU = torch.device("cpu")
Properties = namedtuple("Properties", "total_memory")


def written(engine):
    return [found for _, best in engine.generate([[3, 4, 3], [4, 1]], [[], []], Search()) for found in best]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("options", [{}, {"stopping": "huggingface"}, {"nbest": 3}])
@pytest.mark.parametrize("own_kernels", [True, False])
def test_each_source_of_a_mixed_batch_has_the_limit_that_it_has_alone(own_kernels, options, precision, monkeypatch):
    if not own_kernels:
        monkeypatch.setattr(beam, "kernels_for", lambda _: None)
        monkeypatch.setattr(ProgramWriter, "run_steps", lambda *_: 0)
    config = gf.ModelConfig(vocab_size=20, d_model=16, heads=2, d_ff=32, layers=1, max_length=200, end_id=None)
    torch.manual_seed(3)
    engine, search = Engine(gf.EncoderDecoder(config), CPU, precision), Search(beam=3, **options)
    sources = [[4 + (i * k) % 15 for k in range(length)] for i, length in enumerate((3, 40, 17, 30, 9, 24), 1)]

    def targets(given):
        found = {}
        for rows, best in engine.generate(given, [[]] * len(given), search):
            found |= {tuple(given[i]): ranked for i, ranked in zip(rows, best, strict=True)}
        return [[(one.ids, pytest.approx(one.score, abs=1e-6)) for one in found[tuple(one)]] for one in given]

    together = targets(sources)
    assert together == [targets([source])[0] for source in sources]
    lengths = [len(ranked[0][0]) for ranked in together]  # nothing ends by itself
    assert lengths == [engine.max_target_length(len(source)) for source in sources]
    assert len(batches([len(source) for source in sources], 1024, mixed=True)) < len(set(lengths))
    monkeypatch.setattr(module, "run_search", lambda *given, limits, **named: run_search(*given, **named))
    assert targets(sources) != together


def test_a_batch_that_the_gpu_has_no_memory_for_is_halved(monkeypatch):
    engine, sources = Engine(tiny(), CPU, "fp32"), [[3, 4, 3], [4, 1], [4, 4], [1, 3], [3, 3, 3]]
    sizes = []

    def cramped(model, src, *given, **named):
        sizes.append(len(src))
        if len(src) > most:
            raise torch.OutOfMemoryError("no memory")
        return run_search(model, src, *given, **named)

    def found():
        told = engine.generate(sources, [[]] * len(sources), Search())
        return sorted((i, one[0].ids) for rows, best in told for i, one in zip(rows, best, strict=True))

    expected = found()
    monkeypatch.setattr(module, "run_search", cramped)
    most = 2
    assert found() == expected
    assert sizes == [5, 2, 3, 1, 2]
    most = 0
    with pytest.raises(torch.OutOfMemoryError):
        found()


def test_a_gpu_is_given_more_at_once_as_its_memory_allows(monkeypatch):
    assert default_batch_tokens(CPU) == 4096
    for memory, tokens in ((2, 4096), (8, 8192), (24, 24_576), (139, 65_536)):
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _, held=memory: Properties(held * 2**30))
        assert default_batch_tokens(torch.device("cuda")) == tokens


@pytest.mark.parametrize(
    "options",
    [{"beam": 1}, {"length_penalty": 0.6}, {"length_rule": "gnmt"}, {"max_new_tokens": 9}, {"repetition_penalty": 1.2}],
)
def test_other_searches_are_not_mixed(options):
    assert can_mix(Search(beam=3))
    assert not can_mix(Search(**{"beam": 3, **options}))


@pytest.fixture
def packings(monkeypatch):
    """How often a copy was made."""
    made, prepare = [], module.prepare
    monkeypatch.setattr(module, "prepare", lambda *given: made.append(1) or prepare(*given))
    return made


def by_hand(model):
    model.decoder.blocks[0].feed_forward.up.weight.mul_(-3.0)


def by_state(model):
    model.load_state_dict({name: -2 * tensor for name, tensor in model.state_dict().items()})


def by_assignment(model):
    model.load_state_dict({name: -2 * tensor for name, tensor in model.state_dict().items()}, assign=True)


def by_parameter(model):
    up = model.decoder.blocks[0].feed_forward.up
    up.weight = torch.nn.Parameter(-3 * up.weight)


def by_module(model):
    model.decoder = tiny(9).decoder


def by_buffer(model):
    model.encoder.embedding.positions.table.mul_(-3.0)


def by_optimiser(model):
    optimiser = torch.optim.SGD(model.parameters(), lr=20.0)
    with torch.enable_grad():
        model(torch.tensor([[3, 4, 3]]), torch.tensor([[1, 4]])).square().sum().backward()
    optimiser.step()


@pytest.mark.parametrize("edit", [by_hand, by_state, by_assignment, by_parameter, by_module, by_buffer, by_optimiser])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@torch.no_grad()
def test_weights_changed_after_the_first_use_are_noticed(edit, precision, packings):
    engine = Engine(tiny(), CPU, precision)
    before = written(engine)
    assert written(engine) == before
    assert len(packings) == 1  # nothing has changed, and nothing is made twice
    edit(engine.model)
    after = written(engine)
    assert after == written(Engine(engine.model, CPU, precision)) != before
    written(engine)
    assert len(packings) == 3  # the other engine's is one of them


def test_to_see_that_nothing_has_changed_takes_no_walk_through_the_model(monkeypatch):
    engine = Engine(tiny(), CPU, "fp32")
    first = engine.ready
    monkeypatch.setattr(torch.nn.Module, "named_modules", None)  # would fail if it were called
    assert engine.ready is first


def test_a_copy_with_rounded_weights_stands_alone():
    """The matrices of the plain model are let go, and loaded again for who asks for them."""
    for precision, kept in (("int8", False), ("fp32", True)):
        engine = Engine(tiny(), CPU, precision)
        engine.reload = tiny
        up = weakref.ref(engine._plain.decoder.blocks[0].feed_forward.up.weight)
        before = written(engine)
        assert (up() is not None) is kept
        rounded = engine.ready
        assert engine.model.decoder.blocks[0].feed_forward.up.weight.shape == (8, 8)
        assert written(engine) == before
        assert engine.ready is rounded
        plain = engine.model
        with torch.no_grad():
            by_hand(plain)
        assert written(engine) == written(Engine(plain, CPU, precision)) != before
        assert engine.model is plain  # who has asked for it may change it, so it is kept
