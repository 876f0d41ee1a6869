"""The numbers on the page are the model's: picks of every kind, softmax rows, masks, equations, the exported file."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path

import pytest
import torch
from sampled import sampled
from visitor import SENTENCE, agrees, printed, unit

import glassformer as gf
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, ModelConfig
from glassformer.model.layer import ACTIVATIONS
from glassformer.model.norm import NORMS

PICKS = 16  # and at least one of every kind


def picks(trace, count, seed=0):
    """So many (name, index), every kind of operation among them."""
    chance = random.Random(seed)
    by_kind = {}
    for name, value in trace.values.items():
        by_kind.setdefault(value.op["kind"], []).append(name)
    names = [chance.choice(names) for names in by_kind.values()]
    names += chance.choices(list(trace.values), k=count - len(names))
    return [(name, tuple(chance.randrange(size) for size in trace[name].shape)) for name in names]


def evaluated(terms):
    """What a printed equation gives, worked out anew."""
    text = terms.replace("\u2212", "-").replace("\u00d7", "*").replace("^", "**").replace("\u221a", "sqrt")
    text = text.replace("\u221e", "inf")
    known = {name: getattr(math, name) for name in ("exp", "sqrt", "sin", "cos", "tanh", "erf", "inf")}
    return eval(text, {"__builtins__": {}}, known | {"max": max})


def check_equation(shown, name, index):
    found, result = evaluated(shown["terms"]), printed(shown["result"])
    if math.isinf(result):
        assert found == result, (name, index, shown)
    else:
        assert abs(found - result) <= 0.5000001 * unit(shown["result"]), (name, index, shown)


@pytest.mark.parametrize(
    ("state", "count"),
    [pytest.param({}, PICKS, marks=pytest.mark.long), ({"beam": 3, "padding": 2}, 16)],
    ids=["greedy", "beam"],
)
def test_picked_cells_show_the_traces_numbers_and_equations_that_hold(visit, translator, state, count):
    trace = gf.trace(translator, SENTENCE, **state)
    page = visit()
    kinds = set()
    for name, index in picks(trace, count):
        shown = page.pick(name, index, text=SENTENCE, **state)
        assert agrees(shown["result"], float(trace[name][index])), (name, index, shown)
        check_equation(shown, name, index)
        kinds.add(shown["kind"])
    assert kinds == {value.op["kind"] for value in trace.values.values()}
    assert not page.errors


def test_of_a_removed_head_only_its_own_cells_are_called_set(visit, translator):
    name = "decoder.blocks.0.cross_attention.context"
    change = {"kind": "remove_head", "stack": "decoder", "layer": 0, "attention": "cross", "head": 1}
    trace = gf.trace(translator, SENTENCE, changes=[change])
    page = visit()
    for head, kind in ((0, "context"), (1, "replaced")):
        shown = page.pick(name, (head, 1, 2), text=SENTENCE, changes=json.dumps([change]))
        assert shown["kind"] == kind
        assert agrees(shown["result"], float(trace[name][head, 1, 2]))
        check_equation(shown, name, (head, 1, 2))
    assert page.text("main .formula") == "pattern V, but heads 1 set by remove_head"


def test_softmax_rows_sum_to_one_and_masked_cells_are_zero_and_marked(visit, translator):
    trace = gf.trace(translator, SENTENCE, padding=2)
    page = visit()
    patterns = trace.names("*.pattern")
    for layer in ("encoder.0", "encoder.1", "decoder.0", "decoder.1"):
        page.go(text=SENTENCE, padding=2, view="block", layer=layer, head=1)
        stack, i = layer.split(".")
        cards = page.page.locator(".card[data-tensor$='.pattern']")
        assert cards.count() == (1 if stack == "encoder" else 2)
        for card in cards.all():
            sums = card.locator(".row-sums span").all_inner_texts()
            assert len(sums) == trace[card.get_attribute("data-tensor")].shape[1]
            assert set(sums) == {"1.0000"}
    closed = 0
    for name in patterns:
        mask = trace[trace.value(trace.value(name).op["input"]).op["mask"]]
        for head in range(trace[name].shape[0]):
            page.go(text=SENTENCE, padding=2, view="trace", tensor=name, head=head)
            rows = page.page.locator("[data-testid=values] tbody tr").evaluate_all(
                """rows => rows.map((row) => [...row.querySelectorAll('td')]
                    .map((cell) => [cell.textContent, cell.classList.contains('masked')]))"""
            )
            for i, row in enumerate(rows):
                for j, (text, masked) in enumerate(row):
                    assert masked == (mask[i, j] == 0)
                    assert agrees(text, float(trace[name][head, i, j]))
                    if masked:
                        assert text == "0"
                        closed += 1
                slack = sum(unit(text) for text, _ in row if text != "0")
                assert abs(sum(printed(text) for text, _ in row) - 1) <= slack
    assert closed > 20
    assert not page.errors


def test_masked_cells_are_hatched_on_the_canvas(visit, translator):
    trace = gf.trace(translator, SENTENCE, padding=2)
    page = visit()
    page.go(text=SENTENCE, padding=2, view="block", layer="decoder.0")
    for name in ("decoder.blocks.0.self_attention.pattern", "decoder.blocks.0.cross_attention.masked"):
        mask = trace["masks.decoder" if "self" in name else "masks.cross"]
        colours = page.page.locator(f".field[data-tensor='{name}'] .ink").evaluate(
            """(canvas, [rows, cols]) => {
                const {width, height} = canvas;
                const [wide, tall] = [width / cols, height / rows];
                const image = canvas.getContext('2d').getImageData(0, 0, width, height).data;
                return Array.from({length: rows}, (_, i) => Array.from({length: cols}, (_, j) => {
                    const seen = new Set();
                    for (let y = Math.ceil(i * tall) + 1; y < (i + 1) * tall - 2; y++) {
                        for (let x = Math.ceil(j * wide) + 1; x < (j + 1) * wide - 2; x++) {
                            const at = 4 * (y * width + x);
                            seen.add(image.slice(at, at + 3).join());
                        }
                    }
                    return seen.size;
                }));
            }""",
            list(mask.shape),
        )
        for i, row in enumerate(colours):
            for j, different in enumerate(row):
                assert (different > 1) == (mask[i, j] == 0), (name, i, j)


BASE = {"vocab_size": 40, "d_model": 16, "heads": 4, "d_ff": 24, "layers": 2, "max_length": 64, "dropout": 0.0}
MODELS = {
    "post, learned, gelu": (EncoderDecoder, {"norm": "post", "positions": "learned", "activation": "gelu"}),
    "rotary, rms, SwiGLU, grouped": (
        EncoderDecoder,
        {"positions": "rotary", "norm_type": "rms", "activation": "silu", "gated": True, "kv_heads": 2, "bias": False},
    ),
    "slowed rotary, biases of q, k and v": (
        DecoderOnly,
        {"positions": "rotary", "rotary_factor": 8.0, "rotary_length": 16, "bias": False, "qkv_bias": True},
    ),
    "alibi, no scale": (EncoderDecoder, {"positions": "alibi", "embedding_scale": False}),
    "relative, tanh": (
        EncoderDecoder,
        {"positions": "relative", "relative_buckets": 8, "relative_distance": 16, "activation": "gelu_tanh"},
    ),
    "encoder only": (EncoderOnly, {"segments": 2, "embedding_norm": True, "norm": "post", "output_transform": True,
                                   "output_bias": True, "positions": "learned"}),
    "decoder only": (DecoderOnly, {"positions": "learned", "activation": "gelu_tanh"}),
}  # fmt: skip
# Every other choice there is, should there be one.
MODELS |= {
    f"{setting} {name}": (EncoderDecoder, {setting: name})
    for setting, choices in (("activation", ACTIVATIONS), ("norm_type", NORMS))
    for name in choices
    if name not in ("relu", "layer", *(options.get(setting) for _, options in MODELS.values()))
}


@pytest.mark.parametrize("kind", sampled(MODELS, ["rotary, rms, SwiGLU, grouped", "decoder only"]))
def test_a_file_from_disk_shows_every_kind_of_model(visit, tmp_path: Path, kind):
    make, options = MODELS[kind]
    model = make(ModelConfig(**{**BASE, **options})).eval()
    chance = torch.Generator().manual_seed(0)
    for parameter in model.parameters():  # biases and gains of zero and one would hide mistakes
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=chance)
    options = {} if make is EncoderOnly else {"beam": 2, "max_new_tokens": 6}
    trace = gf.trace(model, [5, 6, 7, 8, 9], padding=2, **options)
    file = tmp_path / "run.html"
    trace.to_html(file)
    page = visit(file.as_uri())
    for view in ("flow", "block", "positions", *(["answer"] if make is EncoderOnly else ["decode", "cache"]), "trace"):
        page.go(view=view)
    for name, index in picks(trace, 16):
        shown = page.pick(name, index)
        assert agrees(shown["result"], float(trace[name][index])), (name, index, shown)
        check_equation(shown, name, index)
    check_formulas(page, trace, "decoder.1" if "decoder.blocks.1" in trace else "encoder.1")
    assert not page.errors
    assert not page.outside


def check_formulas(page, trace, layer):
    """Each card says how its value is made as the trace says it, lowered and raised letters aside."""
    page.go(view="block", layer=layer)
    cards = page.page.locator(".stages .card").evaluate_all(
        "cards => cards.map((one) => [one.dataset.tensor, one.querySelector('.formula').textContent])"
    )
    assert len(cards) > 15
    for name, text in cards:
        expected = re.sub(r"_|\^\((.*?)\)", r"\1", trace.value(name).formula)
        assert text.replace("\u2212", "-") == expected, name


def saved(visit, tmp_path: Path, make, config, **options):
    trace = gf.trace(make(ModelConfig(**BASE | config)).eval(), [5, 6, 7, 8, 9], max_new_tokens=4, **options)
    trace.to_html(tmp_path / "run.html")
    return visit((tmp_path / "run.html").as_uri())


def test_a_query_head_stands_beside_the_keys_and_values_it_uses(visit, tmp_path: Path):
    page = saved(visit, tmp_path, EncoderDecoder, {"kv_heads": 2})
    at = "decoder.blocks.0.self_attention"
    for head, group in enumerate((0, 0, 1, 1)):
        page.go(view="block", layer="decoder.0", head=head)
        for part, shown in (("q", head), ("k", group), ("v", group)):
            assert f"showing head {shown}" in page.text(f".card[data-tensor='{at}.{part}'] .shape")
    page.go(view="trace", tensor=f"{at}.k")
    page.page.locator("main [data-key='head:1']").click()
    page.page.wait_for_selector(f"[data-testid=values][data-tensor='{at}.k'][data-head='1']")
    assert page.pick(f"{at}.k", (1, 2, 3))["kind"] == "linear"
    assert page.page.locator("main [data-key='head:1'][aria-pressed=true]").count() == 1


def test_what_a_decoder_alone_writes_stands_at_the_end_of_the_line_that_wrote_it(visit, tmp_path: Path):
    page = saved(visit, tmp_path, DecoderOnly, {}, padding=2)
    page.go(view="flow")
    heights = "found => found.map((one) => Number(one.getAttribute('y')))"
    lines = page.page.locator(".flow text.piece").evaluate_all(heights)
    words = page.page.locator(".flow text.written").evaluate_all(heights)
    assert len(lines) == 10
    assert [round(line - word, 3) for line, word in zip(lines[-4:], words, strict=True)] == [2] * 4
    assert page.page.locator(".flow text.padding").count() == 2
    assert "decoder along the ribbons" not in page.text(".view-head")


def test_the_bucket_of_a_distance_is_named_even_where_two_hold_the_same_number(visit, tmp_path: Path):
    options = {"positions": "relative", "relative_buckets": 8, "relative_distance": 16}
    model = EncoderDecoder(ModelConfig(**BASE | options)).eval()
    model.encoder.distance.table.data.fill_(0.5)
    trace = gf.trace(model, [5, 6, 7, 8, 9], max_new_tokens=3)
    trace.to_html(tmp_path / "run.html")
    page = visit((tmp_path / "run.html").as_uri())
    for i, j, bucket in ((0, 0, 0), (2, 1, 1), (1, 2, 5), (0, 4, 6)):
        page.pick("encoder.distance", (0, i, j))
        assert page.text(".equation .note") == f"bucket {bucket}"
        assert page.text(".weight-rows .shape") == f"row {bucket}"


@pytest.mark.long
def test_a_large_model_is_drawn_whole(visit, tmp_path: Path):
    """Patterns of a megabyte come in two goes; in the end every block has its threads and every head its stamp."""
    model = EncoderDecoder(ModelConfig(**BASE | {"layers": 4, "heads": 8})).eval()
    trace = gf.trace(model, list(range(4, 40)), padding=4, max_new_tokens=30)
    assert sum(4 * trace[name].numel() for name in trace.names("*.pattern")) > 400_000
    file = tmp_path / "large.html"
    trace.to_html(file)
    page = visit(file.as_uri())
    page.go(view="flow")
    page.page.wait_for_function(
        "() => [...document.querySelectorAll('.flow .block')].filter((one) => one.querySelector('.weave')).length === 8"
    )
    page.go(view="block")
    page.page.wait_for_function("() => document.querySelectorAll('canvas.stamp').length === 12 * 8")
    assert page.page.locator("span.stamp").count() == 0
    assert not page.errors


def test_an_equation_that_does_not_hold_is_found():
    """The judge itself: a wrong digit, or a term left out, must not pass."""
    check_equation({"terms": "0.5 × (−0.25) + 1.5", "result": "1.375"}, "x", ())
    for terms in ("0.5 × (−0.25) + 1.6", "1.5"):
        with pytest.raises(AssertionError):
            check_equation({"terms": terms, "result": "1.375"}, "x", ())
    assert not agrees("0.1234", 0.12346)
