"""One answer to a text, with the same notes, whichever way it is asked for; and every sentence in its own language."""

from __future__ import annotations

import html
import itertools
import json
import warnings
from collections.abc import Iterator

import pytest

import glassformer as gf
from glassformer.deploy.server.admission import RequestState
from glassformer.deploy.server.deepl import DeepLApi
from glassformer.deploy.server.directions import box_directions
from glassformer.deploy.server.errors import RequestError
from glassformer.deploy.server.libre import LibreApi
from glassformer.deploy.server.queue import Queue
from glassformer.deploy.server.translation_service import TranslationService
from glassformer.pipelines.language.language import confident_language

SENTENCES = {
    "en": ["This is a good day.", "Where is the station?", "You can open the file with that."],
    "de": ["Das ist ein guter Tag.", "Wo ist der Bahnhof?", "Sie können die Datei damit öffnen."],
    "zh": ["今天天气很好。", "车站在哪里？", "你可以打开文件。"],
}
MIXED = [" ".join(some) for some in itertools.permutations([one[0] for one in SENTENCES.values()], 2)]
TEXTS = [
    "Zürich has 99 quokkas.",
    "1. first",
    "Hello, {name}! You have %d new files.",
    "Я не знаю этого слова.",
    "Run `make` in {folder}.",
    "12345",
    "Das ist gut.",
    *MIXED,
]


@pytest.fixture(scope="module")
def service() -> Iterator[TranslationService]:
    queue = Queue(threads=1)
    yield TranslationService(box_directions("cpu", "en-de", precision="auto"), queue)
    queue.close()


def in_python(text: str, target: str) -> tuple[str, list[str]]:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        made = gf.translate(text, to=target, source="en")
    return made, [str(one.message) for one in warned]


@pytest.mark.parametrize("target", ["de", "zh"])
def test_every_way_gives_one_answer_and_the_same_notes(service, cli, target):
    expected = [in_python(text, target) for text in TEXTS]
    for asked in ([*TEXTS, "--from", "en", "--to", target], [f"en-{target}", *TEXTS]):
        code, out, _ = cli("translate", *asked, "--json", "--device", "cpu")
        rows = [json.loads(line) for line in out.splitlines()]
        assert code == 0
        assert [(row["translations"][0]["text"], row["notes"]) for row in rows] == expected
    for form, read in (("text", str), ("html", html.unescape)):
        fields = {"source": "en", "target": target, "format": form}
        several = LibreApi(service).translate({"q": TEXTS, **fields}, RequestState())
        assert list(zip(map(read, several["translatedText"]), several["notes"], strict=True)) == expected
        one = LibreApi(service).translate({"q": TEXTS[3], **fields}, RequestState())
        assert (one["translatedText"], one["notes"]) == expected[3]
    by_deepl = DeepLApi(service).translate({"text": TEXTS, "source_lang": "EN", "target_lang": target}, RequestState())
    assert [(one["text"], one.get("notes", [])) for one in by_deepl["translations"]] == expected
    assert expected[3][1]  # it was left as it is


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("target", ["en", "de", "zh"])
def test_every_way_finds_the_same_language(service, cli, target):
    for texts in (TEXTS, TEXTS[:1], ["Quokkas."], ["Zürich"]):
        expected = gf.translate(texts, to=target)
        _, out, _ = cli("translate", *texts, "--to", target, "--device", "cpu")
        assert out.splitlines() == expected
        fields = {"q": texts, "source": "auto", "target": target}
        assert LibreApi(service).translate(fields, RequestState())["translatedText"] == expected
        by_deepl = DeepLApi(service).translate({"text": texts, "target_lang": target}, RequestState())
        assert [one["text"] for one in by_deepl["translations"]] == expected


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("target", ["de", "zh"])
def test_names_that_the_model_has_not_met_stay(target):
    people = ["Angela Merkel", "Emmanuel Macron", "Keir Starmer", "Ursula Zzimtrova", "Ehud Qarbashian"]
    texts = [f"Yesterday {one} met {other} in Reykjavik." for one, other in itertools.permutations(people, 2)]
    for text, made in zip(texts, gf.translate(texts, to=target, source="en"), strict=True):
        assert [name for name in people if name in text and name not in made] == []
        assert target == "zh" or "Reykjavik" in made
    places = ["Cairo", "Ouagadougou", "Naples", "Jean-Luc", "Emma"]
    into_chinese = gf.translate([f"My friend lives in {one}." for one in places], to="zh", source="en")
    assert [one for one, text in zip(places, into_chinese, strict=True) if one not in text] == []
    made = gf.translate("Angela Merkel traf Ursula Zzimtrova.", to="en", source="de")
    assert "Angela Merkel" in made
    assert "Ursula Zzimtrova" in made


@pytest.mark.parametrize("target", ["en", "de", "zh"])
@pytest.mark.parametrize("source", ["en", "de", "zh", None])
def test_every_sentence_is_translated_from_its_own_language(source, target):
    if source == target:
        return
    texts = [" ".join(some) for row in zip(*SENTENCES.values(), strict=True) for some in itertools.permutations(row, 2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = gf.translate(texts, to=target, source=source)
    assert [text for text, one in zip(texts, made, strict=True) if confident_language(one) not in (target, None)] == []
    for text, one in zip(texts, made, strict=True):
        kept = [sentence for sentence in SENTENCES[target] if sentence in text]
        assert all(sentence in one for sentence in kept)
        others = [s for code, some in SENTENCES.items() if code != target for s in some if s in text]
        assert not any(sentence in one for sentence in others)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("source", ["en", "de", "zh"])
def test_the_source_that_is_named_is_no_reason_to_lose_a_text(source):
    for code in {*SENTENCES} - {source}:
        (target,) = {*SENTENCES} - {source, code}
        with pytest.warns(UserWarning, match="not from"):
            made = gf.translate(SENTENCES[code][0], to=target, source=source)
        assert made == in_own_language(SENTENCES[code][0], code, target)


def in_own_language(text: str, source: str, target: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gf.translate(text, to=target, source=source)


@pytest.mark.filterwarnings("ignore:this model")
def test_terms_that_are_never_used_are_told(cli, tmp_path):
    terms = gf.Glossary({"city": "Metropole", "file": "Akte", "whale": "Wal"})
    with pytest.warns(UserWarning, match="no translation holds: whale$"):
        made = gf.translate(["The cities are big.", "WHERE ARE THE FILES?"], "de", "en", glossary=terms)
    assert ("Metropole" in made[0], "AKTE" in made[1]) == (True, True)
    (tmp_path / "terms.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in terms.terms.items()), encoding="utf-8")
    asked = ["--from", "en", "--to", "de", "--glossary", tmp_path / "terms.tsv", "--device", "cpu"]
    assert "no translation holds: city, whale" in cli("translate", "The file is here.", *asked)[2]


def test_a_text_of_lost_characters_is_left_and_noted():
    text = "a\ufffdb" * 40
    with pytest.warns(UserWarning, match="most of its characters are none that the model has learnt"):
        assert gf.translate(text, to="de", source="en") == text
    assert gf.translate("The caf\ufffd is open today.", to="de", source="en") != "The caf\ufffd is open today."


def test_a_term_that_a_glossary_lacks_is_named():
    with pytest.raises(gf.errors.InputError, match="no term 'whale'"):
        gf.Glossary({"city": "Stadt"}).unused(["Die Stadt"], ["whale"])
    for empty in ("", " "):
        with pytest.raises(gf.errors.InputError, match="a term of the glossary is empty"):
            gf.Glossary({empty: "Stadt"})


@pytest.mark.parametrize("value", ["more", "less", "polite"])
def test_a_formality_that_cannot_be_had_is_refused(service, value):
    asked = {"text": "Good day.", "target_lang": "DE", "source_lang": "EN"}
    with pytest.raises(RequestError, match=rf"'formality' not supported: {value} .* prefer_more"):
        DeepLApi(service).translate({**asked, "formality": value}, RequestState())
    plain = DeepLApi(service).translate(asked, RequestState())
    for preference in ("", "default", "prefer_more", "prefer_less"):
        assert DeepLApi(service).translate({**asked, "formality": preference}, RequestState()) == plain
    with pytest.raises(RequestError, match="'glossary_id' not supported"):
        DeepLApi(service).translate({**asked, "glossary_id": "abc"}, RequestState())
