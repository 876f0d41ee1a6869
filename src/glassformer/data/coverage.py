"""What a model is for: its languages, what its sentences are about, and the words it has met."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from glassformer.common.strings import UNSPACED

MOST_WORDS = 50_000  # kept of those met in training, the most frequent
NAMED = 8  # words that a warning names
# In a script without spaces every character counts as a word.
_LETTER = rf"(?![{UNSPACED}])[^\W\d_]"
_WORD = re.compile(rf"[{UNSPACED}]|(?:{_LETTER})+(?:['’](?:{_LETTER})+)*")


@dataclass(frozen=True)
class About:
    """A model's card: the section [about] of its recipe. Languages are codes, such as "en"."""

    source: str = ""
    target: str = ""
    purpose: str = ""  # what it has learnt, as in "This model learnt {purpose}."
    purpose_zh: str = ""
    examples: tuple[str, ...] = ()

    @classmethod
    def of_recipe(cls, text: str) -> About:
        """The card in a recipe's text; what is missing or of another kind is left out, since a model works without."""
        try:
            table: Any = tomllib.loads(text).get("about", {})
        except tomllib.TOMLDecodeError:
            return cls()
        found = table if isinstance(table, dict) else {}
        texts = {f.name: found[f.name] for f in fields(cls) if isinstance(found.get(f.name), str)}
        listed = found.get("examples")
        examples = tuple(one for one in listed if isinstance(one, str)) if isinstance(listed, list) else ()
        return cls(**texts | {"examples": examples})

    def toward(self, target: str, tags: Sequence[str]) -> About:
        """The card for another target language, one of `tags`; only the original direction keeps its examples."""
        fixed = [self.source] if self.source and self.source not in tags else []
        sources = fixed or [tag for tag in tags if tag != target]
        source = sources[0] if len(sources) == 1 else ""
        own = (source, target) == (self.source, self.target)
        return self if own else replace(self, source=source, target=target, examples=())

    def warning(self, words: Sequence[str]) -> str:
        """What to say of words that training never met."""
        learnt = f"this model learnt {self.purpose}; it" if self.purpose else "this model"
        more = f" and {len(words) - NAMED:,} more" if len(words) > NAMED else ""
        return f"{learnt} may not know: {', '.join(words[:NAMED])}{more}"


def split_words(text: str) -> list[str]:
    return _WORD.findall(text)


def frequent_words(texts: Iterable[str]) -> frozenset[str]:
    """The words of `texts`, capitals aside; of very many, the most frequent."""
    chunks: Counter[str] = Counter()
    for text in texts:
        chunks.update(text.split())
    counts: Counter[str] = Counter()
    for chunk, times in chunks.items():  # far fewer than there are words in all
        for word in split_words(chunk):
            counts[word.casefold()] += times
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return frozenset(ranked[:MOST_WORDS])


def unseen_words(words: frozenset[str], texts: Sequence[str]) -> list[str]:
    """The words of `texts` that are not among `words`, each once, as they come."""
    found: dict[str, str] = {}
    for text in texts:
        for word in split_words(text):
            found.setdefault(word.casefold(), word)
    return [word for folded, word in found.items() if folded not in words]
