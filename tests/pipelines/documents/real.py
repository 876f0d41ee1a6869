"""Real documents: those of the project, and those that the installed packages bring with them."""

import html
import re
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[3]


def markdown_files():
    """Name and text: the project's own, the READMEs that packages give as their description, and files of theirs."""
    found = {str(file.relative_to(ROOT)): file.read_bytes().decode() for file in own_files()}
    for package in sorted(metadata.distributions(), key=lambda one: one.metadata["Name"]):
        told = package.metadata
        if (told.get("Description-Content-Type") or "").startswith("text/markdown"):
            found[f"{told['Name']}/README.md"] = told.get_payload() or told.get("Description") or ""
        for name, path in files_of(package, ".md"):
            if len(found) < 140 and path.is_file():
                found[name] = path.read_bytes().decode("utf-8", "ignore")
    return {name: text for name, text in found.items() if len(text) < 40_000}


def files_of(package, *endings):
    """Name and path, by the package's own list as it is written: `files` would make an object of each of 80,000."""
    for line in (package.read_text("RECORD") or "").splitlines():
        name = line.rpartition(",")[0].rpartition(",")[0].strip('"')
        if name.endswith(endings):
            yield name, Path(str(package.locate_file(name)))


def own_files():
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def html_pages(most=30):
    """Pages of the installed packages and of Python, the small ones first; made of READMEs, where there are too few."""
    from markdown_it import MarkdownIt

    found = {}
    for package in metadata.distributions():
        for name, path in files_of(package, ".html", ".htm"):
            if path.is_file() and 500 < path.stat().st_size < 60_000:
                found[name] = path
    pages = {}
    for name, path in sorted(found.items(), key=lambda one: one[1].stat().st_size):
        text = path.read_bytes().decode("utf-8", "ignore")
        if len(re.sub(r"<[^>]*>|\{[{%].*?[%}]\}", " ", text).split()) > 30:
            pages[name] = text
    reader = MarkdownIt("commonmark").enable("table")
    for name, text in list(markdown_files().items())[:20]:
        pages[f"{name}.html"] = f"<!DOCTYPE html>\n<title>{html.escape(name)}</title>\n{reader.render(text)}"
    return dict([*pages.items()][-most:])
