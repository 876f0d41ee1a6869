"""What must hold for every model the configuration can describe."""

import copy
import gc
import weakref
from typing import get_args

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_model import perturb

import glassformer as gf
from glassformer.model.config import Activation, Autoregression, NormType, Placement, Positions
from glassformer.model.probe import Probe
from glassformer.train.step import crashes_in_bf16

grid = st.fixed_dictionaries(
    {
        "norm": st.sampled_from(get_args(Placement)),
        "norm_type": st.sampled_from(get_args(NormType)),
        "positions": st.sampled_from(get_args(Positions)),
        "activation": st.sampled_from(get_args(Activation)),
        "gated": st.booleans(),
        "tied": st.booleans(),
        "autoregression": st.sampled_from(get_args(Autoregression)),
        "kv_heads": st.sampled_from([None, 1, 2, 4]),
        "qkv_bias": st.sampled_from([None, True, False]),
        "rotary_factor": st.sampled_from([1.0, 8.0]),
        "rotary_length": st.sampled_from([None, 6]),
        "decoder_heads": st.sampled_from([None, 8]),
        "decoder_d_ff": st.sampled_from([None, 12]),
        "head_width": st.sampled_from([None, 6]),
        "bias": st.booleans(),
        "embedding_norm": st.booleans(),
        "seed": st.integers(0, 3),
    }
)
over_the_grid = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def make(kind, choices, **changes):
    base = {"vocab_size": 23, "d_model": 16, "heads": 4, "d_ff": 20, "layers": 2, "max_length": 32}
    base |= {"relative_buckets": 8, "relative_distance": 12}
    return perturb(kind(gf.ModelConfig(**(base | choices | changes))).eval(), 0.1)


def batch(seed, rows=3, src=7, tgt=6):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 23, (rows, src), generator=generator)
    mask = torch.arange(src) < torch.tensor([[src], [src - 3], [1]])[:rows]
    return ids, mask, torch.randint(3, 23, (rows, tgt), generator=generator)


def close(a, b, tolerance=1e-5):
    torch.testing.assert_close(a, b, atol=tolerance, rtol=0)


@given(grid, st.lists(st.integers(1, 3), min_size=1, max_size=6))
@over_the_grid
@torch.no_grad()
def test_cached_steps_are_the_full_pass(choices, steps):
    model = make(gf.EncoderDecoder, choices)
    src, mask, tgt = batch(choices["seed"], tgt=sum(steps))
    memory, cache = model.encode(src, mask), model.new_cache(sum(steps))
    pieces = [model.decode(part, memory, mask, cache) for part in tgt.split(steps, dim=1)]
    close(torch.cat(pieces, dim=1), model(src, tgt, mask))
    assert cache.length == sum(steps)


@given(grid, st.integers(0, 3))
@over_the_grid
@torch.no_grad()
def test_cached_steps_are_the_full_pass_decoder_only_with_padding_on_the_left(choices, split):
    model = make(gf.DecoderOnly, choices)
    ids, mask, _ = batch(choices["seed"])
    ids, mask = ids.flip(1), mask.flip(1)
    cache = model.new_cache(7)
    head = [model(ids[:, :split], mask[:, :split], cache)] if split else []
    tail = [model(ids[:, i : i + 1], mask[:, i : i + 1], cache) for i in range(split, 7)]
    close(torch.cat(head + tail, dim=1)[mask], model(ids, mask)[mask])


@given(grid, st.integers(0, 4), st.booleans())
@over_the_grid
@torch.no_grad()
def test_padding_changes_nothing(choices, extra, left):
    src, mask, tgt = batch(choices["seed"])
    fill = torch.randint(0, 23, (3, extra), generator=torch.Generator().manual_seed(choices["seed"]))
    hide = torch.zeros(3, extra, dtype=torch.bool)
    order = slice(None, None, -1) if left else slice(None)
    wide, wide_mask = torch.cat([src, fill][order], 1), torch.cat([mask, hide][order], 1)
    model = make(gf.EncoderDecoder, choices)
    close(model(wide, tgt, wide_mask), model(src, tgt, mask))
    for i, length in enumerate(mask.sum(1)):
        close(model(src[i : i + 1, :length], tgt[i : i + 1]), model(src, tgt, mask)[i : i + 1])
    for kind in (gf.EncoderOnly, gf.DecoderOnly):
        single = make(kind, choices)
        close(single(wide, wide_mask)[wide_mask], single(src, mask)[mask])


@given(grid)
@over_the_grid
@torch.no_grad()
def test_the_watched_path_is_the_fused_path_and_removing_the_hooks_restores_it(choices):
    src, mask, tgt = batch(choices["seed"])
    model = make(gf.EncoderDecoder, choices).double()  # a Post-LN of nearly equal values makes rounding larger
    fused = model(src, tgt, mask)
    seen = {}
    handles = [
        module.register_forward_hook(lambda m, args, value, name=name: seen.__setitem__(name, value))
        for name, module in model.named_modules()
        if isinstance(module, Probe)
    ]
    close(model(src, tgt, mask), fused)
    for handle in handles:
        handle.remove()
    assert torch.equal(model(src, tgt, mask), fused)
    pattern = seen["decoder.blocks.1.cross_attention.pattern"]
    close(pattern.sum(-1), torch.ones(3, model.config.decoder.heads, 6).double())
    assert pattern.masked_select(~mask[:, None, None, :].expand_as(pattern)).eq(0).all()
    if choices["autoregression"] == "ssru":
        gate = seen["decoder.blocks.0.recurrence.gate"]
        assert ((gate > 0) & (gate < 1)).all()
        return
    causal = seen["decoder.blocks.0.self_attention.pattern"]
    assert causal.triu(1).eq(0).all()
    assert causal.diagonal(dim1=-2, dim2=-1).gt(0).all()  # a position sees itself


def test_a_hook_that_returns_a_value_replaces_it():
    src, mask, tgt = batch(0)
    model = make(gf.EncoderDecoder, {})
    probe = model.decoder.blocks[1].cross_attention.pattern
    before = model(src, tgt, mask)
    handle = probe.register_forward_hook(lambda m, args, value: torch.zeros_like(value))
    assert not torch.allclose(model(src, tgt, mask), before)
    handle.remove()
    torch.testing.assert_close(model(src, tgt, mask), before)


@given(grid, st.integers(0, 5))
@over_the_grid
@torch.no_grad()
def test_no_output_moves_when_a_later_token_changes(choices, at):
    src, mask, tgt = batch(choices["seed"])
    changed = tgt.clone()
    changed[:, at] = (changed[:, at] - 3 + 1) % 20 + 3
    model = make(gf.EncoderDecoder, choices)
    before, after = model(src, tgt, mask), model(src, changed, mask)
    assert torch.equal(before[:, :at], after[:, :at])
    assert not torch.equal(before[:, at:], after[:, at:])
    single = make(gf.DecoderOnly, choices)
    assert torch.equal(single(tgt)[:, :at], single(changed)[:, :at])
    both_ways = make(gf.EncoderOnly, choices)
    assert not torch.equal(both_ways(tgt)[:, : at or 1], both_ways(changed)[:, : at or 1])


@given(grid, st.sampled_from([torch.float32] if crashes_in_bf16() else [torch.float32, torch.bfloat16]), st.booleans())
@over_the_grid
def test_a_row_that_may_see_nothing_is_zero_forward_and_backward(choices, dtype, watched):
    model = make(gf.EncoderDecoder, choices).to(dtype)
    src, mask, tgt = batch(choices["seed"])
    mask[0] = False
    contexts = {}

    def keep(module, args, name):
        args[0].retain_grad()
        contexts[name] = args[0]

    for side, names in ((model.encoder, ["self_attention"]), (model.decoder, ["cross_attention"])):
        for name in names:
            attention = side.blocks[0].get_submodule(name)
            attention.output.register_forward_pre_hook(lambda m, args, name=name: keep(m, args, name))
            if watched:
                attention.pattern.register_forward_hook(lambda m, args, value: None)
    logits = model(src, tgt, mask)
    logits.float().square().sum().backward()
    assert logits.isfinite().all()
    for name, context in contexts.items():
        assert context[0].eq(0).all(), name
        assert context[1:].ne(0).any(), name
    for name, p in model.named_parameters():
        assert p.grad is None or p.grad.isfinite().all(), name


@given(grid)
@settings(max_examples=15, deadline=None)
def test_a_row_that_sees_nothing_sends_no_gradient_to_its_keys(choices):
    model = make(gf.EncoderDecoder, choices)
    src, mask, tgt = batch(choices["seed"])
    mask[0] = False
    memory = model.encode(src, mask).detach().requires_grad_()
    model.decode(tgt, memory, mask).square().sum().backward()
    assert memory.grad[0].eq(0).all()
    assert memory.grad[1].ne(0).any()


@given(grid)
@over_the_grid
def test_same_seed_same_weights_whatever_the_global_state(choices):
    first = gf.EncoderDecoder(gf.ModelConfig(vocab_size=11, d_model=8, heads=2, d_ff=8, layers=1, **_seeded(choices)))
    torch.manual_seed(12345)
    second = gf.EncoderDecoder(first.config)
    for (name, a), b in zip(first.named_parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b), name
    other = gf.EncoderDecoder(gf.ModelConfig.from_dict(first.config.to_dict() | {"seed": first.config.seed + 1}))
    assert not torch.equal(first.head.weight, other.head.weight)


def _seeded(choices):
    return {**choices, "kv_heads": 1 if choices["kv_heads"] else None, "decoder_heads": None}


def test_tied_weights_are_one_tensor_and_separate_ones_are_not():
    tied, apart = make(gf.EncoderDecoder, {"tied": True}), make(gf.EncoderDecoder, {"tied": False, "src_vocab_size": 9})
    assert tied.head.weight is tied.decoder.embedding.tokens.weight is tied.encoder.embedding.tokens.weight
    assert apart.head.weight is not apart.decoder.embedding.tokens.weight
    assert apart.encoder.embedding.tokens.weight.shape == (9, 16)
    assert copy.deepcopy(tied).head.weight.data_ptr() != tied.head.weight.data_ptr()


def test_without_positions_word_order_is_lost_and_with_each_scheme_it_is_not():
    order = torch.tensor([[2, 0, 3, 1]])
    ids = torch.tensor([[5, 6, 7, 8]])
    shuffled = ids.gather(1, order)
    for positions in ("none", "sinusoidal", "learned", "rotary", "alibi", "relative"):
        model = make(gf.EncoderOnly, {"positions": positions})
        same = torch.allclose(model(ids)[0, order[0]], model(shuffled)[0], atol=1e-5)
        assert same is (positions == "none"), positions


@pytest.mark.parametrize(
    "choices",
    [
        {"positions": "rotary", "kv_heads": 2, "norm": "post"},
        pytest.param({}, marks=pytest.mark.long),
        pytest.param({"positions": "relative"}, marks=pytest.mark.long),
    ],
)
def test_compile_takes_the_training_forward_and_the_cached_step_whole(choices):
    torch._dynamo.reset()
    model = make(gf.EncoderDecoder, choices, layers=1)
    src, mask, tgt = batch(0)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    close(compiled(src, tgt, mask), model(src, tgt, mask))
    compiled(src, tgt, mask).sum().backward()
    assert model.head.weight.grad is not None
    with torch.no_grad():
        memory, cache, plain = model.encode(src, mask), model.new_cache(6), model.new_cache(6)
        step = torch.compile(model.decode, fullgraph=True, backend="eager")
        for i in range(4):
            close(step(tgt[:, i : i + 1], memory, mask, cache), model.decode(tgt[:, i : i + 1], memory, mask, plain))


@given(grid, st.integers(2, 4))
@over_the_grid
@torch.no_grad()
def test_hypotheses_that_share_a_source_are_as_if_it_were_repeated(choices, beams):
    model = make(gf.EncoderDecoder, choices)
    src, mask, _ = batch(choices["seed"])
    tgt = torch.randint(3, 23, (3 * beams, 5), generator=torch.Generator().manual_seed(choices["seed"]))
    memory, shared, repeated = model.encode(src, mask), model.new_cache(5), model.new_cache(5)
    wide, wide_mask = memory.repeat_interleave(beams, 0), mask.repeat_interleave(beams, 0)
    for part in tgt.split([2, 1, 2], dim=1):
        together = model.decode(part, memory, mask, shared)
        close(together, model.decode(part, wide, wide_mask, repeated))


def test_a_cache_is_freed_when_it_is_let_go():
    """Not when the collector next looks: a cache may be most of the memory."""
    model = gf.EncoderDecoder(gf.ModelConfig(vocab_size=20, d_model=16, heads=4, d_ff=8, layers=2, max_length=8)).eval()
    src = torch.arange(3, 9).view(1, 6)
    gc.disable()
    try:
        cache = model.new_cache(4)
        model.decode(src[:, :1], model.encode(src), cache=cache)
        held = weakref.ref(cache.layers[0])
        del cache
        assert held() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("queries", [1, 8, 9])
@pytest.mark.parametrize("grad", [False, True])
def test_dropout_acts_on_the_pattern_in_training_whatever_the_number_of_queries(queries, grad):
    """Only attention's own dropout is on here: it is what Monte-Carlo dropout draws from."""
    choices = {"dropout": 0.0, "attention_dropout": 0.5, "layers": 1}
    src = torch.randint(3, 23, (4, queries), generator=torch.Generator().manual_seed(0))
    model = make(gf.EncoderOnly, choices)
    with torch.set_grad_enabled(grad):
        assert torch.equal(model(src), model(src))
        model.train()
        assert not torch.equal(model(src), model(src))


def every_kind_of_hook(probe, told):
    """How a value can be watched, by the name of the hook."""
    from torch.nn.modules import module as torch_modules

    def ours(name):
        return lambda module, *given: told.append(name) if module is probe else None

    for kind in ("forward_pre", "forward", "full_backward_pre", "full_backward"):
        for owner, name in ((probe, f"register_{kind}_hook"), (torch_modules, f"register_module_{kind}_hook")):
            yield name, lambda owner=owner, name=name: getattr(owner, name)(ours(name))


@pytest.mark.parametrize("path", ["decoder.blocks.0.cross_attention.pattern", "encoder.blocks.1.feed_forward.hidden",
                                  "encoder.blocks.0.self_attention_residual.norm.normalised"])  # fmt: skip
@pytest.mark.filterwarnings("ignore:Full backward hook is firing")  # on embeddings, whose ids have no gradient
def test_every_kind_of_hook_on_a_probe_fires(path):
    src, mask, tgt = batch(0)
    model, told = make(gf.EncoderDecoder, {}), []
    plain = model(src, tgt, mask)
    for name, register in every_kind_of_hook(model.get_submodule(path), told):
        handle = register()
        logits = model(src, tgt, mask)
        logits.sum().backward()
        handle.remove()
        assert told == [name]
        told.clear()
        close(logits, plain)
    assert torch.equal(model(src, tgt, mask), plain)


def test_a_backward_hook_on_the_pattern_sees_its_gradient():
    src, mask, tgt = batch(0)
    model, seen = make(gf.EncoderDecoder, {}), []
    attention = model.decoder.blocks[1].cross_attention
    attention.pattern.register_full_backward_hook(lambda module, given, received: seen.append(received[0]))
    model(src, tgt, mask).square().sum().backward()
    (found,) = seen

    def loss(step, at):
        handle = attention.pattern.register_forward_hook(lambda module, given, value: value + step * at)
        with torch.no_grad():
            value = model(src, tgt, mask).double().square().sum()
        handle.remove()
        return value

    for place in ((0, 1, 2, 3), (1, 0, 5, 0), (2, 3, 0, 0)):  # one share more or less, and what becomes of the loss
        at = torch.zeros_like(found)
        at[place] = 1.0
        slope = (loss(1e-2, at) - loss(-1e-2, at)) / 2e-2
        assert float(found[place]) == pytest.approx(float(slope), rel=0.02, abs=0.02)
