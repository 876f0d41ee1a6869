"""The pages as files: plain ES modules, sheets of styles and HTML files that name them, served or put into one.

This folder's own page looks inside a model. The one in `front` translates, and borrows some of these files.
"""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable


@cache
def page_files() -> dict[str, str]:
    """The text of each of the page's files by its name: read once, so that no address can ever name another file."""
    return texts(files(__name__))


@cache
def front_files() -> dict[str, str]:
    """The same of the page that translates."""
    return texts(files(__name__) / "front")


def texts(folder: Traversable) -> dict[str, str]:
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in entries
        if entry.name.endswith((".html", ".css", ".js"))
    }
