"""Pieces of HTML as people have them: paragraphs of the handbook, and posts as Mastodon sends them."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

from markdown_it import MarkdownIt

PAGES = Path(__file__).parents[3] / "docs" / "en"
ASIDE = ("code", "pre", "script", "style")  # what no reader reads as text
BLOCKS = r"p|h\d|ul|ol|blockquote|table"
VOID = ("br", "img", "hr", "input", "wbr")
POSTS = [
    '<p>Hello <span class="h-card" translate="no"><a href="https://social.example/@ann" class="u-url mention">'
    "@<span>ann</span></a></span>, the new version is here! "
    '<a href="https://social.example/tags/free" class="mention hashtag" rel="tag">#<span>free</span></a></p>',
    '<p>We have moved the server.<br>It should be faster now.</p><p>Read more: <a href="https://www.example.com/a?b=1&amp;c=2"'
    ' target="_blank" rel="nofollow noopener noreferrer" translate="no"><span class="invisible">https://www.</span>'
    '<span class="ellipsis">example.com/a?b=1</span><span class="invisible">&amp;c=2</span></a></p>',
    "<p>I think that <strong>this</strong> is <em>very</em> good :blobcat: &lt;3</p>",
    "<ul><li>First the <b>kitchen</b></li><li>then the garden &amp; the house</li></ul>"
    "<blockquote><p>Thank you!</p></blockquote>",
]


def fragments(count: int) -> list[str]:
    """So many, of all kinds, the same ones each time."""
    page = MarkdownIt("commonmark", {"html": True}).enable("table")
    found = list(POSTS)
    for path in sorted(PAGES.glob("*.md")):
        made = page.render(path.read_text(encoding="utf-8"))
        blocks = re.findall(rf"^<(?:{BLOCKS})>.*?(?=^<(?:{BLOCKS}|pre|div|details)\b|\Z)", made, re.M | re.S)
        found += [one.strip() for one in blocks if "<" in one[4:-5] and "$" not in one and 40 < len(one) < 900]
    step = max(1, (len(found) - len(POSTS)) // max(1, count - len(POSTS)))
    return [*POSTS, *found[len(POSTS) :: step]][:count]


class Seen(HTMLParser):
    """What a piece of HTML holds: its tags with their attributes, whether they are balanced, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.open: list[str] = []
        self.balanced, self.words = True, list[str]()
        self.feed(text)
        self.close()
        self.balanced = self.balanced and not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[f"{tag} {attrs}"] += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[f"{tag} {attrs}"] += 1

    def handle_endtag(self, tag: str) -> None:
        self.balanced = self.balanced and bool(self.open) and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not set(ASIDE) & set(self.open):
            self.words += re.findall(r"[^\W\d_]{2,}", data)
