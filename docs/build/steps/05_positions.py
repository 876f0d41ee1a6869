"""Say where each piece stands: a fixed wave is added to its vector."""

import math

import torch
from torch import nn


# --- Parts ---
def sinusoid(length, width):
    """(T, D): sin and cos of position / 10000^(2i / D), side by side for each i."""
    position = torch.arange(length, dtype=torch.float64)[:, None]  # (T, 1)
    frequency = 10_000 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)  # (D / 2)
    angle = position * frequency  # (T, D / 2)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()


class Embedding(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.tokens.weight, std=config.d_model**-0.5)

    def forward(self, ids):
        x = self.tokens(ids) * math.sqrt(self.tokens.embedding_dim)  # values as large as those of the wave
        return x + sinusoid(ids.shape[1], x.shape[-1])  # (B, T, D)


# --- The model ---
class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embedding = Embedding(config)
        self.attention = Attention(config)

    def forward(self, src, tgt):
        x = self.embedding(tgt)  # (B, T, D)
        x = self.attention(x, causal(tgt.shape[1]))
        return x @ self.embedding.tokens.weight.T  # (B, T, V)
