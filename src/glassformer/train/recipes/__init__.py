"""The training recipes that come with the package, a TOML file each."""

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from glassformer.common.errors import ConfigError, did_you_mean, one_of, why


def built_in() -> dict[str, Path]:
    """By name."""
    return {path.stem: path for path in sorted(Path(str(files(__name__))).glob("*.toml"))}


def read(path: Path) -> dict[str, Any]:
    """What a recipe says. With `base`, the name of a built-in one, it has the values of that one but for its own; its
    own corpora of a split take the place of all the other's."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {why(error)}") from None
    except (ValueError, RecursionError) as error:  # TOML, UTF-8, or a number of thousands of digits
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    if "base" not in values:
        return values
    base, known = str(values.pop("base")), built_in()
    if base not in known:
        raise ConfigError(
            f"no recipe `{base}`, the base of {path}: it is one of {one_of(known)}{did_you_mean(base, known)}"
        )
    begun = read(known[base])
    sections = {name: begun[name] | own for name, own in values.items() if isinstance(own, dict) and name in begun}
    return begun | values | sections
