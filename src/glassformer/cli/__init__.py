"""The command line: one file per command, each parses, calls and prints.

Nothing heavy is imported here or at the top of a command's file, so that `glassformer --help` answers at once.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys

import typer

from glassformer.cli import bench, demo, doctor, evaluate, lab, score, serve, trace, train, translate
from glassformer.errors import GlassformerError

app = typer.Typer(
    name="glassformer",
    help="A Transformer you can see through, and ship.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("translate")(translate.translate)
app.command("evaluate")(evaluate.evaluate)
app.command("score")(score.score)
app.command("trace")(trace.trace)
app.command("serve")(serve.serve)
app.command("lab")(lab.lab)
app.command("doctor")(doctor.doctor)
app.add_typer(bench.bench, name="bench")


def speak_any_encoding() -> None:
    """Let no sign that a stream's encoding lacks end a command: `±` in ASCII is `\\u00b1`, as JSON would write it."""

    def escaped(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeEncodeError)
        return json.dumps(error.object[error.start : error.end])[1:-1], error.end

    codecs.register_error("escaped", escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="escaped")


def main() -> None:
    """Run a command; a user's mistake ends in one line on stderr and exit code 2, never in a traceback."""
    speak_any_encoding()
    try:
        app()
    except GlassformerError as error:
        print(f"glassformer: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # The reader has gone, `head` for example; what is left in the buffer has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except KeyboardInterrupt:
        sys.exit(130)
