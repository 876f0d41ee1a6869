"""The drawings of the model on the page: those of its parts, each leading to its view and its chapter."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from visitor import SENTENCE, VIEWS, Live

import glassformer as gf
from glassformer.deploy.server.app import create_app, is_handbook
from glassformer.deploy.server.directions import translator_directions
from glassformer.explain.schematic import DRAWINGS, schematics

CHAPTERS = Path(__file__).parents[2] / "docs"


def open_drawing(page, kind: str, **state: str) -> None:
    page.go(text=SENTENCE, view="flow", drawing=kind, **state)
    page.page.wait_for_selector(f"[data-kind='{kind}'][aria-pressed=true]")
    page.page.wait_for_selector(".drawing svg")


def shown_parts(page) -> list[str]:
    return page.page.locator(".drawing [data-part]").evaluate_all("all => all.map((one) => one.dataset.part)")


def test_each_drawing_is_that_of_the_model(visit, translator) -> None:
    page = visit()
    page.go(text=SENTENCE)
    page.page.locator("[data-testid=drawings] summary").click()
    page.page.wait_for_selector(".drawing svg")
    assert "drawing=model" in page.page.url
    for language in ("en", "zh"):
        drawn = schematics(translator.model, language)
        assert set(drawn) == set(DRAWINGS)
        for kind, svg in drawn.items():
            open_drawing(page, kind, lang=language)
            wanted = re.findall(r'data-part="([^"]+)"', svg)
            page.page.wait_for_function(
                "n => document.querySelectorAll('.drawing [data-part]').length === n", arg=len(wanted)
            )
            assert shown_parts(page) == wanted
    page.page.locator("[data-testid=drawings] summary").click()
    page.page.wait_for_function("() => !location.hash.includes('drawing')")


SUM = "encoder.blocks.0.self_attention_residual"
LEADS = [
    ("model", "encoder.embedding.positions", "positions", 3, None),
    ("model", "encoder.embedding.tokens", "cell", 2, "encoder.embedding.tokens"),
    ("model", "memory", "cache", 9, None),
    ("model", "head", "decode", 11, None),
    ("decoder-layer", "decoder.blocks.0.cross_attention", "block", 10, None),
    ("decoder-layer", "decoder.blocks.0.feed_forward.hidden", "block", 8, "decoder.blocks.1.feed_forward.hidden"),
    ("encoder-layer", f"{SUM}.+", "block", 7, SUM),
    ("attention", "decoder.blocks.0.cross_attention.pattern", "block", 4, "decoder.blocks.1.cross_attention.pattern"),
    ("masks", "src_mask", "whatif", 6, None),
]  # fmt: skip


def test_each_part_leads_to_its_view_and_its_chapter(visit) -> None:
    page = visit()
    for lead in LEADS:
        check_lead(page, *lead)


def check_lead(page, kind, part, view, chapter, tensor) -> None:
    open_drawing(page, kind, layer="decoder.1")
    # Its words: a wire may lie over the middle of it.
    page.page.locator(f".drawing [data-part='{part}']").dispatch_event("click")
    told = page.text("[data-testid=part]")
    assert part in told
    assert f"Handbook, chapter {chapter} " in told
    file = re.search(r"docs/en/(\d\d-[\w-]+\.md)", told)[1]
    assert (CHAPTERS / "en" / file).exists()
    assert int(file[:2]) == chapter
    page.page.locator(f"[data-testid=part] button[data-view={view}]").click()
    page.page.wait_for_selector(f"main[data-view={view}] > section")
    if view == "block":
        stack = part.split(".")[0]
        assert page.page.locator("button[data-layer][aria-pressed=true]").get_attribute("data-layer").startswith(stack)
    if tensor and view == "block":
        page.page.wait_for_selector(f"[id='stage-{tensor}']")
        page.page.wait_for_function(
            "id => document.getElementById(id).getBoundingClientRect().top < innerHeight", arg=f"stage-{tensor}"
        )
    elif tensor:
        page.page.wait_for_selector(f"[data-tensor='{tensor}']")


def test_parts_are_reached_by_keyboard_and_one_that_only_trains_says_so(visit) -> None:
    page = visit()
    open_drawing(page, "encoder-layer")
    page.page.locator(".drawing [data-part='encoder.blocks.0.self_attention_residual.dropout']").dispatch_event("click")
    assert "It acts in training only" in page.text("[data-testid=part]")
    assert page.page.locator("[data-testid=part] button").count() == 0
    open_drawing(page, "attention")
    parts = page.page.locator(".drawing [data-part]")
    parts.first.focus()
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("Enter")
    assert parts.nth(1).evaluate("one => one === document.activeElement && one.classList.contains('chosen')")
    assert parts.nth(1).get_attribute("data-part") in page.text("[data-testid=part]")
    assert page.page.locator(".drawing [data-part][tabindex='0']").count() == 1


def test_a_saved_page_has_the_drawings(visit, translator, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    gf.trace(translator, SENTENCE).to_html(file)
    page = visit(file.as_uri())
    open_drawing(page, "masks", lang="zh")
    page.page.locator(".drawing [data-part='src_mask']").dispatch_event("click")
    told = page.text("[data-testid=part]")
    assert "手册第 6 章 docs/zh/06-masks.md" in told
    assert page.page.locator("[data-testid=part] button").count() == 0, "what-if needs a server"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for language in ("en", "zh"):
        (tmp_path / "site" / language).mkdir(parents=True)
        text = f"<title>{language}</title><script>document.title += '!'</script>"
        (tmp_path / "site" / language / "04-attention.html").write_text(text, encoding="utf-8")
    (tmp_path / "secret.txt").write_text("not for readers", encoding="utf-8")
    return tmp_path / "site"


def test_the_handbook_is_served_where_it_has_been_built(visit, translator, site: Path, tmp_path: Path) -> None:
    assert is_handbook(site)
    assert not is_handbook(tmp_path)
    with Live(create_app(translator_directions(translator, "toy", [SENTENCE]), handbook=site)) as server:
        assert httpx.get(f"{server.address}/api/model").json()["handbook"] is True
        for away in ("/handbook/../secret.txt", "/handbook/%2e%2e/secret.txt", "/handbook/en/nothing.html"):
            assert httpx.get(server.address + away).status_code == 404
        page = visit(server.address)
        open_drawing(page, "encoder-layer")
        page.page.locator(".drawing [data-part='encoder.blocks.0.self_attention']").dispatch_event("click")
        with page.context.expect_page() as opened:
            page.page.locator("[data-testid=part] a").click()
        opened.value.wait_for_function("() => document.title === 'en!'")
        page.go(text=SENTENCE)


def test_without_a_site_there_is_no_handbook(live) -> None:
    assert httpx.get(f"{live.address}/api/model").json()["handbook"] is False
    assert httpx.get(f"{live.address}/handbook/en/04-attention.html").status_code == 404


def test_a_model_without_two_stacks_has_no_drawings() -> None:
    sizes = {"vocab_size": 32, "d_model": 8, "heads": 2, "d_ff": 16}
    assert schematics(gf.DecoderOnly(gf.ModelConfig(layers=1, **sizes)), "en") == {}
    assert schematics(gf.EncoderDecoder(gf.ModelConfig(layers=0, **sizes)), "en") == {}


@pytest.mark.long
def test_what_the_handbook_says_to_open_opens(visit) -> None:
    """The addresses of its chapter on the page: one for each view, the same in both languages."""
    chapters = [(CHAPTERS / language / "18-the-page.md").read_text("utf-8") for language in ("en", "zh")]
    found = [re.findall(r"^\d\. \*\*.+?\*\*.{1,2}`#(.+?)`", text, re.M) for text in chapters]
    assert found[0] == found[1]
    states = [dict(pair.split("=", 1) for pair in address.split("&")) for address in found[0]]
    assert [state["view"] for state in states] == VIEWS
    page = visit()
    looked = {"cell": "[data-testid=equation]", "decode": ".tree .node", "labs": ".lab", "trace": "[aria-pressed=true]"}
    for state in states:
        page.go(**state)
        page.page.wait_for_selector(f"main[data-view={state['view']}] {looked.get(state['view'], 'h2')}")
