"""A model's parts as ONNX graphs, traced from the modules, and split into the files of an encoder and a decoder.

Shapes: B rows, S source, P tokens read before, G key/value heads, d head width, D model width, V vocabulary.
"""

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
from onnx.utils import Extractor
from onnxscript.optimizer import optimize_ir
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F

from glassformer.explain.activations import ActivationCache
from glassformer.explain.operations import GraphBuilder, record_forward
from glassformer.explain.weights import Weights
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly
from glassformer.model.cache import Admitted, Cache, LayerCache
from glassformer.model.embedding import Embedding, RelativeBias, Rotary, relative_bucket
from glassformer.model.transformer import share_weights

OPSET = 18
IR_VERSION = 10
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
WEIGHT = "model."  # how the names of a model's own tensors begin
AnyModel = TypeVar("AnyModel", EncoderDecoder, EncoderOnly, DecoderOnly)
PROJECTED = "projected/"  # before the names within the branch that projects the memory
B, S, P = "batch", "source", "past"
SOURCE, MASK, TARGET, MEMORY, LOGITS = "source", "mask", "target", "memory", "logits"


def cache_names(kind: str, side: str, layers: int) -> list[str]:
    """The keys and values of each layer, by the names that Hugging Face's exports use."""
    return [f"{kind}.{layer}.{side}.{part}" for layer in range(layers) for part in ("key", "value")]


class PastLayer(LayerCache):
    """One block's keys and values, which are inputs of a graph, and outputs after `append`."""

    def __init__(self, cache: PastCache, past: tuple[Tensor, Tensor]) -> None:
        super().__init__(cache)
        self.k, self.v = past

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        assert self.k is not None
        assert self.v is not None
        self.k, self.v = torch.cat((self.k, k), dim=2), torch.cat((self.v, v), dim=2)
        return self.k, self.v


class PastCache(Cache):
    """A cache of given keys and values; new ones are concatenated."""

    def __init__(self, past: list[tuple[Tensor, Tensor]]) -> None:
        super().__init__(0, 1)
        self.layers: list[LayerCache] = [PastLayer(self, pair) for pair in past]

    def check(self, ids: Tensor, layers: int) -> None:
        """A graph cannot check; the program that runs it does."""

    def admit(self, ids: Tensor, mask: Tensor | None) -> Admitted:
        first = self.layers[0].k if self.layers else None
        before = 0 if first is None else first.shape[2]
        keys = torch.arange(before + ids.shape[1])
        return Admitted(keys[before:], keys, keys[before:], None)


class RotaryTable(nn.Module):
    """The angles of rotary positions in a table: another library's cosine may differ in the last digit."""

    def __init__(self, rotary: Rotary, length: int) -> None:
        super().__init__()
        self.width, self.base, self.factor, self.pace = rotary.width, rotary.base, rotary.factor, rotary.pace
        cos, sin = rotary(torch.arange(length))
        self.cos, self.sin = nn.Buffer(cos), nn.Buffer(sin)

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        return F.embedding(positions, self.cos), F.embedding(positions, self.sin)


class RelativeBiasTable(nn.Module):
    """T5's bias by the distance itself: another library's logarithm could give another bucket."""

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
    """A copy that shares the weights, with tables for what other libraries round differently, and without checks."""
    copy = share_weights(model).eval().requires_grad_(False)
    for module in copy.modules():
        if isinstance(module, Embedding):
            module.check = lambda *_: None  # type: ignore[method-assign]  # a graph has no such branch
        for name, child in list(module.named_children()):
            if isinstance(child, Rotary):
                setattr(module, name, RotaryTable(child, model.config.max_length))
            elif isinstance(child, RelativeBias):
                setattr(module, name, RelativeBiasTable(child))
    return copy


class EncodeAndStep(nn.Module):
    """A source encoded, and one token decoded after those in `past`: all of a model in one pass.

    `past` has the keys and values (B, G, P, d) of each layer; so have `cross`, of the source, and `present`.
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
def silenced_exporter() -> Iterator[None]:
    """Without the exporter's progress and warnings."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def capture(module: nn.Module, examples: tuple[Any, ...], shapes: tuple[Any, ...]) -> onnx.ModelProto:
    """A module's forward pass as one graph; `shapes` names the axes that may vary.

    Weights keep their values and names: only constants that follow from shapes are folded.
    """
    with silenced_exporter(), torch.no_grad():
        program = torch.export.export(module.eval(), examples, dynamic_shapes=shapes, strict=False)
        made = torch.onnx.export(program, dynamo=True, opset_version=OPSET, optimize=False, verbose=False)
        assert made is not None
        optimize_ir(made.model, should_fold=lambda node: False if any(map(is_weight, node.inputs)) else None)
    return strip_metadata(onnx_ir.to_proto(made.model))


def is_weight(value: onnx_ir.Value | None) -> bool:
    return value is not None and (value.name or "").startswith(WEIGHT)


def strip_metadata(model: onnx.ModelProto) -> onnx.ModelProto:
    """Without the exporter's notes on the source line of every node."""
    graph = model.graph
    for part in (model, graph, *graph.node, *graph.input, *graph.output, *graph.initializer):
        del part.metadata_props[:]
        part.doc_string = ""
    del graph.value_info[:]
    return model


def rename_io(model: onnx.ModelProto, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.ModelProto:
    """With other names for its inputs and outputs."""
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
    """A whole pass with both caches, under the names that `encoder_and_decoder` and the files use."""
    config = model.config.decoder
    groups, layers = config.kv_heads or config.heads, config.layers
    rows, source, past = 2, 3, 4  # not 0 or 1, and no two equal: the exporter would make them constants
    ids = torch.zeros((rows, source), dtype=torch.long)
    known = [torch.zeros(rows, groups, past, config.d_head) for _ in range(2 * layers)]
    batch, length, before = Dim(B), Dim(S), Dim(P)
    shapes = ({0: batch, 1: length}, {0: batch, 1: length}, {0: batch}, [{0: batch, 2: before}] * len(known))
    graph = capture(EncodeAndStep(traceable(model)), (ids, ids + 1, ids[:, :1], known), shapes)
    inputs = [SOURCE, MASK, TARGET, *cache_names("past_key_values", "decoder", layers)]
    outputs = [MEMORY, *cache_names("present", "encoder", layers), LOGITS, *cache_names("present", "decoder", layers)]
    return rename_io(graph, inputs, outputs)


class TraceOutputs(nn.Module):
    """Every value of the trace of a source and a target, in the trace's order, each once."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, mask: Tensor, target: Tensor) -> list[Tensor]:
        nameless = Weights({}, {}, defaultdict(str))
        builder = GraphBuilder(self.model.config, ActivationCache(), nameless, {})
        record_forward(self.model, source, mask.bool(), target, builder)
        return [value.value for value in builder.values.values() if value.op["kind"] != "same"]


def trace_graph(model: EncoderDecoder, values: Sequence[str]) -> onnx.ModelProto:
    """A pass of one sentence whose outputs are all values of a trace, by their names there."""
    source, target = 5, 3
    ids = torch.zeros((1, source), dtype=torch.long)
    shapes = ({1: Dim(S)}, {1: Dim(S)}, {1: Dim("target")})
    graph = capture(TraceOutputs(traceable(model)), (ids, ids + 1, ids[:, :target]), shapes)
    return rename_io(graph, [SOURCE, MASK, TARGET], values)


def encoder_and_decoder(model: EncoderDecoder) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """The encoder's file and the decoder's: the graph of a whole pass, split at the memory.

    The decoder's file has a branch, as transformers.js and Optimum expect: if `use_cache_branch` is true, the keys and
    values of the source are given, else they are projected from the memory.
    """
    whole, config = step_graph(model), model.config.decoder
    extractor, layers = Extractor(whole), config.layers
    nodes = list(extractor.extract_model([SOURCE, MASK], [MEMORY]).graph.node)
    rename(nodes, {SOURCE: "input_ids", MASK: "attention_mask", MEMORY: "last_hidden_state"})
    ids = [tensor_info(name, INT64, B, S) for name in ("input_ids", "attention_mask")]
    encoder = model_of(whole, nodes, ids, [tensor_info("last_hidden_state", FLOAT, B, S, config.d_model)])

    # The sizes of the source may be read from its ids; the mask, which has the same shape, has them too.
    new = {SOURCE: "encoder_attention_mask", MASK: "encoder_attention_mask", TARGET: "input_ids"}
    new[MEMORY] = "encoder_hidden_states"
    cross, past = cache_names("present", "encoder", layers), cache_names("past_key_values", "decoder", layers)
    present, known = cache_names("present", "decoder", layers), cache_names("past_key_values", "encoder", layers)
    inputs = [SOURCE, MASK, TARGET, MEMORY, *past]
    step = list(extractor.extract_model([*inputs, *cross], [LOGITS, *present]).graph.node)
    branch = list(extractor.extract_model(inputs, cross).graph.node)
    assert all(node.op_type == "Shape" for node in (*step, *branch) if SOURCE in node.input)
    rename(step, new)
    rename(branch, new | {name: PROJECTED + name for node in branch for name in node.output})
    groups = config.kv_heads or config.heads
    shape = (B, groups, S, config.d_head)
    projected = [tensor_info(PROJECTED + name, FLOAT, *shape) for name in cross]
    given = [tensor_info(f"given/{name}", FLOAT, *shape) for name in known]
    copies = [helper.make_node("Identity", [name], [f"given/{name}"]) for name in known]
    choice = helper.make_node(
        "If",
        ["use_cache_branch"],
        cross,
        then_branch=helper.make_graph(copies, "given", [], given),
        else_branch=helper.make_graph(branch, "projected", [], projected),
    )
    decoder = model_of(
        whole, [choice, *step],
        [
            tensor_info("encoder_attention_mask", INT64, B, S),
            tensor_info("input_ids", INT64, B, 1),
            tensor_info("encoder_hidden_states", FLOAT, B, S, config.d_model),
            *(tensor_info(name, FLOAT, B, groups, P, config.d_head) for name in past),
            *(tensor_info(name, FLOAT, B, groups, "known", config.d_head) for name in known),
            tensor_info("use_cache_branch", TensorProto.BOOL, 1),
        ],
        [
            tensor_info(LOGITS, FLOAT, B, 1, config.vocab_size),
            *(tensor_info(name, FLOAT, B, groups, "present", config.d_head) for name in present),
            *(tensor_info(name, FLOAT, *shape) for name in cross),
        ],
        branch,
    )  # fmt: skip
    return encoder, decoder


def tensor_info(name: str, kind: int, *shape: str | int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(
    whole: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto], more: Iterable[onnx.NodeProto] = (),
) -> onnx.ModelProto:  # fmt: skip
    """A model of some nodes of another, with the weights that these, or those in branches (`more`), read."""
    read = {name for node in (*nodes, *more) for name in node.input}
    weights = [weight for weight in whole.graph.initializer if weight.name in read]
    graph = helper.make_graph(nodes, "glassformer", inputs, outputs, weights)
    imports, functions = list(whole.opset_import), list(whole.functions)
    return helper.make_model(
        graph, opset_imports=imports, functions=functions, producer_name="glassformer", ir_version=IR_VERSION
    )
