"""The interfaces of LibreTranslate and DeepL: their clients as they are, against a real process that serves the box."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser

import deepl
import httpx
import pytest
from deep_translator import LibreTranslator
from deep_translator.exceptions import ServerException
from libretranslatepy import LibreTranslateAPI
from small_run import command, launch

from glassformer.pipelines.polyglot import Polyglot

PATIENCE = 60


@pytest.fixture(scope="module")
def address():
    asked = command("serve", "--only", "api", "--port", "0", "--threads", "1")
    with launch(asked, stdout=subprocess.PIPE, text=True) as process:
        said = process.stdout.readline()
        yield re.search(r"http://[\d.]+:\d+", said)[0]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130


@pytest.fixture(scope="module")
def expected():
    """What Python gives for a text."""
    by = Polyglot()
    return lambda text, source, target: by.translator(source, target).translate([text])[0]


def post(address: str, path: str = "/translate", **body: object) -> httpx.Response:
    return httpx.post(address + path, json=body, timeout=PATIENCE)


def test_libretranslatepy(address, expected):
    client = LibreTranslateAPI(address)
    text = "Where is the nearest station?"
    assert client.translate(text, "en", "de") == expected(text, "en", "de")
    assert client.translate(text, "auto", "zh") == expected(text, "en", "zh")
    assert client.detect("Wo ist der Bahnhof?") == [{"confidence": 100.0, "language": "de"}]
    known = {one["code"]: one for one in client.languages()}
    assert set(known) == {"en", "de", "zh-Hans"}
    assert set(known["de"]["targets"]) == {"en", "de", "zh-Hans"}
    assert known["zh-Hans"]["name"] == "Chinese"


def test_deep_translator(address, expected):
    german = LibreTranslator(source="en", target="de", api_key="any", custom_url=f"{address}/")
    texts = ["Good morning.", "Open the file & close it."]
    assert german.translate_batch(texts) == [expected(text, "en", "de") for text in texts]
    with pytest.raises(ServerException):
        LibreTranslator(source="en", target="fr", api_key="any", custom_url=f"{address}/").translate("Good morning.")


def test_deepl(address, expected):
    client = deepl.Translator("any", server_url=address)
    before = client.get_usage().character.count
    texts = ["Good morning.", "Wo ist der Bahnhof?"]
    found = client.translate_text(texts, target_lang="ZH-HANS")
    assert [one.text for one in found] == [expected(texts[0], "en", "zh"), expected(texts[1], "de", "zh")]
    assert [one.detected_source_lang for one in found] == ["EN", "DE"]
    assert client.get_usage().character.count - before == sum(map(len, texts))
    marked = client.translate_text("Open <b>the file</b>.", target_lang="DE", tag_handling="html").text
    assert re.findall("<[^>]*>", marked) == ["<b>", "</b>"]
    assert client.translate_text("Es ist spät.", source_lang="DE", target_lang="EN-GB").text == expected(
        "Es ist spät.", "de", "en"
    )
    assert {one.code for one in client.get_source_languages()} == {"EN", "DE", "ZH"}
    assert {one.code for one in client.get_target_languages()} == {"EN", "DE", "ZH-HANS"}
    with pytest.raises(deepl.DeepLException, match="`FR` is not here"):
        client.translate_text("Good morning.", target_lang="FR")


def test_the_examples_that_they_document(address, expected):
    """Those of LibreTranslate's own pages, with languages that are here."""
    ask = {"q": "Hello!", "source": "en", "target": "de"}
    assert post(address, **ask).json() == {"translatedText": expected("Hello!", "en", "de")}
    auto = post(address, q="Guten Morgen!", source="auto", target="en").json()
    assert auto["translatedText"] == expected("Guten Morgen!", "de", "en")
    assert auto["detectedLanguage"]["language"] == "de"
    marked = post(address, q='<p class="green">Hello!</p>', source="en", target="de", format="html").json()
    assert marked == {"translatedText": f'<p class="green">{expected("Hello!", "en", "de")}</p>'}
    others = post(address, q="Hello", source="en", target="de", format="text", alternatives=3, api_key="").json()
    assert len(others["alternatives"]) == 3


@pytest.mark.parametrize("how", ["json", "data", "params"])
def test_fields_come_as_json_as_a_form_or_in_the_address(address, expected, how):
    asked = {"q": "It is late.", "source": "en", "target": "de", "format": "text"}
    answer = httpx.post(f"{address}/translate", timeout=PATIENCE, **{how: asked})
    assert (answer.status_code, answer.json()) == (200, {"translatedText": expected("It is late.", "en", "de")})


def test_a_list_is_answered_with_a_list_each_in_its_language(address, expected):
    texts = ["Where is the station?", "Wo ist der Bahnhof?", "车站在哪里？", "42", ""]
    found = post(address, q=texts, source="auto", target="de").json()
    assert found["translatedText"] == [
        expected(texts[0], "en", "de"),
        texts[1],  # it is German already
        expected(texts[2], "zh", "de"),
        "42",
        "",
    ]
    assert [one["language"] for one in found["detectedLanguage"]][:3] == ["en", "de", "zh-Hans"]
    assert found["detectedLanguage"][3]["confidence"] == 0


def test_markup_stays_and_its_text_is_translated(address):
    text = '<p>Open <a href="https://example.com/?a=1&amp;b=2" class="x">the file</a> now.<br>It is late.</p>'
    found = post(address, q=text, source="en", target="zh", format="html").json()["translatedText"]
    assert re.findall("<[^>]*>", found) == re.findall("<[^>]*>", text)
    assert "文件" in found
    assert "&#" not in found


# As Mastodon sends them.
POSTS = [
    '<p>Hello <span class="h-card" translate="no"><a href="https://social.example/@ann" class="u-url mention">'
    "@<span>ann</span></a></span>, the new version is here! "
    '<a href="https://social.example/tags/free" class="mention hashtag" rel="tag">#<span>free</span></a></p>',
    '<p>We have moved the server.<br>It should be faster now.</p><p>Read more: <a href="https://www.example.com/a?b=1&amp;c=2"'
    ' target="_blank" rel="nofollow noopener noreferrer" translate="no"><span class="invisible">https://www.</span>'
    '<span class="ellipsis">example.com/a?b=1</span><span class="invisible">&amp;c=2</span></a></p>',
    "<p>I think that <strong>this</strong> is <em>very</em> good :blobcat: &lt;3</p>",
    "<ul><li>First the <b>kitchen</b></li><li>then the garden &amp; the house</li></ul>"
    "<blockquote><p>Thank you!</p></blockquote>",
]


class Markup(HTMLParser):
    """The tags of a piece of HTML with their attributes, whether they are balanced, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.open: list[str] = []
        self.balanced, self.words = True, list[str]()
        self.feed(text)
        self.close()
        self.balanced = self.balanced and not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[f"{tag} {attrs}"] += 1
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.balanced = self.balanced and bool(self.open) and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += re.findall(r"[^\W\d_]{2,}", data)


def test_tags_are_balanced_attributes_the_same_and_words_translated(address):
    found = post(address, q=POSTS, source="en", target="de", format="html").json()["translatedText"]
    for before, after in zip(map(Markup, POSTS), map(Markup, found), strict=True):
        assert after.balanced, found
        assert after.tags == before.tags
        kept = set(before.words) & set(after.words)
        assert len(kept) <= max(3, 0.5 * len(set(before.words))), (before.words, after.words)


def test_a_document_of_any_language_is_sent_and_fetched(address, expected):
    text = "# Hello\n\n1. It is late.\n2. Run `make` twice.\n"
    asked = {"source": "auto", "target": "zh"}
    answer = httpx.post(f"{address}/translate_file", files={"file": ("n.md", text)}, data=asked, timeout=PATIENCE)
    found = httpx.get(answer.json()["translatedFileUrl"]).text
    assert found.startswith("# ")
    assert f"1. {expected('It is late.', 'en', 'zh')}\n2. " in found
    assert "`make`" in found


def test_alternatives_are_other_translations_that_keep_what_must_be_kept(address, expected):
    text = "Run `make` twice. It is late."
    found = post(address, q=text, source="en", target="de", alternatives=3).json()
    assert found["translatedText"] == expected(text, "en", "de")
    others = found["alternatives"]
    assert 1 <= len(others) <= 3
    assert len({found["translatedText"], *others}) == len(others) + 1
    assert all("`make`" in one for one in others)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"source": "en", "target": "de"}, "Invalid request: missing q parameter"),
        ({"q": "x", "target": "de"}, "Invalid request: missing source parameter"),
        ({"q": "x", "source": "en"}, "Invalid request: missing target parameter"),
        ({"q": "x", "source": "fr", "target": "de"}, "fr is not supported"),
        ({"q": "x", "source": "en", "target": "zt"}, "zt is not supported"),
        ({"q": "x", "source": "en", "target": "de", "format": "pdf"}, "pdf format is not supported"),
        ({"q": ["x"] * 5001, "source": "en", "target": "de"}, "Invalid request: request (5001) exceeds text limit"),
        ({"q": [1], "source": "en", "target": "de"}, "Invalid request: q must be a text"),
        ({"q": "x", "source": "en", "target": "de", "alternatives": "many"}, "alternatives must be a number"),
    ],
)
def test_errors_have_the_words_of_libretranslate(address, asked, error):
    answer = post(address, **asked)
    assert answer.status_code == 400
    assert error in answer.json()["error"]


def test_malformed_and_large_bodies(address):
    head = {"Content-Type": "application/json"}
    for body in (b"{", b"[]", b"\xff\xfe", b"[" * 10_000):
        answer = httpx.post(f"{address}/translate", content=body, headers=head, timeout=PATIENCE)
        assert (answer.status_code, answer.json()) == (400, {"error": "Invalid JSON format"})
    large = httpx.post(f"{address}/translate", content=b" " * 3_000_000, headers=head, timeout=PATIENCE)
    assert large.status_code == 413
    assert isinstance(large.json()["error"], str)


def test_other_methods_are_refused(address):
    other = httpx.get(f"{address}/translate", timeout=60)
    assert (other.status_code, other.headers["allow"]) == (405, "POST")
    assert "does not take this method" in other.json()["error"]
    told = httpx.get(f"{address}/spec", timeout=60).json()["paths"]["/translate"]
    assert list(told) == ["post"]
    assert {"200", "400", "429"} <= set(told["post"]["responses"])


def test_with_the_interface_alone_no_page_and_no_weights_are_given(address):
    assert httpx.get(f"{address}/health").json() == {"status": "ok"}
    for path in ("/", "/api/weights", "/api/model", "/static/main.js", "/api/labs"):
        assert httpx.get(address + path).status_code == 404
    described = httpx.get(f"{address}/spec").json()
    theirs = {"/translate", "/detect", "/languages", "/frontend/settings", "/health"}
    theirs |= {"/translate_file", "/download_file/{name}"}
    assert set(described["paths"]) == theirs | {"/v2/translate", "/v2/languages", "/v2/usage"}
    answers = described["paths"]["/translate"]["post"]["responses"]
    assert "TranslateResponse" in json.dumps(answers["200"])
    assert "ErrorResponse" in json.dumps(answers["400"])


def test_concurrent_translations(address, expected):
    texts = [f"I have {i} apples and {i + 1} books." for i in range(12)]
    with ThreadPoolExecutor(len(texts)) as pool:
        found = list(pool.map(lambda text: post(address, q=text, source="en", target="de").json(), texts))
    assert [one["translatedText"] for one in found] == [expected(text, "en", "de") for text in texts]
