"""The training recipes that come with the package, a TOML file each."""

from importlib.resources import files
from pathlib import Path


def built_in() -> dict[str, Path]:
    """By name."""
    return {path.stem: path for path in sorted(Path(str(files(__name__))).glob("*.toml"))}
