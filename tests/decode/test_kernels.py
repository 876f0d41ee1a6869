"""The kernels in C compute what they say, for every size; and nothing is lost without them."""

import copy
import os
import threading
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import glassformer as gf
from glassformer.decode.kernels import (
    Kernels,
    Linear,
    NoKernels,
    Packed,
    check_memory,
    load_kernels,
    supported_levels,
)
from glassformer.decode.precision import prepare

try:
    # A processor can also do what lesser ones can, so the kernels written for those are tried too.
    LEVELS = {level.name: level for level in supported_levels()}
    BUILT = {name: Kernels(level) for name, level in LEVELS.items()}
except NoKernels as reason:
    pytest.skip(f"no kernels: {reason}", allow_module_level=True)
WAYS = [(name, kind) for name, built in BUILT.items() for kind in sorted(built.kinds)]
BEST = next(iter(BUILT.values()))
LOTS = settings(max_examples=60, deadline=None)


def numbers(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def exact(x, weight, kind):
    """The product in float64 of what the kind rounds its factors to."""
    if kind == "bf16":
        return x.bfloat16().double() @ weight.bfloat16().double().T
    if kind == "fp32":
        return x.double() @ weight.double().T
    by_row, by_column = x.abs().amax(1, keepdim=True), weight.abs().amax(1, keepdim=True) / 127
    whole = (x * (127 / by_row)).round().double() @ (weight / by_column).round().double().T
    return whole * (by_row.double() / 127) * by_column.double().T


@pytest.mark.parametrize(("level", "kind"), WAYS)
@LOTS
@given(st.integers(1, 70), st.integers(1, 200), st.integers(1, 100), st.integers(0, 7), st.integers(0, 9))
def test_products_are_exact(level, kind, rows, inputs, outputs, parts, seed):
    x, weight = numbers(seed, rows, inputs), numbers(seed + 1, outputs, inputs)
    bias = numbers(seed + 2, outputs) if parts & 1 else None
    add = numbers(seed + 3, rows, outputs) if parts & 2 else None
    expected = exact(x, weight, kind) + (0 if bias is None else bias)
    expected = (expected.relu() if parts & 4 else expected) + (0 if add is None else add)
    product = BUILT[level].product(x, Linear(Packed(weight, kind), bias, bool(parts & 4)), add)
    within = 1e-6 * (x.abs() @ weight.abs().T + 1)  # of what was added up
    assert ((product - expected).abs() <= within).all()
    other = BUILT[level].product(x, Linear(Packed(torch.cat((weight[:-1], 2 * weight[-1:])), kind), bias))
    assert not ((other - exact(x, weight, kind) - (0 if bias is None else bias)).abs() <= within).all()  # it would show


@pytest.mark.parametrize(("level", "kind"), WAYS)
def test_a_row_does_not_depend_on_the_rows_beside_it(level, kind):
    x, linear = numbers(0, 77, 300), Linear(Packed(numbers(1, 50, 300), kind))
    alone = torch.cat([BUILT[level].product(row, linear) for row in x.split(1)])
    for rows in (1, 7, 8, 9, 16, 17, 32, 33, 77):
        together = BUILT[level].product(x[:rows], linear)
        assert torch.equal(together, alone[:rows])  # to the last bit
    several = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert torch.equal(BUILT[level].product(x, linear), alone)
    finally:
        torch.set_num_threads(several)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 33])
def test_whole_numbers_at_the_end_of_their_range_are_added_up_exactly(level, rows):
    """Where two products of bytes are added up in 16 bits, these would not fit."""
    signs = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]).repeat(1, 350)  # (3, 700)
    x, weight = signs.repeat(-(-rows // 3), 1)[:rows], torch.cat((signs, -signs)).repeat(7, 1)
    found = BUILT[level].product(x, Linear(Packed(weight, "int8")))
    assert torch.equal(found.round(), x @ weight.T)
    torch.testing.assert_close(found, x @ weight.T, atol=1e-3, rtol=0)


def reference(q, k, v, bias, scale):
    sentences, heads, _, d = k.shape
    asked = q.view(sentences, -1, heads, d).transpose(1, 2).double()  # (B, H, K, d)
    scores = asked @ k.double().transpose(-2, -1) * scale
    pattern = (scores if bias is None else scores + bias).softmax(-1).nan_to_num(0.0)
    return (pattern @ v.double()).transpose(1, 2).reshape(len(q), heads * d)


@LOTS
@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.sampled_from([1, 8, 16, 24, 64, 100, 130]),
    st.integers(1, 40), st.integers(0, 7), st.booleans(), st.integers(0, 9),
)  # fmt: skip
def test_attention_is_what_is_written_out(sentences, beams, heads, d, before, shared, biased, seed):
    rows, entries = sentences * beams, before + beams
    q, new_k, new_v = numbers(seed, rows, 3, heads, 1, d).unbind(1)
    k, v = numbers(seed + 1, 2, sentences, heads, entries + 3, d)
    sizes = [1 if shared >> i & 1 else size for i, size in enumerate((sentences, heads, beams))]
    bias = numbers(seed + 2, *sizes, entries)
    bias = bias.masked_fill(numbers(seed + 3, *sizes, entries) > 0.5, float("-inf")) if biased else None
    full_k, full_v = k[:, :, :entries].clone(), v[:, :, :entries].clone()
    for full, new in ((full_k, new_k), (full_v, new_v)):
        full[:, :, before:] = new.view(sentences, beams, heads, d).transpose(1, 2)
    attended = BEST.attend(q, k, v, entries, bias, d**-0.5, (new_k, new_v))
    assert torch.equal(k[:, :, :entries], full_k)  # kept for the next step
    assert torch.equal(v[:, :, :entries], full_v)
    expected = reference(q, full_k, full_v, bias, d**-0.5)
    torch.testing.assert_close(attended.double(), expected, atol=3e-6, rtol=3e-6)
    torch.testing.assert_close(BEST.attend(q, k, v, entries, bias, d**-0.5), attended, atol=0, rtol=0)
    if bias is None:
        other = BEST.attend(q, k, v, entries - 1, None, d**-0.5)  # one entry fewer is not the same
        assert not torch.allclose(other.double(), expected, atol=3e-6)


def test_what_is_masked_has_no_influence():
    q, k, v = numbers(0, 2, 1, 1, 64), numbers(1, 2, 1, 9, 64), numbers(2, 2, 1, 9, 64)
    bias = torch.zeros(2, 1, 1, 9)
    bias[0, ..., 4:] = bias[1] = float("-inf")
    before = BEST.attend(q, k, v, 9, bias, 1.0)
    k[0, :, 4:], v[0, :, 4:], v[1] = float("nan"), float("inf"), float("nan")
    after = BEST.attend(q, k, v, 9, bias, 1.0)
    assert torch.equal(after, before)
    assert torch.equal(after[1], torch.zeros(64))  # a row that sees nothing
    assert after[0].abs().min() > 0


@LOTS
@given(
    st.integers(1, 20), st.integers(1, 500), st.integers(1, 30), st.sampled_from([0.1, 10.0, 200.0]), st.integers(0, 9)
)
def test_a_vocabulary_is_ranked(rows, size, count, wide, seed):
    logits = numbers(seed, rows, size) * wide
    if seed % 2:
        logits = logits.round().masked_fill(numbers(seed + 1, rows, size) > 1, float("-inf"))  # equals, and impossible
    total = BEST.normalise(logits)
    torch.testing.assert_close(total, logits.logsumexp(-1, keepdim=True), atol=1e-5, rtol=1e-6)
    best, places = BEST.highest(logits, min(count, size))
    ordered = logits.sort(dim=1, descending=True, stable=True)
    assert torch.equal(best, ordered.values[:, :count])
    assert torch.equal(places, ordered.indices[:, :count])  # the earlier first, among equals


def test_what_is_not_a_number_stays_visible():
    weight, x = numbers(0, 40, 30), numbers(1, 3, 30)
    x[1, 7] = float("nan")
    for level, kind in WAYS:
        y = BUILT[level].product(x, Linear(Packed(weight, kind), None, True))
        assert y[1].isnan().all()
        assert not y[[0, 2]].isnan().any()
    k = numbers(2, 1, 1, 5, 16)
    assert BEST.attend(torch.full((1, 1, 1, 16), float("nan")), k, k, 5, None, 1.0).isnan().all()
    assert BEST.normalise(x)[:, 0].isnan().tolist() == [False, True, False]


def test_threads_do_not_disturb_each_other():
    weights = [Linear(Packed(numbers(i, 64 + i, 128 + i), "fp32")) for i in range(6)]
    inputs = [numbers(i + 9, 1 + 7 * i, 128 + i) for i in range(6)]
    expected = [BEST.product(x, weight) for x, weight in zip(inputs, weights, strict=True)]
    wrong: list[int] = []

    def work(i):
        for _ in range(50):
            if not torch.equal(BEST.product(inputs[i], weights[i]), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_they_and_pytorch_do_not_disturb_each_other():
    """Both set up the same units of the processor, each in its own way."""
    x, weight = numbers(0, 40, 256), numbers(1, 96, 256)
    packed = {kind: Linear(Packed(weight, kind)) for kind in sorted(BEST.kinds)}
    mine = {kind: BEST.product(x, packed[kind]) for kind in packed}
    theirs = x.bfloat16() @ weight.bfloat16().T
    for _ in range(20):
        for kind in packed:
            assert torch.equal(x.bfloat16() @ weight.bfloat16().T, theirs)
            assert torch.equal(BEST.product(x, packed[kind]), mine[kind])


def test_threads_that_end_leave_no_memory_behind():
    x, linear = numbers(0, 128, 2048), Linear(Packed(numbers(1, 32, 2048), "fp32"))  # 1 MB to lay out

    def resident(threads):
        for _ in range(threads):
            thread = threading.Thread(target=BEST.product, args=(x, linear))
            thread.start()
            thread.join()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident(20)
    assert resident(200) - before < 50e6


def test_no_rows_are_no_work():
    for kind in sorted(BEST.kinds):
        assert BEST.product(torch.empty(0, 40), Linear(Packed(numbers(0, 33, 40), kind))).shape == (0, 33)
    assert BEST.normalise(torch.empty(0, 9)).shape == (0, 1)
    assert BEST.highest(torch.empty(0, 9), 2)[1].shape == (0, 2)


def test_memory_that_is_not_there_is_told():
    some = numbers(0, 64).data_ptr()
    for kind in ("fp32", "int8"):  # rows that no memory could hold
        assert BEST._library.product(1, Linear(Packed(numbers(0, 1, 64), kind)).matrix, 2**42, some, None, some) == 1
    with pytest.raises(MemoryError, match="no memory is left for a decoding step"):
        check_memory(1)
    assert BEST.product(numbers(0, 3, 40), Linear(Packed(numbers(1, 33, 40), "fp32"))).isfinite().all()


def test_a_model_that_uses_them_can_be_copied():
    config = gf.ModelConfig(vocab_size=50, d_model=32, heads=4, d_ff=64, layers=1, max_length=32)
    fast = prepare(gf.EncoderDecoder(config).eval(), "fp32")
    src = torch.arange(3, 9).view(1, 6)
    assert gf.generate(copy.deepcopy(fast), src, max_new_tokens=6) == gf.generate(fast, src, max_new_tokens=6)


def compiler(folder, does):
    script = folder / "old-cc"
    script.write_text(f"#!/bin/sh\n{does}\n")
    script.chmod(0o755)
    return script


@pytest.mark.long
def test_an_older_compiler_is_asked_for_less(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    old = compiler(tmp_path, 'case "$*" in *amx*) echo "error: unknown" >&2; exit 1;; esac; exec cc "$@"')
    monkeypatch.setenv("CC", str(old))
    built = load_kernels.__wrapped__()
    assert isinstance(built, Kernels)
    assert (built.level == "amx", built.kinds) == (False, {"fp32", "int8"})
    compiler(tmp_path, "echo 'x.c:1: error: nothing works' >&2; exit 1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    assert load_kernels.__wrapped__() == f"{old} does not compile them: x.c:1: error: nothing works"
