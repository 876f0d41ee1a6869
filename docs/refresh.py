"""Write what the handbook's pages include, between its marks, as the source has it today.

python docs/refresh.py            writes the pages that are not fresh
python docs/refresh.py --check    writes nothing, names them, and exits with 1 if there are any
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import choices
import fences
import named_source
import reference
import worked_pages

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path += [str(DOCS / "build"), str(DOCS / "before")]

import before_rows  # noqa: E402
import build_rows  # noqa: E402
import growing  # noqa: E402


def pages() -> list[Path]:
    return [page for language in ("en", "zh") for page in sorted((DOCS / language).rglob("*.md"))]


def fresh(page: Path) -> str:
    """The text of `page` with all that it includes as it is now."""
    language = page.relative_to(DOCS).parts[0]

    def write(what: fences.Included) -> str:
        try:
            return written(what, page, language)
        except LookupError as error:
            raise LookupError(f"{page.relative_to(ROOT)}, line {what.line}: {error}") from None

    return fences.refill(page.read_text(encoding="utf-8"), write)


def written(what: fences.Included, page: Path, language: str) -> str:
    if what.kind == "api":
        return "\n".join(reference.markdown(reference.entry(name)) for name in what.name.split())
    if what.kind == "choices":
        return choices.table(what.name, language) + "\n"
    if what.kind == "rows":
        first, last = map(int, what.name.split("-"))
        return build_rows.markdown(build_rows.kept(), language, first, last)
    if what.kind == "measured":
        return before_rows.markdown(before_rows.kept(), what.name, language)
    if what.kind == "worked":
        return worked_pages.markdown(what.name, language)
    if what.kind == "step":
        return f"```python\n{growing.code(growing.step(what.name))}```"
    source = named_source.find(what.name)
    # Without its line: that moves with every change above it, and the page would not be fresh for no reason.
    place = f"{'../' * len(page.parent.relative_to(ROOT).parts)}{source.path}"
    return f"[`{source.path}`]({place})\n\n```python\n{source.text}\n```"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="write nothing, name what is not fresh, exit 1 if any is")
    asked = options.parse_args()
    stale = [(page, text) for page in pages() if (text := fresh(page)) != page.read_text(encoding="utf-8")]
    for page, text in stale:
        if not asked.check:
            page.write_text(text, encoding="utf-8")
        print(f"{page.relative_to(ROOT)} {'is not fresh' if asked.check else 'written'}")
    return 1 if asked.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
