"""Look several times at once, each time with a part of the width."""

import math
from dataclasses import dataclass

from torch import nn


# --- Parts ---
@dataclass
class Config:
    vocab_size: int
    d_model: int = 64
    heads: int = 4


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.query, self.key, self.value, self.output = (nn.Linear(config.d_model, config.d_model) for _ in range(4))

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)  # (B, T, D) -> (B, T, H, d) -> (B, H, T, d)

    def forward(self, x, visible):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))  # (B, H, T, d) each
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, T, T)
        weights = softmax(scores.masked_fill(~visible, float("-inf")))
        mixed = weights @ v  # (B, H, T, d)
        return self.output(mixed.transpose(1, 2).flatten(2))  # (B, T, H, d) -> (B, T, D)
