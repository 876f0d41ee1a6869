"""Earlier names of modules: each has what the module of now has, and warns."""

from __future__ import annotations

import importlib
import sys

import pytest

from glassformer.common.aliases import ALIASES


@pytest.mark.parametrize("name", ALIASES)
def test_an_earlier_name_has_what_the_module_of_now_has_and_warns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.warns(FutureWarning, match=ALIASES[name]):
        earlier = importlib.import_module(name)
    now = importlib.import_module(ALIASES[name])
    assert {key: value for key, value in vars(earlier).items() if key in now.__dict__ and not key.startswith("__")} == {
        key: value for key, value in vars(now).items() if not key.startswith("__")
    }


def test_a_file_within_an_earlier_folder_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("glassformer.text", "glassformer.text.tokenizer"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.warns(FutureWarning, match=r"glassformer\.data"):
        from glassformer.text.tokenizer import Tokenizer
    from glassformer.data import Tokenizer as Now

    assert Tokenizer is Now


def test_no_name_of_now_is_an_alias() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("glassformer.no_such_room")
