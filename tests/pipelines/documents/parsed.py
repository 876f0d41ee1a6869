"""What a document is to a reader of its format, told without the code that translates it."""

import re
from collections import Counter
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

READERS = {
    "commonmark": MarkdownIt("commonmark").use(footnote_plugin),
    "with tables": MarkdownIt("commonmark")
    .enable(["table", "strikethrough"])
    .use(footnote_plugin)
    .use(dollarmath_plugin, allow_space=False, allow_digits=False, allow_labels=False),
}
FRONT = re.compile(r"\A---\r?\n.*?\r?\n---\r?\n", re.DOTALL)


def markdown_structure(text):
    front = FRONT.match(text)
    told = {"front matter": front and front[0]}
    for name, reader in READERS.items():
        tokens = reader.parse(text[front.end() :] if front else text)
        inline = [child for token in tokens if token.type == "inline" for child in token.children]
        inline += [child for token in inline if token.type == "image" for child in token.children]
        told[name] = {
            "blocks": [(token.type, token.tag, token.markup, token.level) for token in tokens],
            "code": [(token.info, token.content) for token in tokens if token.type in ("fence", "code_block")],
            "spans": Counter(token.content for token in inline if token.type == "code_inline"),
            "links": Counter(
                (token.attrs["href"], token.attrs.get("title")) for token in inline if "href" in token.attrs
            ),
            "images": Counter(
                (token.attrs["src"], token.attrs.get("title")) for token in inline if "src" in token.attrs
            ),
            "tags": Counter(token.content for token in inline if token.type == "html_inline"),
            # A reader without maths finds emphasis in formulas, between which words may change their order.
            "emphasis": Counter(token.type for token in inline if token.nesting == 1 and name != "commonmark"),
            "html": [Counter(tags(token.content)) for token in tokens if token.type == "html_block"],
        }
    return told


class Tags(HTMLParser):
    """Tags with their attributes, comments, declarations, and the text of code and of scripts."""

    KEPT = ("code", "pre", "script", "style", "kbd", "textarea")

    def __init__(self, text):
        super().__init__()
        self.met, self.within = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.met.append(self.get_starttag_text())
        if tag in self.KEPT:
            self.within.append(tag)

    def handle_endtag(self, tag):
        self.met.append(f"</{tag}>")
        if tag in self.within:
            del self.within[self.within.index(tag) :]

    def handle_data(self, data):
        if self.within:
            self.met.append(f"text {data}")

    def handle_comment(self, data):
        self.met.append(f"<!--{data}-->")

    def handle_decl(self, decl):
        self.met.append(decl)


def tags(text):
    return Tags(text).met


WORDS = re.compile(
    r"</?(a|abbr|b|bdi|bdo|cite|code|del|dfn|em|font|i|img|ins|kbd|label|mark|q|s|small|span|strong|sub|sup|u|input|var|samp|tt|svg|path)\b"
)


def html_structure(text):
    """All tags, and the order of those that stand around sentences."""
    met = tags(text)
    return Counter(met), [tag for tag in met if tag.startswith("<") and not WORDS.match(tag)]
