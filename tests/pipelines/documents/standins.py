"""Translators that are hard on a document: they do to markup what a model might, and worse."""

import random
import re
import zlib
from pathlib import Path

from glassformer.pipelines.documents import translate_bytes


class StandIn:
    """Each text through `change`, the same text always to the same; what it was asked is kept."""

    def __init__(self, change):
        self.change, self.asked = change, []

    def translate(self, texts, *, progress=None):
        self.asked += texts
        found = [self.change(text) for text in texts]
        if progress is not None:
            progress(len(texts))
        return found


def upper(text):
    return text.upper()


def through(name, text, change=upper):
    """The document translated, how, and the texts that the translator was asked for."""
    translator = StandIn(change)
    made, stats = translate_bytes(Path(name), text if isinstance(text, bytes) else text.encode(), translator)
    return made.decode(), stats, translator.asked


def seeded(text):
    return random.Random(zlib.crc32(text.encode()))


def swallow(text):
    """Every sign of markup is lost with one chance in five."""
    chance = seeded(text)
    return "".join(sign for sign in text if sign not in "*_`[]()<>|#~$\\!" or chance.random() > 0.2)


def add(text):
    """Markup that no one asked for, at both ends and within."""
    chance = seeded(text)
    signs = ["**", "`x`", "<b>", "</b>", "|", "\n", "\n\n", "# ", "[a](b)", "~~", "$x$", "&", "<!--", "```", "    "]
    words = [word for found in text.split(" ") for word in (found, chance.choice([*signs, *[""] * 15])) if word]
    return chance.choice(["", "1. ", "- ", "> ", "# ", "+ ", "```", "| ", "    ", "---", "=== "]) + " ".join(words)


def shuffle(text):
    """Words in another order, as translations have them."""
    words = text.split(" ")
    seeded(text).shuffle(words)
    return " ".join(words)


def begin_a_list(text):
    return f"1. {text}"


def vowels(text):
    """A new language: words change, signs of markup and of tags stay, and what stands in code and targets too."""
    kept = re.split(r"(`+[^`]*`+|\]\([^)]*\)|<[^>]*>|&#?\w+;|https?://\S+|\[[^\]]*\]\[[^\]]*\])", text)
    return "".join(
        part if i % 2 else part.translate(str.maketrans("aeiouAEIOU", "äëïöüÄËÏÖÜ")) for i, part in enumerate(kept)
    )


def empty(text):
    return ""


HARD = {one.__name__: one for one in (upper, swallow, add, shuffle, begin_a_list, vowels, empty)}
