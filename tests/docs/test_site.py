"""The site builds without a warning and works from a folder, with nothing from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
# Ten pages that have, between them, all that a page can have; each is looked at as the site and by a plain renderer.
READ = (
    "index", "04-attention", "07-residual-and-norm", "08-feed-forward", "13-training", "19-your-own-translator",
    "21-the-box", "where-tutorials-go-wrong", "build/learning", "glossary",
)  # fmt: skip
PHONE = {"width": 390, "height": 844}
PLAIN = """<!doctype html><meta charset=utf-8><meta name=viewport content="width=device-width"><style>
body { font: 16px sans-serif; margin: 16px; overflow-wrap: break-word } img { max-width: 100% }
pre, table { display: block; overflow: auto }</style>"""
# What a reader would see amiss: wider than the window and not to be moved, raw signs, no picture, an anchor to nothing.
AMISS = r"""() => {
  const root = document.querySelector("article") ?? document.body;
  const width = document.documentElement.clientWidth;
  const found = [];
  if (document.documentElement.scrollWidth > width) {
    const parts = [...root.querySelectorAll("p, li, math, img, code")];
    const wide = parts.find((one) => one.getBoundingClientRect().right > width + 1);
    found.push(`too wide: ${wide?.textContent.slice(0, 60)}`);
  }
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let one = texts.nextNode(); one; one = texts.nextNode()) {
    if (one.parentElement.closest("code, pre, math, script, style")) continue;
    const raw = one.textContent.match(/\$[^ ]|\*\*|```|<!--|\]\(|\\\\[a-z]{2,}|^\|.*\|/);
    if (raw) found.push(`raw: ${one.textContent.slice(Math.max(0, raw.index - 20), raw.index + 30)}`);
  }
  for (const one of root.querySelectorAll("img")) if (!one.naturalWidth) found.push(`no picture: ${one.src}`);
  for (const one of root.querySelectorAll("a[href^='#']")) {
    const name = decodeURIComponent(one.getAttribute("href").slice(1));
    if (name && !document.getElementById(name)) found.push(`no anchor: ${name}`);
  }
  return found;
}"""
ELSEWHERE = re.compile(r"""<(?:script|link|img|iframe)[^>]+(?:src|href)=["']?(?:https?:)?//""")


# Built by itself in a few seconds, with what the tests look for; links to the pages that are left out lead nowhere.
FEW = ("index", "04-attention", "10-decoder")
PART = """
INHERIT: {docs}/{language}.yml
docs_dir: {docs}/{language}
theme: {{custom_dir: {docs}/theme}}
hooks: [{docs}/hooks.py]
exclude_docs: "*.md\\n{kept}"
nav: [{pages}]
validation: {{links: {{not_found: ignore}}}}
"""


@pytest.fixture(scope="module", params=["a part", pytest.param("whole", marks=pytest.mark.long)])
def site(request, tmp_path_factory):
    folder, docs = tmp_path_factory.mktemp("site"), ROOT / "docs"
    for language in ("en", "zh"):
        settings = docs / f"{language}.yml"
        if request.param == "a part":
            pages, kept = ", ".join(f"{name}.md" for name in FEW), "\\n".join(f"!/{name}.md" for name in FEW)
            settings = tmp_path_factory.mktemp("settings") / f"{language}.yml"
            settings.write_text(PART.format(docs=docs, language=language, pages=pages, kept=kept), encoding="utf-8")
        words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
        words += ["-f", str(settings), "-d", str(folder / language)]
        quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(words, env=quiet, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def tab(chromium):
    page = chromium.new_page()
    page.outside = []
    page.on("request", lambda r: page.outside.append(r.url) if r.url.startswith(("http", "ws")) else None)
    yield page
    page.close()


@pytest.fixture
def page(tab):
    tab.outside.clear()
    tab.set_viewport_size({"width": 1280, "height": 720})
    return tab


def test_no_page_asks_for_anything_from_elsewhere(site):
    pages = sorted(site.glob("*/**/*.html"))
    assert len(pages) >= 40 or {one.stem for one in pages} == {*FEW, "404"}
    for one in pages:
        text = one.read_text(encoding="utf-8")
        assert not ELSEWHERE.search(text), one
        assert 'class="arithmatex"' not in text, f"{one}: an equation was left as it stood"
        assert "```" not in text, f"{one}: a fence was left as it stood"


def plain(page: Path) -> str:
    """A page as a renderer without extensions shows it; equations, which a code host draws, are set aside."""
    text = page.read_text(encoding="utf-8")
    parts = re.split(r"(^```.*?^```$|`[^`\n]+`)", text, flags=re.M | re.S)
    for place in range(0, len(parts), 2):
        parts[place] = re.sub(r"^\$\$\n.+?\n\$\$$|\$[^$\n]+\$", "∎", parts[place], flags=re.M | re.S)
    return PLAIN + MarkdownIt("commonmark").enable("table").render("".join(parts))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_is_raw_cut_or_missing_on_a_phone(language, site, page, tmp_path):
    (tmp_path / "figures").symlink_to(ROOT / "docs" / "figures")
    page.set_viewport_size(PHONE)
    amiss, seen = {}, 0
    for name in READ:
        if not (site / language / f"{name}.html").exists():
            continue
        shown = tmp_path / language / f"{name}.html"
        shown.parent.mkdir(parents=True, exist_ok=True)
        shown.write_text(plain(ROOT / "docs" / language / f"{name}.md"), encoding="utf-8")
        for place in (site / language / f"{name}.html", shown):
            page.goto(place.as_uri())
            page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
            seen += 1
            if found := page.evaluate(AMISS):
                amiss[f"{name}, {'plain' if place == shown else 'site'}"] = found
    assert not amiss
    assert seen in (2 * len(READ), 2 * len({*READ} & {*FEW}))


def test_what_is_amiss_is_noticed(page, tmp_path):
    shown = tmp_path / "broken.html"
    page.set_viewport_size(PHONE)
    for broken, kinds in (
        ("<p>a sum of $x$</p>", ["raw"]),
        ("<p>**bold**</p>", ["raw"]),
        ("<p>[a link](there.md)</p>", ["raw"]),
        ('<img src="nowhere.svg" alt="nothing">', ["no picture"]),
        ('<a href="#nowhere">there</a>', ["no anchor"]),
        ("<p style='width: 500px'>wide</p>", ["too wide"]),
        ("<p>text and <code>$x$ ** ](</code></p>", []),
    ):
        shown.write_text(PLAIN + broken, encoding="utf-8")
        page.goto(shown.as_uri())
        assert [one.split(":")[0] for one in page.evaluate(AMISS)] == kinds


def test_search_figures_and_the_other_language_from_a_folder(site, page):
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


def test_a_schematic_is_seen_whole_on_a_phone(site, page):
    page.set_viewport_size(PHONE)
    for place in ("en/10-decoder.html", "zh/index.html"):
        page.goto((site / place).as_uri())
        drawn = page.locator("article img[src*='/schematic-']").first.bounding_box()
        assert drawn["width"] > 300
        assert drawn["x"] + drawn["width"] <= PHONE["width"]
