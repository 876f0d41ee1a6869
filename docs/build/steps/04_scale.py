"""Divide the scores by the square root of the width."""

import math

from torch import nn


# --- Parts ---
class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(config.d_model, config.d_model) for _ in range(3))

    def forward(self, x, visible):
        q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, D) each
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, T, T)
        weights = softmax(scores.masked_fill(~visible, float("-inf")))
        return weights @ v  # (B, T, D)
