"""Add to what is there instead of replacing it, and keep the scale of what is read."""

import torch
from torch import nn


# --- Parts ---
class LayerNorm(nn.Module):
    """The D values of each place brought to mean 0 and variance 1, then stretched and shifted as learnt."""

    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width)), eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).square().mean(-1, keepdim=True)  # divided by D, not D - 1
        return (x - mean) / (variance + self.eps).sqrt() * self.weight + self.bias


class Residual(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm = LayerNorm(config.d_model)

    def forward(self, x, sublayer):
        return x + sublayer(self.norm(x))  # Pre-LN


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attention, self.self_attention_residual = Attention(config), Residual(config)

    def forward(self, x, visible):
        return self.self_attention_residual(x, lambda y: self.self_attention(y, visible))


# --- The model ---
class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embedding = Embedding(config)
        self.block = Block(config)
        self.norm = LayerNorm(config.d_model)

    def forward(self, src, tgt):
        x = self.embedding(tgt)  # (B, T, D)
        x = self.block(x, causal(tgt.shape[1]))
        return self.norm(x) @ self.embedding.tokens.weight.T  # (B, T, V)
