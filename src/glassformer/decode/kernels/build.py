"""The C files beside this one as a library: from an earlier time, or compiled now, in a second."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from glassformer.errors import one_of
from glassformer.files import write_bytes

HERE = Path(__file__).parent
FLAGS = ("-O3", "-std=gnu11", "-mprefer-vector-width=512", "-fno-math-errno", "-fno-trapping-math", "-fPIC")
# What a processor can do, in the words of compilers.
VNNI = ("-mfma", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni")
AMX = (*VNNI, "-mavx512bf16", "-mamx-tile", "-mamx-int8", "-mamx-bf16")
# 0: no kernels; avx2, vnni: as on a processor that can do no more; 1, or nothing: all that this one can do.
SWITCH = "GLASSFORMER_KERNELS"
HIDDEN: dict[str, tuple[str, ...]] = {"0": (), "avx2": ("avx512", "vnni", "amx_tile"), "vnni": ("amx_tile",), "1": ()}


class NoKernels(Exception):
    """Says why there are none."""


def asked() -> str:
    return os.environ.get(SWITCH) or "1"


def has(feature: str) -> bool:
    """Whether the processor can do this, by PyTorch's name for it, and the switch does not hide it."""
    able = getattr(torch.cpu, f"_is_{feature}_supported", bool)
    return feature not in HIDDEN.get(asked(), ()) and bool(able())


def instructions() -> list[tuple[str, ...]]:
    """What this processor can do, as far as it matters here; the most first, for a compiler may know less."""
    if asked() not in HIDDEN:
        raise NoKernels(f"{SWITCH}={asked()} is not one of {one_of(HIDDEN)}")
    if asked() == "0":
        raise NoKernels(f"{SWITCH}=0")
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise NoKernels(f"they are for Linux on x86_64, not {platform.system()} on {platform.machine()}")
    if not has("avx512") or not has("vnni"):
        so_told = f" (so says {SWITCH}={asked()})" if HIDDEN[asked()] else ""
        raise NoKernels(f"the processor lacks AVX-512 with VNNI{so_told}")
    return [AMX, VNNI] if has("amx_tile") and has("avx512_bf16") else [VNNI]


def load(flags: tuple[str, ...]) -> ctypes.CDLL:
    """The library for such a processor; kept in the user's cache for the next time."""
    sources = sorted(HERE.glob("*.[ch]"))
    told = repr((flags, FLAGS)).encode() + b"".join(file.read_bytes() for file in sources)
    folder = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "glassformer"
    files = [file for file in sources if file.suffix == ".c"]
    # Without the compiler's own OpenMP library: its functions are found in PyTorch's, and with them its threads.
    return library(folder / f"kernels-{hashlib.sha256(told).hexdigest()[:16]}.so", files, (*FLAGS, *flags, "-fopenmp"))


def library(kept: Path, files: Sequence[Path], flags: Sequence[str]) -> ctypes.CDLL:
    """What the C files say: as it was kept, if that file is whole; else compiled anew, and kept."""
    if whole(kept):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(str(kept))
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise NoKernels("no C compiler was found; install gcc, or name one in the variable CC")
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / "kernels.so"
        run(place, compiler, *flags, "-c", *map(str, files))
        run(place, compiler, "-shared", *(f"{file.stem}.o" for file in files), "-lm", "-lpthread", "-o", str(made))
        try:
            loaded = ctypes.CDLL(str(made))
        except OSError as error:
            raise NoKernels(f"the compiled library cannot be loaded: {error}") from None
        with contextlib.suppress(OSError):  # a home that cannot be written to costs a second each time, nothing else
            kept.parent.mkdir(parents=True, exist_ok=True)
            # Its digest after it, which no loader reads: a file that was cut short would end the process when run.
            write_bytes(kept, (data := made.read_bytes()) + hashlib.sha256(data).digest())
    return loaded


def whole(path: Path) -> bool:
    """Whether the file is there and just as it was kept."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    size = hashlib.sha256().digest_size
    return hashlib.sha256(data[:-size]).digest() == data[-size:]


def run(place: str, *command: str) -> None:
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoKernels(f"{command[0]} does not run: {error}") from None
    if done.returncode:
        lines = done.stderr.splitlines()
        said = next((line for line in lines if "error" in line), lines[0] if lines else "it says nothing")
        raise NoKernels(f"{command[0]} does not compile them: {said}")
