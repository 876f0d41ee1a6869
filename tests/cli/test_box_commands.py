"""`serve`, `trace` and `doctor` without a model: they know of the box."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_run import Cli
from tiny_box import SENTENCES, make_box

from glassformer import box
from glassformer.cli.serve import of_the_box
from glassformer.errors import ConfigError, WeightsError


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_box(tmp_path_factory.mktemp("box"))


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "HERE", place)


@pytest.mark.usefixtures("here")
def test_a_sentence_is_followed_through_the_box(cli: Cli) -> None:
    code, out, err = cli("trace", SENTENCES["de"][1], "--to", "en", "--name", "*.pattern", "--device", "cpu")
    assert code == 0, err
    assert "cross_attention.pattern" in out


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("to", "source", "name"),
    [(None, None, "en-de"), ("Chinese", None, "en-zh"), (None, "zh", "zh-en"), ("en", None, "de-en")],
)
def test_which_translator_is_shown(to: str | None, source: str | None, name: str) -> None:
    assert of_the_box(to, source) == Path(name)


@pytest.mark.usefixtures("here")
def test_a_pair_that_no_one_model_joins_is_told() -> None:
    with pytest.raises(ConfigError, match="no one model goes from `de` to `zh`; there are en-de, de-en, en-zh, zh-en"):
        of_the_box("zh", "de")


def test_an_empty_box_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "HERE", tmp_path)
    assert of_the_box(None, None) is None
    with pytest.raises(WeightsError, match="comes without the translator `en-de`"):
        of_the_box("de", None)


@pytest.mark.usefixtures("here")
def test_the_doctor_tells_of_it(cli: Cli) -> None:
    assert "en-de (both ways), en-zh (both ways)" in cli("doctor")[1]
