"""Structure: whatever a translator does, a document stays what it was; a hundred real files, twenty real pages."""

import parsed
import pytest
import real
import standins
from sampled import sampled

PARTS = 10


def changed(kind, documents, structure, part):
    """Of every tenth document, beginning with `part`: whose structure is not what it was. Stand-ins take turns."""
    changes = [*standins.HARD.values()]
    wrong = []
    for place, (name, text) in [*enumerate(documents.items())][part::PARTS]:
        change = changes[place % len(changes)]
        made, *_ = standins.through(f"x.{kind}", text, change)
        if structure(made) != structure(text):
            wrong.append((name, change.__name__))
    return wrong


@pytest.mark.parametrize("part", sampled(range(PARTS), [0]))
def test_markdown_keeps_its_structure(part):
    documents = real.markdown_files()
    assert len(documents) >= 100
    assert changed("md", documents, parsed.markdown_structure, part) == []


@pytest.mark.parametrize("part", sampled(range(PARTS), [0]))
def test_pages_keep_their_structure(part):
    documents = real.html_pages()
    assert len(documents) >= 20
    assert changed("html", documents, parsed.html_structure, part) == []
