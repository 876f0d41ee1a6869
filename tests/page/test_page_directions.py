"""The page on a box of two models: four directions, each with what to try, in both languages."""

from __future__ import annotations

import pytest
from tiny_box import SENTENCES
from visitor import Live, agrees

import glassformer as gf
from glassformer.deploy.server.app import Limits, create_app
from glassformer.deploy.server.directions import box_directions
from glassformer.pipelines import box

EN, DE, ZH = (SENTENCES[language][0] for language in ("en", "de", "zh"))
MOST = 8  # tokens; models that have learnt nothing know no end
SHIPPED = box.HERE


@pytest.fixture(scope="module")
def boxed(box_folder):
    """A server of a small box, and the box's translators."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box, "HERE", box_folder)
        with Live(create_app(box_directions("cpu", "en-de"), limits=Limits(new_tokens=MOST))) as server:
            yield server


def tokens(page) -> list[str]:
    return page.page.locator("[data-testid=tokens-src] .token").all_inner_texts()


def choose(page, direction: str) -> None:
    """Press the button of a direction, and wait for its run."""
    before = page.page.locator("#view").get_attribute("data-run")
    page.page.locator(f"[data-direction={direction}]").click()
    page.page.wait_for_function("run => document.querySelector('#view').dataset.run !== run", arg=before)
    page.page.wait_for_selector(f"[data-direction={direction}][aria-pressed=true]")


@pytest.mark.long
def test_the_visitor_chooses_the_direction_and_is_told_what_that_does(boxed, visit):
    page = visit(boxed.address)
    page.go(lang="en")
    named = page.page.locator("[data-direction]").all_inner_texts()
    arrows = ["English → German", "German → English", "English → Chinese", "Chinese → English"]
    assert named == arrows
    about = "translates between English and German. It learnt three sentences, nothing else."
    assert page.text("[data-testid=about]") == f"en-de {about}"
    assert tokens(page)[0] == "<2de>"
    assert page.page.locator("[data-testid=tokens-src] .tag").get_attribute("title") == (
        "This token tells the model to write German"
    )

    choose(page, "de-en")
    assert tokens(page)[0] == "<2en>"
    told = page.text(".notices")
    assert "The same model, en-de, now writes English." in told
    assert "the first token of the source: <2en>" in told
    assert page.text("#ask .source .label") == "German"

    choose(page, "zh-en")
    assert page.page.locator("#sentence").input_value() == box.examples("zh-en")[0].text
    assert "Another model, en-zh, now writes English." in page.text(".notices")
    assert page.text("[data-testid=about]").startswith("en-zh translates between English and Chinese.")

    page.page.reload()
    page.page.wait_for_selector("[data-direction=zh-en][aria-pressed=true]")
    assert "direction=zh-en" in page.page.url
    page.page.go_back()
    page.page.wait_for_selector("[data-direction=de-en][aria-pressed=true]")
    page.page.wait_for_function("() => document.querySelector('#ask .source .label').textContent === 'German'")
    assert tokens(page)[0] == "<2en>"


def test_the_sentence_stays_where_its_language_does_and_turns_where_it_can(boxed, visit):
    page = visit(boxed.address)
    page.go(lang="en", text=EN)
    choose(page, "en-zh")
    assert page.page.locator("#sentence").input_value() == EN
    written = page.text("[data-testid=output]")
    choose(page, "zh-en")
    shown = page.page.locator("#sentence").input_value()
    if written.strip():  # what a model that has learnt nothing writes may be nothing
        assert shown.split() == written.split()
        assert "The sentence is the translation that was here before." in page.text(".notices")


def test_every_example_says_in_both_languages_what_to_look_at_on_a_phone_too(boxed, visit):
    page = visit(boxed.address)
    for lang, label, look in (("en", "label", "look"), ("zh", "label_zh", "look_zh")):
        page.go(lang=lang, direction="de-en", text=DE)
        page.page.wait_for_selector("[data-direction=de-en][aria-pressed=true]")
        known = box.examples("de-en")
        assert page.page.locator(".example").all_inner_texts() == [getattr(one, label) for one in known]
        assert page.page.locator("[data-testid=look]").count() == 0
        one = known[2]
        button = page.page.locator(".example").nth(2)
        assert button.get_attribute("title") == one.text
        button.click()
        page.page.wait_for_selector("[data-testid=look]")
        assert getattr(one, look) in page.text("[data-testid=look]")
        assert page.page.locator("#sentence").input_value() == one.text
    assert page.text("[data-testid=about]") == "en-de 在英语和德语之间互译。它只学过三句话。"
    assert page.page.locator("[data-direction]").all_inner_texts()[1] == "德语 → 英语"
    page.page.set_viewport_size({"width": 360, "height": 740})
    for lang in ("en", "zh"):  # on a phone nothing of it is cut; a direction that is not there is the first
        page.go(lang=lang, text=EN, direction="fr-en")
        page.page.wait_for_selector("[data-direction=en-de][aria-pressed=true]")
        assert tokens(page)[0] == "<2de>"
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 360
        for button in page.page.locator("[data-direction], .example").all():
            place = button.bounding_box()
            assert place["x"] >= 0
            assert place["x"] + place["width"] <= 360


def test_a_number_on_the_page_is_of_the_model_that_is_shown(boxed, visit):
    at = (1, 3)
    page = visit(boxed.address)
    for direction in ("en-zh", "en-de"):
        translator = gf.Translator.load(box.folder(direction), to=direction[3:])
        trace = gf.trace(translator, EN, max_new_tokens=MOST)
        for name in ("encoder.embedding.scaled", "encoder.blocks.0.self_attention.output"):
            found = page.pick(name, at, text=EN, direction=direction)
            assert agrees(found["result"], float(trace[name][at]))
