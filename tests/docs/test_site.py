"""The site builds without a warning and works from a folder, with nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import MISSING, find_browser

ROOT = Path(__file__).parents[2]
ELSEWHERE = re.compile(r"""<(?:script|link|img|iframe)[^>]+(?:src|href)=["']?(?:https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for language in ("en", "zh"):
        words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
        words += ["-f", str(ROOT / "docs" / f"{language}.yml"), "-d", str(folder / language)]
        quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(words, env=quiet, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def page(site: Path) -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    path = find_browser()
    if path is None:
        pytest.fail(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.outside = []
        page.on("request", lambda r: page.outside.append(r.url) if r.url.startswith(("http", "ws")) else None)
        yield page
        browser.close()


def test_no_page_asks_for_anything_from_elsewhere(site: Path) -> None:
    pages = sorted(site.glob("*/**/*.html"))
    assert len(pages) >= 40
    for one in pages:
        text = one.read_text(encoding="utf-8")
        assert not ELSEWHERE.search(text), one
        assert 'class="arithmatex"' not in text, f"{one}: an equation was left as it stood"
        assert "```" not in text, f"{one}: a fence was left as it stood"


def test_search_figures_and_the_other_language_from_a_folder(site: Path, page) -> None:
    for language, words, found in (("en", "softmax", "Attention"), ("zh", "注意力", "注意力")):
        page.goto((site / language / "04-attention.html").as_uri())
        pictures = page.locator("article img").evaluate_all("all => all.map((one) => one.naturalWidth)")
        assert pictures
        assert min(pictures) > 0
        page.keyboard.press("/")
        page.keyboard.insert_text(words)
        page.keyboard.press("End")
        page.wait_for_selector(".md-search-result__link")
        assert found in page.locator(".md-search-result__item h1").all_inner_texts()
    page.locator(".md-select__link[hreflang=en]").evaluate("one => one.click()")
    page.wait_for_url("**/en/04-attention.html")
    assert page.outside == []
