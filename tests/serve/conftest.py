"""A small trained model, a live server of it, and a real browser that can reach nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

from visitor import EXAMPLES, SCREEN, Live, Visit  # noqa: E402

from glassformer.serve.app import create_app  # noqa: E402
from glassformer.serve.directions import of_box, of_translator  # noqa: E402
from glassformer.serve.queue import Queue  # noqa: E402
from glassformer.serve.routes import Routes  # noqa: E402
from glassformer.text import About  # noqa: E402
from glassformer.translator import Translator  # noqa: E402


@pytest.fixture(scope="session")
def bundle() -> Path:
    return Path(__file__).parent / "bundle"  # made by make_bundle.py


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


@pytest.fixture(scope="session")
def kept(chromium):
    """Pages that stay open for the next test, by their addresses, and one in whose context others are opened: to open
    one is most of what a look at it takes."""
    open_pages: dict[str, Visit] = {}
    yield open_pages
    for one in open_pages.values():
        one.context.close()


@pytest.fixture
def visit(chromium, live, kept):
    """Opens a page: where nothing else is asked for, one that is open already; where it is `fresh`, a new one."""
    made = []

    def open_page(address: str | None = None, *, fresh: bool = False, **options: object) -> Visit:
        address = address or live.address
        if options:
            made.append(Visit(chromium, address, **options))
        elif fresh or made or address not in kept:
            made.append(Visit(chromium, address, beside=kept.get("")))
            kept.setdefault("", made[-1])
            if not fresh and address.startswith("http"):
                kept.setdefault(address, made[-1])
        else:
            made.append(kept[address])
            made[-1].page.bring_to_front()
            made[-1].page.set_viewport_size(SCREEN)
            made[-1].page.mouse.move(0, 0)  # what is pointed at is told
        return made[-1]

    yield open_page
    wrong = [[*one.errors] for one in made if one.errors]
    for one in made:
        one.errors.clear()
        if wrong and one.address in kept:
            del kept[one.address]
        if "" not in kept or one.context is not kept[""].context:
            one.context.close()
        elif one not in kept.values():
            one.page.close()
    assert wrong == [], "the page has written to the browser's console"
