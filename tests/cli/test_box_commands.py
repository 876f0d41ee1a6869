"""`serve`, `trace` and `doctor` without a model use the box."""

import json
from pathlib import Path

import pytest
from tiny_box import SENTENCES

from glassformer.cli.serve import of_the_box
from glassformer.common.errors import ConfigError, WeightsError
from glassformer.deploy.server.directions import folder_directions
from glassformer.pipelines import box

pytestmark = pytest.mark.usefixtures("tiny_box")


def test_trace(cli):
    code, out, err = cli("trace", SENTENCES["de"][1], "--to", "en", "--name", "*.pattern", "--device", "cpu")
    assert code == 0, err
    assert "cross_attention.pattern" in out


@pytest.mark.parametrize(
    ("language", "to", "first"), [("de", None, "<2en>"), ("zh", "en", "<2en>"), ("en", "zh", "<2zh>")]
)
def test_trace_detects_the_language(cli, language, to, first):
    direction = () if to is None else ("--to", to)
    options = (*direction, "--json", "-", "--name", "logits", "--device", "cpu")
    code, out, err = cli("trace", SENTENCES[language][0], *options)
    assert code == 0, err
    manifest = json.loads(out)
    assert manifest["source"]["pieces"][0] == first
    assert manifest["about"]["source"] == language
    assert manifest["source"]["tag"] == first[2:-1]


def test_trace_explains_the_tag(cli):
    trace = ("trace", SENTENCES["en"][0], "--to", "de", "--device", "cpu")
    assert "<2de> tells the model to write de; the encoder reads: <2de> " in cli(*trace)[1]
    assert "<2de> 告诉模型写出 de；编码器读入：<2de> " in cli(*trace, "--lang", "zh")[1]


def test_trace_asks_for_a_missing_direction(cli):
    english = SENTENCES["en"][0]
    assert "into which language? Say --to 'de'" in cli.fails("trace", english)
    assert "looks like English already; if it is not, say so with --from" in cli.fails("trace", english, "--to", "en")
    assert "no one model goes from `zh` to `de`" in cli.fails("trace", SENTENCES["zh"][0], "--to", "de")
    assert "give a sentence" in cli.fails("trace", "en-de")


@pytest.mark.parametrize(
    ("words", "first", "directions", "title"),
    [
        ([], "en-de", 4, "the translators in the box are shown and translate"),
        (["--to", "zh"], "en-zh", 4, "the translators in the box are shown and translate"),
        (["de-en"], "de-en", 2, "de-en is shown and translates"),
        (["en-zh", "--to", "en"], "zh-en", 2, "en-zh is shown and translates"),
    ],
)
def test_serve_offers_the_directions_of_its_models(cli, monkeypatch, words, first, directions, title):
    served = []
    serve = "glassformer.deploy.server.listen.serve"
    monkeypatch.setattr(serve, lambda title, load, *_: served.append((title, load())))
    code, _, err = cli("serve", *words)
    assert code == 0, err
    ((shown, loaded),) = served
    assert (shown, loaded.first, len(loaded.by_name)) == (title, first, directions)
    assert loaded.get().translator.about.source == first[:2]


def test_a_model_without_the_target_language():
    with pytest.raises(ConfigError, match=r"en-de translates into .*, not into `zh`"):
        folder_directions(Path("en-de"), "cpu", "zh")


@pytest.mark.parametrize(
    ("to", "source", "name"),
    [(None, None, "en-de"), ("Chinese", None, "en-zh"), (None, "zh", "zh-en"), ("en", None, "de-en")],
)
def test_direction_of_the_first_page(to, source, name):
    assert of_the_box(to, source) == Path(name)


def test_a_pair_without_a_model():
    with pytest.raises(ConfigError, match="no one model goes from `de` to `zh`; there are en-de, de-en, en-zh, zh-en"):
        of_the_box("zh", "de")


def test_an_empty_box(tmp_path, monkeypatch):
    monkeypatch.setattr(box, "HERE", tmp_path)
    assert of_the_box(None, None) is None
    with pytest.raises(WeightsError, match="comes without the translator `en-de`"):
        of_the_box("de", None)


def test_doctor_lists_the_box(cli):
    assert "en-de (both ways), en-zh (both ways)" in cli("doctor")[1]
