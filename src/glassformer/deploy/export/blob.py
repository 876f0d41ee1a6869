"""The weights of several graphs in one file, in the order in which a trace lists them, so that the page reads them too.

Told of as float32, one tensor after the other; stored so, or a matrix as int8 with a scale for each row, which whoever
loads the file multiplies once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import nn

from glassformer.deploy.export.graph import WEIGHT
from glassformer.explain.weights import Weights, raw
from glassformer.weights.quantized import Int8Matrix

LOCATION = "weights.bin"


class Blob:
    """A trace's weights, and after them what else the graphs read of tables: each once."""

    def __init__(self, weights: Weights, rounded: dict[str, Int8Matrix]) -> None:
        self.offsets = {row["name"]: (row["offset"], row["bytes"]) for row in weights.manifest()}
        self.weights, self.rounded = weights, rounded
        self.size = sum(bytes for _, bytes in self.offsets.values())
        self.tables: dict[bytes, int] = {}

    def take(self, graph: onnx.ModelProto, model: nn.Module) -> None:
        """Let the graph's weights be read from the file."""
        own = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
        for weight in graph.graph.initializer:
            if not weight.name.startswith(WEIGHT):
                continue
            tensor = own.get(weight.name.removeprefix(WEIGHT))
            name = None if tensor is None else self.weights.names.get(id(tensor))
            if name is not None:
                offset, size = self.offsets[name]
            else:
                offset, size = self.table(numpy_helper.to_array(weight))
            weight.ClearField("raw_data")
            weight.ClearField("float_data")
            weight.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", LOCATION), ("offset", str(offset)), ("length", str(size))):
                weight.external_data.add(key=key, value=value)

    def table(self, values: NDArray[Any]) -> tuple[int, int]:
        data = values.astype("<f4").tobytes()
        if data not in self.tables:
            self.tables[data] = self.size
            self.size += len(data)
        return self.tables[data], len(data)

    def parts(self) -> list[dict[str, Any]]:
        """Where each part of the file belongs: `offset` in what is told, `at` and perhaps `scales` in the file."""
        found: list[dict[str, Any]] = []
        at = 0  # numbers of 4 bytes first, so that each begins at a multiple of 4
        whole = [place for name, place in self.offsets.items() if name not in self.rounded]
        for offset, size in (*whole, *((offset, len(data)) for data, offset in self.tables.items())):
            found.append({"offset": offset, "numbers": size // 4, "at": at})
            at += size
        scales, rounded = at, [name for name in self.offsets if name in self.rounded]
        at += sum(4 * len(self.rounded[name].scales) for name in rounded)
        for name in rounded:
            (offset, size), rows = self.offsets[name], len(self.rounded[name].scales)
            found.append({"offset": offset, "numbers": size // 4, "at": at, "rows": rows, "scales": scales})
            at, scales = at + size // 4, scales + 4 * rows
        return found

    def stored(self) -> bytes:
        whole = [raw(self.weights.tensors[name]) for name in self.offsets if name not in self.rounded]
        rounded = [self.rounded[name] for name in self.offsets if name in self.rounded]
        scales = [raw(one.scales) for one in rounded]
        return b"".join((*whole, *self.tables, *scales, *(one.values.numpy().tobytes() for one in rounded)))


def expanded(data: bytes, told: dict[str, Any]) -> bytes:
    """The file as float32, as told of."""
    out = np.empty(told["bytes"] // 4, dtype="<f4")
    for part in told["stored"]:
        first, count = part["offset"] // 4, part["numbers"]
        if "scales" in part:
            values = np.frombuffer(data, np.int8, count, part["at"]).reshape(part["rows"], -1)
            scales = np.frombuffer(data, "<f4", part["rows"], part["scales"])
            out[first : first + count] = (values * scales[:, None]).ravel()
        else:
            out[first : first + count] = np.frombuffer(data, "<f4", count, part["at"])
    return out.tobytes()
