"""What a person does with the page: pointing, the beam tree, the cache, what-if, the keyboard, the language."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from sampled import sampled
from visitor import SCREEN, SENTENCE, VIEWS, Live, agrees, printed

import glassformer as gf
from glassformer.deploy.server.app import create_app
from glassformer.deploy.server.directions import translator_directions

CROSS = "decoder.blocks.1.cross_attention.pattern"


@pytest.mark.long
def test_pointing_at_cross_attention_lights_its_target_and_its_source(visit, translator):
    manifest = gf.trace(translator, SENTENCE, padding=2).manifest()
    rows, cols = len(manifest["target"]["pieces"]), len(manifest["source"]["pieces"])
    assert rows != cols
    page = visit()
    page.go(text=SENTENCE, padding=2, view="block", layer="decoder.1")
    card = page.page.locator(f".card[data-tensor='{CROSS}']")
    field = card.locator(".field")
    field.scroll_into_view_if_needed()
    box = field.locator(".ink").bounding_box()
    for i, j in ((0, 3), (rows - 1, 0), (2, cols - 1)):
        field.hover(position={"x": (j + 0.5) * box["width"] / cols, "y": (i + 0.5) * box["height"] / rows})

        def lit(place, side):
            return place.locator(f"[data-side={side}].lit").evaluate_all(
                "found => found.map((one) => [Number(one.dataset.index), one.textContent])"
            )

        for place in (page.page.locator(".token-rows"), card):
            assert lit(place, "tgt") == [[i, manifest["target"]["pieces"][i]]]
            assert lit(place, "src") == [[j, manifest["source"]["pieces"][j]]]
        page.page.wait_for_selector(f"[data-testid=equation][data-tensor='{CROSS}'][data-index='0.{i}.{j}']")


def test_flow_draws_the_ribbons_and_threads_of_the_traces_patterns_and_opens_blocks(visit, translator):
    trace = gf.trace(translator, SENTENCE)
    shares = trace[CROSS].mean(0)
    page = visit()
    page.go(text=SENTENCE)
    drawn = page.page.locator(".ribbon title").evaluate_all(
        """titles => titles.map((one) =>
            [one.parentNode.dataset.to, one.parentNode.dataset.from, one.textContent.split(': ').pop()])"""
    )
    assert len(drawn) == int((shares >= 0.03).sum())
    for to, source, text in drawn:
        i, j = int(to.removeprefix("tgt:")), int(source.removeprefix("src:"))
        assert abs(float(text) - float(shares[i, j])) < 6e-4
    threads = page.page.locator(".block[data-layer='encoder.0'] .weave")
    pattern = trace["encoder.blocks.0.self_attention.pattern"]
    assert threads.count() == int((pattern.mean(0) >= 0.03).sum()) != int((pattern[1] >= 0.03).sum())
    page.page.locator("[data-key='flow-head:1']").click()
    page.page.wait_for_selector("[data-key='flow-head:1'][aria-checked=true]")
    page.page.wait_for_selector(".weave", state="attached")
    assert threads.count() == int((pattern[1] >= 0.03).sum())
    page.page.locator(".block[data-layer='encoder.1']").click()
    page.page.wait_for_selector("main[data-view=block]")
    assert page.page.locator("[data-layer='encoder.1'][aria-pressed=true]").count() == 1


def test_the_beam_tree_has_the_traces_nodes_and_goes_on_from_a_pruned_one(visit, translator):
    trace = gf.trace(translator, SENTENCE, beam=3)
    nodes = trace.beam["nodes"]
    page = visit()
    page.go(text=SENTENCE, beam=3, view="decode")
    end = max(node["step"] for node in nodes if node["winner"])
    assert page.page.locator(".tree .column").count() == end + 1 == len(trace.steps)
    page.page.locator("[data-key=tree-later]").click()  # the search went on after its best
    shown = page.page.locator(".node").evaluate_all(
        """nodes => nodes.map(({dataset}) =>
            [Number(dataset.id), Number(dataset.token), dataset.state, dataset.winner])"""
    )
    expected = [[n["id"], n["token"], n["state"], "yes" if n["winner"] else "no"] for n in nodes]
    assert sorted(shown) == expected
    winners = [token for _, token, _, winner in sorted(shown) if winner == "yes"]
    assert winners[1:] == [*trace.output["ids"], translator.model.config.end_id]
    assert translator.tokenizer.decode_target([winners[1:]])[0] == page.text("[data-testid=output]")
    end = translator.model.config.end_id
    pruned = next(n for n in nodes if n["state"] == "pruned" and n["step"] == 1 and n["token"] != end)
    path = [nodes[pruned["parent"]]["token"], pruned["token"]]
    page.page.locator(f".node[data-id='{pruned['id']}']").click()
    again = gf.trace(translator, SENTENCE, beam=3, prefix=path)
    page.page.wait_for_selector(f"main[data-run='{again.run}']")
    assert page.text("[data-testid=output]") == again.output["text"]
    assert again.output["ids"][:2] == path
    page.page.locator("[data-testid=prefix] button").click()
    page.page.wait_for_selector(f"main[data-run='{trace.run}']")
    assert not page.errors


def test_decoding_steps_show_the_traces_probabilities(visit, translator):
    trace = gf.trace(translator, SENTENCE)
    page = visit()
    for step in range(len(trace.steps)):
        page.go(text=SENTENCE, view="decode", step=step)
        rows = page.page.locator("[data-testid=top] .bar-row").evaluate_all(
            """rows => rows.map((row) => [row.querySelector('.bar-label').textContent,
                row.querySelector('.bar-more').textContent, row.classList.contains('chosen')])"""
        )
        top = trace.steps[step]["top"]
        assert [row[0] for row in rows] == [one["piece"] for one in top]
        for (_, text, chosen), one in zip(rows, top, strict=True):
            assert agrees(text, one["log_probability"])
            assert chosen == (one["id"] == trace.steps[step]["chosen"])
        assert page.text("[data-testid=step-of]") == f"step {step + 1} of {len(trace.steps)}"
    assert trace.steps[-1]["total"] / len(trace.steps) == trace.output["score"]


def test_a_chosen_token_that_is_not_among_the_likeliest_is_shown_with_its_own_probability(visit, translator):
    free = gf.trace(translator, SENTENCE)
    least = free["probabilities"][0].argmin().item()
    trace = gf.trace(translator, SENTENCE, prefix=[least])
    assert least not in [one["id"] for one in trace.steps[0]["top"]]
    piece = translator.tokenizer.target_pieces([least])[0]
    page = visit()
    page.go(text=SENTENCE, view="decode", prefix=least, step=0)
    chosen = page.page.locator("[data-testid=top] .bar-row.chosen")
    assert chosen.locator(".bar-label").inner_text() == piece
    assert agrees(chosen.locator(".bar-more").inner_text(), trace.steps[0]["chosen_log_probability"])
    assert page.page.locator(".two .numbers tbody tr td").nth(1).inner_text() == piece
    page.go(text=SENTENCE, view="flow", prefix=least)
    assert page.page.locator(".flow .written").first.text_content() == piece


def test_the_cache_grows_as_the_trace_says_and_equals_the_full_pass(visit, translator):
    trace = gf.trace(translator, SENTENCE)
    page = visit()
    for step in range(len(trace.cache["steps"])):
        page.go(text=SENTENCE, view="cache", step=step)
        for side, key in (("tgt", "self"), ("src", "cross")):
            bands = page.page.locator(f"[data-testid=cache-{side}] .band")
            lengths = [int(band.get_attribute("data-length")) for band in bands.all()]
            assert lengths == trace.cache["steps"][step][key]
            held = bands.first.locator(".kv:not(.coming)").count()
            assert held == lengths[0]
    shown = page.text("[data-testid=max-difference]")
    assert agrees(shown, trace.cache["max_difference"])
    assert printed(shown) < 1e-4


def test_removing_a_head_changes_the_run_and_the_difference_is_pythons(visit, translator):
    change = {"kind": "remove_head", "stack": "decoder", "layer": 0, "attention": "cross", "head": 1}
    expected = gf.what_if(translator, SENTENCE, [change])
    page = visit()
    page.go(text=SENTENCE, view="whatif")
    first = page.text("[data-testid=run]")
    assert first == gf.trace(translator, SENTENCE).run
    page.page.locator('[data-change*=\'"layer":0,"attention":"cross","head":1\']').click()
    page.page.wait_for_selector(f"main[data-run='{expected.after.run}']")
    assert page.text("[data-testid=run]") == expected.after.run != first
    assert page.text("[data-testid=run-before]") == first
    difference = expected.difference.as_dict()["total_difference"]
    assert agrees(page.text("[data-testid=total-difference]").lstrip("+"), difference)
    page.page.locator("[data-testid=reset]").click()
    page.page.wait_for_selector(f"main[data-run='{first}']")
    assert page.page.locator("[data-testid=differences]").count() == 0
    page.page.locator("[data-testid=swap-at]").select_option("1")
    page.page.locator("[data-testid=swap-piece]").fill("six")
    page.page.locator("[data-testid=swap-piece]").press("Enter")
    swapped = gf.what_if(translator, SENTENCE, [{"kind": "swap_token", "position": 1, "piece": "six"}])
    page.page.wait_for_selector(f"main[data-run='{swapped.after.run}']")
    assert not page.errors


def test_cut_off_from_the_world_its_export_opens_from_disk(visit, translator, tmp_path: Path):
    page = visit()
    run = gf.trace(translator, SENTENCE).run
    page.go(text=SENTENCE, view="trace")
    with page.page.expect_download() as download:
        page.page.locator("[data-key=html]").click()
    file = tmp_path / "export.html"
    download.value.save_as(file)
    with page.page.expect_download() as download:
        page.page.locator("[data-key=json]").click()
    assert f'"run":"{run}"' in download.value.path().read_text(encoding="utf-8")
    assert page.outside == []
    assert page.errors == []
    saved = visit(file.as_uri())
    for name, index in ((CROSS, (1, 2, 3)), ("decoder.blocks.0.feed_forward.down", (2, 7)), ("logits", (0, 5))):
        assert saved.pick(name, index) == page.pick(name, index, text=SENTENCE)
    assert saved.page.locator("[data-key='tab:whatif'], [data-key='tab:labs']").count() == 0  # they run the model
    assert saved.outside == []
    assert saved.errors == []


def test_a_saved_page_of_a_changed_model_says_what_was_changed(visit, translator, tmp_path: Path):
    changes = [{"kind": "swap_token", "position": 0, "piece": "six"}, {"kind": "remove_mask", "mask": "causal"}]
    gf.trace(translator, SENTENCE, changes=changes).to_html(tmp_path / "changed.html")
    page = visit((tmp_path / "changed.html").as_uri())
    for view in ("flow", "decode", "cache"):
        page.go(view=view)
        assert page.text("[data-testid=in-force]") == "What if: “#0” swapped for “six”; causal mask removed"
        assert page.page.locator("[data-testid=in-force] button").count() == 0
    page.page.goto(page.page.url.replace("view=cache", "view=whatif"))
    page.page.wait_for_selector("main[data-view=flow]")


def test_positions_that_a_what_if_removed_are_not_described_as_if_they_were_there(visit):
    page = visit()
    change = '[{"kind":"remove_positions","stack":"decoder"}]'
    page.go(text=SENTENCE, view="positions", layer="decoder.0", changes=change)
    assert "A what-if has taken them away" in page.text(".scheme")
    assert page.page.locator("main .chart").count() == 0
    page.go(text=SENTENCE, view="positions", layer="encoder.0", changes=change)
    assert "clock hand" in page.text(".scheme")
    assert page.page.locator("main .chart").count() == 1


@pytest.mark.long
def test_the_keyboard_alone_reaches_any_cell(visit, translator):
    trace = gf.trace(translator, SENTENCE)
    page = visit()
    page.go(text=SENTENCE)
    page.page.keyboard.press("Tab")
    assert page.page.evaluate("document.activeElement.className") == "skip"

    def tab_to(found, limit=300):
        for _ in range(limit):
            if page.page.evaluate(found):
                return
            page.page.keyboard.press("Tab")
        raise AssertionError(f"{found} was not reached")

    tab_to("document.activeElement.dataset.key === 'tab:flow'")
    page.page.keyboard.press("ArrowRight")
    page.page.wait_for_selector("main[data-view=block]")
    assert page.page.evaluate("document.activeElement.dataset.key") == "tab:block"
    tab_to(f"document.activeElement.dataset.tensor === '{CROSS}'")
    shape = trace[CROSS].shape
    for _ in range(2):
        page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("End")
    page.page.keyboard.press("ArrowLeft")
    index = (0, 2, shape[2] - 2)
    at = ".".join(map(str, index))
    shown = page.page.wait_for_selector(f"[data-testid=equation][data-tensor='{CROSS}'][data-index='{at}'] .result")
    assert agrees(shown.inner_text(), float(trace[CROSS][index]))
    page.page.keyboard.press("Enter")
    assert f"cell={at}" in page.page.url
    page.page.keyboard.press("Escape")
    assert "cell=" not in page.page.url
    page.go(text=SENTENCE, view="decode", beam=2)
    tab_to("document.activeElement.getAttribute('role') === 'treeitem'")
    here = page.page.evaluate("document.activeElement.dataset.id")
    page.page.keyboard.press("ArrowDown")
    assert page.page.evaluate("document.activeElement.dataset.id") != here
    assert not page.errors


SPOKEN = """() => {
    const found = [];
    const shown = (element) => element.checkVisibility();
    const walk = (node) => {
        if (node.nodeType === 3) {
            if (node.textContent.trim()) found.push(node.textContent.trim());
            return;
        }
        if (node.nodeType !== 1 || node.getAttribute('translate') === 'no') return;
        if (['SCRIPT', 'NOSCRIPT', 'STYLE'].includes(node.tagName)) return;
        for (const name of ['aria-label', 'title', 'placeholder', 'aria-valuetext', 'alt']) {
            if (node.hasAttribute(name)) found.push(node.getAttribute(name));
        }
        if (shown(node) || node.tagName === 'HEAD' || node.tagName === 'TITLE') node.childNodes.forEach(walk);
    };
    walk(document.documentElement);
    return found;
}"""
NAMES = {"glassformer", "Transformer", "softmax", "JSON", "HTML", "Python", "pattern", "blocks", "Esc", "serve", "toy",
         "QK", "norm", "logit"}  # fmt: skip


def untranslated(texts, pieces):
    found = []
    for text in texts:
        for word in re.findall(r"[A-Za-z]{2,}", text):
            if word not in NAMES and word not in pieces:
                found.append((word, text))
    return found


@pytest.mark.parametrize("views", [("decode",), pytest.param(VIEWS, marks=pytest.mark.long)], ids=["some", "all"])
def test_chinese_leaves_no_text_untranslated(visit, translator, views):
    page = visit()
    vocabulary = translator.tokenizer.target_pieces(range(translator.model.config.vocab_size))
    own = set(re.findall(r"[A-Za-z]{2,}", " ".join(vocabulary)))
    for view in views:
        if view == "labs":  # its titles keep the field's own words; tests/deploy/server/test_labs.py reads it
            continue
        page.go(text=SENTENCE, view=view, lang="zh", beam=2, tensor=CROSS, cell="0.1.1")
        texts = page.page.evaluate(SPOKEN)
        assert len(texts) > 30
        assert untranslated(texts, own) == [], view
        assert page.page.locator("html").get_attribute("lang") == "zh-Hans"
    change = '[{"kind":"remove_head","stack":"decoder","layer":0,"attention":"cross","head":1},{"kind":"remove_scale"}]'
    for view in ("whatif", "flow"):
        page.go(text=SENTENCE, view=view, lang="zh", changes=change)
        assert untranslated(page.page.evaluate(SPOKEN), own) == []
    page.page.locator("[data-key=tour]").click()
    for stop in page.stops():
        assert untranslated(page.page.evaluate(SPOKEN), own) == [], stop
    page.go(text=SENTENCE, beam=99, lang="zh")
    assert untranslated(page.page.evaluate(SPOKEN), own) == []
    page.page.locator("#sentence").fill("")
    page.page.wait_for_selector("[data-testid=empty]")
    assert untranslated(page.page.evaluate(SPOKEN), own) == []
    page.go(text=SENTENCE, view="flow", lang="en")
    assert len(untranslated(page.page.evaluate(SPOKEN), own)) > 30  # the judge can tell


@pytest.mark.parametrize("lang", sampled(["en", "zh"], ["en"]))
def test_a_narrow_screen_never_scrolls_sideways(visit, lang):
    page = visit()
    page.page.set_viewport_size({"width": 390, "height": 844})
    for view in VIEWS:
        page.go(text=SENTENCE, view=view, lang=lang, beam=3, padding=2, tensor=CROSS, cell="0.1.1")
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 390, view
        page.page.evaluate("window.scrollTo(500, 0)")
        assert page.page.evaluate("window.scrollX") == 0


def test_the_address_holds_the_state_and_back_undoes(visit, translator):
    page = visit()
    state = {"text": SENTENCE, "beam": 2, "padding": 1, "view": "cell", "lang": "zh", "theme": "dark", "tensor": CROSS}
    page.go(**state, cell="1.2.3")
    page.page.wait_for_selector("[data-testid=equation][data-index='1.2.3']")
    address = page.page.url
    page.page.locator("[data-key='tab:cache']").click()
    page.page.wait_for_selector("main[data-view=cache]")
    page.page.locator("[data-key='lang:en']").click()
    page.page.wait_for_selector("html[lang=en]")
    page.page.go_back()
    page.page.wait_for_selector("html[lang=zh-Hans]")
    page.page.go_back()
    page.page.wait_for_selector("[data-testid=equation][data-index='1.2.3']")
    assert page.page.url == address
    other = visit()
    other.open(address[address.index("#") :])
    assert other.page.wait_for_selector("[data-testid=equation][data-index='1.2.3']")
    assert other.page.locator("html").get_attribute("data-theme") == "dark"
    assert other.text("[data-testid=beam]") == "2"


def test_the_first_paint_is_light_and_moves_less_where_it_is_asked_for(visit):
    # In a context of its own, where nothing is kept of another visit.
    page = visit(viewport=SCREEN, reduced_motion="reduce", color_scheme="dark")
    sizes = []
    parts = ("responseBodySize", "responseHeadersSize")
    page.page.on("requestfinished", lambda request: sizes.append(sum(request.sizes()[part] for part in parts)))
    page.go()
    page.page.wait_for_load_state("networkidle")
    assert len(sizes) > 10
    assert sum(sizes) <= 1_000_000
    assert page.page.locator("html").get_attribute("data-theme") == "dark"
    assert page.page.evaluate("getComputedStyle(document.querySelector('.ribbon')).transitionDuration") in ("0s", "")


def test_a_forgotten_run_is_asked_for_again(visit, translator):
    with Live(create_app(translator_directions(translator, "model"))) as live:
        page = visit(live.address)
        page.go(text="six two one", view="decode")
        live.app.state.trace_api.runs.max_runs = 1
        httpx.post(f"{live.address}/api/trace", json={"text": "one"})
        page.page.locator("[data-key='tab:block']").click()
        page.page.wait_for_selector("main[data-view=block]")
        page.forgive(404)
