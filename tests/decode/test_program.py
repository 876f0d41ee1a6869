"""A whole stack in one call says what its modules say, and a step of search in C chooses what Python chooses."""

import pytest
import torch
from tiny_model import perturb
from torch import Tensor

import glassformer as gf
import glassformer.decode.generation as generation
import glassformer.decode.kernels as module
from glassformer.decode import beam, greedy
from glassformer.decode import program as programs
from glassformer.decode.kernels import Kernels, Linear, NoKernels, Packed, supported_levels
from glassformer.decode.kernels.structures import Bans
from glassformer.decode.precision import prepare
from glassformer.decode.program import ProgramWriter, program, writer_of
from glassformer.decode.search import Constraints, Placeholders, TopTokens, normaliser, top_tokens
from glassformer.decode.step import Writer

if isinstance(module.load_kernels(), str):
    pytest.skip(f"no kernels: {module.load_kernels()}", allow_module_level=True)

SIZES = {"vocab_size": 70, "d_model": 40, "heads": 4, "d_ff": 72, "layers": 3, "decoder_layers": 2, "max_length": 48}
KNOWN = {
    "plain": {},
    "post": {"norm": "post", "output_bias": True, "tied": False},
    "rms": {"norm_type": "rms", "bias": False, "positions": "learned"},
    "biases of q, k and v": {"bias": False, "qkv_bias": True},
    "wide heads": {"head_width": 24, "src_vocab_size": 80},
}
UNKNOWN = {
    "gelu": {"activation": "gelu"},
    "gated": {"gated": True},
    "rotary": {"positions": "rotary"},
    "alibi": {"positions": "alibi"},
    "grouped": {"kv_heads": 2},
}
SRC = torch.randint(3, 70, (5, 9), generator=torch.Generator().manual_seed(0))
MASK = torch.arange(9) < torch.tensor([[9], [3], [7], [1], [5]])


def model_of(options):
    return perturb(gf.EncoderDecoder(gf.ModelConfig(**SIZES | options)).eval(), 0.1)


@torch.inference_mode()
def logits_of(writer, beams, steps=6):
    """What it says of tokens that beams trade, with two sentences leaving on the way."""
    generator, found = torch.Generator().manual_seed(1), [writer.next()]
    sentences = 5
    for step in range(steps):
        if beams > 1:
            writer.follow(torch.randint(0, beams if step else 1, (sentences, beams), generator=generator))
        if step == 3:
            writer.keep(torch.tensor([0, 2, 3]))
            sentences = 3
        found.append(writer.next(torch.randint(3, 70, (sentences * beams, 1), generator=generator)))
    return found


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("kind", KNOWN)
@torch.inference_mode()
def test_a_program_says_what_the_modules_say(kind, beams):
    model = model_of(KNOWN[kind])
    fast = prepare(model, "fp32")
    own = writer_of(fast, SRC, MASK, 8, beams)
    assert isinstance(own, ProgramWriter)
    for ours, theirs in zip(logits_of(own, beams), logits_of(Writer(model, SRC, MASK, 8, beams), beams), strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=1e-4)
    assert own.memory is not None
    torch.testing.assert_close(own.memory, model.encode(SRC, MASK)[MASK], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("beams", [1, 3])
def test_a_program_in_int8_is_as_near_as_the_modules_are(beams):
    model = model_of({})
    fast = prepare(model, "int8")
    plain = logits_of(Writer(model, SRC, MASK, 8, beams), beams)
    own = logits_of(writer_of(fast, SRC, MASK, 8, beams), beams)
    long = logits_of(Writer(fast, SRC, MASK, 8, beams), beams)
    widest = max(float(x.abs().max()) for x in plain)
    errors = [max(float((a - b).abs().max()) for a, b in zip(some, plain, strict=True)) for some in (own, long)]
    assert max(errors) < 0.1 * widest
    assert min(errors) > 0  # it does round


@pytest.mark.parametrize("kind", ["int8", "bf16"])
@pytest.mark.parametrize("wanted", [1, 8, 5000])
@pytest.mark.parametrize("threads", [1, 3])
@torch.inference_mode()
def test_a_program_finds_the_likeliest_without_all_logits(threads, wanted, kind):
    """Bit for bit what is found among all of them, over several segments of a vocabulary and blocks of rows."""
    own = module.available_kernels()
    assert own is not None
    if kind not in own.kinds:
        pytest.skip(f"the kernels of {own.level} know no {kind}")
    model = model_of({"vocab_size": 1000})
    with torch.no_grad():
        model.head.weight[300:600] = model.head.weight[:300]  # equals, in different segments
    fast, src = prepare(model, kind), SRC.repeat(9, 1)
    several = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        one, other = (writer_of(fast, src, None, 8, 3) for _ in range(2))
        tokens: Tensor | None = None
        for _ in range(3):
            logits, found = one.next(tokens), other.next_top(tokens, wanted)
            assert isinstance(found, TopTokens)
            for theirs, expected in zip(found[:2], top_tokens(logits, wanted), strict=True):
                assert torch.equal(theirs, expected)
            assert torch.equal(found.normaliser, normaliser(logits))
            tokens = found.ids[:, :1].repeat_interleave(len(src) * 3 // len(logits), 0).contiguous()
            for writer in (one, other):
                writer.follow(torch.zeros((len(src), 3), dtype=torch.long))
    finally:
        torch.set_num_threads(several)


@pytest.mark.parametrize("kind", UNKNOWN)
def test_what_the_kernels_do_not_know_goes_the_long_way(kind):
    fast = prepare(model_of(UNKNOWN[kind]), "fp32")
    assert program(fast, SRC, MASK, 1) is None


def test_who_watches_sees_the_modules_run():
    fast = prepare(model_of({}), "fp32")
    assert program(fast, SRC, MASK, 1) is not None
    with_holes = MASK.clone()
    with_holes[0, 2] = False
    assert program(fast, SRC, with_holes, 1) is None
    assert program(fast, SRC.repeat(40, 1), None, 1) is None  # so many rows that PyTorch is faster in float32
    hook = fast.encoder.blocks[0].register_forward_hook(lambda *_: None)
    assert program(fast, SRC, MASK, 1) is None
    hook.remove()
    assert program(fast, SRC, MASK, 1) is not None


@pytest.mark.parametrize("options", [{}, {"length_penalty": 0.0}, {"length_rule": "gnmt", "length_penalty": 0.6},
                                     {"stopping": "huggingface"}, {"no_repeat_ngram": 2}])  # fmt: skip
@pytest.mark.parametrize("beams", [1, 2, 4, 40])
def test_a_step_of_search_in_c_chooses_what_python_chooses(beams, options, monkeypatch):
    fast = prepare(model_of({}), "fp32")
    search = {"beam": beams, "nbest": beams, "max_new_tokens": 12, **options}
    ours = gf.generate(fast, SRC, MASK, **search)
    for selector in (beam, greedy):
        monkeypatch.setattr(selector, "kernels_for", lambda logits: None)
    assert ours == gf.generate(fast, SRC, MASK, **search)
    assert generation.writer_of is writer_of


HELD = Placeholders((5, 9, 60), ((5,), (60, 9), (), (9,), (5, 9, 60)))


@pytest.mark.parametrize("options", [{}, {"length_penalty": 0.0}, {"stopping": "huggingface"}, *(
    {"no_repeat_ngram": n} for n in (1, 2, 3)), {"placeholders": HELD}, {"placeholders": HELD, "no_repeat_ngram": 1},
    {"placeholders": HELD, "no_repeat_ngram": 2, "max_new_tokens": 4}])  # fmt: skip
@pytest.mark.parametrize("beams", [2, 5])
@pytest.mark.parametrize("kind", ["int8", "fp32"])
def test_several_steps_in_one_call_find_what_single_ones_find(kind, beams, options, monkeypatch):
    fast, whole = prepare(model_of({}), kind), ProgramWriter.run_steps
    search = {"beam": beams, "nbest": beams, "max_new_tokens": 20, **options}
    made: list[int] = []

    def counted(writer, selector, constraints):
        made.append(whole(writer, selector, constraints))
        return made[-1]

    monkeypatch.setattr(ProgramWriter, "run_steps", lambda *_: 0)
    single = gf.generate(fast, SRC, MASK, **search)
    monkeypatch.setattr(ProgramWriter, "run_steps", counted)
    for together in (1, 3, 16):
        made.clear()
        monkeypatch.setattr(programs, "TOGETHER", together)
        assert gf.generate(fast, SRC, MASK, **search) == single
        assert 0 < max(made) <= together

    def forgetful(writer, selector, constraints):
        steps = whole(writer, selector, constraints)
        writer.seen, writer.before = writer.before, writer.seen
        return steps

    monkeypatch.setattr(ProgramWriter, "run_steps", forgetful)
    if search["max_new_tokens"] == 20:  # four tokens may be too few to miss what was forgotten
        assert gf.generate(fast, SRC, MASK, **search) != single
    if {"no_repeat_ngram", "placeholders"} & set(options):
        monkeypatch.setattr(ProgramWriter, "run_steps", whole)
        monkeypatch.setattr(Constraints, "bans", lambda *_: Bans())
        assert gf.generate(fast, SRC, MASK, **search) != single


@pytest.mark.parametrize("options", [{"repetition_penalty": 1.5}, {"prefix": [[7]] * 5},
                                     {"no_repeat_ngram": 1, "max_new_tokens": 47}])  # fmt: skip
def test_what_the_kernels_cannot_forbid_is_forbidden_step_by_step(options, monkeypatch):
    """The last, in a vocabulary of no more tokens than may be said: where all would be banned, none is."""
    model = gf.EncoderDecoder(gf.ModelConfig(**SIZES | {"vocab_size": 40})).eval()
    fast, search = prepare(model, "int8"), {"beam": 3, "max_new_tokens": 12, **options}
    found = gf.generate(fast, SRC % 40, MASK, **search)
    monkeypatch.setattr(ProgramWriter, "run_steps", lambda *_: 0)
    assert gf.generate(fast, SRC % 40, MASK, **search) == found


def test_several_steps_in_one_call_can_be_ended_between_calls():
    fast, calls = prepare(model_of({}), "int8"), list[int]()

    def leave():
        calls.append(1)
        if len(calls) == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        gf.generate(fast, SRC, MASK, beam=3, max_new_tokens=40, between_steps=leave)
    assert len(calls) == 2


@pytest.mark.parametrize("kind", ["fp32", "int8"])
def test_all_levels_give_the_same_to_the_last_bit(kind):
    levels = supported_levels()
    if len(levels) < 2:
        pytest.skip(f"this processor has one level only: {levels[0].name}")
    numbers = torch.Generator().manual_seed(0)
    x, weight = torch.randn(37, 200, generator=numbers), torch.randn(90, 200, generator=numbers)
    x[0], weight[0] = 1.0, -1.0
    linear, found = Linear(Packed(weight, kind), torch.randn(90, generator=numbers), True), []
    for level in levels:
        try:
            built = Kernels(level)
        except NoKernels as reason:
            pytest.skip(str(reason))
        keys, queries = (
            torch.randn(2, 3, 4, 11, 32, generator=numbers.manual_seed(1)),
            torch.randn(3, 4, 1, 32, generator=numbers),
        )
        found.append((
            *(built.product(x[:rows], linear) for rows in (1, 3, 7, 37)), built.attend(queries, *keys, 11, None, 0.2),
            built.normalise(x), *built.highest(x, 5),
        ))  # fmt: skip
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))
