"""The C files beside this one as a library: from an earlier time, or compiled now, in a second."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch

from glassformer.common.errors import one_of
from glassformer.common.files import write_bytes

HERE = Path(__file__).parent
FLAGS = (
    "-O3", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fPIC",
)  # fmt: skip
WIDE = ("-mprefer-vector-width=512", "-mfma", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni")


class Level(NamedTuple):
    """A set of instructions that kernels are written for."""

    name: str
    machine: str
    needs: tuple[str, ...]  # in the words of /proc/cpuinfo
    flags: tuple[str, ...]  # in the words of compilers
    hides: tuple[str, ...]  # what a processor that can do no more lacks, in PyTorch's words


LEVELS = (  # of each machine, the most first
    Level(
        "amx", "x86_64", ("avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16"),
        (*WIDE, "-mavx512bf16", "-mamx-tile", "-mamx-int8", "-mamx-bf16"), (),
    ),
    Level("vnni", "x86_64", ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"), WIDE, ("amx_tile",)),
    Level(
        "avxvnni", "x86_64", ("avx2", "fma", "avx_vnni"), ("-mavx2", "-mfma", "-mavxvnni"),
        ("avx512", "vnni", "amx_tile"),
    ),
    Level("avx2", "x86_64", ("avx2", "fma"), ("-mavx2", "-mfma"), ("avx512", "vnni", "amx_tile")),
    Level("neon", "aarch64", ("asimd", "asimddp"), ("-march=armv8.2-a+dotprod",), ()),
)  # fmt: skip
# 0: no kernels; the name of a level: as on a processor that can do no more; 1, or nothing: all that this one can do.
SWITCH = "GLASSFORMER_KERNELS"
CHOICES = ("0", "1", *(level.name for level in LEVELS))


class NoKernels(Exception):
    """Says why there are none."""


def requested_level() -> str:
    return os.environ.get(SWITCH) or "1"


def cpu_supports(feature: str) -> bool:
    """Whether the processor can do this, by PyTorch's name for it, and the switch does not hide it."""
    hidden = next((level.hides for level in LEVELS if level.name == requested_level()), ())
    able = getattr(torch.cpu, f"_is_{feature}_supported", bool)
    return feature not in hidden and bool(able())


@cache
def features() -> frozenset[str]:
    """What the processor can do, in the words of /proc/cpuinfo."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return frozenset()
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return frozenset(line[1].split()) if line else frozenset()


def supported_levels() -> list[Level]:
    """What this processor can do, as far as it matters here; the most first, for a compiler may know less."""
    if requested_level() not in CHOICES:
        raise NoKernels(f"{SWITCH}={requested_level()} is not one of {one_of(CHOICES)}")
    if requested_level() == "0":
        raise NoKernels(f"{SWITCH}=0")
    system, machine = platform.system(), platform.machine()
    levels = [level for level in LEVELS if level.machine == machine]
    if system != "Linux" or not levels:
        raise NoKernels(f"they are for Linux on x86_64 and aarch64, not {system} on {machine}")
    names = [level.name for level in levels]
    if requested_level() != "1" and requested_level() not in names:
        raise NoKernels(f"{SWITCH}={requested_level()} is no level of {machine}; it has {one_of(names)}")
    below = levels if requested_level() == "1" else levels[names.index(requested_level()) :]
    able = [level for level in below if features().issuperset(level.needs)]
    if not able:
        missing = [need for need in below[-1].needs if need not in features()]
        raise NoKernels(f"the processor lacks {' and '.join(missing)}")
    return able


def load_library(level: Level) -> ctypes.CDLL:
    """The library for such a processor; kept in the user's cache for the next time."""
    flags = level.flags
    sources = sorted(HERE.glob("*.[ch]"))
    key = repr((flags, FLAGS)).encode() + b"".join(file.read_bytes() for file in sources)
    folder = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "glassformer"
    files = [file for file in sources if file.suffix == ".c"]
    # Without the compiler's own OpenMP library: its functions are found in PyTorch's, and with them its threads.
    show_openmp()
    return build_library(
        folder / f"kernels-{hashlib.sha256(key).hexdigest()[:16]}.so", files, (*FLAGS, *flags, "-fopenmp")
    )


def show_openmp() -> None:
    """Have the OpenMP library that PyTorch has loaded seen by others, where PyTorch did not see to it."""
    if hasattr(ctypes.CDLL(None), "omp_get_thread_num"):
        return
    with contextlib.suppress(OSError):
        loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
        for path in sorted(path for path in loaded if re.search(r"/lib[gi]?omp[^/]*\.so", path)):
            ctypes.CDLL(path, ctypes.RTLD_GLOBAL)


def build_library(kept: Path, files: Sequence[Path], flags: Sequence[str]) -> ctypes.CDLL:
    """The compiled C files: from the cache if that file is intact, else compiled and kept there."""
    if is_intact(kept):
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


def is_intact(path: Path) -> bool:
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
        message = next((line for line in lines if "error" in line), lines[0] if lines else "it says nothing")
        raise NoKernels(f"{command[0]} does not compile them: {message}")
