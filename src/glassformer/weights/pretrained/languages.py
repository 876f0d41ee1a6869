"""Which of the languages that a model knows is meant: by its own code, by another that people write, or by its name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import NamedTuple

from glassformer.common.errors import InputError, one_of

FEW = 6  # languages that an error lists


class Language(NamedTuple):
    """A code taken apart; as short as it can be: `deu_Latn` is `de` in `Latn`."""

    short: str
    script: str = ""


def language(code: str) -> Language:
    from babel.core import get_global

    first, *rest = code.replace("-", "_").split("_")
    if not all(re.fullmatch(r"[A-Za-z]{2}|\d{3}|[A-Za-z]{4}", part) for part in rest):  # no region, no script
        return Language(code)
    alias: str = get_global("language_aliases").get(first.lower(), first.lower())
    short = first.lower() if "_" in alias else alias
    script = next((part.title() for part in rest if len(part) == 4), "")
    region = next((part.upper() for part in rest if len(part) < 4), "")
    if not script and region:
        likely: str = get_global("likely_subtags").get(f"{short}_{region}", "")
        script = likely.split("_")[1] if likely.count("_") == 2 else ""
    return Language(short, script)


def name_of(code: str) -> str:
    """What a language is called in English; its code where Babel has no word for it."""
    from babel import Locale

    return str(Locale("en").languages.get(language(code).short, code))


def pick(given: str, known: Sequence[str]) -> str:
    """The one of the `known` codes that is meant: `deu_Latn` by deu_Latn, deu-latn, deu, de, de_DE or German."""
    for code in known:
        if given.replace("-", "_").casefold() == code.casefold():
            return code
    asked = language(given)
    same = [
        code for code in known if language(code).short == asked.short or name_of(code).casefold() == given.casefold()
    ]
    if asked.script:
        same = [code for code in same if language(code).script in ("", asked.script)]
    if len(same) == 1:
        return same[0]
    if same:
        raise InputError(f"`{given}` may be {' or '.join(f'`{code}`' for code in same)}; say which")
    names = {name_of(code).casefold(): code for code in known} | {code.casefold(): code for code in known}
    near = [names[word] for word in difflib.get_close_matches(given.casefold(), names, n=3, cutoff=0.85)]
    told = " or ".join(f"`{code}` ({name_of(code)})" for code in dict.fromkeys(near))
    more = f" and {len(known) - FEW} more" if len(known) > FEW else ""
    rest = f"did you mean {told}?" if near else f"it knows {one_of(known[:FEW])}{more}"
    raise InputError(f"this model knows no language `{given}`; {rest}")
