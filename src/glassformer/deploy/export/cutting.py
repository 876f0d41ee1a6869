"""One graph cut in two at the memory: a file that reads a source, and one that writes a token.

The second has a branch: where `use_cache_branch` is true, the source's keys and values are given, else they are
projected from the memory. That is the form in which transformers.js and Optimum keep a decoder in one file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx
from onnx import TensorProto, helper

from glassformer.deploy.export.graph import LOGITS, MASK, MEMORY, SOURCE, TARGET, B, P, S, names, rename

Graph = onnx.GraphProto
Node = onnx.NodeProto
IR_VERSION = 10
CROSS = "projected/"  # before the names of what happens in the branch alone


def needed(graph: Graph, outputs: Sequence[str], given: Iterable[str]) -> list[Node]:
    """The nodes, in their order, that make `outputs` from what is `given` and from weights."""
    makers = {name: node for node in graph.node for name in node.output}
    found: dict[int, None] = {}
    open_ends, known = list(outputs), set(given)
    while open_ends:
        name = open_ends.pop()
        node = makers.get(name)
        if name in known or node is None or id(node) in found:
            continue
        found[id(node)] = None
        open_ends += node.input
    return [node for node in graph.node if id(node) in found]


def copies(nodes: Iterable[Node]) -> list[Node]:
    found = []
    for node in nodes:
        copy = Node()
        copy.CopyFrom(node)
        found.append(copy)
    return found


def model_of(
    whole: onnx.ModelProto, nodes: Sequence[Node], inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto], more: Iterable[Node] = (),
) -> onnx.ModelProto:  # fmt: skip
    """A model of some nodes of another and the weights that these, or those in branches (`more`), read."""
    read = {name for node in (*nodes, *more) for name in node.input}
    weights = [weight for weight in whole.graph.initializer if weight.name in read]
    graph = helper.make_graph(list(nodes), "glassformer", list(inputs), list(outputs), weights)
    made: onnx.ModelProto = helper.make_model(
        graph, opset_imports=list(whole.opset_import), producer_name="glassformer"
    )
    made.ir_version = IR_VERSION
    for function in whole.functions:
        made.functions.append(function)
    return made


def floats(name: str, shape: Sequence[str | int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))


def whole_numbers(name: str, shape: Sequence[str | int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT64, list(shape))


def cut(whole: onnx.ModelProto, layers: int, groups: int, d_head: int, width: int, vocabulary: int) -> tuple[
    onnx.ModelProto, onnx.ModelProto
]:  # fmt: skip
    """The encoder's file and the decoder's, of a graph that does both."""
    graph = whole.graph
    nodes = copies(needed(graph, [MEMORY], []))
    rename(nodes, {SOURCE: "input_ids", MASK: "attention_mask", MEMORY: "last_hidden_state"})
    encoder = model_of(
        whole, nodes, [whole_numbers(name, (B, S)) for name in ("input_ids", "attention_mask")],
        [floats("last_hidden_state", (B, S, width))],
    )  # fmt: skip

    # A size of the source may be read from its ids; the mask, which is of the same shape, tells it as well.
    new = {SOURCE: "encoder_attention_mask", MASK: "encoder_attention_mask", TARGET: "input_ids"}
    new[MEMORY] = "encoder_hidden_states"
    cross, past = names("present", "encoder", layers), names("past_key_values", "decoder", layers)
    present, known = names("present", "decoder", layers), names("past_key_values", "encoder", layers)
    step = copies(needed(graph, [LOGITS, *present], [MEMORY, *cross]))
    branch = copies(needed(graph, cross, [MEMORY]))
    assert all(node.op_type == "Shape" for node in (*step, *branch) if SOURCE in node.input)
    rename(step, new)
    rename(branch, new | {name: CROSS + name for node in branch for name in node.output})
    shape = (B, groups, S, d_head)
    projected = helper.make_graph(branch, "projected", [], [floats(CROSS + name, shape) for name in cross])
    given = [helper.make_node("Identity", [name], [f"given/{name}"]) for name in known]
    kept = helper.make_graph(given, "given", [], [floats(f"given/{name}", shape) for name in known])
    choice = helper.make_node("If", ["use_cache_branch"], cross, then_branch=kept, else_branch=projected)
    decoder = model_of(
        whole, [choice, *step],
        [
            whole_numbers("encoder_attention_mask", (B, S)),
            whole_numbers("input_ids", (B, 1)),
            floats("encoder_hidden_states", (B, S, width)),
            *(floats(name, (B, groups, P, d_head)) for name in past),
            *(floats(name, (B, groups, "known", d_head)) for name in known),
            helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1]),
        ],
        [
            floats(LOGITS, (B, 1, vocabulary)),
            *(floats(name, (B, groups, "present", d_head)) for name in present),
            *(floats(name, shape) for name in cross),
        ],
        branch,
    )  # fmt: skip
    return encoder, decoder
