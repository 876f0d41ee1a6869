"""Links between words of a text and its translation, and alternatives for a word."""

from __future__ import annotations

import httpx
import pytest
from visitor import Live

from glassformer.deploy.server.admission import RequestState
from glassformer.deploy.server.app import create_app
from glassformer.deploy.server.queue import Queue
from glassformer.deploy.server.translation_service import TranslationService
from glassformer.deploy.server.word_alternatives import MAX_CHARACTERS, AlternativesRequest, WordsApi, WordsRequest

STATION, HERE = "Where is the nearest station?", "I am here."


@pytest.fixture(scope="module")
def words(shipped):
    service = TranslationService(shipped, Queue(threads=1))
    yield WordsApi(service)
    service.queue.close()


def told(words: WordsApi, q: str, source: str, target: str, **more: object):
    return words.words(WordsRequest(q=q, source=source, target=target, **more), RequestState())


def partners(found) -> set[tuple[str, str]]:
    return {(found.source[i], found.target[j]) for i, j in found.links}


@pytest.mark.parametrize(
    ("q", "source", "target", "some"),
    [
        (f"  {STATION} \U0001f44d {HERE}\t", "en", "de", {("station", "Bahnhof"), ("nearest", "nächste")}),
        ("请选择您要使用的语言。", "zh-Hans", "en", {("语言", "language"), ("。", ".")}),
        (
            "Wo ist der Bahnhof? Wählen Sie die Sprache.",
            "de",
            "zh",
            {("Wo", "在哪里"), ("Sprache", "语言")},
        ),  # by English
    ],
)
def test_words_are_linked(words, q, source, target, some):
    found = told(words, q, source, target)
    assert "".join(found.source) == q
    codes = [one.replace("-Hans", "") for one in (source, target)]
    assert "".join(found.target) == words.service.translator(*codes, RequestState()).translate([q])[0]
    assert some <= partners(found)
    for i, j in found.links:
        assert any(map(str.isalnum, found.source[i])) == any(map(str.isalnum, found.target[j]))
    assert ["".join(found.source[slice(*one.source)]) for one in found.sentences] == [
        one.steps[0].text for one in found.sentences
    ]


@pytest.mark.parametrize(("source", "target", "chosen"), [("en", "de", None), ("de", "zh", None), ("en", "de", "Gut.")])
def test_doubts_are_of_the_models_own_sentence(words, source, target, chosen):
    """By the log-probabilities of its tokens, in capitals too; a translation that the reader chose has none, nor one by
    two models a probability."""
    text = "Der alte Uhu saß mürrisch auf dem Ast." if source == "de" else "My grandmother knits woollen socks."
    found = told(words, f"{text} {text.upper()}", source, target, chosen=[chosen, None])
    made = words.service.translator(source, target, RequestState()).details([f"{text} {text.upper()}"])[0]
    for sentence, one, own in zip(found.sentences, made.sentences, [chosen is None, True], strict=True):
        assert sentence.probability == (one.probability if own and target == "de" else None)
        doubted = {found.target[i].strip().casefold() for i in sentence.doubts}
        there = {word.strip().casefold() for word in found.target[slice(*sentence.target)]}
        assert doubted == ({word.casefold() for word in one.doubts} & there if own else set())
        assert all(sentence.target[0] <= i < sentence.target[1] for i in sentence.doubts)
    assert any(sentence.doubts for sentence in found.sentences) or chosen
    assert target == "zh" or all(0 < one.probability < 1 for one in found.sentences[bool(chosen) :])


def test_chosen_translations_are_linked(words):
    found = told(words, f"{STATION} {HERE}", "en", "de", chosen=[None, "Ich bin da."])
    first, second = (found.target[slice(*one.target)] for one in found.sentences)
    assert "".join(second) == "Ich bin da."
    assert ("am", "bin") in partners(found)
    assert "".join(first) == "".join(told(words, STATION, "en", "de").target)


def test_alternatives_keep_the_prefix_and_invariants(words):
    asked = AlternativesRequest(direction="en-de", text=STATION, prefix="Wo ist der ")
    found = words.alternatives(asked, RequestState())
    assert len(found.texts) > 1
    assert all(text.startswith("Wo ist der ") for text in found.texts)
    assert len({*found.texts}) == len(found.texts)
    assert found.free
    asked = AlternativesRequest(direction="en-de", text="Run `make` 3 times.", prefix="Führen Sie")
    assert all("`make`" in text and "3" in text for text in words.alternatives(asked, RequestState()).texts)


def test_wrong_requests_are_refused(shipped):
    with Live(create_app(shipped, service=TranslationService(shipped, Queue(threads=1)))) as server:

        def post(path: str, **body: object) -> tuple[int, str]:
            answer = httpx.post(f"{server.address}/api/{path}", json=body, timeout=60)
            return answer.status_code, answer.json()["error"]["message"]

        assert post("words", q="x" * (MAX_CHARACTERS + 1), source="en", target="de")[0] == 422
        assert post("words", q="x", source="fr", target="de") == (422, "the language 'fr' is not here")
        assert post("words", q="x", source="en", target="en")[0] == 422
        assert post("alternatives", direction="fr-en", text="x")[0] == 422
        assert post("alternatives", direction="en-de", text=" ")[0] == 422
        assert post("alternatives", direction="en-de", text="One.", prefix="so " * 1500)[0] == 422
