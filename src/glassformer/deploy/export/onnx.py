"""To ONNX: an encoder and one step of a decoder with both caches, run by onnxruntime anywhere.

onnx/encoder_model.onnx, onnx/decoder_model_merged.onnx   or with _int8 before the ending
config.json, generation_config.json                       what a program that runs them has to know
tokenizer.json, tokenizer_config.json                     text to ids and back
run.py                                                    a program that runs them
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx
from onnx import helper, numpy_helper

from glassformer.common.errors import check_choice
from glassformer.common.files import write_bytes, write_text
from glassformer.data import Tokenizer
from glassformer.data.vocabulary import END, PAD, SPECIALS, START, TAG
from glassformer.decode import Hypothesis
from glassformer.deploy.export.check import Ids, same_targets
from glassformer.deploy.export.formats import CannotExport, Format, Progress
from glassformer.deploy.export.graph import WEIGHT, cut, step_graph
from glassformer.deploy.export.inference import Model as Driver
from glassformer.deploy.export.inputs import LoadedModel, Sample
from glassformer.deploy.export.tokenizer_files import JOINT, SOURCE, TARGET, check_text, spelling, write_tokenizer
from glassformer.model import EncoderDecoder
from glassformer.weights.bundle import WEIGHTS, Weights
from glassformer.weights.quantized import Int8Matrix, quantizable, quantize_by_error, set_weights, share_weights

FOLDER = "onnx"
SUFFIX = {"float32": "", "int8": "_int8"}
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Options:
    """`quantization`: how weights are stored, float32 or int8; not given, as the model's folder has them."""

    quantization: Weights | None = None

    def __post_init__(self) -> None:
        if self.quantization is not None:
            check_choice("quantization", self.quantization, WEIGHTS)


class Onnx(Format):
    name = "onnx"
    options = Options

    def refuse(self, loaded: LoadedModel, options: Options) -> None:
        for reason in reasons(loaded):
            raise CannotExport(f"the two ONNX files cannot say what this model does: {reason}")

    def write(self, loaded: LoadedModel, folder: Path, options: Options) -> None:
        assert isinstance(loaded.model, EncoderDecoder)
        stored = options.quantization or loaded.stored
        place = folder / FOLDER
        place.mkdir()
        rounded = rounded_matrices(loaded.model) if stored == "int8" else {}
        parts = zip(("encoder_model", "decoder_model_merged"), graphs(loaded.model), strict=True)
        for name, graph in parts:
            onnx.checker.check_model(graph)
            store_int8(graph, rounded)
            write_bytes(place / f"{name}{SUFFIX[stored]}.onnx", graph.SerializeToString())
        write_tokenizer(loaded, folder)
        told = settings(loaded, stored)
        write_json(folder / "config.json", told)
        marks = ("decoder_start_token_id", "eos_token_id", "pad_token_id", "max_length")
        write_json(folder / "generation_config.json", {name: told[name] for name in marks})
        if isinstance(loaded.tokenizer, Tokenizer):
            about = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
            special = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), SPECIALS, strict=True))
            write_json(folder / "tokenizer_config.json", about | special)
        write_text(folder / "run.py", inspect.getsource(sys.modules[Driver.__module__]))

    def check(
        self, loaded: LoadedModel, folder: Path, sample: Sample, options: Options, progress: Progress
    ) -> dict[str, Any]:
        assert isinstance(loaded.model, EncoderDecoder)
        stored = options.quantization or loaded.stored
        model = rounded_model(loaded.model) if stored == "int8" else loaded.model
        figures = same_targets(
            model, written_by(Driver(folder, threads=1)), sample, TOLERANCE, progress, spelling(loaded)
        )
        return figures | check_text(loaded, folder, sample)

    def versions(self) -> dict[str, str]:
        return {name: version(name) for name in ("onnx", "onnxscript", "onnxruntime")}


FORMAT = Onnx()


def reasons(loaded: LoadedModel) -> list[str]:
    """What an encoder's file and a decoder's have no word for."""
    model, found = loaded.model, []
    if not isinstance(model, EncoderDecoder):
        return [f"a {type(model).__name__} is no translator, and only an encoder with a decoder goes there"]
    config = model.config
    if not config.decoder.layers:
        found.append("decoder_layers=0: without a layer there is no cache that would count the tokens")
    if config.start_id is None:
        found.append("start_id=None: there is no token that a target could begin with")
    return found


def graphs(model: EncoderDecoder) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """The encoder's file and the decoder's."""
    config = model.config.decoder
    groups = config.kv_heads or config.heads
    return cut(step_graph(model), config.layers, groups, config.d_head, config.d_model, config.vocab_size)


def rounded_matrices(model: EncoderDecoder) -> dict[str, Int8Matrix]:
    """The matrices in int8 by every name that they have; one that was int8 before is as it was."""
    own = dict(model.named_parameters())
    made = {id(own[name]): quantize_by_error(own[name]) for name in quantizable(model)}
    every = model.named_parameters(remove_duplicate=False)
    return {name: made[id(weight)] for name, weight in every if id(weight) in made}


def rounded_model(model: EncoderDecoder) -> EncoderDecoder:
    """The model with the weights that int8 leaves of it."""
    copy = share_weights(model)
    set_weights(copy, {name: rounded.dequantize() for name, rounded in rounded_matrices(model).items()})
    return copy.eval()


def store_int8(model: onnx.ModelProto, rounded: dict[str, Int8Matrix]) -> None:
    """Put a matrix's whole numbers and scales in its place, and before all else a node that multiplies them."""
    graph, first, kept = model.graph, [], []
    for weight in graph.initializer:
        found = rounded.get(weight.name.removeprefix(WEIGHT))
        if found is None or not weight.name.startswith(WEIGHT):
            kept.append(weight)
            continue
        parts = (f"{weight.name}/values", f"{weight.name}/scales")
        kept += [numpy_helper.from_array(part.numpy(), name) for part, name in zip(found, parts, strict=True)]
        first.append(helper.make_node("DequantizeLinear", parts, [weight.name], axis=0))
    nodes = [*first, *graph.node]
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(kept)
    graph.node.extend(nodes)


def settings(loaded: LoadedModel, stored: Weights) -> dict[str, Any]:
    """What a program has to know: under the names of transformers.js, and what those do not tell of their own."""
    config, decoder = loaded.model.config, loaded.model.config.decoder
    text = loaded.tokenizer
    sides: tuple[str, ...] = ()
    silent: list[int] = []
    if isinstance(text, Tokenizer):
        sides = (JOINT, JOINT) if text.joint else (SOURCE, TARGET)
        silent = [id for id, piece in text.pieces[1].items() if id in (PAD, START, END) or TAG.fullmatch(piece)]
    return {
        # A class that asks only for what follows: what the layers do is in the graphs.
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "d_model": config.d_model,
        "encoder_layers": config.encoder.layers,
        "encoder_attention_heads": config.encoder.heads,
        "decoder_layers": decoder.layers,
        "decoder_attention_heads": decoder.kv_heads or decoder.heads,
        "decoder_head_width": decoder.d_head,
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.max_length,
        "max_length": config.max_length - 1,
        "decoder_start_token_id": config.start_id,
        "eos_token_id": config.end_id,
        "pad_token_id": config.pad_id,
        "glassformer": {
            "suffix": SUFFIX[stored],
            "force_end": config.force_end and config.end_id is not None,
            "tokenizers": list(sides),
            "silent": silent,
        },
    }


def write_json(path: Path, told: dict[str, Any]) -> None:
    write_text(path, json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def written_by(driver: Driver) -> Callable[[Sequence[Ids], int, int, Sequence[Hypothesis]], list[Hypothesis]]:
    """What the files write, as it is compared with ours."""

    def write(sources: Sequence[Ids], beam: int, limit: int, _ours: Sequence[Hypothesis]) -> list[Hypothesis]:
        found = driver.write(list(sources), beam, limit)
        return [Hypothesis(one.ids, one.score, one.finished) for one in found]

    return write
