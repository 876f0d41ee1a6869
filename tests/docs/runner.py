"""Runs a page of Markdown as a reader would: its Python in one session, its commands in the same folder."""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from itertools import takewhile
from pathlib import Path
from unittest.mock import patch

import fences
import torch

from glassformer.labs import NAMES

CHECKER = doctest.OutputChecker()
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
WORTH_COPYING = shutil.ignore_patterns("checkpoints", "prepared")


class PageError(AssertionError):
    """What a page says is not so; the message names its line."""


def run_page(
    page: Path, demo: Path, folder: Path, slow: bool, names: dict[str, object] | None = None
) -> dict[str, object]:
    """Run every block of `page`, the answers last, in a `folder` that holds the demo's model; the names it leaves."""
    shutil.copytree(demo, folder / "runs" / "demo", ignore=WORTH_COPYING)
    namespace = {"__name__": "__main__"} | (names or {})
    blocks = list(with_output(fences.read(page.read_text(encoding="utf-8"))))
    with chdir(folder), torch.random.fork_rng():
        torch.manual_seed(0)
        for block, output in sorted(blocks, key=lambda pair: pair[0].folded):
            if block.slow and not slow:
                continue
            if block.kind == "python":
                printed = run_python(block, page, namespace)
            else:
                printed = "".join(
                    run_command(line, page, block, output is not None or slow) for line in commands(block)
                )
            if output is not None:
                compare(output, printed, page)
    return namespace


def with_output(blocks: list[fences.Fence]) -> Iterator[tuple[fences.Fence, fences.Fence | None]]:
    for block, after in zip(blocks, [*blocks, None][1:], strict=True):
        if block.kind in ("python", "console"):
            yield block, after if after is not None and after.kind == "output" else None


def run_python(block: fences.Fence, page: Path, namespace: dict[str, object]) -> str:
    printed = StringIO()
    # Empty lines before it, so that a traceback names the line of the page.
    code = compile("\n" * (block.line - 1) + block.body, str(page), "exec")
    try:
        with redirect_stdout(printed):
            exec(code, namespace)
    except Exception:
        raise PageError(f"{page.name}, the block of line {block.line}:\n{traceback.format_exc(limit=-3)}") from None
    return printed.getvalue()


def commands(block: fences.Fence) -> list[str]:
    """The lines after `$ `, those that end in a backslash joined with the next."""
    lines = block.body.replace("\\\n", "").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def run_command(line: str, page: Path, block: fences.Fence, thorough: bool) -> str:
    words = shlex.split(line, comments=True)
    where = f"{page.name}, line {block.line}: `{line}`"
    if words[:2] == ["glassformer", "lab"] and len(words) > 2 and not thorough:
        named = set(takewhile(lambda word: not word.startswith("-"), words[2:]))
        if not named <= {name for known in NAMES for name in (known, known.replace("_", "-"))}:
            raise PageError(f"{where}: there is no such lab")
        return ""  # the labs have tests of their own
    if words[:2] == ["glassformer", "serve"]:
        serve(words, where)
        return ""
    if words[0] == "glassformer" and not set(line) & set("|<>;&"):
        code, printed, errors = run_in_process(words)
    else:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(["bash", "-c", line], env=os.environ | {"PATH": path}, text=True, capture_output=True)
        code, printed, errors = done.returncode, done.stdout, done.stderr
    if code != 0:
        raise PageError(f"{where} ended with {code}:\n{printed}{errors}")
    return printed


def run_in_process(words: list[str]) -> tuple[int, str, str]:
    """The command within this process, which has loaded torch already: exit code, standard output and error."""
    from glassformer.cli import main

    printed, errors = (TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code: object = 0
    with patch.object(sys, "argv", words), patch.object(sys, "stdout", printed), patch.object(sys, "stderr", errors):
        try:
            main()
        except SystemExit as end:
            code = end.code
    stdout, stderr = (stream.buffer.getvalue().decode() for stream in (printed, errors))
    return (code if isinstance(code, int) else int(bool(code))), stdout, stderr


def serve(words: list[str], where: str) -> None:
    """Start the server, wait for its address, and stop it."""
    words = [word for word in words if word != "--open"]
    if "--port" not in words:
        words += ["--port", "0"]
    with subprocess.Popen([sys.executable, "-m", *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.terminate()
    if not ADDRESS.search(line):
        raise PageError(f"{where} printed no address but: {line!r}")


def compare(output: fences.Fence, printed: str, page: Path) -> None:
    expected, actual = (
        "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines()) for text in (output.body, printed)
    )
    if not CHECKER.check_output(expected, actual, doctest.ELLIPSIS):
        shown = f"the page shows\n{expected}\nbut what was printed is\n{actual}"
        raise PageError(f"{page.name}, line {output.line}: {shown}")
