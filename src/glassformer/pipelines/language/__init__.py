"""What a text says: its sentences, its language, and its numbers, amounts, times and names, which a model must keep."""

import tomllib
from importlib.resources import files
from typing import Any

TABLES: dict[str, Any] = tomllib.loads(files(__name__).joinpath("tables.toml").read_text(encoding="utf-8"))


def word_lists(table: str) -> dict[str, list[str]]:
    """The words of a table, by language."""
    return {language: text.split() for language, text in TABLES[table].items()}
