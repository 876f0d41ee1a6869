"""Help, version and usage errors of every command."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from sampled import sampled
from typer.main import get_command

from glassformer import __version__
from glassformer.cli import app


def commands(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name, one in getattr(command, "commands", {}).items():
        if not one.hidden:
            yield from commands(one, *words, name)


COMMANDS = dict(commands(get_command(app)))
GRID = [(columns, words) for columns in ("80", "40") for words in COMMANDS]
FEW = [case for case in GRID if case[0] == "80" or case[1] in ((), ("translate",))]


@pytest.mark.parametrize("case", sampled(GRID, FEW), ids=lambda case: " ".join((case[0], *case[1])))
def test_no_word_of_a_help_text_is_lost(cli, monkeypatch, case):
    """Text in square brackets once was taken for a colour's name."""
    columns, words = case
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = cli(*words, "--help")
    assert code == 0
    shown = "".join(out.split())
    command = COMMANDS[words]
    texts = [command.help, *(parameter.help for parameter in command.params if hasattr(parameter, "help"))]
    below = [one for one in getattr(command, "commands", {}).values() if not one.hidden]
    texts += [inspect.cleandoc(one.help).partition("\n\n")[0] for one in below]
    for text in texts:
        assert "".join(inspect.cleandoc(text or "").split()) in shown


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(cli, option):
    assert cli(option) == (0, f"glassformer {__version__}\n", "")


@pytest.mark.parametrize("words", [["translate", "m", "-5"], ["trace", "m", "-5"], ["translate", "m", "--", "-5"]])
def test_a_text_that_begins_with_a_minus_gets_a_hint(cli, words):
    code, _, err = cli(*words)
    assert code == 2
    assert ("No such option: -5" in err) == ("goes after --: -- -5" in err) == ("--" not in words)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["translat"], "translate"),
        (["score"], "Missing argument 'model'"),
        (["translate"], "say what to translate"),
        (["score", "m", "--sorc", "a"], "--src"),
        (["translate", "m", "--beam", "many"], "--beam"),
    ],
)
def test_usage_errors(cli, words, error):
    code, out, err = cli(*words)
    assert (code, out) == (2, "")
    assert error in err
    assert "Traceback" not in err
