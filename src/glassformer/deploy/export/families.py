"""A model as a published family of Hugging Face: the settings that describe it, and its weights under their names.

A family's settings are proposed from our configuration and read back by the family's own reader. If the result is
another configuration, the family cannot express this model, and the fields that differ are the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.common.errors import GlassformerError
from glassformer.deploy.export.formats import CannotExport
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, Model, ModelConfig
from glassformer.model.attention import Attention
from glassformer.weights.pretrained import bart, bert, gpt2, llama, t5
from glassformer.weights.pretrained.family import Family, Settings, to_settings
from glassformer.weights.pretrained.loader import FAMILIES, assemble, family_state_dict


def as_bart(config: ModelConfig) -> dict[str, Any]:
    forced = {"forced_eos_token_id": config.end_id if config.force_end else None, "forced_bos_token_id": None}
    return to_settings(config, bart.NAMES) | forced


def as_marian(config: ModelConfig) -> dict[str, Any]:
    separate = config.src_vocab_size is not None
    sizes = {"vocab_size": config.src_vocab_size, "decoder_vocab_size": config.vocab_size} if separate else {}
    shared = {"share_encoder_decoder_embeddings": not separate, "static_position_embeddings": True}
    return as_bart(config) | sizes | shared


def as_t5(config: ModelConfig) -> dict[str, Any]:
    (name,) = to_settings(config, {"activation": "activation"}).values()
    activation = "gelu" if config.activation == "gelu_tanh" and config.gated else name
    projection = f"gated-{activation}" if config.gated else activation
    return to_settings(config, t5.NAMES) | {"feed_forward_proj": projection, "scale_decoder_outputs": config.tied}


def as_gpt2(config: ModelConfig) -> dict[str, Any]:
    return to_settings(config, gpt2.NAMES) | {"embd_pdrop": config.dropout}


def as_llama(config: ModelConfig) -> dict[str, Any]:
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rotary_base}
    if config.rotary_factor != 1 or config.rotary_length is not None:
        rope |= {"rope_type": "linear", "factor": config.rotary_factor}
    if config.rotary_length is not None:
        rope |= {
            "rope_type": "llama3",
            "original_max_position_embeddings": config.rotary_length,
            "low_freq_factor": config.rotary_low,
            "high_freq_factor": config.rotary_high,
        }
    return to_settings(config, llama.NAMES) | {"rope_parameters": rope, "rope_theta": config.rotary_base}


# The families, the likeliest first: the class of our model, of theirs, and how each expresses a configuration.
PROPOSALS: dict[str, tuple[type[nn.Module], str, Callable[[ModelConfig], dict[str, Any]]]] = {
    "marian": (EncoderDecoder, "MarianMTModel", as_marian),
    "pegasus": (EncoderDecoder, "PegasusForConditionalGeneration", as_bart),
    "bart": (EncoderDecoder, "BartForConditionalGeneration", as_bart),
    "mbart": (EncoderDecoder, "MBartForConditionalGeneration", as_bart),
    "m2m_100": (EncoderDecoder, "M2M100ForConditionalGeneration", as_bart),
    "t5": (EncoderDecoder, "T5ForConditionalGeneration", as_t5),
    "bert": (EncoderOnly, "BertForMaskedLM", partial(to_settings, names=bert.NAMES)),
    "gpt2": (DecoderOnly, "GPT2LMHeadModel", as_gpt2),
    "llama": (DecoderOnly, "LlamaForCausalLM", as_llama),
    "qwen2": (DecoderOnly, "Qwen2ForCausalLM", as_llama),
}


ROUNDING = 1e-6  # a factor that is multiplied into a weight costs a last digit


@dataclass(frozen=True)
class FamilyModel:
    """A model as a family stores it: `settings` is its config.json, `tensors` the weights of its file."""

    settings: dict[str, Any]
    tensors: dict[str, Tensor]


def convert_to_family(model: Model, wanted: str | None = None) -> FamilyModel:
    """The model in the first family that can express it; CannotExport names the fields in which the nearest differs."""
    reasons: dict[str, list[str]] = {}
    for name, (kind, _, _) in PROPOSALS.items():
        if isinstance(model, kind) and wanted in (None, name):
            found = convert(model, name)
            if isinstance(found, FamilyModel):
                return found
            reasons[name] = found
    if not reasons:
        raise CannotExport(f"family={wanted!r} is of another kind than this {type(model).__name__}")
    name = min(reasons, key=lambda one: len(reasons[one]))
    whose = f"`{name}`" if wanted else f"a family of Hugging Face that is known here; the nearest is `{name}`"
    raise CannotExport(f"this model has not the shape of {whose}: {'; '.join(reasons[name])}")


def convert(model: Model, name: str) -> FamilyModel | list[str]:
    """The model in one family, or the reasons why it cannot express it."""
    _, architecture, propose = PROPOSALS[name]
    config = model.config
    settings = {
        "model_type": name,
        "architectures": [architecture],
        "is_encoder_decoder": isinstance(model, EncoderDecoder),
        "vocab_size": config.vocab_size,
        "tie_word_embeddings": config.tied,
        "pad_token_id": config.pad_id,
        "bos_token_id": config.start_id,
        "eos_token_id": config.end_id,
        "decoder_start_token_id": config.start_id if isinstance(model, EncoderDecoder) else None,
        **propose(config),
    }
    read = Settings(settings)
    try:
        family = FAMILIES[name](read)
        theirs = family.config(read, config.tied)
    except GlassformerError as error:
        return [str(error)]
    reasons = differences(config, theirs)
    if name == "t5" and config.decoder.layers > config.layers:
        reasons.append(
            f"decoder_layers={config.decoder.layers}, where the cache of `generate` counts layers={config.layers}"
        )
    if reasons:
        return reasons
    for order in width_orders(model):
        converted = with_config(model, theirs, family, order)
        tensors = family_state_dict(converted, read)
        if not (lost := changed_tensor(converted, family, read, tensors)):
            more = position_tables(converted, family, read) | repeated_tensors(converted, family, tensors)
            return FamilyModel(settings, tensors | more)
    return [f"{lost}: a table that the family does not have, and does not store"]


def differences(ours: ModelConfig, theirs: ModelConfig) -> list[str]:
    """The fields by which the two compute something else."""
    mine, other = effective_values(ours), effective_values(theirs)
    differing = [name for name in mine if mine[name] != other[name] and ... not in (mine[name], other[name])]
    return [f"{name}={mine[name]!r}, which there is {other[name]!r}" for name in differing]


FIELDS = (  # that mean the same in every family
    "norm", "norm_type", "norm_eps", "activation", "gated", "bias", "embedding_scale", "embedding_norm",
    "src_vocab_size", "tied", "patch_size", "output_transform", "pad_id", "start_id", "end_id", "force_end",
)  # fmt: skip


def effective_values(config: ModelConfig) -> dict[str, Any]:
    """The fields that matter, without those that other weights can express (see `with_config`)."""
    table = config.positions in ("sinusoidal", "learned", "none")
    return {
        "positions": "a table" if table else config.positions,
        "rotary_base": config.rotary_base if config.positions == "rotary" else ...,
        "rotary_factor": rotary_scaling(config) if config.positions == "rotary" else ...,
        **{name: getattr(config, name) for name in FIELDS},
        "qkv_bias": config.bias if config.qkv_bias is None else config.qkv_bias,
        "kv_heads": config.kv_heads or config.heads,
        "decoder_heads": config.decoder.heads,
        "decoder_d_ff": config.decoder.d_ff,
        "head_width": (config.d_head, config.decoder.d_head),
        "segments": config.segments > 1 and config.segments,
    }


def rotary_scaling(config: ModelConfig) -> tuple[Any, ...]:
    by_pair = (config.rotary_length, config.rotary_low, config.rotary_high)
    return (config.rotary_factor, *(by_pair if config.rotary_length is not None else ()))


def width_orders(model: Model) -> Iterator[Tensor | None]:
    """The orders of the D values of a position. All are equivalent, but a fixed table of sines has its own: ours
    alternates sine and cosine, some families have all sines first."""
    yield None
    if model.config.positions == "sinusoidal":
        width = torch.arange(model.config.d_model)
        yield torch.cat((width[0::2], width[1::2]))


def position_tables(model: Model, family: Family, read: Settings) -> dict[str, Tensor]:
    """The computable tables that a file may hold; without them a loader reports missing keys."""
    own = dict(model.named_buffers())
    return {
        family.prefix + name.removesuffix("?"): own[ours]
        for ours, take in family.weights(model.config, read).items()
        for name in take.names
        if ours in own and name.endswith("embed_positions.weight?")
    }


def repeated_tensors(model: Model, family: Family, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The copies of tensors in a file: a family whose head is not tied reads each name."""
    if model.config.tied or not family.prefix:
        return {}
    groups = [[family.prefix + name for name in group] for group in family.same]
    return {name: tensors[group[0]].clone() for group in groups if group[0] in tensors for name in group[1:]}


@torch.no_grad()
def with_config(model: Model, theirs: ModelConfig, family: Family, order: Tensor | None) -> Model:
    """The same model with the configuration of the family, its weights changed where the two differ."""
    made = family.model(replace(theirs, max_length=model.config.max_length)).eval()
    own = dict(model.named_parameters()) | dict(model.named_buffers())
    names = {name for name, _ in [*made.named_parameters(), *made.named_buffers()]}
    if order is None and names == set(own) and attention_scales(made) == attention_scales(model):
        return model  # unchanged, so that its weights stay equal to the last digit
    for name, tensor in [*made.named_parameters(), *made.named_buffers()]:
        if name in own:
            tensor.copy_(own[name])
        else:  # a head's bias, positions or segments that we do not have
            assert name.endswith(("head.bias", "positions.table", "segments.weight")), name
            tensor.zero_()
    for module in made.modules():
        if isinstance(module, Attention):
            scale = model.config.score_scale or 1 / math.sqrt(module.d_head)
            if scale != module.scale:
                queries = module.projection.rows[0]
                module.projection.weight[:queries] *= scale / module.scale
                if module.projection.bias is not None:
                    module.projection.bias[:queries] *= scale / module.scale
    if order is not None:
        reorder_width(made, order)
    return made


def attention_scales(model: nn.Module) -> list[float]:
    return [module.scale for module in model.modules() if isinstance(module, Attention)]


def reorder_width(model: nn.Module, order: Tensor) -> None:
    """Put the D values of every position in another order, in all weights."""
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:  # each once, also of several names
        writes = name.endswith(("output.weight", "output.bias", "down.weight", "down.bias"))
        if ".norm." in name or writes:
            tensor.copy_(tensor[order])
        elif name.endswith(("projection.weight", "up.weight", "tokens.weight", "positions.table", "head.weight")):
            assert tensor.shape[1] == len(order)
            tensor.copy_(tensor[:, order])


def changed_tensor(model: Model, family: Family, read: Settings, tensors: dict[str, Tensor]) -> str:
    """The name of a tensor that the family's reader changes, or "" if there is none."""
    again = assemble(family, read, dict(tensors))
    own = dict(again.named_parameters()) | dict(again.named_buffers())
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if name not in own or own[name].shape != tensor.shape or not torch.allclose(own[name], tensor, rtol=ROUNDING):
            return name
    return ""
