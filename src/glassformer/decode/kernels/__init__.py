"""Kernels in C for what decoding on a CPU spends its time on.

Where there is no compiler, or the processor lacks the instructions, there are none, and PyTorch's own do the work.
GLASSFORMER_KERNELS=0 in the environment does without them; the name of a level (amx, vnni, avxvnni, avx2, neon): as on
a processor that can do no more. Whole numbers, and the order of all sums, are the same at each level.

Shapes: R rows, I inputs, O outputs, B sentences, K beams (R = B K), H heads, E entries, d head width, V vocabulary.
"""

from __future__ import annotations

import ctypes
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from glassformer.decode.kernels.build import Level, NoKernels, load_library, supported_levels
from glassformer.decode.kernels.structures import (
    COUNT,
    POINTER,
    WHOLE,
    Attention,
    Bans,
    Beams,
    Greedy,
    Source,
    Stack,
    Step,
)
from glassformer.decode.kernels.structures import Matrix as CMatrix
from glassformer.weights.quantized import Matrix, dequantize, quantize_by_max

KINDS = {"fp32": 0, "bf16": 1, "int8": 2}
TOGETHER = {"bf16": 2, "int8": 4}  # inputs that are multiplied at once
PANEL, HALF = 32, 16
ENTRIES = 256  # of a cache: worth a thread
SENTENCES = 16  # of a beam search: worth a thread

SIGNATURES = {
    "product": [COUNT, ctypes.POINTER(CMatrix), WHOLE, POINTER, POINTER, POINTER],
    "attend": [COUNT, WHOLE, ctypes.POINTER(Attention)],
    "encode": [COUNT, ctypes.POINTER(Stack), WHOLE, WHOLE, *[POINTER] * 3, WHOLE, ctypes.POINTER(Source)],
    "decoder_step": [COUNT, ctypes.POINTER(Stack), ctypes.POINTER(Step)],
    "normalise": [COUNT, WHOLE, WHOLE, POINTER, POINTER],
    "highest": [COUNT, WHOLE, WHOLE, WHOLE, POINTER, POINTER, POINTER],
    "choose_greedy": [ctypes.POINTER(Greedy)],
    "choose_beams": [COUNT, ctypes.POINTER(Beams)],
    "beam_search": [COUNT, COUNT, *(ctypes.POINTER(one) for one in (Stack, Step, Beams, Bans)), WHOLE, WHOLE],
}  # of the C functions


class Packed:
    """A matrix (O, I) in the order in which its kernel reads it: see common.h."""

    def __init__(self, whole: Matrix, kind: str) -> None:
        self.kind = kind
        self.scales: Tensor | None = None
        self.excess: Tensor | None = None  # 128 times each row's sum
        if kind == "int8":
            weight, scales = quantize_by_max(whole)
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
        self.matrix = CMatrix(
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
        arguments = Attention(
            len(q) // sentences, heads, d, entries, room, q.data_ptr(), new_k, new_v, q.stride(0), k.data_ptr(),
            v.data_ptr(), address(bias), tuple(steps), None, 0, 0, scale, y.data_ptr(), None,
        )  # fmt: skip
        check_memory(self._library.attend(threads(sentences * heads * entries // ENTRIES), sentences, arguments))
        return y

    def encode(self, stack: Stack, ids: Tensor, lengths: Tensor, sources: ctypes.Array[Source]) -> Tensor:
        """What an encoder makes of ids (B, S), of which `lengths` (B) count: their rows (R, D). See stack.c."""
        memory = torch.empty((int(lengths.sum()), stack.width))
        check_memory(
            self._library.encode(
                torch.get_num_threads(), stack, *ids.shape, ids.data_ptr(), lengths.data_ptr(), memory.data_ptr(),
                len(sources), sources,
            )
        )  # fmt: skip
        return memory

    def step(self, stack: Stack, step: Step) -> None:
        """One more token of each row. See stack.c."""
        check_memory(self._library.decoder_step(torch.get_num_threads(), stack, step))

    def normalise(self, logits: Tensor) -> Tensor:
        """The logarithm of the sum of exponentials: (R, 1) from (R, V)."""
        rows, size = logits.shape
        load_kernels = logits.new_empty((rows, 1))
        check_memory(self._library.normalise(threads(rows), rows, size, logits.data_ptr(), load_kernels.data_ptr()))
        return load_kernels

    def highest(self, logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The `count` highest of each row (R, V), and where they stand: (R, count) twice, highest first."""
        rows, size = logits.shape
        best, places = logits.new_empty((rows, count)), logits.new_empty((rows, count), dtype=torch.long)
        self._library.highest(threads(rows), rows, size, count, logits.data_ptr(), best.data_ptr(), places.data_ptr())
        return best, places

    def choose_greedy(self, greedy: Greedy) -> None:
        """A step of greedy search. See choose.c."""
        self._library.choose_greedy(greedy)

    def choose_beams(self, beams: Beams) -> None:
        """A step of beam search. See choose.c."""
        check_memory(self._library.choose_beams(threads(beams.sentences // SENTENCES), beams))

    def search(self, stack: Stack, step: Step, beams: Beams, bans: Bans | None, few: int, most: int) -> int:
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
