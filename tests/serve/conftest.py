"""A small trained model, a live server of it, and a real browser that can reach nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

from small_run import train_here, write_recipe  # noqa: E402
from visitor import EXAMPLES, Live, Visit  # noqa: E402

from glassformer.serve.app import create_app  # noqa: E402
from glassformer.serve.directions import of_box, of_translator  # noqa: E402
from glassformer.serve.queue import Queue  # noqa: E402
from glassformer.serve.routes import Routes  # noqa: E402
from glassformer.text import About  # noqa: E402
from glassformer.translator import Translator  # noqa: E402


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    out = folder / "toy"
    changes = ("model.layers=2", "model.dropout=0", "train.steps=200", "train.lr=0.005", "train.save_every=200")
    train_here(write_recipe(folder), out, *changes, "train.valid_every=200")
    return out


@pytest.fixture(scope="session")
def translator(bundle: Path) -> Translator:
    return Translator.load(bundle)


@pytest.fixture(scope="session")
def live(translator: Translator):
    named = Translator(translator.model, translator.tokenizer, about=About(source="en", target="de"))
    routes = Routes(of_translator(named, "toy"), Queue(threads=1))
    with Live(create_app(translator, "toy", EXAMPLES, routes=routes)) as server:
        yield server


@pytest.fixture(scope="session")
def shipped():
    """The box that ships, as it translates for others."""
    return of_box("cpu", "en-de", precision="int8")


@pytest.fixture
def visit(chromium, live):
    made = []

    def open_page(address: str | None = None, **options: object) -> Visit:
        made.append(Visit(chromium, address or live.address, **options))
        return made[-1]

    yield open_page
    for one in made:
        one.context.close()
    assert [one.errors for one in made if one.errors] == [], "the page has written to the browser's console"
