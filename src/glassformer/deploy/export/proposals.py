"""How each published family says a configuration of ours; whether it can is found by reading it (see `shapes`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, ModelConfig
from glassformer.weights.pretrained import bart, bert, gpt2, llama, t5
from glassformer.weights.pretrained.family import to_settings


def bart_like(config: ModelConfig) -> dict[str, Any]:
    forced = {"forced_eos_token_id": config.end_id if config.force_end else None, "forced_bos_token_id": None}
    return to_settings(config, bart.NAMES) | forced


def marian(config: ModelConfig) -> dict[str, Any]:
    apart = config.src_vocab_size is not None
    sizes = {"vocab_size": config.src_vocab_size, "decoder_vocab_size": config.vocab_size} if apart else {}
    shared = {"share_encoder_decoder_embeddings": not apart, "static_position_embeddings": True}
    return bart_like(config) | sizes | shared


def as_t5(config: ModelConfig) -> dict[str, Any]:
    (spelt,) = to_settings(config, {"activation": "activation"}).values()
    activation = "gelu" if config.activation == "gelu_tanh" and config.gated else spelt
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


# Which families a model may have the shape of, the likeliest first, and how each says a configuration.
PROPOSED: dict[str, tuple[type[nn.Module], str, Callable[[ModelConfig], dict[str, Any]]]] = {
    "marian": (EncoderDecoder, "MarianMTModel", marian),
    "pegasus": (EncoderDecoder, "PegasusForConditionalGeneration", bart_like),
    "bart": (EncoderDecoder, "BartForConditionalGeneration", bart_like),
    "mbart": (EncoderDecoder, "MBartForConditionalGeneration", bart_like),
    "m2m_100": (EncoderDecoder, "M2M100ForConditionalGeneration", bart_like),
    "t5": (EncoderDecoder, "T5ForConditionalGeneration", as_t5),
    "bert": (EncoderOnly, "BertForMaskedLM", partial(to_settings, names=bert.NAMES)),
    "gpt2": (DecoderOnly, "GPT2LMHeadModel", as_gpt2),
    "llama": (DecoderOnly, "LlamaForCausalLM", as_llama),
    "qwen2": (DecoderOnly, "Qwen2ForCausalLM", as_llama),
}
