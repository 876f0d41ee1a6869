"""The version, and the folder that the package is imported from."""

from pathlib import Path

__version__ = "0.1.0"
IMPORT_ROOT = Path(__file__).parents[2]  # what a process of ours must have on its path
