"""The models a figure is compared with, built to the same size: torch's own Transformer and Hugging Face's Marian."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.weights.parity import hugging_face
from glassformer.weights.pretrained import bart
from glassformer.weights.pretrained.family import to_settings


class TorchTransformer(nn.Module):
    """`torch.nn.Transformer` with the embedding, positions and tied projection that it leaves to its user."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = nn.Parameter(torch.zeros(config.max_length, config.d_model))
        with warnings.catch_warnings():  # of an inference path that a Pre-LN encoder cannot take
            warnings.simplefilter("ignore")
            self.body = nn.Transformer(
                config.d_model,
                config.heads,
                config.layers,
                config.layers,
                config.d_ff,
                config.dropout,
                batch_first=True,
                norm_first=config.norm == "pre",
            )
        self.scale = math.sqrt(config.d_model)

    def embed(self, ids: Tensor) -> Tensor:
        embedded: Tensor = self.embedding(ids) * self.scale + self.positions[: ids.shape[1]]
        return embedded

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1], device=tgt.device)
        hidden = self.body(self.embed(src), self.embed(tgt), tgt_mask=mask, tgt_is_causal=True)
        return nn.functional.linear(hidden, self.embedding.weight)


class HuggingFaceMarian(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.model = marian(config)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None) -> Tensor:
        logits: Tensor = self.model(
            input_ids=src, attention_mask=src_mask, decoder_input_ids=tgt, use_cache=False
        ).logits
        return logits


def marian(config: ModelConfig) -> Any:
    hf = hugging_face()
    marks = {"pad_token_id": config.pad_id, "eos_token_id": config.end_id, "decoder_start_token_id": config.pad_id}
    return hf.MarianMTModel(hf.MarianConfig(vocab_size=config.vocab_size, **to_settings(config, bart.NAMES), **marks))


def contestants(config: ModelConfig) -> dict[str, nn.Module]:
    """Ourselves and the peers, one size, dropout in the places all of them have."""
    return {
        "glassformer": EncoderDecoder(config),
        "hugging face marian": HuggingFaceMarian(config),
        "torch.nn.Transformer": TorchTransformer(config),
    }
