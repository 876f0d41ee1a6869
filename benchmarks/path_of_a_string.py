"""The files of the package that the translation of one sentence from the command line enters, in order.

python -m benchmarks.path_of_a_string
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

COMMAND = ("glassformer", "translate", "Where is the nearest station?", "--to", "de")
PACKAGE = Path(__file__).parent.parent / "src" / "glassformer"


def files_entered() -> tuple[list[str], list[str]]:
    """The files whose functions ran, and those of which nothing but the body of the module or of a class did."""
    called: dict[str, None] = {}
    imported: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            is_body = code.co_name == "<module>" or not code.co_flags & 0x02  # CO_NEWLOCALS: a function's
            (imported if is_body else called)[str(Path(code.co_filename).relative_to(PACKAGE))] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        from glassformer.cli import main

        sys.argv = list(COMMAND)
        main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
    return list(called), [name for name in imported if name not in called]


if __name__ == "__main__":
    called, imported = files_entered()
    print(*called, sep="\n")
    print(f"{len(called)} files with a function that ran; {len(imported)} more were only imported:")
    print(*imported, sep="\n")
