"""The field that is typed into: what is asked of the server, and that nothing old stands beside a new sentence."""

from __future__ import annotations

from visitor import EXAMPLES, SCREEN, SENTENCE

import glassformer as gf

RESULTS = "[data-testid=output], .said-facts, .token-rows"


def pieces(page, side):
    return page.page.locator(f"[data-testid=tokens-{side}] .token").all_inner_texts()


def results(page):
    """All that is to be read of a run around its picture."""
    return "".join(page.page.locator(RESULTS).all_inner_texts()).strip()


def asked(page):
    """The texts that the page asks for from now on."""
    texts = []
    page.hear("request", lambda one: one.url.endswith("/api/trace") and texts.append(one.post_data_json["text"]))
    return texts


class Held:
    """The page's questions from now on, none of them answered before it is let go."""

    def __init__(self, page):
        self.page, self.routes = page, []
        page.context.route("**/api/trace", lambda route: self.routes.append(route))

    def wait(self, count):
        while len(self.routes) < count:
            self.page.page.wait_for_timeout(10)

    def let_go(self, number):
        self.routes[number].continue_()
        self.page.context.unroute("**/api/trace")


def test_typing_shows_the_tokens_and_the_translation_of_the_python_interface(visit, translator):
    page = visit()
    page.go(text=EXAMPLES[1])
    sentence = page.page.locator("#sentence")
    sentence.fill("")
    sentence.press_sequentially("three one six two", delay=20)
    expected = gf.trace(translator, "three one six two")
    page.page.wait_for_selector(f"main[data-run='{expected.run}']")
    assert page.text("[data-testid=output]") == translator("three one six two")
    manifest = expected.manifest()
    assert pieces(page, "src") == manifest["source"]["pieces"]
    assert pieces(page, "tgt") == manifest["target"]["pieces"]
    page.page.go_back()
    page.page.wait_for_selector(f"main[data-run='{gf.trace(translator, EXAMPLES[1]).run}']")
    assert sentence.input_value() == EXAMPLES[1]
    sent = []  # from the last letter to the picture: one trace and its values
    page.hear("request", lambda one: sent.append(one.url.rpartition("/")[2]))
    page.page.locator("#sentence").fill("five six")
    page.page.wait_for_selector(f"main[data-run='{gf.trace(translator, 'five six').run}']")
    assert sent[0] == "trace"
    assert set(sent[1:]) == {"blob"}
    assert len(sent) <= 4


def test_an_emptied_field_asks_nothing_and_shows_nothing_of_the_old_sentence(visit, translator):
    page = visit()
    page.go(text=SENTENCE, view="decode")
    assert results(page)
    texts = asked(page)
    page.page.locator("#sentence").fill("  ")
    page.page.wait_for_selector("[data-testid=empty]")
    assert results(page) == ""
    assert page.page.locator(".tree, .notice, main h2").count() == 0
    page.page.locator("[data-key='tab:block']").click()
    page.page.wait_for_selector("main[data-view=block] [data-testid=empty]")
    page.page.locator("#sentence").fill("six")
    page.page.wait_for_selector(f"main[data-run='{gf.trace(translator, 'six').run}']")
    assert texts == ["six"]
    assert page.page.locator("[data-testid=empty]").count() == 0


def test_a_refused_sentence_says_why_and_shows_nothing_of_the_old_one(visit):
    page = visit()
    page.go(text=SENTENCE, beam=50)
    assert "8" in page.text("[data-testid=capped]")
    page.page.locator("#sentence").fill("one " * 80)
    page.page.wait_for_selector("[data-testid=error]")
    assert "80" in page.text("[data-testid=error]")
    assert results(page) == ""
    assert page.page.locator(".ribbon, [data-testid=capped], [data-testid=run]").count() == 0
    page.page.locator("[data-key='tab:decode']").click()
    page.page.wait_for_selector("main[data-view=decode] [data-testid=refused]")
    assert "80" in page.text("[data-testid=error]")
    page.page.locator("#sentence").fill("two")
    page.page.wait_for_selector("[data-testid=error]", state="detached")
    page.page.wait_for_selector(".tree")
    page.forgive(422)


def test_until_its_answer_comes_nothing_old_stands_beside_a_new_sentence(visit, translator):
    page = visit()
    page.go(text=SENTENCE)
    held = Held(page)
    page.page.locator("#sentence").fill("two two")
    page.page.wait_for_selector("html[data-stale]")
    assert (
        page.page.locator(RESULTS).evaluate_all(
            "found => found.filter((one) => one.checkVisibility({visibilityProperty: true})).length"
        )
        == 0
    )
    assert page.page.locator("main").get_attribute("aria-busy") == "true"
    held.wait(1)
    held.let_go(0)
    page.page.wait_for_selector(f"html:not([data-stale]) main[data-run='{gf.trace(translator, 'two two').run}']")
    assert page.text("[data-testid=output]") == translator("two two")
    page.page.locator("[data-key=beam-more]").click()
    page.page.wait_for_selector(f"main[data-run='{gf.trace(translator, 'two two', beam=2).run}'][aria-busy=false]")


def test_typing_sixty_seven_letters_asks_once_and_an_overtaken_answer_is_never_shown(visit, translator):
    page = visit(viewport=SCREEN)  # in a context of its own: the clock is of all its pages
    page.page.clock.install()
    page.go(text=SENTENCE, beam=8)
    page.page.clock.pause_at(page.page.evaluate("Date.now() + 1000"))
    texts, ended = asked(page), []
    page.page.on("requestfailed", lambda one: ended.append(one.post_data_json["text"]))
    words = "one two three four five six six five four three two one one two six"
    assert len(words) == 67
    sentence = page.page.locator("#sentence")
    sentence.fill("")
    for letter in words:
        sentence.press_sequentially(letter)
        page.page.clock.run_for(100)
    assert texts == []
    held = Held(page)
    page.page.clock.run_for(400)
    held.wait(1)
    assert texts == [words]
    sentence.fill("six one")
    page.page.clock.run_for(400)
    held.wait(2)
    assert texts == [words, "six one"]
    assert ended == [words]  # given up: its answer is for nobody
    held.let_go(1)
    page.page.wait_for_selector(f"main[data-run='{gf.trace(translator, 'six one', beam=8).run}']")
    assert page.text("[data-testid=output]") == gf.trace(translator, "six one", beam=8).output["text"]
