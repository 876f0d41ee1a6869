"""Any text into any language of the box: which translator, which way, and by way of which language."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Unpack, overload

import torch

from glassformer.common.errors import ConfigError
from glassformer.common.strings import strings
from glassformer.decode import Search
from glassformer.decode.precision import Precision
from glassformer.decode.search import SearchOptions
from glassformer.pipelines import box
from glassformer.pipelines.language.glossary import Glossary
from glassformer.pipelines.language.language import clearly, code_of, detect, name_of
from glassformer.pipelines.text import Note, TextTranslator, TranslatedText
from glassformer.pipelines.translator import Translator


@overload
def translate(  # type: ignore[overload-overlap]  # a str is an iterable of str too, and the first that fits holds
    text: str,
    to: str | None = None,
    source: str | None = None,
    *,
    glossary: Glossary | None = None,
    device: str = "cpu",
    precision: Precision = "auto",
    search: Search | None = None,
    **options: Unpack[SearchOptions],
) -> str: ...
@overload
def translate(
    text: Iterable[str],
    to: str | None = None,
    source: str | None = None,
    *,
    glossary: Glossary | None = None,
    device: str = "cpu",
    precision: Precision = "auto",
    search: Search | None = None,
    **options: Unpack[SearchOptions],
) -> list[str]: ...
def translate(
    text: str | Iterable[str],
    to: str | None = None,
    source: str | None = None,
    *,
    glossary: Glossary | None = None,
    device: str = "cpu",
    precision: Precision = "auto",
    search: Search | None = None,
    **options: Unpack[SearchOptions],
) -> str | list[str]:
    """A text, or each of several, in another language, by the translators that come with glassformer.

        gf.translate("Where is the nearest station?", to="de")

    Without `source` the language of each text is detected; without `to`, what is not English becomes English. What
    there is to say of a translation, such as that it went by way of English, is said as a warning. The translators stay
    loaded.
    """
    texts = [text] if isinstance(text, str) else strings(text, "text")
    ways = directions(texts, to, source)
    found = polyglot(device, precision).details(texts, ways, glossary=glossary, search=search, **options)
    for note in dict.fromkeys(note.text for one in found for note in one.notes):
        warnings.warn(note, stacklevel=2)
    return found[0].text if isinstance(text, str) else [one.text for one in found]


@cache
def polyglot(device: str, precision: Precision) -> Polyglot:
    return Polyglot(device, precision)


class Polyglot:
    """The translators of the box, each loaded when it is first needed."""

    def __init__(self, device: str | torch.device = "cpu", precision: Precision = "auto") -> None:
        self.device, self.precision = device, precision
        self._loaded: dict[str, Translator] = {}

    def translator(self, source: str, target: str, glossary: Glossary | None = None) -> TextTranslator:
        """From one language to another; two that no model joins, by way of English."""
        hops = [self._load(one) for one in box.route(source, target)]
        return TextTranslator(*hops, source=source, target=target, glossary=glossary, detect=clearly)

    def _load(self, way: box.Direction) -> Translator:
        if way.model not in self._loaded:
            place = box.folder(way.model)
            self._loaded[way.model] = Translator.load(place, self.device, self.precision, to=way.to)
        return self._loaded[way.model].toward(way.to)

    def details(
        self,
        texts: Sequence[str],
        ways: Sequence[Way],
        *,
        glossary: Glossary | None = None,
        search: Search | None = None,
        **options: Unpack[SearchOptions],
    ) -> list[TranslatedText]:
        """The translation of each text with all there is to say of it; those of one language go together."""
        found = [TranslatedText(text) for text in texts]
        for pair in dict.fromkeys(way.pair for way in ways if way.pair[0] != way.pair[1]):
            rows = [i for i, way in enumerate(ways) if way.pair == pair]
            translator = self.translator(*pair, glossary)
            made = translator.details([texts[i] for i in rows], search=search, **options)
            for i, one in zip(rows, made, strict=True):
                found[i] = one
        return [
            TranslatedText(one.text, one.sentences, (*way.notes, *one.notes), one.via)
            for one, way in zip(found, ways, strict=True)
        ]


class Way:
    """From which language into which a text goes; the same twice where it stays as it is."""

    def __init__(self, source: str, target: str, *notes: Note) -> None:
        self.pair, self.notes = (source, target), notes


def directions(texts: Sequence[str], to: str | None, source: str | None) -> list[Way]:
    """From which language into which each text goes, detected where it is not said."""
    target = None if to is None else code_of(to, box.LANGUAGES)
    if source is not None:
        code = code_of(source, box.LANGUAGES)
        target = target or default(code)
        if code == target:
            raise ConfigError(f"both from and to={to!r}: that is {name_of(code)} twice; name two languages")
        return [Way(code, target) for _ in texts]
    return [way(text, target, code, other) for text, (code, other) in zip(texts, guesses(texts, target), strict=True)]


def way(text: str, target: str | None, code: str | None, other: str | None) -> Way:
    if code is None:  # nothing in it could be translated
        return Way("", "")
    to = target or default(code)
    if code == to:
        return Way(to, to, Note("language", f"left as it is, for it is {name_of(to)} already: {text!r:.60}"))
    if other is not None:
        return Way(code, to, Note("language", f"this looks like `{other}`, but is translated as {name_of(code)}"))
    return Way(code, to)


def guesses(texts: Sequence[str], target: str | None) -> list[tuple[str | None, str | None]]:
    """The language of each text, and the one that it looks like if that is another. A text that does not tell it is in
    the language of those beside it; in that which is translated into, only where it leaves no doubt."""
    clear = [clearly(text) for text in texts]
    among = [language for language in box.LANGUAGES if language != target]
    hints = [None if one is not None else clearly(text, 1) for text, one in zip(texts, clear, strict=True)]
    said = {one for one in (*clear, *hints) if one is not None and one != target}
    found: list[tuple[str | None, str | None]] = []
    for text, sure, hint in zip(texts, clear, hints, strict=True):
        likely = sure or (hint if hint != target else None)
        if likely is None and not any(map(str.isalpha, text)):
            found.append((None, None))
        elif likely is not None:
            found.append((likely, None))
        else:
            found.append((next(iter(said)), None) if len(said) == 1 and len(texts) > 1 else detect(text, among))
    return found


def default(code: str) -> str:
    """What a language is translated into where nobody says it."""
    if code != box.PIVOT:
        return box.PIVOT
    others = " or ".join(f"to={one!r} ({name_of(one)})" for one in box.LANGUAGES if one != code)
    raise ConfigError(f"from {name_of(code)} into which language? Say {others}")
