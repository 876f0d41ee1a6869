"""The page of a model that does not translate: one that continues, fills gaps, tells labels, of texts or of images."""

from __future__ import annotations

import random

import pytest
import torch
from test_page_numbers import check_equation, picks
from visitor import agrees

import glassformer as gf

SIZES = {"vocab_size": 40, "d_model": 16, "heads": 4, "d_ff": 24, "layers": 2, "max_length": 64, "dropout": 0.0}
IDS = [5, 6, 7, 8, 9]
IMAGE = {"image_size": 8, "patch_size": 2, "channels": 1, "positions": "learned"}
KINDS = {
    "continue": (gf.DecoderOnly, {}),
    "fill": (gf.EncoderOnly, {"output_transform": True}),
    "label": (gf.EncoderOnly, {"labels": 3, "tied": False}),
    "image": (gf.EncoderOnly, {"labels": 10, "tied": False, **IMAGE}),
}
PICKS = 16
# What an encoder alone, and a decoder alone, has nothing of.
ABSENT = {
    "encoder": "decod beam translat target cross cache hypothes 解码 束 译 目标 交叉 缓存",
    "decoder": "encod translat source cross 编码器 译 源 交叉",
}
SAID = """() => {
    const found = [document.body.innerText, document.title];
    for (const one of document.body.querySelectorAll('*')) {
        if (!one.checkVisibility()) continue;
        for (const name of ['aria-label', 'title', 'placeholder', 'aria-valuetext', 'alt']) {
            found.push(one.getAttribute(name) ?? '');
        }
    }
    return found.join('\\n').toLowerCase();
}"""


def trace_of(kind: str) -> gf.Trace:
    make, options = KINDS[kind]
    model = make(gf.ModelConfig(**SIZES | options)).eval()
    chance = torch.Generator().manual_seed(0)
    for parameter in model.parameters():  # biases and gains of zero and one would hide mistakes
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=chance)
    if kind == "image":
        return gf.trace(model, torch.rand(1, 8, 8, generator=chance))
    return gf.trace(model, IDS, **{"max_new_tokens": 6} if kind == "continue" else {})


def spoken(page, kind: str) -> list[str]:
    absent = ABSENT["decoder" if kind == "continue" else "encoder"]
    said = page.page.evaluate(SAID)
    assert len(said) > 100
    return [word for word in absent.split() if word in said]


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_page_shows_the_models_numbers_and_speaks_of_nothing_else(visit, tmp_path, kind):
    trace = trace_of(kind)
    trace.to_html(tmp_path / "run.html")
    page = visit((tmp_path / "run.html").as_uri())
    page.go()
    views = page.page.locator("[role=tab]").evaluate_all("tabs => tabs.map((tab) => tab.dataset.view)")
    writes = kind == "continue"
    assert ("decode" in views, "cache" in views, "answer" in views) == (writes, writes, not writes)
    for lang in ("en", "zh"):
        for view in views:
            page.go(view=view, lang=lang)
            assert spoken(page, kind) == [], (view, lang)
    for name, index in picks(trace, PICKS, seed=1):
        shown = page.pick(name, index)
        assert agrees(shown["result"], float(trace[name][index])), (name, index, shown)
        check_equation(shown, name, index)
    if kind == "image":
        check_squares(page, trace)
    if not writes:
        check_answer(page, trace)
    page.page.goto(f"{page.address}#view={'answer' if writes else 'cache'}")  # a view that it does not have
    page.page.wait_for_selector("main[data-view=flow]")
    assert page.outside == []


def check_answer(page, trace):
    page.go(view="answer")
    lists = page.page.locator("[data-testid=top]")
    assert lists.count() == len(trace.answer["places"])
    for shown, place in zip(lists.all(), trace.answer["places"], strict=True):
        texts = shown.locator(".bar-more").all_inner_texts()
        assert len(texts) in (3, len(place["top"]))
        for text, one in zip(texts, place["top"], strict=False):
            assert agrees(text, one["log_probability"])


def check_squares(page, trace):
    """The picture is the image, and the shares are the pattern's: of the whole, of a square, of one head, of all."""
    pattern = trace["encoder.blocks.1.self_attention.pattern"]
    for place, head in ((0, None), (7, None), (7, 2)):
        page.go(layer="encoder.1", **{"token": f"src:{place}"} if place else {})
        page.page.locator(f"[data-key='flow-head:{'null' if head is None else head}']").click()
        page.page.wait_for_selector(f"[data-key='flow-head:{'null' if head is None else head}'][aria-checked=true]")
        expected = (pattern.mean(0) if head is None else pattern[head])[place]
        squares = page.page.locator(".looks .square").evaluate_all(
            "all => all.map(({dataset}) => Number(dataset.share))"
        )
        assert len(squares) == 16
        assert max(abs(one - float(share)) for one, share in zip(squares, expected[1:], strict=True)) < 1e-6
        shown = page.page.locator(".looks .share").all_text_contents()
        for text, share in zip(shown, expected[1:], strict=True):
            assert agrees(text, 100 * float(share))
    pixels = page.page.locator(".given image").evaluate(
        """async (image) => {
            const picture = new Image();
            picture.src = image.getAttribute('href');
            await picture.decode();
            const canvas = new OffscreenCanvas(picture.width, picture.height);
            const pen = canvas.getContext('2d');
            pen.drawImage(picture, 0, 0);
            return [...pen.getImageData(0, 0, picture.width, picture.height).data].filter((_, i) => i % 4 === 0);
        }"""
    )
    image = torch.zeros(8, 8)
    for i, square in enumerate(trace["encoder.embedding.pixels"]):
        row, column = 2 * (i // 4), 2 * (i % 4)
        image[row : row + 2, column : column + 2] = square.view(2, 2)
    grey = (255 * (image - image.min()) / (image.max() - image.min())).flatten()
    assert max(abs(a - float(b)) for a, b in zip(pixels, grey, strict=True)) <= 0.51
    page.page.locator(f".given [data-place='{random.Random(2).randrange(1, 17)}']").click()
    page.page.wait_for_selector(".given .square.chosen")


def test_the_search_for_words_can_find_them(visit, translator, tmp_path):
    gf.trace(translator, "one two").to_html(tmp_path / "run.html")
    page = visit((tmp_path / "run.html").as_uri())
    found = set()
    for lang in ("en", "zh"):
        for view in ("flow", "decode", "cache"):
            page.go(view=view, lang=lang)
            found |= {*spoken(page, "fill"), *spoken(page, "continue")}
    assert {"decod", "encod", "translat", "cross", "cache", "解码", "编码器", "译", "交叉", "缓存"} <= found
