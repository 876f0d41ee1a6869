"""What the command line says of itself, and of words that it does not know."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from sampled import sampled
from typer.main import get_command

from glassformer import __version__
from glassformer.cli import app, main


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int | str | None, str, str]:
    monkeypatch.setattr("sys.argv", ["glassformer", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, *capsys.readouterr()


def commands(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name, one in getattr(command, "commands", {}).items():
        if one.hidden:
            continue
        yield from commands(one, *words, name)


COMMANDS = dict(commands(get_command(app)))


GRID = [(columns, words) for columns in ("80", "40") for words in COMMANDS]
FEW = [one for one in GRID if one[0] == "80" or one[1] in ((), ("translate",))]


@pytest.mark.parametrize("asked", sampled(GRID, FEW), ids=lambda asked: " ".join((asked[0], *asked[1])))
def test_no_word_of_a_help_text_is_lost(monkeypatch, capsys, asked):
    """Text in square brackets once was taken for a colour's name."""
    columns, words = asked
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = run(monkeypatch, capsys, *words, "--help")
    assert code == 0
    shown = "".join(out.split())
    command = COMMANDS[words]
    texts = [command.help, *(parameter.help for parameter in command.params if hasattr(parameter, "help"))]
    texts += [
        inspect.cleandoc(one.help).partition("\n\n")[0]
        for one in getattr(command, "commands", {}).values()
        if not one.hidden
    ]
    for text in texts:
        assert "".join(inspect.cleandoc(text or "").split()) in shown


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_told(monkeypatch, capsys, option):
    assert run(monkeypatch, capsys, option) == (0, f"glassformer {__version__}\n", "")


@pytest.mark.parametrize("words", [["translate", "m", "-5"], ["trace", "m", "-5"], ["translate", "m", "--", "-5"]])
def test_a_text_that_begins_with_a_minus_gets_a_hint(monkeypatch, capsys, words):
    code, _, err = run(monkeypatch, capsys, *words)
    assert code == 2
    assert ("No such option: -5" in err) == ("goes after --: -- -5" in err) == ("--" not in words)


def test_what_is_no_command_or_no_option_is_a_usage_error(monkeypatch, capsys):
    for words, said in (
        (["translat"], "translate"),
        (["score"], "Missing argument 'model'"),
        (["translate"], "say what to translate"),
        (["score", "m", "--sorc", "a"], "--src"),
        (["translate", "m", "--beam", "many"], "--beam"),
    ):
        code, out, err = run(monkeypatch, capsys, *words)
        assert (code, out) == (2, "")
        assert said in err
        assert "Traceback" not in err
