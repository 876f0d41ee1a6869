"""How each published family says a configuration of ours; whether it can is found by reading it (see `shapes`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, ModelConfig

SPELT = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "silu": "silu"}


def attention_dropout(config: ModelConfig) -> float:
    return config.dropout if config.attention_dropout is None else config.attention_dropout


def bart_like(config: ModelConfig) -> dict[str, Any]:
    decoder = config.decoder
    return {
        "d_model": config.d_model,
        "encoder_layers": config.layers,
        "decoder_layers": decoder.layers,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": decoder.heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": decoder.d_ff,
        "max_position_embeddings": config.max_length,
        "activation_function": SPELT[config.activation],
        "scale_embedding": config.embedding_scale,
        "forced_eos_token_id": config.end_id if config.force_end else None,
        "forced_bos_token_id": None,
        "dropout": config.dropout,
        "attention_dropout": attention_dropout(config),
        "activation_dropout": config.dropout if config.activation_dropout is None else config.activation_dropout,
    }


def marian(config: ModelConfig) -> dict[str, Any]:
    apart = config.src_vocab_size is not None
    sizes = {"vocab_size": config.src_vocab_size, "decoder_vocab_size": config.vocab_size} if apart else {}
    shared = {"share_encoder_decoder_embeddings": not apart, "static_position_embeddings": True}
    return bart_like(config) | sizes | shared


def t5(config: ModelConfig) -> dict[str, Any]:
    activation = "gelu" if config.activation == "gelu_tanh" and config.gated else SPELT[config.activation]
    return {
        "d_model": config.d_model,
        "d_kv": config.d_head,
        "d_ff": config.d_ff,
        "num_heads": config.heads,
        "num_layers": config.layers,
        "num_decoder_layers": config.decoder.layers,
        "feed_forward_proj": f"gated-{activation}" if config.gated else activation,
        "layer_norm_epsilon": config.norm_eps,
        "relative_attention_num_buckets": config.relative_buckets,
        "relative_attention_max_distance": config.relative_distance,
        "dropout_rate": config.dropout,
        "scale_decoder_outputs": config.tied,
    }


def bert(config: ModelConfig) -> dict[str, Any]:
    return {
        "hidden_size": config.d_model,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "intermediate_size": config.d_ff,
        "max_position_embeddings": config.max_length,
        "type_vocab_size": config.segments or 1,
        "hidden_act": SPELT[config.activation],
        "layer_norm_eps": config.norm_eps,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout
        if config.attention_dropout is None
        else config.attention_dropout,
    }


def gpt2(config: ModelConfig) -> dict[str, Any]:
    return {
        "n_embd": config.d_model,
        "n_layer": config.layers,
        "n_head": config.heads,
        "n_inner": config.d_ff,
        "n_positions": config.max_length,
        "activation_function": SPELT[config.activation],
        "layer_norm_epsilon": config.norm_eps,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": attention_dropout(config),
    }


def llama(config: ModelConfig) -> dict[str, Any]:
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
    return {
        "hidden_size": config.d_model,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads or config.heads,
        "head_dim": config.d_head,
        "intermediate_size": config.d_ff,
        "max_position_embeddings": config.max_length,
        "hidden_act": SPELT[config.activation],
        "rms_norm_eps": config.norm_eps,
        "attention_dropout": attention_dropout(config),
        "rope_parameters": rope,
        "rope_theta": config.rotary_base,
    }


# Which families a model may have the shape of, the likeliest first, and how each says a configuration.
PROPOSED: dict[str, tuple[type[nn.Module], str, Callable[[ModelConfig], dict[str, Any]]]] = {
    "marian": (EncoderDecoder, "MarianMTModel", marian),
    "pegasus": (EncoderDecoder, "PegasusForConditionalGeneration", bart_like),
    "bart": (EncoderDecoder, "BartForConditionalGeneration", bart_like),
    "mbart": (EncoderDecoder, "MBartForConditionalGeneration", bart_like),
    "m2m_100": (EncoderDecoder, "M2M100ForConditionalGeneration", bart_like),
    "t5": (EncoderDecoder, "T5ForConditionalGeneration", t5),
    "bert": (EncoderOnly, "BertForMaskedLM", bert),
    "gpt2": (DecoderOnly, "GPT2LMHeadModel", gpt2),
    "llama": (DecoderOnly, "LlamaForCausalLM", llama),
    "qwen2": (DecoderOnly, "Qwen2ForCausalLM", llama),
}
