"""The page that translates, on the box, in a real browser: what a visitor does with it, and what they get."""

from __future__ import annotations

from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from visitor import Live, Visit

import glassformer as gf
from glassformer.deploy.server import keys
from glassformer.deploy.server.admission import RequestState
from glassformer.deploy.server.app import create_app
from glassformer.deploy.server.directions import box_directions
from glassformer.deploy.server.keys import ApiKeys
from glassformer.deploy.server.queue import Queue
from glassformer.deploy.server.translation_service import TranslationService

STATION, LATE = "Where is the nearest station?", "It takes about 3.5 minutes."
USE = "Open the settings and choose the language that you want to use."
TEXT = f"{STATION}\n\n{USE} {LATE}"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def service(shipped):
    return TranslationService(shipped, Queue(threads=1))


@pytest.fixture(scope="module")
def front(service):
    with Live(create_app(box_directions("cpu", "en-de"), service=service)) as server:
        yield server


@pytest.fixture(scope="module")
def said(service):
    """What Python makes of a text."""
    return lambda text, to, source="en": service.translator(source, to, RequestState()).translate([text])[0]


class Page:
    """The page in the browser, and what a visitor does there."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.page = visit, visit.page

    def open(self, hash: str = "") -> None:
        self.visit.open(hash)
        self.page.locator("[data-to]:visible, [data-testid=to-list]:visible").first.wait_for()

    def type(self, text: str) -> None:
        self.page.locator("#source").fill(text)

    def find(self, selector: str, **options: object):
        return self.page.locator(selector, **options)

    def wait_for(self, text: str) -> None:
        """Until the translation is this, to the letter."""
        same = "text => document.querySelector('.made')?.innerText === text"
        self.page.wait_for_function(same, arg=text)

    def word(self, text: str, line: int = 0):
        """A word of the translation, once its line has been looked at."""
        self.find(f".line[data-line='{line}']").hover()
        return self.find(f".word[data-line='{line}']").get_by_text(text, exact=True)

    def marked(self) -> list[str]:
        return self.find(".sheet mark").all_inner_texts()


@pytest.fixture(scope="module")
def first(chromium, front):
    """The tab of those who bring nothing of their own."""
    made = Visit(chromium, front.address, locale="en-US")
    yield made
    made.context.close()


@pytest.fixture
def page(visit, first, front):
    """Opens the page, as it is to one who has never been there."""

    def open_page(hash: str = "", **options: object) -> Page:
        if not options:
            first.use_again(front.address)
        made.append(Page(visit(front.address, **{"locale": "en-US", **options}) if options else first))
        made[-1].open(hash)
        return made[-1]

    made: list[Page] = []
    yield open_page
    first.context.unroute_all()
    for one in made:
        one.page.evaluate("() => (localStorage.clear(), sessionStorage.clear())")
    wrong = [(one.visit.outside[:], one.visit.errors[:]) for one in made if one.visit.outside or one.visit.errors]
    first.errors.clear()
    assert wrong == [], "the page asked another server, or has written to the browser's console"


def test_what_is_typed_is_translated_paragraph_by_paragraph(page, said):
    there = page()
    there.type(TEXT)
    there.wait_for(f"{gf.translate(STATION, to='de')}\n\n{gf.translate(f'{USE} {LATE}', to='de')}")
    assert there.find("[data-from='']").inner_text() == "English, detected"
    there.find("[data-to=zh-Hans]").click()
    there.wait_for(f"{said(STATION, 'zh')}\n\n{said(f'{USE} {LATE}', 'zh')}")
    assert there.find(".made").get_attribute("lang") == "zh-Hans"
    there.page.reload()  # nothing that was typed or chosen is lost
    there.wait_for(f"{said(STATION, 'zh')}\n\n{said(f'{USE} {LATE}', 'zh')}")
    assert there.find("#source").input_value() == TEXT
    there.find("[data-key=clear]").click()
    there.wait_for("")
    there.type("Die Datei ist nicht hier.")  # one cannot translate English into English: the reader's own is chosen
    there.wait_for(said("Die Datei ist nicht hier.", "zh", "de"))


def test_an_unknown_language_is_reported(page):
    there = page()
    there.type("Où est la gare la plus proche ?")
    there.find("[data-testid=unsure]").wait_for()
    there.type(STATION)
    there.find("[data-testid=unsure]").wait_for(state="detached")
    there.type("42 \u2013 1984")  # nothing to translate, and nothing to say about it
    there.wait_for("42 \u2013 1984")
    assert there.find("[data-testid=unsure]").count() == 0


def test_only_a_changed_paragraph_is_asked_for(page, said):
    there = page()
    asked: list[list[str]] = []

    def note(request):
        if request.url.endswith("/translate"):
            asked.append(request.post_data_json["q"])

    there.visit.hear("request", note)
    there.type(TEXT)
    there.find("[data-key=copy]").wait_for()
    there.type(f"{TEXT}\nIt is late.")
    there.wait_for("\n".join([said(STATION, "de"), "", said(f"{USE} {LATE}", "de"), said("It is late.", "de")]))
    assert [text for some in asked for text in some] == [STATION, f"{USE} {LATE}", "It is late."]


def test_swap_turns_round_with_the_translation(page, said):
    there = page("#from=en&to=de")
    there.type(STATION)
    there.wait_for(said(STATION, "de"))
    there.find("[data-key=swap]").click()
    there.wait_for(said(said(STATION, "de"), "en", "de"))
    assert there.find("#source").input_value() == said(STATION, "de")
    assert there.find("[data-from=de]").get_attribute("aria-pressed") == "true"
    there.page.keyboard.press("Control+z")
    there.page.wait_for_function("text => document.querySelector('#source').value === text", arg=STATION)
    there.find("[data-from=en]").click()  # into which it goes: the other side takes what this one had
    assert there.find("[data-to=de]").get_attribute("aria-pressed") == "true"


def test_a_word_that_is_pointed_at_shows_its_partner_on_both_sides(page):
    there = page("#from=en&to=de")
    there.type(f"First line.\n{STATION}")
    there.find("[data-key=copy]").wait_for()
    there.word("Bahnhof", 1).hover()
    there.find(".sheet mark").wait_for()
    assert there.marked() == ["station"]
    assert there.find(".word.lit").all_inner_texts() == ["Bahnhof"]
    # Where the source's words stand is known of the sheet behind the field, which they lie on.
    place = there.find(".sheet mark").bounding_box()
    there.page.mouse.move(place["x"] - 30, place["y"] + place["height"] / 2)
    there.page.wait_for_function("() => document.querySelector('.word.lit')?.textContent === 'nächste'")
    assert there.marked() == ["nearest"]


def test_doubted_words_are_marked_and_a_sentence_tells_how_sure_it_is(page, service):
    there = page("#from=en&to=de")
    text = "My grandmother knits woollen socks."
    there.type(text)
    there.find("[data-key=copy]").wait_for()
    (made,) = service.translator("en", "de", RequestState()).details([text])[0].sentences
    there.find(".line").hover()
    there.find(".word.doubted").first.wait_for()
    assert {*there.find(".word.doubted").all_inner_texts()} <= {*made.doubts}
    assert f"{round(100 * made.probability)} %" in there.find(".sentence").get_attribute("title")


def test_another_word_is_chosen_in_its_place(page, said):
    there = page("#from=en&to=de")
    there.type(f"{USE} {LATE}")
    there.find("[data-key=copy]").wait_for()
    first, second = said(USE, "de"), said(LATE, "de")
    there.word("verwenden").click()
    choice = there.find(".menu-item").get_by_text("nutzen", exact=True)
    choice.click()
    there.wait_for(f"{first.replace('verwenden', 'nutzen')} {second}")
    there.word("nutzen").click()
    there.find(".menu-item", has_text="Back to the first translation").click()
    there.wait_for(f"{first} {second}")


@pytest.mark.long
def test_look_inside_opens_the_sentence_and_the_way_back_keeps_the_text(page, said):
    there = page("#to=zh-Hans")
    there.type(f"{USE}\n{STATION}")
    there.find("[data-key=copy]").wait_for()
    there.find(".line[data-line='1']").hover()
    there.find(".word[data-line='1']").first.click()
    there.find(".menu a").click()
    there.page.wait_for_selector("main[data-view=flow] > section")
    assert urlsplit(there.page.url).path == "/look"
    state = parse_qs(urlsplit(there.page.url).fragment)
    assert (state["text"], state["direction"]) == ([STATION], ["en-zh"])
    assert there.page.locator("#sentence").input_value() == STATION
    assert there.page.locator("[data-testid=output]").inner_text() == said(STATION, "zh")
    there.find("[data-key=translate]").click()
    there.wait_for(f"{said(USE, 'zh')}\n{said(STATION, 'zh')}")
    there.find("[data-key=look]").click()  # of the first sentence: no word is chosen
    there.page.wait_for_selector("main[data-view=flow] > section")
    assert there.page.locator("#sentence").input_value() == USE


def test_by_way_of_english_both_models_can_be_looked_into(page):
    there = page("#from=de&to=zh-Hans")
    there.type("Wo ist der Bahnhof?")
    there.find("[data-key=copy]").wait_for()
    there.find(".line").hover()
    there.find(".word").first.click()
    links = [parse_qs(urlsplit(one.get_attribute("href")).fragment) for one in there.find(".menu a").all()]
    assert [(one["direction"], one["text"]) for one in links] == [
        (["de-en"], ["Wo ist der Bahnhof?"]),
        (["en-zh"], ["Where is the station?"]),
    ]


def test_bookmarks_of_the_views_still_lead_there(front, visit):
    opened = visit(front.address)
    opened.open(f"#text={quote(STATION)}&view=decode&lang=en")
    there = opened.page
    there.wait_for_selector("main[data-view=decode] > section")
    assert urlsplit(there.url).path == "/look"
    assert there.locator("#sentence").input_value() == STATION
    there.locator("[data-key=translate]").click()  # and there is a way back
    there.wait_for_selector("#source")


def test_by_keyboard_alone(page, said):
    there = page("#from=en&to=de")
    keyboard = there.page.keyboard
    keyboard.type(STATION)  # the field has the focus from the start
    there.wait_for(said(STATION, "de"))
    while there.page.evaluate("document.activeElement.dataset.key") != "made":
        keyboard.press("Tab")
    there.find(".word.chief", has_text="Wo").wait_for()
    for _ in range(3):
        keyboard.press("ArrowRight")
    there.find(".word.chief", has_text="nächste").wait_for()
    assert there.marked() == ["nearest"]
    assert there.find("[role=status]").inner_text() == "nächste from: nearest"
    keyboard.press("Enter")
    there.find(".menu-item:focus").wait_for()
    keyboard.press("Escape")
    assert there.find(".menu").is_hidden()
    assert there.page.evaluate("document.activeElement.dataset.key") == "made"
    keyboard.press("Enter")
    there.find(".menu-item:focus", has_text="nächstgelegene").wait_for()
    keyboard.press("Enter")
    there.wait_for("Wo ist der nächstgelegene Bahnhof?")
    keyboard.press("Alt+Shift+KeyS")
    there.find("[data-from=de][aria-pressed=true]").wait_for()
    keyboard.press("Alt+Shift+KeyX")
    assert there.find("#source").input_value() == ""
    keyboard.press("Control+z")
    assert there.find("#source").input_value() == "Wo ist der nächstgelegene Bahnhof?"


def test_the_translation_is_copied(page, said):
    there = page("#from=en&to=de", permissions=["clipboard-read", "clipboard-write"])
    there.type(TEXT)
    there.wait_for(f"{said(STATION, 'de')}\n\n{said(f'{USE} {LATE}', 'de')}")
    there.find("[data-key=copy]").click()
    there.find("[data-key=copy]", has_text="Copied").wait_for()
    assert there.page.evaluate("navigator.clipboard.readText()") == there.find(".made").inner_text()


def test_files_are_dropped_in_and_given_back(page, said, tmp_path):
    there = page("#to=de")
    (tmp_path / "read me.md").write_text(f"# {STATION}\n\n- `make`\n- {USE}\n", encoding="utf-8")
    (tmp_path / "sound.mp3").write_bytes(b"no text")
    given = [tmp_path / "read me.md", tmp_path / "sound.mp3"]
    there.find("[data-testid=file]").set_input_files(given)
    with there.page.expect_download() as saved:
        there.find("[data-testid=download]").click()
    assert saved.value.suggested_filename == "read me_de.md"
    assert there.find("[data-testid=download]").inner_text() == "Save read me_de.md"
    made = saved.value.path().read_text(encoding="utf-8")
    assert made == f"# {said(STATION, 'de')}\n\n- `make`\n- {said(USE, 'de')}\n"
    refused = there.find("[data-state=refused]")
    assert "cannot be translated here" in refused.inner_text()
    assert ".md" in refused.inner_text()
    refused.get_by_role("button").click()
    assert there.find("[data-testid=file-row]").count() == 1
    # Dropped, as a file manager does it.
    there.page.evaluate(
        """text => {
            const held = new DataTransfer();
            held.items.add(new File([text], "note.txt"));
            const told = { dataTransfer: held, bubbles: true, cancelable: true };
            document.body.dispatchEvent(new DragEvent("dragover", told));
            document.body.dispatchEvent(new DragEvent("drop", told));
        }""",
        STATION,
    )
    there.find("[data-testid=download]", has_text="note_de.txt").wait_for()
    assert there.find("html[data-over]").count() == 0


@pytest.mark.parametrize(
    ("locale", "lang", "label", "made"),
    [
        pytest.param("en-GB", "en", "Text to translate", "de", marks=pytest.mark.long),
        pytest.param("de-AT", "de", "Zu übersetzender Text", "de", marks=pytest.mark.long),
        ("zh-CN", "zh-Hans", "要翻译的文本", "zh"),
    ],
)
def test_accessibility_in_three_languages(page, locale, lang, label, made, said):
    there = page(locale=locale)
    assert there.find("html").get_attribute("lang") == lang
    there.find("#source").and_(there.page.get_by_label(label)).wait_for()
    there.type(STATION)
    there.wait_for(said(STATION, made))  # into the reader's own language, where that can be
    there.find(".line").hover()
    there.find(".word").first.click()
    there.find(".menu[aria-busy=false]").wait_for()
    for theme in ("light", "dark"):
        there.page.emulate_media(color_scheme=theme)
        there.find(f"html[data-theme={theme}]").wait_for()
        found = Axe().run(there.page).response["violations"]
        assert [one for one in found if one["impact"] in ("serious", "critical")] == []


def test_on_a_phone(page, said):
    there = page(**PHONE, locale="de-DE")
    there.type(STATION)
    there.wait_for(said(STATION, "de"))
    for lang in ("en", "zh", "de"):
        there.find(f"[data-lang={lang}]").tap()
        assert there.page.evaluate("document.documentElement.scrollWidth") <= 390
    there.find("[data-testid=to-list]").select_option("zh-Hans")
    there.wait_for(said(STATION, "zh"))
    there.find("[data-testid=to-list]").select_option("de")
    there.wait_for(said(STATION, "de"))
    there.find(".line").tap()  # there is no pointing at a word first
    there.find(".menu-item").first.wait_for()
    place = there.find(".menu").bounding_box()
    assert (place["x"], round(place["y"] + place["height"])) == (0, 844)
    found = Axe().run(there.page).response["violations"]
    assert [one for one in found if one["impact"] in ("serious", "critical")] == []


def test_a_long_text_shows_its_progress(page, said):
    there = page("#from=en&to=de")
    held: list[object] = []
    answers = iter([True])
    there.visit.context.route(
        "**/translate", lambda route: route.continue_() if next(answers, False) else held.append(route)
    )
    there.type("\n".join([f"{LATE} {STATION}"] + [f"I have {n} apples, and they are all red." for n in range(9)]))
    progress = there.find("[data-testid=progress]")
    progress.get_by_text("of 10 paragraphs").wait_for()
    there.page.wait_for_function("() => document.querySelector('progress').value > 0")
    assert said(LATE, "de") in there.find(".line").first.inner_text()
    while not held:
        there.page.wait_for_timeout(10)
    held[0].continue_()
    there.visit.context.unroute("**/translate")
    progress.wait_for(state="detached")
    assert there.find(".line.waiting").count() == 0


def test_an_unreachable_server_is_reported_and_retried(page, said):
    there = page("#from=en&to=de")
    there.visit.context.route("**/translate", lambda route: route.abort())
    there.type(STATION)
    error = there.find("[data-testid=error]")
    error.wait_for()
    assert error.inner_text().startswith("The server does not answer. Your text is safe")
    assert there.find("#source").input_value() == STATION
    there.visit.errors.clear()  # the browser's own words on it
    there.visit.context.unroute("**/translate")
    there.wait_for(said(STATION, "de"))  # by itself
    error.wait_for(state="detached")


def test_no_text_becomes_markup(page):
    there = page("#from=en&to=de")
    text = "<img src=x onerror=alert(1)> <b>Open the file</b> & go"
    there.type(text)
    there.find("[data-key=copy]").wait_for()
    there.find(".line").hover()
    there.find(".word").first.hover()
    assert there.find(".made img, .made b, .sheet img").count() == 0
    assert "<img src=x onerror=alert(1)>" in there.find(".made").inner_text()


def test_the_page_asks_for_a_required_key(visit, shipped, tmp_path, said):
    key = keys.add_key(tmp_path / "keys.json", "ann")
    service = TranslationService(shipped, Queue(threads=1))
    with Live(create_app(shipped, service=service, api_keys=ApiKeys(tmp_path / "keys.json"))) as server:
        there = Page(visit(server.address, locale="en-US"))
        there.open("#from=en&to=de")
        there.find("#key").fill("wrong")
        there.type(STATION)
        there.find("[data-testid=error]", has_text="does not know this key").wait_for()
        there.visit.forgive(403)
        there.find("#key").fill(key)
        there.find("#key").press("Enter")
        there.wait_for(said(STATION, "de"))
        there.word("Bahnhof").hover()
        there.find(".sheet mark").wait_for()
        asked = {"q": STATION, "source": "en", "target": "de"}
        assert httpx.post(f"{server.address}/api/words", json=asked).status_code == 403


def test_one_direction_opens_the_page_that_looks_inside(live, visit):
    opened = visit()
    opened.open()
    there = opened.page
    there.wait_for_selector("main[data-view=flow] > section")
    there.locator("[data-key=translate]").click()
    there.wait_for_selector("#source")
    there.locator("#source").fill("one two")
    there.wait_for_selector("[data-key=copy]")
