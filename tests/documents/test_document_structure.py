"""Structure: whatever a translator does, a document stays what it was; a hundred real files, twenty real pages."""

from pathlib import Path

import parsed
import pytest
import real
import standins

from glassformer.documents import translate_bytes

MARKDOWN, PAGES = real.markdown_files(), real.html_pages()


def through(name, text, change):
    made, tally = translate_bytes(Path(name), text.encode(), standins.StandIn(change))
    return made.decode(), tally


def test_there_are_enough():
    assert len(MARKDOWN) >= 100
    assert len(PAGES) >= 20


@pytest.mark.parametrize("name", MARKDOWN)
def test_markdown_keeps_its_structure(name):
    """Each file with one of the stand-ins that leave words to be seen, and one that does not."""
    text, changes = MARKDOWN[name], [*standins.HARD.values()]
    number = list(MARKDOWN).index(name)
    before = parsed.markdown_structure(text)
    for change in (changes[number % len(changes)], changes[(number + 3) % len(changes)]):
        made, _ = through("x.md", text, change)
        assert parsed.markdown_structure(made) == before, change.__name__


@pytest.mark.parametrize("name", PAGES)
def test_pages_keep_their_structure(name):
    text, changes = PAGES[name], [*standins.HARD.values()]
    number = list(PAGES).index(name)
    before = parsed.html_structure(text)
    for change in (changes[number % len(changes)], changes[(number + 3) % len(changes)]):
        made, _ = through("x.html", text, change)
        assert parsed.html_structure(made) == before, change.__name__
