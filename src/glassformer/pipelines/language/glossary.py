"""Terms whose translation is given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from glassformer.common.errors import DataError, why

# A term ends at a word's border, but not in scripts that are written without spaces.
_LETTER = "(?![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])\\w"


@dataclass(frozen=True)
class Glossary:
    """Source terms and what each is in the target, to the letter.

        terms = gf.Glossary.load("terms.tsv")
        gf.TextTranslator(translator, glossary=terms).translate(["The kernel starts."])

    A term is found where it stands as a word of its own, the longest first; as it is written if it is there so, in
    other capitals else.
    """

    terms: Mapping[str, str]
    _folded: dict[str, str] = field(init=False, repr=False, compare=False)
    _pattern: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        folded: dict[str, str] = {}
        for term, target in self.terms.items():
            folded.setdefault(term.casefold(), target)
        ranked = sorted(self.terms, key=lambda term: (-len(term), term))
        pattern = re.compile("|".join(map(bordered, ranked)), re.IGNORECASE) if ranked else None
        object.__setattr__(self, "_folded", folded)
        object.__setattr__(self, "_pattern", pattern)

    @classmethod
    def load(cls, path: str | Path) -> Glossary:
        """A file of lines `source TAB target`; empty lines and lines that begin with # are left out."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise DataError(f"the glossary {path} does not exist; is the path right?") from None
        except UnicodeDecodeError as error:
            raise DataError(f"the glossary {path} is not UTF-8 (byte {error.start + 1}); save it as UTF-8") from None
        except OSError as error:
            raise DataError(f"the glossary {path} cannot be read: {why(error)}") from None
        terms: dict[str, str] = {}
        lines: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            columns = [column.strip() for column in line.split("\t")]
            while len(columns) > 2 and not columns[-1]:
                columns.pop()
            if len(columns) != 2:
                what = "has no TAB" if len(columns) == 1 else f"has {len(columns)} columns"
                raise DataError(
                    f"{path}, line {number}: {line.strip()!r:.60} {what}; write source term, TAB, target term "
                    f"(a comment is a line that begins with #)"
                )
            term, target = columns
            if not term or not target:
                side = "source" if not term else "target"
                raise DataError(f"{path}, line {number}: the {side} term is empty; fill it in, or take the line out")
            if terms.setdefault(term, target) != target:
                raise DataError(
                    f"{path}, line {number}: {term!r:.60} is {target!r:.60} here and {terms[term]!r:.60} in line "
                    f"{lines[term]}; keep one of them"
                )
            lines.setdefault(term, number)
        return cls(terms)

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """Where terms stand in `text`, and what each is in the target."""
        if self._pattern is None:
            return []
        return [(match.start(), match.end(), self[match[0]]) for match in self._pattern.finditer(text)]

    def __getitem__(self, term: str) -> str:
        return self.terms[term] if term in self.terms else self._folded[term.casefold()]


def bordered(term: str) -> str:
    """A pattern that finds `term` as a word of its own."""
    before = f"(?<!{_LETTER})" if re.match(_LETTER, term) else ""
    after = f"(?!{_LETTER})" if re.match(_LETTER, term[-1]) else ""
    return before + re.escape(term) + after
