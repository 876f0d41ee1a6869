"""The command line: one file per command, each parses, calls and prints.

Nothing heavy is imported here or at the top of a command's file, so that `glassformer --help` answers at once.
"""

from __future__ import annotations

import codecs
import inspect
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer
from typer import Argument, Option
from typer.core import TyperCommand, TyperGroup

from glassformer.cli.keys import keys
from glassformer.common.errors import GlassformerError, why
from glassformer.common.version import __version__

# Commands whose arguments are text, which may begin as an option does.
SPEAKING = ("translate", "trace", "generate", "fill", "classify")


class Commands(TyperGroup):
    """Commands with ends of our own, kept from typer's."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with own_ends():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with own_ends():
            return super().invoke(ctx)


class Command(TyperCommand):
    """A command that tells a wrong option by its flag: `beam=0` in Python is --beam 0 here."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except GlassformerError as error:
            flags = {option.name: option.opts[0] for option in self.params if option.opts[0].startswith("--")}
            text = re.sub(r"\b(\w+)=", lambda name: flags[name[1]] + " " if name[1] in flags else name[0], str(error))
            error.args = (text,)
            raise


@contextmanager
def own_ends() -> Iterator[None]:
    """Being stopped by the user is no error; an unknown option may be a text."""
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except Exception as error:  # typer hides the class of its own; all are raised again
        option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
        if option is not None and context is not None and context.info_name in SPEAKING:
            error.message += f" (a text that begins with - goes after --: -- {option})"  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    name="glassformer",
    cls=Commands,
    rich_markup_mode=None,  # in help, too, what stands in brackets is text
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (  # in the order of the help; each is the function of its name, in the module of its name
    "demo", "clean", "make", "train", "translate", "generate", "fill", "classify", "evaluate", "score", "trace",
    "serve", "bulk", "lab", "export", "pack", "doctor",
)  # fmt: skip
for name in COMMANDS:
    app.command()(getattr(import_module(f"glassformer.cli.{name}"), name))
app.add_typer(keys, name="keys", short_help=keys.info.help)
for group in (app, keys):
    for command in group.registered_commands:
        command.cls = Command
        # In the list, too, a sentence is told to its end; each has a docstring, which a test of the help reads.
        command.short_help = inspect.getdoc(command.callback).partition("\n\n")[0]  # type: ignore[union-attr]


@app.command(hidden=True, context_settings={"ignore_unknown_options": True, "help_option_names": []})
def bench(words: Annotated[list[str] | None, Argument()] = None) -> None:
    """The benchmarks have left the package."""
    raise GlassformerError(
        f"the benchmarks are in the repository now, beside the package: python -m benchmarks {' '.join(words or ())}"
    )


def show_version(wanted: bool) -> None:
    if wanted:
        print(f"glassformer {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, Option("--version", "-V", help="Print the version.", is_eager=True, callback=show_version)
    ] = False,
) -> None:
    """A Transformer you can see through, and ship."""


def speak_any_encoding() -> None:
    """Let no sign that a stream's encoding lacks end a command: `±` in ASCII is `\\u00b1`, as JSON would write it."""

    def escaped(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeEncodeError)
        return json.dumps(error.object[error.start : error.end])[1:-1], error.end

    codecs.register_error("escaped", escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="escaped")


def open_closed_streams() -> None:
    """A stream that was closed before we came, `<&-` in a shell, is an empty one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - it stays open


def main() -> None:
    """Run a command; a user's mistake ends in one line on stderr and exit code 2, never in a traceback."""
    open_closed_streams()
    speak_any_encoding()
    warnings.formatwarning = lambda message, *_, **__: f"glassformer: {message}\n"
    code: Any = 0
    failed: OSError | None = None
    try:
        app()
    except SystemExit as end:
        # When the reader has gone, `head` for example, typer and rich say 1.
        code = 141 if isinstance(end.__context__, BrokenPipeError) else end.code
    except GlassformerError as error:
        code = print_error(str(error))
    except OSError as error:
        failed = error
    try:
        sys.stdout.flush()
    except OSError as error:
        # What is left in the buffer has nowhere to go; Python would try again, and complain, when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        failed = error
        error.filename = "standard output"
    if isinstance(failed, BrokenPipeError):
        code = 141
    elif failed is not None:
        code = print_error(": ".join(filter(None, (failed.filename, why(failed)))))
    sys.exit(code)


def print_error(error: str) -> int:
    print(f"glassformer: {error}", file=sys.stderr)
    return 2
