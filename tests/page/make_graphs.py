"""Makes the folder `graphs` beside this file: the small model of test_local_page.py as ONNX, captured once.

To capture it takes half a minute of a processor. What the tests write with it is checked against the model, as every
export is, so graphs that are not of this model are noticed: run `python tests/page/make_graphs.py` then.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from test_local_page import KEPT, SENTENCE, small_translator  # noqa: E402

from glassformer.deploy.export.graph import encoder_and_decoder, trace_graph  # noqa: E402
from glassformer.deploy.export.page import GRAPHS  # noqa: E402
from glassformer.explain.trace import trace  # noqa: E402


def make() -> None:
    small = small_translator()
    values = [value.name for value in trace(small, SENTENCE).values.values() if value.op["kind"] != "same"]
    KEPT.mkdir(exist_ok=True)
    for name, graph in zip(GRAPHS, (*encoder_and_decoder(small.model), trace_graph(small.model, values)), strict=True):
        (KEPT / f"{name}.onnx").write_bytes(graph.SerializeToString())


if __name__ == "__main__":
    make()
