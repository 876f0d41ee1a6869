"""To CTranslate2: a folder that `ctranslate2.Translator` runs, with the tokenizer's files."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from glassformer.decode import Hypothesis
from glassformer.deploy.export.check import same_targets
from glassformer.deploy.export.formats import CannotExport, Format, Progress
from glassformer.deploy.export.inputs import Ids, LoadedModel, Sample
from glassformer.deploy.export.tokenizer_files import check_text, decode_function, vocabularies, write_tokenizer
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.model.attention import Attention
from glassformer.model.transformer import Stack, share_weights

QUANTIZATIONS = ("float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16", "int8_bfloat16")
PATIENCE = 1000.0  # beams of finished targets: the search ends only when no other target can win


class CTranslate2(Format):
    name = "ctranslate2"
    options: ClassVar = {"quantization": QUANTIZATIONS}

    def refuse(self, loaded: LoadedModel) -> None:
        if not isinstance(loaded.model, EncoderDecoder):
            raise CannotExport(
                f"a {type(loaded.model).__name__} is no translator: only an encoder with a decoder goes to CTranslate2"
            )
        for reason in refusals(loaded.model.config):
            raise CannotExport(f"CTranslate2 cannot say what this model does: {reason}")

    def write(self, loaded: LoadedModel, folder: Path) -> None:
        assert isinstance(loaded.model, EncoderDecoder)
        source, target = vocabularies(loaded)
        spec = spec_of(loaded.model, source, target)
        spec.optimize(loaded.stored)
        spec.save(str(folder))
        write_tokenizer(loaded, folder)

    def check(self, loaded: LoadedModel, folder: Path, sample: Sample, progress: Progress) -> dict[str, Any]:
        import ctranslate2

        assert isinstance(loaded.model, EncoderDecoder)
        source, target = vocabularies(loaded)
        numbers = {piece: id for id, piece in enumerate(target)}
        # A machine may multiply the stored weights in any type. So the file is run in float32, and must agree with
        # the model whose weights are rounded in the same way.
        model = share_weights(round_weights(loaded.model, loaded.stored))
        model.config = replace(model.config, force_end=False)  # a target that the limit cuts gets no end there
        engine = ctranslate2.Translator(
            str(folder), device="cpu", compute_type="float32", intra_threads=1, inter_threads=1
        )

        def search(sources: Sequence[Ids], beam: int, limit: int, patience: float) -> list[Hypothesis]:
            found = engine.translate_batch(
                [[source[id] for id in ids] for ids in sources],
                beam_size=beam,
                patience=patience,
                return_scores=True,
                max_input_length=0,
                max_decoding_length=limit,
                min_decoding_length=0,
            )
            return [Hypothesis([numbers[piece] for piece in one.hypotheses[0]], one.scores[0]) for one in found]

        def generate(sources: Sequence[Ids], beam: int, limit: int, ours: Sequence[Hypothesis]) -> list[Hypothesis]:
            """Its beam search ends early and may miss the best target, so a different one is searched for longer."""
            theirs = search(sources, beam, limit, 1.0)
            again = [i for i, (we, they) in enumerate(zip(ours, theirs, strict=True)) if we.ids != they.ids]
            if beam > 1 and again:
                more = search([sources[i] for i in again], beam, limit, PATIENCE)
                for i, longer in zip(again, more, strict=True):
                    theirs[i] = longer
                    missed[0] += longer.ids == ours[i].ids
            return theirs

        missed = [0]
        figures = same_targets(model, generate, sample, progress, decode_function(loaded))
        if loaded.model.config.force_end:
            figures["left out"] = "force_end: where the limit cuts a target, CTranslate2 puts no end"
        return figures | {"missed by its own early end of the beam": missed[0]} | check_text(loaded, folder, sample)


FORMAT = CTranslate2()


def refusals(config: ModelConfig) -> Iterator[str]:
    """Why CTranslate2 cannot express a configuration."""
    if config.autoregression != "attention":
        yield f"autoregression={config.autoregression!r}: its decoders look back by attention alone"
    if config.positions == "alibi":
        yield "positions='alibi': its encoder has no linear biases, only its decoder has"
    if config.positions == "rotary" and config.rotary_factor != 1:
        yield f"rotary_factor={config.rotary_factor}: its rotary positions in an encoder-decoder cannot be slowed"
    if config.output_transform:
        yield "output_transform=True: it has no layer between the decoder and the vocabulary"
    if config.segments:
        yield f"segments={config.segments}: it has no segment embedding beside the tokens' own"
    for name in ("start_id", "end_id"):
        if getattr(config, name) is None:
            yield f"{name}=None: it begins every target with one token and ends it with another"
    for name, layers in (("layers", config.layers), ("decoder_layers", config.decoder.layers)):
        if not layers:
            yield f"{name}=0: its stacks have one layer or more"


def spec_of(model: EncoderDecoder, source: Sequence[str], target: Sequence[str]) -> Any:
    """The weights of a model in CTranslate2's structure, validated and not yet quantised."""
    import ctranslate2

    specs = ctranslate2.specs
    config = model.config
    activation = specs.common_spec.Activation
    shared: dict[str, Any] = {
        "pre_norm": config.norm == "pre",
        "activation": {
            "relu": activation.RELU,
            "gelu": activation.GELU,
            "gelu_tanh": activation.GELUTanh,
            "silu": activation.SWISH,
        }[config.activation],
        "layernorm_embedding": config.embedding_norm,
        "relative_attention_bias": config.positions == "relative",
        "ffn_glu": config.gated,
        "rms_norm": config.norm_type == "rms",
        "num_heads_kv": config.kv_heads,
        "rotary_interleave": True,
        "rotary_base": config.rotary_base,
    }
    sides = []
    for kind, own in (
        (specs.transformer_spec.TransformerEncoderSpec, config.encoder),
        (specs.transformer_spec.TransformerDecoderSpec, config.decoder),
    ):
        rotary = own.d_head if config.positions == "rotary" else None
        sides.append(kind(own.layers, own.heads, head_dim=own.d_head, rotary_dim=rotary, **shared))
    spec: Any = specs.TransformerSpec(*sides)
    set_stack(spec.encoder, spec.encoder.embeddings[0], model.encoder)
    set_stack(spec.decoder, spec.decoder.embeddings, model.decoder)
    set_linear(spec.decoder.projection, model.head.weight, model.head.bias)
    spec.register_source_vocabulary(list(source))
    spec.register_target_vocabulary(list(target))
    assert config.start_id is not None
    spec.config.layer_norm_epsilon = config.norm_eps
    spec.config.bos_token = spec.config.decoder_start_token = target[config.start_id]
    if config.end_id is not None:
        spec.config.eos_token = target[config.end_id]
    spec.config.unk_token = "<unk>" if "<unk>" in target else target[0]
    spec.validate()
    return spec


def to_numpy(tensor: Tensor) -> Any:
    return np.array(tensor.detach().numpy())  # a copy: quantisation writes into it


def set_linear(target: Any, weight: Tensor, bias: Tensor | None) -> None:
    target.weight = to_numpy(weight)
    if bias is not None:
        target.bias = to_numpy(bias)


def set_norm(target: Any, source: Any) -> None:
    target.gamma = to_numpy(source.weight)
    if source.bias is not None:
        target.beta = to_numpy(source.bias)


def set_stack(side: Any, embeddings: Any, stack: Stack) -> None:
    embedding: Any = stack.embedding
    config: ModelConfig = embedding.config
    blocks: list[Any] = list(stack.blocks)
    distance: Any = stack.distance
    embeddings.weight = to_numpy(embedding.tokens.weight)
    side.scale_embeddings = config.embedding_scale
    if embedding.positions is not None:
        side.position_encodings.encodings = to_numpy(embedding.positions.table)
    elif config.positions == "none":
        side.position_encodings.encodings = np.zeros((config.max_length, config.d_model), dtype=np.float32)
    if config.embedding_norm:
        set_norm(side.layernorm_embedding, embedding.norm)
    if config.norm == "pre":
        set_norm(side.layer_norm, stack.norm)
    for layer, block in zip(side.layer, blocks, strict=True):
        set_attention(layer.self_attention, block.self_attention, config)
        set_norm(layer.self_attention.layer_norm, block.self_attention_residual.norm)
        if config.positions == "relative":
            layer.self_attention.relative_attention_bias = to_numpy(distance.table)
            furthest = np.dtype("int32").type(config.relative_distance)
            layer.self_attention.relative_attention_max_distance = furthest
        if block.cross_attention is not None:
            set_attention(layer.attention, block.cross_attention, config, cross=True)
            set_norm(layer.attention.layer_norm, block.cross_attention_residual.norm)
        set_norm(layer.ffn.layer_norm, block.feed_forward_residual.norm)
        up, down = block.feed_forward.up, block.feed_forward.down
        first = config.d_ff
        set_linear(layer.ffn.linear_0, up.weight[:first], None if up.bias is None else up.bias[:first])
        if config.gated:
            set_linear(layer.ffn.linear_0_noact, up.weight[first:], None if up.bias is None else up.bias[first:])
        set_linear(layer.ffn.linear_1, down.weight, down.bias)


def set_attention(target: Any, source: Attention, config: ModelConfig, cross: bool = False) -> None:
    if config.score_scale is not None:
        target.queries_scale = np.dtype("float32").type(config.score_scale)
    weight, bias = source.projection.weight, source.projection.bias
    queries = source.projection.rows[0]
    parts = [slice(0, queries), slice(queries, None)] if cross else [slice(None)]
    for place, rows in enumerate(parts):
        set_linear(target.linear[place], weight[rows], None if bias is None else bias[rows])
    set_linear(target.linear[len(parts)], source.output.weight, source.output.bias)


HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


@torch.no_grad()
def round_weights(model: EncoderDecoder, kind: str) -> EncoderDecoder:
    """A copy of the model, rounded as CTranslate2 stores it: matrices to whole numbers with a scale for each row (int8)
    or for all rows (int16), or every number to 16 bits."""
    whole, _, rest = kind.partition("_")
    if whole == "float32":
        return model
    rounded = copy.deepcopy(model)
    matrices = {part.data_ptr(): part for part in matrices_of(rounded)} if whole.startswith("int") else {}
    if (half := HALVES.get(rest or whole)) is not None:
        for tensor in (*rounded.parameters(), *rounded.buffers()):
            if tensor.data_ptr() not in matrices:
                tensor.copy_(tensor.to(half))
    for part in matrices.values():
        part.copy_(round_matrix(part, whole))
    return rounded


def round_matrix(part: Tensor, kind: str) -> Tensor:
    if kind == "int16":
        scale = 2**10 / part.abs().amax()
    else:
        highest = part.abs().amax(1, keepdim=True)
        scale = 127.0 / torch.where(highest == 0, 127.0, highest)
    return (part * scale).round() / scale


def matrices_of(model: EncoderDecoder) -> Iterator[Tensor]:
    """The matrices that are rounded, as they are stored."""
    for stack in (model.encoder, model.decoder):
        yield stack.embedding.tokens.weight
        blocks: list[Any] = list(stack.blocks)
        for block in blocks:
            own, cross, network = block.self_attention, block.cross_attention, block.feed_forward
            yield own.projection.weight
            yield own.output.weight
            if cross is not None:
                queries = cross.projection.rows[0]
                yield cross.projection.weight[:queries]
                yield cross.projection.weight[queries:]
                yield cross.output.weight
            yield from network.up.weight.chunk(2) if network.gated else (network.up.weight,)
            yield network.down.weight
    yield model.head.weight
