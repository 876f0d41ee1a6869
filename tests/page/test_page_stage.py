"""The page on a stage: how much of it is picture, how large its type is, and that each colour means one thing."""

from __future__ import annotations

import colorsys
import re
from itertools import combinations

import pytest
from visitor import SENTENCE, VIEWS, Live

import glassformer as gf
from glassformer.data import About
from glassformer.deploy.server.app import create_app
from glassformer.deploy.server.directions import translator_directions
from glassformer.page import page_files

CROSS = "decoder.blocks.1.cross_attention.pattern"
HALL, LAPTOP = {"width": 1920, "height": 1080}, {"width": 1280, "height": 720}
SMALLEST_TYPE = """() => {
    let smallest = [99, ''];
    for (const element of document.querySelectorAll('body *')) {
        const own = [...element.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim());
        if (!own || !element.checkVisibility() || element.closest('.unseen, title, noscript')) continue;
        const zoom = element.ownerSVGElement ? element.getScreenCTM().a : 1;
        const size = zoom * parseFloat(getComputedStyle(element).fontSize);
        if (size < smallest[0]) smallest = [size, element.outerHTML.slice(0, 120)];
    }
    return smallest;
}"""


def test_on_a_laptop_the_head_leaves_two_thirds_to_the_picture_and_folds(visit):
    page = visit()
    page.page.set_viewport_size(LAPTOP)
    page.go(text=SENTENCE)
    bottom = "document.querySelector('#tabs').getBoundingClientRect().bottom"
    assert page.page.evaluate(bottom) <= LAPTOP["height"] / 3
    page.page.locator("[data-key=fold]").click()
    assert page.page.evaluate(bottom) <= LAPTOP["height"] / 7
    assert "fold=1" in page.page.url
    assert page.page.locator("[data-key=fold]").get_attribute("aria-expanded") == "false"
    assert page.text("[data-testid=output]")
    page.page.locator("[data-key=fold]").press("Enter")
    assert "fold" not in page.page.url
    assert page.page.locator(".token-rows").is_visible()


def test_in_a_hall_no_type_is_small_and_every_view_keeps_its_promise(visit):
    page = visit()
    page.page.set_viewport_size(HALL)
    for view in VIEWS:
        page.go(text=SENTENCE, view=view, beam=2, tensor=CROSS, cell="0.1.1")
        assert page.page.locator("main h2").count() == 1
        promised = page.text(f"[data-key='tab:{view}']") in page.text("#foot p")  # that its cells can be clicked
        cells = page.page.locator("main .field[data-tensor]").count()
        assert promised == (cells > 0), f"{view} has {cells} fields of cells; does `footer` in texts.js name it?"
        size, place = page.page.evaluate(SMALLEST_TYPE)
        assert size >= 13, (view, place)
        assert float(page.page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")) >= 16


def test_the_stages_of_a_block_are_all_in_sight(visit):
    page = visit()
    sizes = {"encoder.0": LAPTOP, "decoder.0": HALL, "decoder.1": {"width": 390, "height": 844}}
    for layer, viewport in sizes.items():
        page.page.set_viewport_size(viewport)
        page.go(text=SENTENCE, view="block", layer=layer)
        outside = page.page.locator(".overview .step").evaluate_all(
            "steps => steps.map((one) => one.getBoundingClientRect().right > window.innerWidth)"
        )
        assert outside == [False] * len(outside) != [], viewport
        assert page.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


@pytest.mark.long
def test_a_token_is_followed_by_a_click_in_the_picture_or_in_the_head(visit):
    page = visit()
    page.go(text=SENTENCE)
    place = page.page.locator(".piece-place[data-side=src][data-index='2']")
    place.click(position={"x": 3, "y": 3})
    page.page.wait_for_selector(".flow-picture.asking .piece[data-side=src][data-index='2'][data-locked]")
    assert "token=src%3A2" in page.page.url
    page.page.mouse.move(0, 0)
    assert page.page.locator(".flow-picture.asking").count() == 1  # held, not pointed at
    page.page.locator("[data-key='token:src:2']").click()
    page.page.wait_for_selector(".flow-picture:not(.asking)")
    page.page.locator("[data-key='tab:trace']").click()
    page.page.wait_for_selector("main[data-view=trace]")
    page.page.locator("[data-key='token:tgt:1']").click()
    page.page.wait_for_selector("main[data-view=flow] .piece[data-side=tgt][data-index='1'][data-locked]")
    page.page.reload()
    page.page.wait_for_selector(".piece[data-side=tgt][data-index='1'][data-locked]")


def test_each_colour_means_one_thing():
    style = page_files()["base.css"]
    themes = re.findall(r":root[^{]*\{([^}]*--paper[^}]*)\}", style)
    assert len(themes) == 2
    for theme in themes:
        hues, greys = {}, {}
        for name in ("q", "k", "v", "encoder", "decoder", "accent", "map-plus-2", "map-minus-2"):
            red, green, blue = (int(part, 16) / 255 for part in re.search(rf"--{name}: #(..)(..)(..);", theme).groups())
            hue, _, saturation = colorsys.rgb_to_hls(red, green, blue)
            (hues if saturation > 0.25 else greys)[name] = 360 * hue
        assert set(greys) == {"map-minus-2"}
        for (one, a), (other, b) in combinations(hues.items(), 2):
            assert min(abs(a - b), 360 - abs(a - b)) >= 24, (one, other)


CARD = About("en", "de", "numbers up to six", "一到六的数字", (SENTENCE,))


def test_the_page_says_what_the_model_is_for_and_warns_of_words_it_never_met(visit, translator):
    known = gf.Translator(translator.model, translator.tokenizer, about=CARD)
    with Live(create_app(translator_directions(known, "toy", CARD.examples))) as server:
        page = visit(server.address)
        page.go()
        assert page.text("#ask .source .label") == "English \u00b7 numbers up to six"
        assert "numbers up to six" in page.page.locator("#sentence").get_attribute("placeholder")
        assert "German" in page.text("#ask .target .label")
        assert page.page.locator("[data-testid=unfamiliar]").count() == 0
        page.page.locator("#sentence").fill("")
        page.page.wait_for_selector("[data-testid=empty]")
        assert "This model learnt numbers up to six, from English to German." in page.text("[data-testid=empty]")
        page.page.locator("#sentence").fill("Hello, how are six?")
        told = "This model learnt numbers up to six; it may not know: Hello, how, are"
        page.page.wait_for_selector("[data-testid=unfamiliar]")
        assert page.text("[data-testid=unfamiliar]") == told
        page.page.locator("[data-key=tour]").click()
        assert "numbers up to six, from English to German" in page.text(".tour")
        page.page.keyboard.press("Escape")
        page.page.locator("[data-key='lang:zh']").click()
        page.page.wait_for_selector("html[lang=zh-Hans]")
        assert page.text("[data-testid=unfamiliar]") == "这个模型学的是一到六的数字，可能不认识： Hello, how, are"
        assert page.text("#ask .source .label") == "英语 \u00b7 一到六的数字"
