"""Kernels in C for what a decoding step on a CPU spends its time on.

Where there is no compiler, or the processor lacks the instructions, there are none, and PyTorch's own do the work.
GLASSFORMER_KERNELS=0 in the environment does without them; avx2 or vnni: as on a processor that can do no more.

Shapes: R rows, I inputs, O outputs, B sentences, K beams (R = B K), H heads, E entries, d head width, V vocabulary.
"""

from __future__ import annotations

import ctypes
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from glassformer.decode.kernels.build import NoKernels, instructions, load
from glassformer.stored import Matrix, by_highest, plain

KINDS = {"bf16": 1, "int8": 2}
TOGETHER = {"bf16": 2, "int8": 4}  # inputs that are multiplied at once
PANEL, HALF = 32, 16
ENTRIES = 256  # of a cache: worth a thread

COUNT, WHOLE, NUMBER, POINTER = ctypes.c_int, ctypes.c_long, ctypes.c_float, ctypes.c_void_p


class Attention(ctypes.Structure):
    """See attend.c."""

    _fields_ = (
        *((name, WHOLE) for name in ("beams", "heads", "d", "entries", "room")),
        *((name, POINTER) for name in ("q", "new_k", "new_v")),
        ("stride", WHOLE),
        *((name, POINTER) for name in ("k", "v", "bias")),
        ("steps", WHOLE * 4),
        ("scale", NUMBER),
        ("y", POINTER),
    )


class Packed:
    """A matrix (O, I) in the order in which its kernel reads it: see common.h."""

    def __init__(self, whole: Matrix, kind: str) -> None:
        self.kind = kind
        self.scales: Tensor | None = None
        if kind == "int8":
            weight, self.scales = by_highest(whole)
        else:
            weight = plain(whole).detach()
        self.outputs, self.inputs = weight.shape
        weight = F.pad(weight, (0, 0, 0, -self.outputs % PANEL))
        if kind == "fp32":
            self.table = weight.view(-1, PANEL, self.inputs).transpose(1, 2).contiguous()
            return
        if self.scales is not None:
            self.scales = F.pad(self.scales, (0, len(weight) - self.outputs))
        else:
            weight = weight.bfloat16()
        some = TOGETHER[kind]
        weight = F.pad(weight, (0, -self.inputs % (HALF * some)))
        weight = weight.view(-1, HALF, weight.shape[1] // HALF // some, HALF, some)
        self.table = weight.permute(0, 2, 3, 1, 4).contiguous()


class Kernels:
    """The compiled functions, for float32 tensors of a CPU; contiguous ones unless said otherwise."""

    def __init__(self, flags: tuple[str, ...]) -> None:
        library = load(flags)
        if not library.permitted():
            raise NoKernels("the system does not lend the processor's tiles")
        self.kinds = {"fp32", "bf16", "int8"} if "-mamx-bf16" in flags else {"fp32", "int8"}
        self._product, self._rounded, self._attend = library.product, library.product_rounded, library.attend
        self._normalise, self._highest = library.normalise, library.highest
        sizes, end = (COUNT, WHOLE, WHOLE, WHOLE), (POINTER, POINTER, COUNT, POINTER)  # ... bias, add, relu, y
        self._product.argtypes = (*sizes, POINTER, POINTER, *end)
        self._rounded.argtypes = (COUNT, *sizes, POINTER, POINTER, POINTER, *end)
        self._attend.argtypes = [COUNT, WHOLE, ctypes.POINTER(Attention)]
        self._normalise.argtypes = [COUNT, WHOLE, WHOLE, POINTER, POINTER]
        self._highest.argtypes = [COUNT, WHOLE, WHOLE, WHOLE, POINTER, POINTER, POINTER]

    def product(self, x: Tensor, weight: Packed, bias: Tensor | None, relu: bool, add: Tensor | None = None) -> Tensor:
        """relu(x W^T + bias) + add: (..., O) from x (..., I)."""
        assert x.dtype == torch.float32
        y = x.new_empty((*x.shape[:-1], weight.outputs))
        sizes = torch.get_num_threads(), x.numel() // weight.inputs, weight.inputs, weight.outputs
        end = address(bias), address(add), relu, y.data_ptr()
        if weight.kind == "fp32":
            done(self._product(*sizes, x.data_ptr(), weight.table.data_ptr(), *end))
        else:
            kind, scales = KINDS[weight.kind], address(weight.scales)
            done(self._rounded(kind, *sizes, x.data_ptr(), weight.table.data_ptr(), scales, *end))
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
        asked = Attention(
            len(q) // sentences, heads, d, entries, room, q.data_ptr(), new_k, new_v, q.stride(0), k.data_ptr(),
            v.data_ptr(), address(bias), tuple(steps), scale, y.data_ptr(),
        )  # fmt: skip
        done(self._attend(threads(sentences * heads * entries // ENTRIES), sentences, asked))
        return y

    def normalise(self, logits: Tensor) -> Tensor:
        """The logarithm of the sum of exponentials: (R, 1) from (R, V)."""
        rows, size = logits.shape
        found = logits.new_empty((rows, 1))
        self._normalise(threads(rows), rows, size, logits.data_ptr(), found.data_ptr())
        return found

    def highest(self, logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The `count` highest of each row (R, V), and where they stand: (R, count) twice, highest first."""
        rows, size = logits.shape
        best, places = logits.new_empty((rows, count)), logits.new_empty((rows, count), dtype=torch.long)
        self._highest(threads(rows), rows, size, count, logits.data_ptr(), best.data_ptr(), places.data_ptr())
        return best, places

    def __reduce__(self) -> tuple[object, ...]:
        return kernels, ()  # a copy of a model uses the same ones


def done(failed: int) -> None:
    if failed:
        raise MemoryError("no memory is left for a decoding step; translate fewer texts at once (batch_tokens)")


def threads(most: int) -> int:
    """As many as PyTorch uses, where there is enough to do."""
    return max(1, min(torch.get_num_threads(), most))


def address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


@cache
def found() -> Kernels | str:
    """The kernels for this processor, or why there are none."""
    try:
        levels = instructions()
    except NoKernels as reason:
        return str(reason)
    reasons = []
    for flags in levels:
        try:
            return Kernels(flags)
        except NoKernels as reason:
            reasons.append(str(reason))
    return reasons[0]


def kernels() -> Kernels | None:
    own = found()
    return None if isinstance(own, str) else own


def ours(tensor: Tensor) -> Kernels | None:
    """The kernels, if they are for such tensors."""
    return kernels() if tensor.dtype == torch.float32 and tensor.device.type == "cpu" else None
