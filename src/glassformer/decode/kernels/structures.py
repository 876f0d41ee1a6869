"""The structures of the C files beside this one; each says there what its fields are."""

from __future__ import annotations

import ctypes

COUNT, WHOLE, NUMBER, POINTER = ctypes.c_int, ctypes.c_long, ctypes.c_float, ctypes.c_void_p
LONG = ctypes.c_int64


class Matrix(ctypes.Structure):
    """See common.h."""

    _fields_ = (
        ("kind", COUNT), ("relu", COUNT), ("inputs", WHOLE), ("outputs", WHOLE), ("table", POINTER),
        ("scales", POINTER), ("excess", POINTER), ("bias", POINTER),
    )  # fmt: skip


class Ranking(ctypes.Structure):
    """See common.h."""

    _fields_ = (("count", WHOLE), *((name, POINTER) for name in ("best", "ids", "normaliser")))


class Attention(ctypes.Structure):
    """See common.h."""

    _fields_ = (
        *((name, WHOLE) for name in ("beams", "heads", "d", "entries", "room")),
        *((name, POINTER) for name in ("q", "new_k", "new_v")),
        ("stride", WHOLE),
        *((name, POINTER) for name in ("k", "v", "bias")),
        ("steps", WHOLE * 4), ("seen", POINTER), ("limit", WHOLE), ("count", WHOLE), ("scale", NUMBER), ("y", POINTER),
        ("places", POINTER),
    )  # fmt: skip


class Norm(ctypes.Structure):
    """See stack.c, as for all that follow."""

    _fields_ = (("kind", COUNT), ("eps", NUMBER), ("weight", POINTER), ("bias", POINTER))


class Layer(ctypes.Structure):
    _fields_ = (
        *((name, Norm) for name in ("self_norm", "cross_norm", "feed_norm")),
        *((name, Matrix) for name in ("self_in", "self_out", "cross_in", "cross_out", "up", "down")),
    )


class Stack(ctypes.Structure):
    _fields_ = (
        *((name, WHOLE) for name in ("layers", "width", "heads", "d")),
        ("scale", NUMBER), ("pre", COUNT), ("layer", ctypes.POINTER(Layer)), ("last", Norm), ("tokens", POINTER),
        ("rounded", POINTER), ("row_scales", POINTER), ("token_scale", NUMBER), ("positions", POINTER),
    )  # fmt: skip


class Source(ctypes.Structure):
    _fields_ = (("project", Matrix), ("heads", WHOLE), ("d", WHOLE), ("k", POINTER), ("v", POINTER))


class Kept(ctypes.Structure):
    _fields_ = tuple((name, POINTER) for name in ("k", "v", "source_k", "source_v"))


class Step(ctypes.Structure):
    _fields_ = (
        *((name, WHOLE) for name in ("sentences", "beams", "step", "room", "source")),
        ("ids", POINTER), ("kept", ctypes.POINTER(Kept)), ("seen", POINTER), ("before", POINTER), ("origin", POINTER),
        ("limit", WHOLE), ("lengths", POINTER), ("places", POINTER), ("head", Matrix), ("logits", POINTER),
        ("ranking", Ranking),
    )  # fmt: skip


class Greedy(ctypes.Structure):
    """See choose.c."""

    _fields_ = (
        ("sentences", WHOLE), ("limit", WHOLE), ("end", LONG), ("pad", LONG),
        *((name, POINTER) for name in ("best", "normaliser", "ids", "step", "written", "tokens")),
        *((name, POINTER) for name in ("scores", "sums", "going")),
    )  # fmt: skip


class Beams(ctypes.Structure):
    """See common.h."""

    _fields_ = (
        *((name, WHOLE) for name in ("sentences", "beams", "limit", "each", "likely", "worst")),
        ("end", LONG),
        *((name, POINTER) for name in ("best", "normaliser", "ids", "divisor", "reach", "limits")),
        *((name, POINTER) for name in ("step", "written", "done", "tokens", "origin")),
        *((name, POINTER) for name in ("running", "done_scores", "going", "sums", "done_sums")),
    )


class Bans(ctypes.Structure):
    """See common.h."""

    _fields_ = (
        ("ngram", WHOLE), ("before", WHOLE), ("prompt", POINTER), ("placeholders", WHOLE), ("ids", POINTER),
        ("wanted", POINTER),
    )  # fmt: skip
