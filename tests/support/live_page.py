"""A small trained model, a live server of it, and a real browser that can reach nothing else."""

from pathlib import Path

import pytest
from visitor import EXAMPLES, Live, Visit

from glassformer.data import About
from glassformer.deploy.server.app import create_app
from glassformer.deploy.server.directions import box_directions, translator_directions
from glassformer.deploy.server.queue import Queue
from glassformer.deploy.server.translation_service import TranslationService
from glassformer.pipelines.translator import Translator


def toy_service(translator: Translator, queue: Queue | None = None) -> TranslationService:
    """The small model as a translator from English into German."""
    named = Translator(translator.model, translator.tokenizer, about=About(source="en", target="de"))
    return TranslationService(translator_directions(named, "toy"), queue or Queue(threads=1))


@pytest.fixture(scope="session")
def bundle():
    return Path(__file__).parents[1] / "page" / "bundle"  # made by make_bundle.py


@pytest.fixture(scope="session")
def translator(bundle):
    return Translator.load(bundle)


@pytest.fixture(scope="session")
def live(translator):
    with Live(
        create_app(translator_directions(translator, "toy", EXAMPLES), service=toy_service(translator))
    ) as server:
        yield server


@pytest.fixture(scope="session")
def shipped():
    """The box that ships, as it translates for others."""
    return box_directions("cpu", "en-de", precision="int8")


@pytest.fixture(scope="session")
def kept(chromium):
    """Tabs that stay open for the next test, in one context: to open one takes more than to load a page in it."""
    tabs = [Visit(chromium, "")]
    yield tabs
    tabs[0].context.close()


@pytest.fixture
def visit(chromium, live, kept):
    """Opens a page, in a tab that has been used before; with `options`, in a context of its own."""
    made = []

    def open_page(address: str | None = None, **options: object) -> Visit:
        address = address or live.address
        idle = [one for one in kept if one not in made]
        here = [one for one in idle if one.address == address]
        if options:
            made.append(Visit(chromium, address, **options))
        elif not idle:
            made.append(Visit(chromium, address, beside=kept[0]))
            kept.append(made[-1])
        else:
            made.append((here or idle)[-1])
            made[-1].use_again(address)
        return made[-1]

    yield open_page
    wrong = [[*one.errors] for one in made if one.errors]
    kept[0].context.unroute_all()
    for one in made:
        one.errors.clear()
        if one not in kept:
            one.context.close()
    assert wrong == [], "the page has written to the browser's console"
