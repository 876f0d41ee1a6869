"""The finished file and the notebooks, which are made of the steps and of the build pages.

    python docs/build/build_pages.py            writes them anew
    python docs/build/build_pages.py --check    writes nothing, names what is stale, exit 1 if anything is

The code and the rows within the pages are written by docs/refresh.py, which comes first.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import build_notebook
import growing

DOCS = growing.FOLDER.parent
sys.path.append(str(DOCS))

import fences  # noqa: E402

LANGUAGES = ("en", "zh")
ORDER = ("index", "guess", "attention", "layer", "encoder", "learning", "writing", "shipped")


def pages(language: str) -> list[Path]:
    return [DOCS / language / "build" / f"{name}.md" for name in ORDER]


def steps_of(page: Path) -> list[Path]:
    """The steps whose code stands in a page."""
    marks = fences.included(page.read_text(encoding="utf-8"))
    return [growing.step(mark.name) for mark in marks if mark.kind == "step"]


def steps_before(page: Path) -> list[Path]:
    """The steps of the pages before this one."""
    own = steps_of(page)
    return [step for step in growing.STEPS if own and step < own[0]]


def wanted() -> dict[Path, str]:
    """Each file that is made of others, as it should be."""
    files = {growing.WHOLE: growing.assembled(growing.STEPS)}
    for language in LANGUAGES:
        texts = [page.read_text(encoding="utf-8") for page in pages(language)]
        files[DOCS.parent / "notebooks" / language / "build-it.ipynb"] = build_notebook.written(texts, language)
    return files


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="write nothing, name what is stale")
    asked = options.parse_args()
    stale = 0
    for file, text in wanted().items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale += 1
            print(f"{file.relative_to(DOCS.parent)} {'is stale' if asked.check else 'written'}")
            if not asked.check:
                file.write_text(text, encoding="utf-8")
    return 1 if asked.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
