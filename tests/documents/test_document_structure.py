"""Structure: whatever a translator does, a document stays what it was; a hundred real files, twenty real pages."""

from pathlib import Path

import parsed
import pytest
import real
import standins
from sampled import sampled

from glassformer.documents import translate_bytes

MARKDOWN, PAGES = real.markdown_files(), real.html_pages()


def through(name, text, change):
    made, tally = translate_bytes(Path(name), text.encode(), standins.StandIn(change))
    return made.decode(), tally


def some(names):
    """Every tenth, so that each stand-in has its turn, beginning with the project's own."""
    return sampled(names, [*names][::10])


def test_there_are_enough():
    assert len(MARKDOWN) >= 100
    assert len(PAGES) >= 20


@pytest.mark.parametrize("name", some(MARKDOWN))
def test_markdown_keeps_its_structure(name):
    """The stand-ins for a translator take turns."""
    text, changes = MARKDOWN[name], [*standins.HARD.values()]
    change = changes[list(MARKDOWN).index(name) % len(changes)]
    made, _ = through("x.md", text, change)
    assert parsed.markdown_structure(made) == parsed.markdown_structure(text), change.__name__


@pytest.mark.parametrize("name", some(PAGES))
def test_pages_keep_their_structure(name):
    text, changes = PAGES[name], [*standins.HARD.values()]
    change = changes[list(PAGES).index(name) % len(changes)]
    made, _ = through("x.html", text, change)
    assert parsed.html_structure(made) == parsed.html_structure(text), change.__name__
