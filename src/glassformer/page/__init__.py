"""The page as files: plain ES modules, a sheet of styles and one HTML file that names them, served or put into one."""

from functools import cache
from importlib.resources import files


@cache
def page_files() -> dict[str, str]:
    """The text of each of the page's files by its name: read once, so that no address can ever name another file."""
    entries = sorted(files(__name__).iterdir(), key=lambda entry: entry.name)
    return {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in entries
        if entry.name.endswith((".html", ".css", ".js"))
    }
