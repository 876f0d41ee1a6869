"""The version, and the environment of a Python process that imports this very package."""

import os
from pathlib import Path

__version__ = "0.1.0"
IMPORT_ROOT = Path(__file__).parents[2]


def child_environment() -> dict[str, str]:
    paths = filter(None, (str(IMPORT_ROOT), os.environ.get("PYTHONPATH")))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
