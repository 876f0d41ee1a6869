"""The files of the package that the translation of one sentence from the command line enters, in order.

    python -m benchmarks.path_of_a_string

A function that runs only while a module is imported does not count: its file is among those imported.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import glassformer

COMMAND = ["glassformer", "translate", "Where is the nearest station?", "--to", "de"]
PACKAGE = f"{Path(glassformer.__file__).parent}/"


def files_entered() -> tuple[list[str], list[str]]:
    """The files with a function that ran, and those that were imported and nothing more."""
    called: dict[str, None] = {}
    imported: dict[str, None] = {}
    importing = 0  # modules whose bodies run

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal importing
        code = frame.f_code
        if event not in ("call", "return"):
            return
        if code.co_name == "<module>":
            importing += 1 if event == "call" else -1
        if event == "call" and code.co_filename.startswith(PACKAGE):
            (imported if importing else called)[code.co_filename.removeprefix(PACKAGE)] = None

    sys.argv = COMMAND
    sys.setprofile(note)
    try:
        importlib.import_module("glassformer.cli").main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
    return list(called), [name for name in imported if name not in called]


if __name__ == "__main__":
    called, imported = files_entered()
    print(*called, sep="\n")
    print(f"\n{len(called)} files with a function that ran; {len(imported)} more were imported:")
    print(*imported, sep="\n")
