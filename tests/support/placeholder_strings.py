"""Strings of user interfaces with placeholders of many kinds, and whether a translation has them whole."""

import html
import os
import random
import re
import shutil
import subprocess
from itertools import count as numbers
from typing import NamedTuple

import polib
import pytest

TEMPLATES = """Hello, @!|Hello @|Welcome back, @.|The # is @.|@ is not a #|Copying @ to @|Could not open the # @: @
Delete @?|@ of @ # copied|You have @ new # in @.|The # @ was changed by @ on @.|Please enter @ and press the button.
Only @ left|Last # was @ at @|Do you want to save the # @ before you close the #?|Set @ to change the #.|@ (@)
Page @ / @|Every # in @""".replace("\n", "|").split("|")
NOUNS = ["file", "folder", "password", "message", "server", "user", "page", "setting", "image", "account", "printer"]
STYLES = {  # of a kind: what may stand for @, one style a string; ? is its number, W a word; and the flag in a .po file
    "printf": (["%s %d %5.2f %lu %-10s %zu %d%% %dMB", "%?$s %?$d %?$.1f"], "c-format"),
    "python %": (["%(name)s %(count)d %(rate).1f%% %(path)r", "%s %r %d%%"], "python-format"),
    "python {": (["{name} {n:d} {price:>8.2f} {user!r}", "{} {:d}", "{?} {?!s}"], "python-brace-format"),
    "icu": (["{name}|{day, date, short}|{n, plural, one {# W} other {# W}}|{g, select, male {W} other {W W}}|"
             "{n, selectordinal, one {# W} other {# W}}|{n, plural, offset:1 =0 {W} other {# W {g, select, a {W {b}} "
             "other {W '{'}}}}"], ""),
    "mustache": (["{{name}}|{{{html}}}|{{ count }}|{{#if new}}W{{/if}}|{{> part}}"], ""),
    "shell": (["$HOME|${USER}|${EDITOR:-vi}|$(date +%F)|`ls -l`|$PATH"], ""),
    "xml": (['<x id="1"/>|<ph name="N"/>|&brand;|<g id="2">W</g>'], ""),
    "html": (['<b>W</b>|<a href="/x/a=1&amp;b=2">W</a>|<br>|<i>W</i>|<code>a_b</code>'], ""),
}  # fmt: skip


class Sample(NamedTuple):
    kind: str
    flag: str
    text: str
    tokens: list[str]  # all in it that is no word

    def is_whole(self, made: str, read=str) -> bool:
        """Whether a translation has each token and each sign of tokens as often, and %s and {} in their order."""
        text, made, tokens = read(self.text), read(made), [read(one) for one in self.tokens]
        in_turn = [one for one in tokens if re.fullmatch(r"%[^(<$]+|\{(?::.*)?\}", one)]
        pattern = "|".join(map(re.escape, sorted(in_turn, key=len, reverse=True))) or "(?!)"
        same = all(made.count(one) == text.count(one) for one in {*tokens, *"%{}<>$`#"})
        return same and re.findall(pattern, made) == in_turn

    def is_left(self, made: str) -> bool:
        """Whether nothing was translated, though there are words."""
        words = re.sub("|".join(map(re.escape, sorted(self.tokens, key=len, reverse=True))) or "(?!)", " ", self.text)
        return html.unescape(made) == html.unescape(self.text) and any(map(str.isalpha, words))


def make_samples(count: int, seed: int = 0) -> list[Sample]:
    """`count` different strings."""
    draw, found = random.Random(seed), dict[str, Sample]()
    for number in numbers():
        if len(found) == count:
            break
        kind = list(STYLES)[number % len(STYLES)]
        styles, flag = STYLES[kind]
        style, places, tokens, text = draw.choice(styles), numbers(1), list[str](), ""
        for part in re.split("([@#])", draw.choice(TEMPLATES)):
            if part == "@":
                one = draw.choice(style.split("|" if "|" in style else " ")).replace("?", str(next(places)))
                pieces = re.split(r"\bW\b|#|'\{'" if kind == "icu" else r"\bW\b", one)
                tokens += [piece.strip() for piece in pieces if piece.strip()]
                part = re.sub(r"\bW\b", lambda _: draw.choice(NOUNS), one)
            text += draw.choice(NOUNS) if part == "#" else part
        found.setdefault(text, Sample(kind, flag, text, tokens))
    return list(found.values())


def po_file(samples: list[Sample]) -> bytes:
    entries = (polib.POEntry(msgid=one.text, flags=[one.flag] * bool(one.flag)) for one in samples)
    header = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    return (header + "\n".join(map(str, entries))).encode()


def assert_valid(po: bytes) -> None:
    """Gettext takes the file, formats included."""
    if shutil.which("msgfmt") is None:
        pytest.skip("msgfmt is not here: apt-get install gettext")
    checked = subprocess.run(["msgfmt", "-c", "-o", os.devnull, "-"], input=po, capture_output=True)
    assert checked.returncode == 0, checked.stderr.decode()
