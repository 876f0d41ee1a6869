"""What a server offers: the directions of a box, of a folder, of a model; each loaded when first used."""

from __future__ import annotations

import httpx
import pytest
from tiny_box import SENTENCES
from visitor import Live

import glassformer as gf
from glassformer.common.errors import InputError
from glassformer.data import About, Tokenizer, TokenizerOptions
from glassformer.deploy.server.app import Limits, create_app
from glassformer.deploy.server.directions import box_directions, folder_directions, translator_directions
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


@pytest.fixture(scope="module")
def client(boxed):
    with httpx.Client(base_url=boxed.address, timeout=30) as found:
        yield found


def test_a_request_names_its_direction(client):
    told = client.get("/api/model").json()
    assert told["direction"] == "en-de"
    assert [one["name"] for one in told["directions"]] == ["en-de", "de-en", "en-zh", "zh-en"]
    assert {one["model"] for one in told["directions"]} == {"en-de", "en-zh"}
    other = client.get("/api/model", params={"direction": "zh-en"}).json()
    assert (other["model"]["name"], other["about"]["source"], other["about"]["target"]) == ("en-zh", "zh", "en")
    for direction, text in (("de-en", DE), ("zh-en", ZH)):
        translator = gf.Translator.load(box.folder(box.directions()[direction].model), to="en")
        expected = gf.trace(translator, text, max_new_tokens=MOST)
        found = client.post("/api/trace", json={"text": text, "direction": direction}).json()
        assert found["run"] == expected.run
        assert found["source"] == expected.manifest()["source"]
        assert client.get("/api/weights", params={"direction": direction}).content == expected.weights_blob()
        said = client.post("/api/translate", json={"text": text, "direction": direction}).json()
        assert said["text"] == translator(text)
    for answer in (
        client.post("/api/trace", json={"text": EN, "direction": "fr-en"}),
        client.get("/api/model", params={"direction": "fr-en"}),
        client.get("/api/weights", params={"direction": "fr-en"}),
    ):
        assert answer.status_code == 422
        assert answer.json()["error"]["hint"] == "there are en-de, de-en, en-zh, zh-en"


def test_a_model_is_loaded_when_it_is_first_asked_for(tiny_box, monkeypatch):
    loaded = []
    load = gf.Translator.load
    monkeypatch.setattr(
        gf.Translator, "load", lambda folder, *rest, **to: loaded.append(folder) or load(folder, *rest, **to)
    )
    found = box_directions("cpu", "en-de")
    assert loaded == []
    found.get(), found.get("de-en"), found.get("en-zh"), found.get("zh-en")
    assert [folder.name for folder in loaded] == ["en-de", "en-zh"]


def test_a_folder_opens_on_what_its_model_is_for_and_has_the_other_ways_too(box_folder):
    found = folder_directions(box_folder / "en-zh", "cpu")
    assert (found.first, [*found.by_name]) == ("en-zh", ["en-zh", "zh-en"])
    assert [one.text for one in found.get().examples] == ["Hello, world!"]
    assert found.get("zh-en").examples == ()
    assert folder_directions(box_folder / "en-zh", "cpu", "en").first == "zh-en"
    with pytest.raises(InputError, match="no tag for `fr`"):
        folder_directions(box_folder / "en-zh", "cpu", "fr")


def test_a_model_of_three_languages_is_told_only_what_to_write(translator):
    tokenizer = Tokenizer.train([("a b", "c d")], TokenizerOptions("words"), languages=("de", "en", "zh"))
    made = gf.Translator(translator.model, tokenizer, about=About("en", "de")).toward("de")
    assert [*translator_directions(made, "three").by_name.values()] == [
        ("de", "three", "", "de"),
        ("en", "three", "", "en"),
        ("zh", "three", "", "zh"),
    ]
