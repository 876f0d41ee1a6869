"""A model's parts as ONNX graphs, traced from the modules, and split into the files of an encoder and a decoder.

Shapes: B rows, S source, P tokens read before, G key/value heads, d head width, D model width, V vocabulary."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import onnx
import onnx_ir
import torch
from onnx import TensorProto, helper
from onnxscript.optimizer import optimize_ir
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F

from glassformer.explain.activations import ActivationCache
from glassformer.explain.operations import GraphBuilder, record_forward
from glassformer.explain.weights import Weights
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly
from glassformer.model.cache import Admitted, Cache, LayerCache
from glassformer.model.embedding import Embedding
from glassformer.model.position import RelativeBias, Rotary, relative_bucket
from glassformer.weights.quantized import share_weights

OPSET = 18
WEIGHT = "model."  # how the names of a model's own tensors begin
AnyModel = TypeVar("AnyModel", EncoderDecoder, EncoderOnly, DecoderOnly)
B, S, P = "batch", "source", "past"
SOURCE, MASK, TARGET, MEMORY, LOGITS = "source", "mask", "target", "memory", "logits"


def names(kind: str, side: str, layers: int) -> list[str]:
    """Of keys and values in turn, layer by layer, as Hugging Face's exports call them."""
    return [f"{kind}.{layer}.{side}.{part}" for layer in range(layers) for part in ("key", "value")]


class PastLayer(LayerCache):
    """One block's keys and values as they come into a graph; what leaves it is kept for its outputs."""

    def __init__(self, cache: PastCache, past: tuple[Tensor, Tensor]) -> None:
        super().__init__(cache)
        self.k, self.v = past

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        assert self.k is not None
        assert self.v is not None
        self.k, self.v = torch.cat((self.k, k), dim=2), torch.cat((self.v, v), dim=2)
        return self.k, self.v


class PastCache(Cache):
    """A cache whose content is given, and grows by being joined to what is new: every row has its own."""

    def __init__(self, past: list[tuple[Tensor, Tensor]]) -> None:
        super().__init__(0, 1)
        self.layers: list[LayerCache] = [PastLayer(self, pair) for pair in past]

    def check(self, ids: Tensor, layers: int) -> None:
        """Whoever runs the graph has to."""

    def admit(self, ids: Tensor, mask: Tensor | None) -> Admitted:
        first = self.layers[0].k if self.layers else None
        before = 0 if first is None else first.shape[2]
        keys = torch.arange(before + ids.shape[1])
        return Admitted(keys[before:], keys, keys[before:], None)


class Turns(nn.Module):
    """The angles of rotary positions, looked up: the cosine of another library may differ in its last digit."""

    def __init__(self, rotary: Rotary, length: int) -> None:
        super().__init__()
        self.width, self.base, self.factor, self.pace = rotary.width, rotary.base, rotary.factor, rotary.pace
        cos, sin = rotary(torch.arange(length))
        self.cos, self.sin = nn.Buffer(cos), nn.Buffer(sin)

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        return F.embedding(positions, self.cos), F.embedding(positions, self.sin)


class Distances(nn.Module):
    """T5's terms by the distance itself: a logarithm rounded otherwise elsewhere could give another bucket."""

    def __init__(self, bias: RelativeBias) -> None:
        super().__init__()
        self.furthest = bias.furthest
        offset = torch.arange(-bias.furthest, bias.furthest + 1)
        bucket = relative_bucket(offset, bias.table.shape[0], bias.furthest, bias.both_ways)
        self.table = nn.Buffer(bias.table.detach()[bucket])  # (2 furthest + 1, H)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        offset = (keys.unsqueeze(0) - queries.unsqueeze(1)).clamp(-self.furthest, self.furthest) + self.furthest
        return F.embedding(offset, self.table).permute(2, 0, 1).unsqueeze(0)  # (1, H, T, S)


def traceable(model: AnyModel) -> AnyModel:
    """A copy that shares the weights, without what a graph cannot say, or rounds otherwise: checks, angles, buckets."""
    copy = share_weights(model).eval().requires_grad_(False)
    for module in copy.modules():
        if isinstance(module, Embedding):
            module.check = lambda *_: None  # type: ignore[method-assign]  # a graph has no such branch
        for name, child in list(module.named_children()):
            if isinstance(child, Rotary):
                setattr(module, name, Turns(child, model.config.max_length))
            elif isinstance(child, RelativeBias):
                setattr(module, name, Distances(child))
    return copy


class Step(nn.Module):
    """A source read, and one token written after those that `past` holds: all that a model does, in one pass.

    `past` has keys and values (B, G, P, d) in turn, layer by layer; so have `cross`, of the source, and `present`.
    """

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, source: Tensor, mask: Tensor, target: Tensor, past: list[Tensor]
    ) -> tuple[Tensor, list[Tensor], Tensor, list[Tensor]]:
        memory = self.model.encode(source, mask.bool())  # (B, S, D)
        cache = PastCache(list(zip(past[::2], past[1::2], strict=True)))
        logits = self.model.decode(target, memory, mask.bool(), cache)  # (B, 1, V)
        present = [part for layer in cache.layers for part in (layer.k, layer.v)]
        cross = [part for layer in cache.layers for part in layer.cross or ()]
        return memory, cross, logits, [part for part in present if part is not None]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """The exporter tells its progress and its own warnings to whoever calls it."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir", "torch.export")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def captured(module: nn.Module, examples: tuple[Any, ...], shapes: tuple[Any, ...]) -> onnx.ModelProto:
    """All that a module does as one graph; `shapes` names the axes that may vary.

    Weights stay as they are, under the names they have in the module: only what follows from shapes is worked out.
    """
    with quiet(), torch.no_grad():
        program = torch.export.export(module.eval(), examples, dynamic_shapes=shapes, strict=False)
        made = torch.onnx.export(program, dynamo=True, opset_version=OPSET, optimize=False, verbose=False)
        assert made is not None
        optimize_ir(made.model, should_fold=lambda node: False if any(map(is_weight, node.inputs)) else None)
    graph: onnx.ModelProto = onnx_ir.to_proto(made.model)
    return bare(graph)


def is_weight(value: onnx_ir.Value | None) -> bool:
    return value is not None and (value.name or "").startswith(WEIGHT)


def bare(model: onnx.ModelProto) -> onnx.ModelProto:
    """Without the exporter's notes on where in a source file every node comes from."""
    for part in (*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output):
        del part.metadata_props[:]
        part.doc_string = ""
    for weight in model.graph.initializer:
        del weight.metadata_props[:]
        weight.doc_string = ""
    del model.graph.metadata_props[:], model.metadata_props[:], model.graph.value_info[:]
    model.graph.doc_string = model.doc_string = ""
    return model


def renamed(model: onnx.ModelProto, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.ModelProto:
    """With other names for what goes in and comes out."""
    graph = model.graph
    assert (len(graph.input), len(graph.output)) == (len(inputs), len(outputs))
    new = dict(zip((value.name for value in graph.input), inputs, strict=True))
    last = [value.name for value in graph.output]
    new |= {old: name for old, name in zip(last, outputs, strict=True) if last.count(old) == 1 and old not in new}
    rename(graph.node, new)
    for value in (*graph.input, *graph.output):
        value.name = new.get(value.name, value.name)
    for value, name in zip(graph.output, outputs, strict=True):
        if value.name != name:  # what comes in, or goes out elsewhere too
            graph.node.append(helper.make_node("Identity", [value.name], [name]))
            value.name = name
    return model


def rename(nodes: Iterable[onnx.NodeProto], new: dict[str, str]) -> None:
    for node in nodes:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]


def step_graph(model: EncoderDecoder) -> onnx.ModelProto:
    """A whole pass with both caches, named as `cut` and the files name things."""
    config = model.config.decoder
    groups, layers = config.kv_heads or config.heads, config.layers
    rows, source, past = 2, 3, 4  # none of them 0 or 1, and no two alike: an exporter takes such for constants
    ids = torch.zeros((rows, source), dtype=torch.long)
    known = [torch.zeros(rows, groups, past, config.d_head) for _ in range(2 * layers)]
    batch, length, before = Dim(B), Dim(S), Dim(P)
    shapes = ({0: batch, 1: length}, {0: batch, 1: length}, {0: batch}, [{0: batch, 2: before}] * len(known))
    graph = captured(Step(traceable(model)), (ids, ids + 1, ids[:, :1], known), shapes)
    inputs = [SOURCE, MASK, TARGET, *names("past_key_values", "decoder", layers)]
    outputs = [MEMORY, *names("present", "encoder", layers), LOGITS, *names("present", "decoder", layers)]
    return renamed(graph, inputs, outputs)


class Watched(nn.Module):
    """Every value that a trace tells of a source and a target that is read, in the trace's order, each once."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, mask: Tensor, target: Tensor) -> list[Tensor]:
        # What a value is made of is told by a trace; here its name is enough.
        nameless = Weights({}, {}, defaultdict(str))
        builder = GraphBuilder(self.model.config, ActivationCache(), nameless, {})
        record_forward(self.model, source, mask.bool(), target, builder)
        return [value.value for value in builder.values.values() if value.op["kind"] != "same"]


def trace_graph(model: EncoderDecoder, values: Sequence[str]) -> onnx.ModelProto:
    """A pass with every probe read, of one sentence; `values` are the names that a trace gives them."""
    source, target = 5, 3
    ids = torch.zeros((1, source), dtype=torch.long)
    shapes = ({1: Dim(S)}, {1: Dim(S)}, {1: Dim("target")})
    graph = captured(Watched(traceable(model)), (ids, ids + 1, ids[:, :target]), shapes)
    return renamed(graph, [SOURCE, MASK, TARGET], values)


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
