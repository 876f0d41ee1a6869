"""`serve`, `trace` and `doctor` without a model: they know of the box."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_box import SENTENCES, make_box

from glassformer.cli.serve import of_the_box
from glassformer.common.errors import ConfigError, WeightsError
from glassformer.deploy.server.directions import Directions, folder_directions
from glassformer.pipelines import box


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return make_box(tmp_path_factory.mktemp("box"))


@pytest.fixture
def here(place, monkeypatch):
    monkeypatch.setattr(box, "HERE", place)


@pytest.mark.usefixtures("here")
def test_a_sentence_is_followed_through_the_box(cli):
    code, out, err = cli("trace", SENTENCES["de"][1], "--to", "en", "--name", "*.pattern", "--device", "cpu")
    assert code == 0, err
    assert "cross_attention.pattern" in out


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("language", "to", "first"), [("de", None, "<2en>"), ("zh", "en", "<2en>"), ("en", "zh", "<2zh>")]
)
def test_its_language_is_detected(cli, language, to, first):
    asked = () if to is None else ("--to", to)
    code, out, err = cli("trace", SENTENCES[language][0], *asked, "--json", "-", "--name", "logits", "--device", "cpu")
    assert code == 0, err
    manifest = json.loads(out)
    assert manifest["source"]["pieces"][0] == first
    assert manifest["about"]["source"] == language
    assert manifest["source"]["tag"] == first[2:-1]


@pytest.mark.usefixtures("here")
def test_a_trace_says_what_the_tag_is_for(cli):
    asked = ("trace", SENTENCES["en"][0], "--to", "de", "--device", "cpu")
    assert "<2de> tells the model to write de; the encoder reads: <2de> " in cli(*asked)[1]
    assert "<2de> 告诉模型写出 de；编码器读入：<2de> " in cli(*asked, "--lang", "zh")[1]


@pytest.mark.usefixtures("here")
def test_a_sentence_that_leaves_it_open_is_asked_about(cli):
    english = SENTENCES["en"][0]
    assert "into which language? Say --to 'de'" in cli.fails("trace", english)
    assert "looks like English already; if it is not, say so with --from" in cli.fails("trace", english, "--to", "en")
    assert "no one model goes from `zh` to `de`" in cli.fails("trace", SENTENCES["zh"][0], "--to", "de")
    assert "give a sentence" in cli.fails("trace", "en-de")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "first", "directions", "title"),
    [
        ([], "en-de", 4, "the translators in the box are shown and translate"),
        (["--to", "zh"], "en-zh", 4, "the translators in the box are shown and translate"),
        (["de-en"], "de-en", 2, "de-en is shown and translates"),
        (["en-zh", "--to", "en"], "zh-en", 2, "en-zh is shown and translates"),
    ],
)
def test_the_page_has_the_directions_of_what_it_serves(cli, monkeypatch, words, first, directions, title):
    served: list[tuple[str, Directions]] = []
    monkeypatch.setattr(
        "glassformer.deploy.server.listen.serve", lambda title, load, *_: served.append((title, load()))
    )
    code, _, err = cli("serve", *words)
    assert code == 0, err
    ((told, found),) = served
    assert (told, found.first, len(found.by_name)) == (title, first, directions)
    assert found.get().translator.about.source == first[:2]


@pytest.mark.usefixtures("here")
def test_a_language_that_the_model_named_does_not_write_is_told():
    with pytest.raises(ConfigError, match=r"en-de translates into .*, not into `zh`"):
        folder_directions(Path("en-de"), "cpu", "zh")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("to", "source", "name"),
    [(None, None, "en-de"), ("Chinese", None, "en-zh"), (None, "zh", "zh-en"), ("en", None, "de-en")],
)
def test_which_translator_is_shown(to, source, name):
    assert of_the_box(to, source) == Path(name)


@pytest.mark.usefixtures("here")
def test_a_pair_that_no_one_model_joins_is_told():
    with pytest.raises(ConfigError, match="no one model goes from `de` to `zh`; there are en-de, de-en, en-zh, zh-en"):
        of_the_box("zh", "de")


def test_an_empty_box_is_no_model(tmp_path, monkeypatch):
    monkeypatch.setattr(box, "HERE", tmp_path)
    assert of_the_box(None, None) is None
    with pytest.raises(WeightsError, match="comes without the translator `en-de`"):
        of_the_box("de", None)


@pytest.mark.usefixtures("here")
def test_the_doctor_tells_of_it(cli):
    assert "en-de (both ways), en-zh (both ways)" in cli("doctor")[1]
