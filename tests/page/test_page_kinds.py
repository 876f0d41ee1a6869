"""The page of a model that does not translate: one that continues, fills gaps, tells labels, of texts or of images."""

from __future__ import annotations

import functools
import json
import random

import numpy as np
import pytest
import torch
from sampled import sampled
from test_page_numbers import check_equation, picks
from visitor import Live, agrees

import glassformer as gf
from glassformer.data import About, Tokenizer, TokenizerOptions
from glassformer.deploy.server.app import create_app
from glassformer.deploy.server.directions import reader_directions
from glassformer.deploy.server.requests import decode_image, encode_image
from glassformer.deploy.server.trace_api import Limits
from glassformer.pipelines.box import Example
from glassformer.pipelines.loading import BundleTokenizer

SIZES = {"d_model": 16, "heads": 4, "d_ff": 24, "layers": 2, "max_length": 64, "dropout": 0.0}
IMAGE = {"image_size": 8, "patch_size": 2, "channels": 1, "positions": "learned"}
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
CARD = About(source="en", target="en", purpose="numbers", purpose_zh="数字")
LABELS = ("number", "date", "time")
DRAWN = encode_image(np.random.RandomState(0).randint(0, 256, (8, 8, 1)).astype(np.uint8))
TEXTS = {"continue": "one two three", "fill": "one [MASK] three [MASK]", "label": "one two three", "image": DRAWN}
PICKS, WRITTEN = 10, 5
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
ASKED = "new URLSearchParams(location.hash.slice(1)).get('text')"


@functools.cache
def reader(kind: str):
    tokenizer = Tokenizer.train([(word, word) for word in WORDS], TokenizerOptions(kind="words"), reserved=["[MASK]"])
    config = SIZES | {"vocab_size": tokenizer.tgt_size}
    config |= {"fill": {"output_transform": True}, "label": {"labels": 3, "tied": False}}.get(kind, {})
    config |= {"labels": 10, "tied": False, **IMAGE} if kind == "image" else {}
    model = (gf.DecoderOnly if kind == "continue" else gf.EncoderOnly)(gf.ModelConfig(**config)).eval()
    chance = torch.Generator().manual_seed(0)
    for parameter in model.parameters():  # biases and gains of zero and one would hide mistakes
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=chance)
    if kind == "continue":
        return gf.TextGenerator(model, BundleTokenizer(tokenizer, continues=True), about=CARD)
    if kind == "fill":
        return gf.MaskFiller(model, BundleTokenizer(tokenizer, continues=False), about=CARD)
    if kind == "label":
        return gf.Classifier(model, BundleTokenizer(tokenizer, continues=False), LABELS, about=CARD)
    return gf.Classifier(model, None)


def asked(kind: str):
    """What the model is given, and how much it may write."""
    given = decode_image(DRAWN, reader(kind).image_processor) if kind == "image" else TEXTS[kind]
    return given, {"max_new_tokens": WRITTEN} if kind == "continue" else {}


def spoken(page, kind: str) -> list[str]:
    absent = ABSENT["decoder" if kind == "continue" else "encoder"]
    said = page.page.evaluate(SAID)
    assert len(said) > 100
    return [word for word in absent.split() if word in said]


GRID = [(kind, lang) for kind in TEXTS for lang in ("zh", "en")]


@pytest.mark.parametrize("which", sampled(GRID, [("image", "en")]), ids="-".join)
def test_a_page_shows_the_models_numbers_and_speaks_of_nothing_it_has_not(visit, which):
    kind, lang = which
    (given, options), text, writes = asked(kind), TEXTS[kind], kind == "continue"
    trace = gf.trace(reader(kind), given, **options)
    shown = reader_directions(reader(kind), "tiny", [Example(text, "an example", "例子")])
    with Live(create_app(shown, limits=Limits(continued=WRITTEN))) as live:
        page = visit(live.address)
        page.go()  # opens on the example
        assert page.page.locator("main").get_attribute("data-run") == trace.run
        views = page.page.locator("[role=tab]").evaluate_all("tabs => tabs.map((tab) => tab.dataset.view)")
        assert ("decode" in views, "cache" in views, "answer" in views) == (writes, writes, not writes)
        assert page.page.locator("[data-testid=beam]").count() == writes
        assert page.page.locator("#sentence").is_visible() == (kind != "image")
        assert page.text("[data-testid=output]").strip() == trace.said.strip()
        change = {"kind": "remove_head", "stack": "decoder" if writes else "encoder", "layer": 0, "attention": "self"}
        change["head"] = 1
        for view in views[:-1]:  # labs are of models of their own
            more = {"changes": json.dumps([change])} if view == "whatif" else {}
            page.go(text=text, view=view, lang=lang, **more)
            assert spoken(page, kind) == [], view
            if more:
                check_difference(page, kind, change)
        for name, index in picks(trace, PICKS, seed=1):
            shown = page.pick(name, index, text=text)
            assert agrees(shown["result"], float(trace[name][index])), (name, index, shown)
            check_equation(shown, name, index)
        if kind == "image":
            check_squares(page, trace)
        if not writes:
            check_answer(page, trace, text)
        page.page.goto(f"{live.address}#view={'answer' if writes else 'cache'}")  # which it does not have
        page.page.wait_for_selector("main[data-view=flow]")
        page.page.locator("[data-key=tour]").click()
        for stop in page.stops():
            assert spoken(page, kind) == [], stop
    assert page.outside == []


def check_difference(page, kind, change):
    """What the change did, as Python tells it; the page is at What if."""
    given, options = asked(kind)
    told = gf.what_if(reader(kind), given, [change], **options).difference
    rows = page.page.locator("[data-testid=differences] tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.querySelectorAll('td')].slice(0, 3).map((cell) => cell.textContent))"
    )
    assert len(rows) == len(told.forced) > 0
    for (piece, before, after), one in zip(rows, told.forced, strict=True):
        assert piece == one["piece"]
        assert agrees(before, one["before"])
        assert agrees(after, one["after"])


def check_answer(page, trace, text):
    page.go(text=text, view="answer")
    lists = page.page.locator("[data-testid=top]")
    assert lists.count() == len(trace.answer["places"])
    for shown, place in zip(lists.all(), trace.answer["places"], strict=True):
        assert int(shown.get_attribute("data-position")) == place["position"]
        assert shown.locator(".bar-label").all_inner_texts() == [one["piece"] for one in place["top"]]
        for bar, one in zip(shown.locator(".bar-more").all_inner_texts(), place["top"], strict=True):
            assert agrees(bar, one["log_probability"])


def check_squares(page, trace):
    """The picture is the image, and the shares are the pattern's: of the whole, of a square, of one head, of all."""
    pattern = trace["encoder.blocks.1.self_attention.pattern"]
    for place, head in ((0, None), (7, None), (7, 2)):
        page.go(text=DRAWN, layer="encoder.1", **{"token": f"src:{place}"} if place else {})
        page.page.locator(f"[data-key='flow-head:{'null' if head is None else head}']").click()
        page.page.wait_for_selector(f"[data-key='flow-head:{'null' if head is None else head}'][aria-checked=true]")
        expected = (pattern.mean(0) if head is None else pattern[head])[place]
        squares = page.page.locator(".looks .square").evaluate_all("all => all.map((one) => Number(one.dataset.share))")
        assert len(squares) == 16
        assert max(abs(one - float(share)) for one, share in zip(squares, expected[1:], strict=True)) < 1e-6
        shown = page.page.locator(".looks .share").all_text_contents()
        for text, share in zip(shown, expected[1:], strict=True):
            assert agrees(text, 100 * float(share))
    drawn = page.page.locator(".given image").evaluate(
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
    image = decode_image(DRAWN, reader("image").image_processor).astype(float)[:, :, 0]
    grey = 255 * (image - image.min()) / (image.max() - image.min())
    assert np.abs(np.array(drawn).reshape(8, 8) - grey).max() <= 0.51
    page.page.locator(f".given [data-place='{random.Random(2).randrange(1, 17)}']").click()
    page.page.wait_for_selector(".given .square.chosen")
    check_pad(page)


def check_pad(page):
    """What is drawn by hand is what the model reads."""
    page.page.locator("[data-key=clear]").click()
    page.page.wait_for_function(f"() => /^pixels:A+==$/.test({ASKED})")
    nothing = decode_image(page.page.evaluate(ASKED), reader("image").image_processor)
    page.page.wait_for_selector(f"main[data-run='{gf.trace(reader('image'), nothing).run}'][aria-busy=false]")
    box = page.page.locator(".pad").bounding_box()
    page.page.mouse.move(box["x"] + box["width"] * 3.5 / 8, box["y"] + box["height"] * 2.5 / 8)
    page.page.mouse.down()
    page.page.mouse.up()
    page.page.wait_for_function(f"() => !/^pixels:A+==$/.test({ASKED})")
    drawn = decode_image(page.page.evaluate(ASKED), reader("image").image_processor)
    assert drawn[2, 3] == drawn.max() == 255
    assert (drawn == 128).sum() == 4  # half as light beside it
    assert (drawn > 0).sum() == 5
    page.page.wait_for_selector(f"main[data-run='{gf.trace(reader('image'), drawn).run}']")


def test_the_search_for_words_can_find_them(visit, translator, tmp_path):
    gf.trace(translator, "one two").to_html(tmp_path / "run.html")
    page = visit((tmp_path / "run.html").as_uri())
    found = set()
    for lang in ("en", "zh"):
        for view in ("flow", "decode", "cache"):
            page.go(view=view, lang=lang)
            found |= {*spoken(page, "fill"), *spoken(page, "continue")}
    assert {"decod", "encod", "translat", "cross", "cache", "解码", "编码器", "译", "交叉", "缓存"} <= found


def test_an_image_that_the_model_cannot_read_is_refused(visit):
    import httpx

    with Live(create_app(reader_directions(reader("image"), "tiny"))) as live:
        for text in ("decode_image:AAAA", "seven", "decode_image:!", ""):
            answer = httpx.post(f"{live.address}/api/trace", json={"text": text})
            assert answer.status_code == 422
            assert answer.json()["error"]["code"] == "image"
        assert httpx.post(f"{live.address}/api/translate", json={"text": "one"}).status_code == 422
        assert httpx.post(f"{live.address}/api/trace", json={"text": "x" * 2_000_000}).status_code == 413
