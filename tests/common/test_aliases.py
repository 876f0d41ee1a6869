"""Earlier names of modules: each gives the very module of now, and warns."""

from __future__ import annotations

import importlib
import sys

import pytest

from glassformer.common.aliases import ALIASES


@pytest.mark.parametrize("name", ALIASES)
def test_an_earlier_name_gives_the_module_of_now_and_warns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.warns(FutureWarning, match=ALIASES[name]):
        earlier = importlib.import_module(name)
    assert earlier is importlib.import_module(ALIASES[name])
    assert earlier.__spec__ is not None
    assert earlier.__spec__.name == ALIASES[name]


def test_a_file_within_an_earlier_folder_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "glassformer.text.tokenizer", raising=False)
    with pytest.warns(FutureWarning, match=r"glassformer\.data"):
        from glassformer.text.tokenizer import Tokenizer
    from glassformer.data import Tokenizer as Now

    assert Tokenizer is Now


def test_no_name_of_now_is_an_alias() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("glassformer.no_such_room")
