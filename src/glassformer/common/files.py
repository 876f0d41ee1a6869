"""Files: written whole or not at all, read with a word on what is wrong with them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from glassformer.common.errors import WeightsError, why

if TYPE_CHECKING:
    from torch import Tensor

STREAM = re.compile(r"/dev/(stdout|stderr|fd/\d+)")
PARTIAL = ".glassformer-{}.partial"  # a file being written


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that takes the place of `path` whole, at the end, or not at all.

    It is written beside, flushed to the disk, then renamed. A link stays a link. A device or a pipe is no file to
    replace: it is written to.
    """
    if STREAM.fullmatch(str(path)) or (path.exists() and not path.is_file()):
        with path.open("ab") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    partial = path.with_name(PARTIAL.format(secrets.token_hex(8)))
    try:
        with partial.open("xb") as file:
            if path.exists():
                path.open("ab").close()  # a file that may not be written may not be replaced either
                shutil.copymode(path, partial)
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        flush_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def remove_partial(folder: Path) -> None:
    """Remove what a killed process had half written; for a folder that no other process writes to."""
    for partial in folder.glob(PARTIAL.format("*")):
        partial.unlink(missing_ok=True)


def try_lock(file: IO[Any]) -> bool:
    """Lock the file; False if another process holds the lock. File systems without locks always succeed."""
    with contextlib.suppress(OSError):  # a network's file system without locks
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Change a file alone: wait for other processes that hold this lock, which is one of the file's folder."""
    handle = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a network's file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def flush_folder(folder: Path) -> None:
    """Make a rename last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(path: Path, data: bytes) -> None:
    """Whole or not at all."""
    with atomic_write(path) as file:
        file.write(data)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, values: Any) -> None:
    write_text(path, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def write_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, save(plain, metadata))


def without_nan(data: Any) -> Any:
    """Numbers that JSON lacks, which a broken model can yield, are left open."""
    if isinstance(data, dict):
        return {key: without_nan(value) for key, value in data.items()}
    if isinstance(data, list):
        return [without_nan(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def read_json(path: Path, advice: str = "copy it again") -> dict[str, Any] | None:
    """The one JSON object that a file holds; None where there is no file."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {why(error)}") from None
    except (ValueError, RecursionError) as error:
        raise WeightsError(f"{path} is damaged (not valid JSON: {error}); {advice}") from None
    if not isinstance(values, dict):
        raise WeightsError(f"{path} is damaged (no JSON object); {advice}")
    return values


def read_tensors(path: Path) -> dict[str, Tensor]:
    return read_safetensors(path)[0]


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file and its metadata."""
    from safetensors import SafetensorError, safe_open

    try:
        path.open("rb").close()  # safetensors calls a file missing that it may not read
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {why(error)}; copy it again") from None
    except SafetensorError as error:
        raise WeightsError(f"{path} cannot be read as safetensors ({error}); copy it again") from None


def to_toml(values: dict[str, Any]) -> str:
    """Sections of plain values as TOML, enough for what a recipe holds."""

    def literal(value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON's escapes are TOML's too
        if isinstance(value, list):
            return f"[{', '.join(map(literal, value))}]"
        return repr(value)

    lines: list[str] = []
    for section, table in values.items():
        tables = {k: v for k, v in table.items() if isinstance(v, list) and v and isinstance(v[0], dict)}
        plain = {k: v for k, v in table.items() if k not in tables}
        lines += [f"[{section}]", *(f"{key} = {literal(value)}" for key, value in plain.items()), ""]
        for key, items in tables.items():
            for item in items:
                lines += [f"[[{section}.{key}]]", *(f"{k} = {literal(v)}" for k, v in item.items()), ""]
    return "\n".join(lines)
