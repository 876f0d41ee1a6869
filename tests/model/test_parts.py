"""Each part against torch's own, the paper's values, or a loop written here."""

import math
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import glassformer as gf
from glassformer.model.attention import (
    NO_MASK,
    Attention,
    AttentionMask,
    additive,
    block_mask,
    causal_mask,
    padding_mask,
    softmax,
    text_mask,
)
from glassformer.model.embedding import Rotary, alibi_slopes, relative_bucket, rotate, sinusoid
from glassformer.model.layer import ACTIVATIONS, SSRU, FeedForward
from glassformer.model.norm import NORMS, LayerNorm, RMSNorm


def config(**changes):
    base = {"vocab_size": 20, "d_model": 16, "heads": 4, "d_ff": 24, "layers": 1, "dropout": 0.0}
    return gf.ModelConfig(**(base | changes))


@pytest.mark.parametrize("shape", [(3, 8), (2, 5, 6), (1, 1, 1)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_layer_norm_is_torchs(shape, scale):
    torch.manual_seed(0)
    x = (torch.randn(shape) + 3) * scale
    ours, theirs = LayerNorm(shape[-1], 1e-5), nn.LayerNorm(shape[-1], 1e-5)
    with torch.no_grad():
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            p.copy_(torch.randn_like(p))
            q.copy_(p)
    torch.testing.assert_close(ours.reference(x), theirs(x), atol=2e-5, rtol=1e-5)
    torch.testing.assert_close(ours(x), theirs(x), atol=0, rtol=0)


def test_layer_norm_uses_the_biased_variance():
    x = torch.tensor([[1.0, 2.0, 3.0, 6.0]])
    wrong = (x - x.mean()) / x.std(unbiased=True)
    right = (x - 3.0) / math.sqrt((4 + 1 + 0 + 9) / 4)
    ours = LayerNorm(4, 1e-12).reference(x)
    torch.testing.assert_close(ours, right)
    assert (ours - wrong).abs().max() > 0.1


def test_rms_norm_is_torchs():
    torch.manual_seed(0)
    x, ours = torch.randn(2, 7, 12), RMSNorm(12, 1e-6)
    with torch.no_grad():
        ours.weight.normal_()
    expected = F.rms_norm(x, (12,), ours.weight, 1e-6)
    torch.testing.assert_close(ours.reference(x), expected)
    torch.testing.assert_close(ours(x), expected)


def test_norms_run_their_written_lines_when_watched():
    x = torch.randn(2, 6)
    for name, kind in NORMS.items():
        norm, seen = kind(6, 1e-5), []
        norm.normalised.register_forward_hook(lambda module, args, value, seen=seen: seen.append(value))
        expected = norm(x)
        assert len(seen) == 1, f"{name}: `reference` does not hand its value to `self.normalised`"
        bias = 0 if norm.bias is None else norm.bias
        torch.testing.assert_close(seen[0] * norm.weight + bias, expected)


def test_softmax_is_torchs_and_zero_where_nothing_is_seen():
    torch.manual_seed(0)
    scores = torch.randn(3, 5) * 30
    torch.testing.assert_close(softmax(scores), scores.softmax(-1))
    scores[1] = float("-inf")
    scores[2, :3] = float("-inf")
    shares = softmax(scores)
    assert shares[1].eq(0).all()
    assert shares[2, :3].eq(0).all()
    torch.testing.assert_close(shares.sum(-1), torch.tensor([1.0, 0.0, 1.0]))


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("masked", ["none", "padding", "causal", "both"])
def test_attention_is_a_loop_over_heads_and_torchs_kernel(kv_heads, masked):
    torch.manual_seed(1)
    part = Attention(config(kv_heads=kv_heads)).eval()
    x = torch.randn(2, 5, 16)
    visible = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    if masked in ("padding", "both"):
        visible &= padding_mask(torch.tensor([[True] * 5, [True] * 3 + [False] * 2]))
    if masked in ("causal", "both"):
        visible &= causal_mask(torch.arange(5), torch.arange(5))
    mask = AttentionMask(None if masked == "none" else additive(visible, None))
    wq, wk, wv = part.projection.weight.split(part.projection.rows)
    bq, bk, bv = part.projection.bias.split(part.projection.rows)
    merged = torch.zeros(2, 5, 16)
    for b in range(2):
        for head in range(4):
            group = head // (4 // kv_heads)
            rows, columns = slice(4 * head, 4 * head + 4), slice(4 * group, 4 * group + 4)
            q, k, v = (
                x[b] @ wq[rows].T + bq[rows],
                x[b] @ wk[columns].T + bk[columns],
                x[b] @ wv[columns].T + bv[columns],
            )
            for t in range(5):
                allowed = visible[b, 0, t].nonzero().flatten()
                share = torch.stack([q[t] @ k[s] / math.sqrt(4) for s in allowed]).softmax(0)
                merged[b, t, rows] = share @ v[allowed]
    expected = part.output(merged)
    torch.testing.assert_close(part(x, mask), expected, atol=1e-5, rtol=1e-5)
    parts = part.project(x, None, mask, None)
    torch.testing.assert_close(part.reference(*parts, mask), part.fused(*parts, mask), atol=1e-5, rtol=1e-5)


def test_attention_is_torchs_module():
    torch.manual_seed(2)
    ours, theirs = Attention(config()).eval(), nn.MultiheadAttention(16, 4, batch_first=True).eval()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.projection.weight)
        theirs.in_proj_bias.copy_(ours.projection.bias.normal_())
        theirs.out_proj.weight.copy_(ours.output.weight)
        theirs.out_proj.bias.copy_(ours.output.bias.normal_())
    x, memory = torch.randn(2, 3, 16), torch.randn(2, 7, 16)
    expected, weights = theirs(x, memory, memory, average_attn_weights=False)
    torch.testing.assert_close(ours(x, AttentionMask(), memory), expected, atol=1e-5, rtol=1e-5)
    seen = []
    ours.pattern.register_forward_hook(lambda module, args, value: seen.append(value))
    ours(x, AttentionMask(), memory)
    torch.testing.assert_close(seen[0], weights, atol=1e-5, rtol=1e-5)


def test_sinusoid_has_the_papers_values():
    table = sinusoid(50, 6)
    for pos in range(50):
        for i in range(3):
            angle = pos / 10_000 ** (2 * i / 6)
            assert table[pos, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[pos, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 500))
@settings(max_examples=40, deadline=None)
def test_rotary_scores_depend_on_the_distance_only(a, b, shift):
    torch.manual_seed(0)
    turn = Rotary(config())
    q, k = torch.randn(1, 1, 1, 4), torch.randn(1, 1, 1, 4)

    def score(i, j):
        return (rotate(q, turn(torch.tensor([i]))) * rotate(k, turn(torch.tensor([j])))).sum().item()

    assert score(a, b) == pytest.approx(score(a + shift, b + shift), abs=1e-3)
    assert rotate(q, turn(torch.tensor([a]))).norm().item() == pytest.approx(q.norm().item(), rel=1e-5)


def test_rotary_turns_each_pair_by_its_angle():
    turn = Rotary(config())
    x = torch.randn(1, 1, 1, 4)
    turned = rotate(x, turn(torch.tensor([3])))[0, 0, 0]
    for i in range(2):
        angle = 3 * 10_000 ** (-2 * i / 4)
        a, b = x[0, 0, 0, 2 * i].item(), x[0, 0, 0, 2 * i + 1].item()
        assert turned[2 * i].item() == pytest.approx(a * math.cos(angle) - b * math.sin(angle), abs=1e-5)
        assert turned[2 * i + 1].item() == pytest.approx(a * math.sin(angle) + b * math.cos(angle), abs=1e-5)


def test_alibi_slopes():
    assert alibi_slopes(8) == pytest.approx([2**-i for i in range(1, 9)])
    assert alibi_slopes(1) == pytest.approx([2**-8])
    # Between powers of two: those of the power below, then every second one of the power above.
    assert alibi_slopes(6) == pytest.approx([2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3])
    assert alibi_slopes(12) == pytest.approx([*alibi_slopes(8), 2 ** (-0.5), 2 ** (-1.5), 2 ** (-2.5), 2 ** (-3.5)])
    assert alibi_slopes(3) == pytest.approx([2**-4, 2**-8, 2**-2])


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (16, 20), (8, 100)])
def test_relative_buckets_are_t5s(both_ways, buckets, furthest):
    def slowly(offset):
        """The bucket of one offset, by the rule's own words."""
        half, base = buckets, 0
        if both_ways:
            half, base = buckets // 2, (buckets // 2 if offset > 0 else 0)
            distance = abs(offset)
        else:
            distance = max(0, -offset)
        exact = half // 2
        if distance < exact:
            return base + distance
        far = exact + int(math.log(distance / exact) / math.log(furthest / exact) * (half - exact))
        return base + min(far, half - 1)

    offsets = torch.arange(-90, 91)
    got = relative_bucket(offsets, buckets, furthest, both_ways).tolist()
    # At an exact boundary of the logarithm, rounding may fall either way.
    assert sum(a != slowly(o) for a, o in zip(got, offsets.tolist(), strict=True)) <= 2
    assert got[90] == 0
    assert max(got) < buckets


def test_feed_forward_and_its_gate():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 16)
    for name, act in (("relu", F.relu), ("gelu", F.gelu), ("silu", F.silu)):
        plain = FeedForward(config(activation=name))
        expected = act(x @ plain.up.weight.T + plain.up.bias) @ plain.down.weight.T + plain.down.bias
        torch.testing.assert_close(plain(x), expected, atol=1e-5, rtol=1e-5)
    swiglu = FeedForward(config(activation="silu", gated=True, bias=False))
    gate, value = swiglu.up.weight.chunk(2)
    torch.testing.assert_close(swiglu(x), (F.silu(x @ gate.T) * (x @ value.T)) @ swiglu.down.weight.T)
    torch.testing.assert_close(ACTIVATIONS["gelu_tanh"](x), F.gelu(x, approximate="tanh"))


def test_embedding_scales_by_the_root_of_the_width_and_adds_the_position():
    model = gf.EncoderOnly(config())
    ids = torch.tensor([[5, 7, 7]])
    got = model.encoder.embedding(ids, torch.arange(3))
    expected = model.encoder.embedding.tokens.weight[ids[0]] * 4.0 + sinusoid(3, 16)
    torch.testing.assert_close(got[0], expected)


def test_xavier_bounds_each_matrix_by_its_own_size():
    model = gf.EncoderDecoder(config(d_model=64, heads=4, d_ff=100, kv_heads=2))
    attention = model.decoder.blocks[0].cross_attention
    for matrix in attention.projection.weight.split(attention.projection.rows):
        bound = math.sqrt(6 / (matrix.shape[0] + matrix.shape[1]))
        assert matrix.abs().max() <= bound
        assert matrix.abs().max() > 0.9 * bound
        assert matrix.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    assert model.encoder.embedding.tokens.weight[0].eq(0).all()  # the padding row
    assert (model.encoder.embedding.tokens.weight[3:] * 8).std().item() == pytest.approx(1.0, rel=0.1)


def test_dropout_falls_in_every_place_the_paper_and_the_documents_name():
    """With all but one dropout off, training mode must still be random, place by place."""
    ids, tgt = torch.randint(3, 20, (2, 6)), torch.randint(3, 20, (2, 6))

    def random_with(**rates):
        off = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
        model = gf.EncoderDecoder(config(**(off | rates)))
        model.train()
        return not torch.equal(model(ids, tgt), model(ids, tgt))

    assert not random_with()
    assert random_with(attention_dropout=0.5)
    assert random_with(activation_dropout=0.5)
    assert random_with(dropout=0.5)
    model = gf.EncoderDecoder(config(dropout=0.5))
    places = [n for n, m in model.named_modules() if isinstance(m, nn.Dropout) and m.p == 0.5]
    assert "encoder.embedding.dropout" in places
    assert "decoder.blocks.0.cross_attention_residual.dropout" in places
    assert model.decoder.blocks[0].self_attention.dropout == 0.5


def several_texts(*rows):
    """Each token's place in its text, of rows that hold texts of these lengths."""
    return torch.stack([torch.cat([torch.arange(n) for n in row]) for row in rows])


@pytest.mark.parametrize("causal", [True, False])
def test_squares_that_are_passed_over_change_nothing(causal):
    """Rows that hold several texts, by the kernel that knows where nobody sees anybody; here without a GPU, slowly."""
    places, order = several_texts([200, 7, 93], [1, 130, 169]), torch.arange(300)
    attention = Attention(config(d_model=32, heads=2, kv_heads=1)).eval()
    torch.manual_seed(1)
    visible = text_mask(places, places) & (causal_mask(order, order) if causal else torch.tensor(True))
    blocks = block_mask(places, causal)
    assert int(blocks.kv_num_blocks.sum() + blocks.full_kv_num_blocks.sum()) < 2 * 9  # some squares are empty
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's word that nothing is compiled
        q, k, v = attention.project(torch.randn(2, 300, 32), None, NO_MASK, None)
        found = attention.block_sparse(q, k, v, blocks)
        torch.testing.assert_close(found, attention.fused(q, k, v, AttentionMask(additive(visible, None))))
        assert not torch.allclose(found, attention.fused(q, k, v, AttentionMask(causal=causal)), atol=1e-2)


@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("heads", [2, 1])  # 32 wide, and 64, for which the squares are smaller
@pytest.mark.parametrize("kind", [gf.DecoderOnly, gf.EncoderOnly])
def test_compiled_on_a_gpu_rows_of_several_texts_learn_the_same(kind, heads):
    places = several_texts([200, 7, 93], [1, 130, 169]).cuda()
    model = kind(config(d_model=64, heads=heads, max_length=300, positions="learned", layers=2)).cuda().train()
    ids, labels = torch.randint(3, 20, (2, 2, 300), device="cuda", generator=torch.Generator("cuda").manual_seed(0))

    def learnt(forward, places):
        model.zero_grad()
        F.cross_entropy(forward(ids=ids, places=places).flatten(0, 1), labels.flatten()).backward()
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    plain, fast = learnt(model, places), learnt(torch.compile(model, dynamic=False), places)
    assert (fast - plain).norm() < 1e-3 * plain.norm()
    one = learnt(model, torch.arange(300, device="cuda").expand(2, 300))
    assert (one - plain).norm() > 1e-2 * plain.norm()


def test_a_recurrence_blends_each_token_into_what_it_keeps():
    cell, x = (
        SSRU(config(d_model=8, autoregression="ssru").decoder),
        torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0)),
    )
    kept, expected = torch.zeros(2, 8), []
    for t in range(5):
        forget = torch.sigmoid(x[:, t] @ cell.forget.weight.T + cell.forget.bias)
        kept = forget * kept + (1 - forget) * (x[:, t] @ cell.candidate.weight.T)
        expected.append(kept.clamp_min(0))
    torch.testing.assert_close(cell(x, AttentionMask()), torch.stack(expected, 1))


@torch.no_grad()
def test_beams_trade_the_cells_of_a_recurrence():
    model, src = gf.EncoderDecoder(config(layers=2, autoregression="ssru")).eval(), torch.tensor([[3, 4, 5], [6, 7, 8]])
    memory, cache = model.encode(src), model.new_cache(4, beams=3)
    model.decode(torch.tensor([[1], [1]]), memory, None, cache)
    targets = torch.tensor([[[3], [4], [5]], [[6], [7], [8]]])
    model.decode(targets.reshape(6, 1), memory, None, cache)
    origin = torch.tensor([[2, 0, 2], [1, 1, 0]])
    cache.follow(origin)
    newest = torch.tensor([[4, 5, 6], [3, 3, 7]]).reshape(6, 1)
    stepped = model.decode(newest, memory, None, cache)
    before = targets.squeeze(2).gather(1, origin).reshape(6, 1)
    whole = torch.cat((torch.ones(6, 1, dtype=torch.long), before, newest), dim=1)
    torch.testing.assert_close(stepped, model(src.repeat_interleave(3, 0), whole)[:, -1:])
    cache.keep(torch.tensor([1]))
    again = model.decode(newest[3:], memory[1:], None, cache)
    longer = torch.cat((whole[3:], newest[3:]), dim=1)
    torch.testing.assert_close(again, model(src[1:].repeat_interleave(3, 0), longer)[:, -1:])


@torch.no_grad()
def test_a_recurrence_starts_anew_with_each_text_of_a_row():
    model = gf.DecoderOnly(config(layers=2, autoregression="ssru")).eval()
    first, second = torch.tensor([[3, 4, 5]]), torch.tensor([[6, 7]])
    row = model(torch.cat((first, second), 1), places=torch.tensor([[0, 1, 2, 0, 1]]))
    torch.testing.assert_close(row, torch.cat((model(first), model(second)), 1))
