"""Kernels in C for what decoding on a CPU spends its time on.

Where there is no compiler, or the processor lacks the instructions, there are none, and PyTorch's own do the work.
GLASSFORMER_KERNELS=0 in the environment does without them; the name of a level (amx, vnni, avxvnni, avx2, neon): as on
a processor that can do no more. Whole numbers, and the order of all sums, are the same at each level.

Shapes: R rows, I inputs, O outputs, B sentences, K beams (R = B K), H heads, E entries, d head width, V vocabulary.
"""

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
from torch import Tensor
from torch.nn import functional as F

from glassformer.common.errors import one_of
from glassformer.common.files import write_bytes
from glassformer.decode.kernels import structures as c
from glassformer.decode.kernels.structures import COUNT, POINTER, WHOLE
from glassformer.weights.quantized import Matrix, dequantize, quantize_by_max

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
    sources = sorted(HERE.glob("*.[ch]"))
    key = repr((level.flags, FLAGS)).encode() + b"".join(file.read_bytes() for file in sources)
    folder = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "glassformer"
    kept = folder / f"kernels-{hashlib.sha256(key).hexdigest()[:16]}.so"
    # Without the compiler's own OpenMP library: its functions are found in PyTorch's, and with them its threads.
    show_openmp()
    return build_library(kept, [file for file in sources if file.suffix == ".c"], (*FLAGS, *level.flags, "-fopenmp"))


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


KINDS = {"fp32": 0, "bf16": 1, "int8": 2}
TOGETHER = {"bf16": 2, "int8": 4}  # inputs that are multiplied at once
PANEL, HALF = 32, 16
ENTRIES = 256  # of a cache: worth a thread
SENTENCES = 16  # of a beam search: worth a thread

SIGNATURES = {
    "product": [COUNT, ctypes.POINTER(c.Matrix), WHOLE, POINTER, POINTER, POINTER],
    "attend": [COUNT, WHOLE, ctypes.POINTER(c.Attention)],
    "encode": [COUNT, ctypes.POINTER(c.Stack), WHOLE, WHOLE, *[POINTER] * 3, WHOLE, ctypes.POINTER(c.Source)],
    "decoder_step": [COUNT, ctypes.POINTER(c.Stack), ctypes.POINTER(c.Step)],
    "normalise": [COUNT, WHOLE, WHOLE, POINTER, POINTER],
    "highest": [COUNT, WHOLE, WHOLE, WHOLE, POINTER, POINTER, POINTER],
    "choose_greedy": [ctypes.POINTER(c.Greedy)],
    "choose_beams": [COUNT, ctypes.POINTER(c.Beams)],
    "beam_search": [COUNT, COUNT, *(ctypes.POINTER(one) for one in (c.Stack, c.Step, c.Beams, c.Bans)), WHOLE, WHOLE],
}  # of the C functions


class Packed:
    """A matrix (O, I) in the order in which its kernel reads it: see common.h."""

    def __init__(self, whole: Matrix, kind: str) -> None:
        self.kind = kind
        self.scales: Tensor | None = None
        self.excess: Tensor | None = None  # 128 times each row's sum
        if kind == "int8":
            weight, scales = quantize_by_max(whole)[:2]
            missing = -len(weight) % PANEL
            self.scales = F.pad(scales, (0, missing))
            self.excess = F.pad(128 * weight.sum(1, dtype=torch.int32), (0, missing))
        else:
            weight = dequantize(whole).detach()
        self.outputs, self.inputs = weight.shape
        weight = F.pad(weight, (0, 0, 0, -self.outputs % PANEL))
        if kind == "fp32":
            self.table = weight.view(-1, PANEL, self.inputs).transpose(1, 2).contiguous()
            return
        if kind == "bf16":
            weight = weight.bfloat16()
        some = TOGETHER[kind]
        weight = F.pad(weight, (0, -self.inputs % (HALF * some)))
        weight = weight.view(-1, HALF, weight.shape[1] // HALF // some, HALF, some)
        self.table = weight.permute(0, 2, 3, 1, 4).contiguous()


class Linear:
    """A packed matrix and what is done to its products: relu(x W^T + bias)."""

    def __init__(self, packed: Packed, bias: Tensor | None = None, relu: bool = False) -> None:
        self.packed, self.bias, self.relu = packed, bias, relu
        self.matrix = c.Matrix(
            KINDS[packed.kind], relu, packed.inputs, packed.outputs, packed.table.data_ptr(), address(packed.scales),
            address(packed.excess), address(bias),
        )  # fmt: skip

    def __reduce__(self) -> tuple[object, ...]:
        return Linear, (self.packed, self.bias, self.relu)  # a copy has addresses of its own


class Kernels:
    """The compiled functions, for float32 tensors of a CPU; contiguous ones unless said otherwise."""

    def __init__(self, level: Level) -> None:
        library = load_library(level)
        if not library.permitted():
            raise NoKernels("the system does not lend the processor's tiles")
        self.level = level.name
        self.kinds = {"fp32", "bf16", "int8"} if level.name == "amx" else {"fp32", "int8"}
        self._library = library
        for name, types in SIGNATURES.items():
            getattr(library, name).argtypes = types

    def product(self, x: Tensor, linear: Linear, add: Tensor | None = None) -> Tensor:
        """relu(x W^T + bias) + add: (..., O) from x (..., I)."""
        assert x.dtype == torch.float32
        packed = linear.packed
        y = x.new_empty((*x.shape[:-1], packed.outputs))
        threads, rows = torch.get_num_threads(), x.numel() // packed.inputs
        check_memory(self._library.product(threads, linear.matrix, rows, x.data_ptr(), address(add), y.data_ptr()))
        return y

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        entries: int,
        bias: Tensor | None,
        scale: float,
        new: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """softmax(q k^T scale + bias) v: (R, H d).

        q (R, H, 1, d) may be part of a longer row; of k and v (B, H, room, d) the first `entries` are there, and with
        `new` keys and values, in rows like q's, these become the last of them. bias (B, H, K, E), or 1 for B, H, K.
        """
        sentences, heads, room, d = k.shape
        y = q.new_empty((len(q), heads * d))
        new_k, new_v = (None, None) if new is None else (new[0].data_ptr(), new[1].data_ptr())
        # Along an axis that all share there is nowhere to step.
        steps = [0] * 4 if bias is None else [s if n > 1 else 0 for n, s in zip(bias.shape, bias.stride(), strict=True)]
        arguments = c.Attention(
            len(q) // sentences, heads, d, entries, room, q.data_ptr(), new_k, new_v, q.stride(0), k.data_ptr(),
            v.data_ptr(), address(bias), tuple(steps), None, 0, 0, scale, y.data_ptr(), None,
        )  # fmt: skip
        check_memory(self._library.attend(threads(sentences * heads * entries // ENTRIES), sentences, arguments))
        return y

    def encode(self, stack: c.Stack, ids: Tensor, lengths: Tensor, sources: ctypes.Array[c.Source]) -> Tensor:
        """What an encoder makes of ids (B, S), of which `lengths` (B) count: their rows (R, D). See stack.c."""
        memory = torch.empty((int(lengths.sum()), stack.width))
        check_memory(
            self._library.encode(
                torch.get_num_threads(), stack, *ids.shape, ids.data_ptr(), lengths.data_ptr(), memory.data_ptr(),
                len(sources), sources,
            )
        )  # fmt: skip
        return memory

    def step(self, stack: c.Stack, step: c.Step) -> None:
        """One more token of each row. See stack.c."""
        check_memory(self._library.decoder_step(torch.get_num_threads(), stack, step))

    def normalise(self, logits: Tensor) -> Tensor:
        """The logarithm of the sum of exponentials: (R, 1) from (R, V)."""
        rows, size = logits.shape
        total = logits.new_empty((rows, 1))
        check_memory(self._library.normalise(threads(rows), rows, size, logits.data_ptr(), total.data_ptr()))
        return total

    def highest(self, logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The `count` highest of each row (R, V), and where they stand: (R, count) twice, highest first."""
        rows, size = logits.shape
        best, places = logits.new_empty((rows, count)), logits.new_empty((rows, count), dtype=torch.long)
        self._library.highest(threads(rows), rows, size, count, logits.data_ptr(), best.data_ptr(), places.data_ptr())
        return best, places

    def choose_greedy(self, greedy: c.Greedy) -> None:
        """A step of greedy search. See choose.c."""
        self._library.choose_greedy(greedy)

    def choose_beams(self, beams: c.Beams) -> None:
        """A step of beam search. See choose.c."""
        check_memory(self._library.choose_beams(threads(beams.sentences // SENTENCES), beams))

    def search(self, stack: c.Stack, step: c.Step, beams: c.Beams, bans: c.Bans | None, few: int, most: int) -> int:
        """Steps of beam search, and how many they were. See stack.c."""
        choosing = threads(beams.sentences // SENTENCES)
        made = int(self._library.beam_search(torch.get_num_threads(), choosing, stack, step, beams, bans, few, most))
        check_memory(made < 0)
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return available_kernels, ()  # a copy of a model uses the same ones


def check_memory(failed: int) -> None:
    if failed:
        raise MemoryError("no memory is left for a decoding step; translate fewer texts at once (batch_tokens)")


def threads(most: int) -> int:
    """As many as PyTorch uses, where there is enough to do."""
    return max(1, min(torch.get_num_threads(), most))


def address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


@cache
def load_kernels() -> Kernels | str:
    """The kernels for this processor, or why there are none."""
    try:
        levels = supported_levels()
    except NoKernels as reason:
        return str(reason)
    reasons = []
    for level in levels:
        try:
            return Kernels(level)
        except NoKernels as reason:
            reasons.append(str(reason))
    return reasons[0]


def available_kernels() -> Kernels | None:
    own = load_kernels()
    return None if isinstance(own, str) else own


def kernels_for(tensor: Tensor) -> Kernels | None:
    """The kernels, if they are for such tensors."""
    return available_kernels() if tensor.dtype == torch.float32 and tensor.device.type == "cpu" else None
