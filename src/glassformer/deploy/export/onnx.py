"""To ONNX: an encoder and one step of a decoder with both caches, run by onnxruntime anywhere.

onnx/encoder_model.onnx, onnx/decoder_model_merged.onnx   or with _int8 before the ending
config.json, generation_config.json                       the settings for a program that runs them
tokenizer.json, tokenizer_config.json                     text to ids and back
run.py                                                    a program that runs them
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import onnx
from onnx import helper, numpy_helper

from glassformer.common.files import write_bytes, write_json, write_text
from glassformer.data import Tokenizer
from glassformer.data.vocabulary import END, PAD, SPECIAL, SPECIALS, START
from glassformer.decode import Hypothesis
from glassformer.deploy.export import inference
from glassformer.deploy.export.check import same_targets
from glassformer.deploy.export.formats import CannotExport, Format, Progress
from glassformer.deploy.export.graph import WEIGHT, encoder_and_decoder
from glassformer.deploy.export.inputs import Ids, LoadedModel, Sample
from glassformer.deploy.export.tokenizer_files import (
    JOINT,
    SOURCE,
    TARGET,
    check_text,
    decode_function,
    write_tokenizer,
)
from glassformer.model import EncoderDecoder, Model
from glassformer.model.transformer import share_weights
from glassformer.weights.quantized import Int8Matrix, quantizable, quantize_by_error, set_weights

FOLDER = "onnx"
GRAPHS = ("encoder_model", "decoder_model_merged")
SUFFIX = {"float32": "", "int8": "_int8"}


class Onnx(Format):
    name = "onnx"
    options: ClassVar = {"quantization": tuple(SUFFIX)}

    def refuse(self, loaded: LoadedModel) -> None:
        for reason in refusals(loaded.model):
            raise CannotExport(f"the two ONNX files cannot say what this model does: {reason}")

    def write(self, loaded: LoadedModel, folder: Path) -> None:
        assert isinstance(loaded.model, EncoderDecoder)
        place = folder / FOLDER
        place.mkdir()
        int8 = int8_matrices(loaded.model) if loaded.stored == "int8" else {}
        for name, graph in zip(GRAPHS, encoder_and_decoder(loaded.model), strict=True):
            onnx.checker.check_model(graph)
            store_int8(graph, int8)
            write_bytes(place / f"{name}{SUFFIX[loaded.stored]}.onnx", graph.SerializeToString())
        write_tokenizer(loaded, folder)
        config = onnx_config(loaded, loaded.stored)
        write_json(folder / "config.json", config)
        names = ("decoder_start_token_id", "eos_token_id", "pad_token_id", "max_length")
        write_json(folder / "generation_config.json", {name: config[name] for name in names})
        if isinstance(loaded.tokenizer, Tokenizer):
            about = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
            special = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), SPECIALS, strict=True))
            write_json(folder / "tokenizer_config.json", about | special)
        write_text(folder / "run.py", inspect.getsource(inference))

    def check(self, loaded: LoadedModel, folder: Path, sample: Sample, progress: Progress) -> dict[str, Any]:
        assert isinstance(loaded.model, EncoderDecoder)
        model = int8_model(loaded.model) if loaded.stored == "int8" else loaded.model
        return check_onnx(loaded, model, folder, sample, progress) | check_text(loaded, folder, sample)


FORMAT = Onnx()


def refusals(model: Model) -> Iterator[str]:
    """Why a file for the encoder and one for the decoder cannot express a model."""
    if not isinstance(model, EncoderDecoder):
        yield f"a {type(model).__name__} is no translator, and only an encoder with a decoder goes there"
    elif not model.config.decoder.layers:
        yield "decoder_layers=0: without a layer there is no cache that would count the tokens"
    elif model.config.autoregression != "attention":
        yield f"autoregression={model.config.autoregression!r}: its cache holds the keys and values of attention"
    elif model.config.start_id is None:
        yield "start_id=None: there is no token that a target could begin with"


def int8_matrices(model: EncoderDecoder) -> dict[str, Int8Matrix]:
    """The matrices in int8, by all of their names; a matrix that was int8 before stays the same."""
    own = dict(model.named_parameters())
    quantized = {id(own[name]): quantize_by_error(own[name]) for name in quantizable(model)}
    named = model.named_parameters(remove_duplicate=False)
    return {name: quantized[id(weight)] for name, weight in named if id(weight) in quantized}


def int8_model(model: EncoderDecoder) -> EncoderDecoder:
    """The model with its weights rounded to int8."""
    copy = share_weights(model)
    set_weights(copy, {name: matrix.dequantize() for name, matrix in int8_matrices(model).items()})
    return copy.eval()


def store_int8(model: onnx.ModelProto, int8: dict[str, Int8Matrix]) -> None:
    """Replace each matrix by its whole numbers and scales, and a first node that multiplies them."""
    graph, nodes, weights = model.graph, [], []
    for weight in graph.initializer:
        matrix = int8.get(weight.name.removeprefix(WEIGHT))
        if matrix is None or not weight.name.startswith(WEIGHT):
            weights.append(weight)
            continue
        parts = (f"{weight.name}/values", f"{weight.name}/scales")
        weights += [numpy_helper.from_array(part.numpy(), name) for part, name in zip(matrix[:2], parts, strict=True)]
        nodes.append(helper.make_node("DequantizeLinear", parts, [weight.name], axis=0))
    nodes += graph.node
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(weights)
    graph.node.extend(nodes)


def onnx_config(loaded: LoadedModel, stored: str) -> dict[str, Any]:
    """The settings under the names of transformers.js, and those of ours that have no name there."""
    config, decoder = loaded.model.config, loaded.model.config.decoder
    text = loaded.tokenizer
    sides: tuple[str, ...] = ()
    silent: list[int] = []
    if isinstance(text, Tokenizer):
        sides = (JOINT, JOINT) if text.joint else (SOURCE, TARGET)
        silent = [id for id, piece in text.pieces[1].items() if id in (PAD, START, END) or SPECIAL.fullmatch(piece)]
    return {
        # A class that needs only these settings: the graphs say what the layers do.
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


def check_onnx(
    loaded: LoadedModel, model: EncoderDecoder, folder: Path, sample: Sample, progress: Progress
) -> dict[str, Any]:
    """Compare the targets of the two files in `folder` with those of `model`."""
    peer = inference.OnnxModel(folder, threads=1)

    def generate(sources: Sequence[Ids], beam: int, limit: int, _: Sequence[Hypothesis]) -> list[Hypothesis]:
        found = peer.generate(list(sources), beam, limit)
        return [Hypothesis(target.ids, target.score, target.finished) for target in found]

    return same_targets(model, generate, sample, progress, decode_function(loaded))
