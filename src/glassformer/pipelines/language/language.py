"""Which language a text is in, of a few: by its script, by its commonest words, and else by the library py3langid."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

from glassformer.common.errors import ConfigError, did_you_mean
from glassformer.common.strings import HAN, KANA_HANGUL
from glassformer.data.protect import spans
from glassformer.pipelines.language import word_lists
from glassformer.pipelines.language.numbers import blank_out

# What a language is called, beside its code; in small letters.
NAMES: dict[str, tuple[str, ...]] = {
    "en": ("English", "englisch", "英语", "英文", "英語", "eng"),
    "de": ("German", "deutsch", "德语", "德文", "德語", "deu", "ger"),
    "zh": ("Chinese", "chinesisch", "中文", "汉语", "漢語", "简体中文", "mandarin", "cmn", "zho", "chi"),
}
TRADITIONAL = re.compile(r"zh-(hant\b.*|tw|hk|mo)")

WORDS = {language: frozenset(common) for language, common in word_lists("common").items()}
LETTERS = {"de": re.compile("[äöüß]")}
OTHERS = ("fr", "es", "it", "pt", "nl", "sv", "da", "no", "pl", "cs", "hu", "tr", "el", "ru", "uk", "ar", "ja", "ko")
FAR = 8.0  # by how much another language must be likelier, in the library's logarithms, to be named
IN_DOUBT = 1.0  # by how much English may be less likely, for its words are everywhere
_WORD = re.compile(r"[^\W\d_]+")
CHINESE = 6  # letters that say as much as a character of Chinese, at most
_HAN = re.compile(f"[{HAN}]")
_KANA = re.compile(f"[{KANA_HANGUL}]")  # with these, what looks Chinese is Japanese or Korean
_BLOCK = re.compile(r"```.*?```|`[^`]*`|<[^>]*>|\{[^}]*\}", re.DOTALL)  # code and tags, of several lines too
LONGEST = 2000  # characters of a text that are looked at


def language_name(code: str) -> str:
    """What a language is called in English."""
    return NAMES[code][0] if code in NAMES else code


def language_code(name: str, among: Collection[str]) -> str:
    """The code of a language: `zh` of zh-CN, Chinese or 中文; one that is not `among` those known is refused."""
    given = name.strip().casefold().replace("_", "-")
    for code in among:
        if given in (code, *map(str.casefold, NAMES.get(code, ()))) or (
            given.startswith(f"{code}-") and not TRADITIONAL.fullmatch(given)
        ):
            return code
    known = ", ".join(f"{code} ({NAMES[code][0]})" if code in NAMES else code for code in among)
    if "zh" in among and TRADITIONAL.fullmatch(given):
        raise ConfigError(f"`{name}` is Chinese in traditional characters, which is not here; there are {known}")
    near = did_you_mean(given.title(), [word for code in among for word in NAMES.get(code, ()) if len(word) > 3])
    raise ConfigError(f"the language `{name}` is not here; there are {known}{near}")


class Guess(NamedTuple):
    """The likeliest language among those asked for; and the one that it looks like more, if that is none of them."""

    code: str | None
    other: str | None = None


def confident_language(text: str, least: int = 2) -> str | None:
    """The language of a text whose script shows it, or at least `least` words or letters of it and few of another."""
    seen = evidence(text)
    if seen is None:
        return None
    best, second = sorted([*seen, ""], key=lambda language: -seen.get(language, 0))[:2]
    return best if seen[best] >= least and seen[best] >= 3 * seen.get(second, 0) else None


def without_code(text: str) -> str:
    """The beginning of a text without what is written alike in every language."""
    text = _BLOCK.sub(" ", text[:LONGEST])
    return blank_out(text, spans(text), " ")


def evidence(text: str) -> dict[str, int] | None:
    """How many characters, common words or letters of each language a text has; None where scripts mix."""
    text = without_code(text).casefold()
    words = _WORD.findall(text)
    han, kana, letters = len(_HAN.findall(text)), len(_KANA.findall(text)), sum(map(len, words))
    if han and not kana and CHINESE * han >= letters:
        return {"zh": max(2, han)}  # a single character tells as much as two words
    if han or kana:
        return None
    seen = {language: sum(word in common for word in words) for language, common in WORDS.items()}
    for language, pattern in LETTERS.items():
        seen[language] += sum(1 for word in words if pattern.search(word))
    return seen


def confidence(text: str, code: str) -> float:
    """How sure `detect_language` is of a language, from 0 to 1: its share of the evidence where that decides, else the
    library's probability."""
    if confident_language(text, 1) == code and (seen := evidence(text)):
        return seen[code] / sum(seen.values())
    scores: dict[str, float] = dict(language_identifier().rank(without_code(text)))
    highest = max(scores.values())
    return math.exp(scores[code] - highest) / sum(math.exp(one - highest) for one in scores.values())


def detect_language(text: str, among: Sequence[str]) -> Guess:
    """The language of a text; none for one without letters."""
    found = confident_language(text, 1)
    if found in among:
        return Guess(found)
    bare = without_code(text)
    bare = bare if _WORD.search(bare) else text[:LONGEST]
    if not _WORD.search(bare):
        return Guess(None)
    words = _WORD.findall(_HAN.sub(" ", bare))
    chinese = bool(_HAN.search(bare) and not _KANA.search(bare))
    if chinese and CHINESE * len(_HAN.findall(bare)) < sum(map(len, words)):  # a name in it, or a link
        chinese, bare = False, _HAN.sub(" ", bare)
    scores: dict[str, float] = dict(language_identifier().rank(bare))
    scores["en"] += IN_DOUBT
    if chinese:
        return Guess("zh" if "zh" in among else max(among, key=scores.__getitem__), None if "zh" in among else "zh")
    best, likeliest = max(among, key=scores.__getitem__), max(scores, key=scores.__getitem__)
    return Guess(best, likeliest if scores[likeliest] - scores[best] > FAR else None)


def detect_languages(texts: Sequence[str], among: Sequence[str], target: str | None = None) -> list[Guess]:
    """The language of each text `among` some, and the one that it looks like if that is another. A text that does not
    tell has the language of the others, and that of the `target` only where there is no doubt."""
    sources = [language for language in among if language != target] or among
    shown = [confident_language(text, 1) for text in texts]
    sure = [
        code if code in sources or code == confident_language(text) else None
        for text, code in zip(texts, shown, strict=True)
    ]
    seen = {code for code in sure if code in sources}
    found = []
    for text, code in zip(texts, sure, strict=True):
        likely = code if code in among else None
        if likely is None and any(map(str.isalpha, text)):
            shared = len(seen) == 1 and len(texts) > 1
            found.append(Guess(next(iter(seen))) if shared else detect_language(text, sources))
        else:
            found.append(Guess(likely))
    return found


@cache
def language_identifier() -> Any:
    """The library's model of many languages: it takes a second and 100 MB, which `cache_clear` gives back."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    made = LanguageIdentifier.from_model_file(MODEL_FILE)
    made.set_languages([*NAMES, *OTHERS])
    return made
