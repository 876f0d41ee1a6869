"""Work on what was gathered, at each place on its own."""

from dataclasses import dataclass

from torch import nn


# --- Parts ---
@dataclass
class Config:
    vocab_size: int
    d_model: int = 64
    heads: int = 4
    d_ff: int = 256


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up, self.down = nn.Linear(config.d_model, config.d_ff), nn.Linear(config.d_ff, config.d_model)

    def forward(self, x):
        return self.down(self.up(x).clamp(min=0))  # (B, T, D) -> (B, T, F), ReLU -> (B, T, D)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attention, self.self_attention_residual = Attention(config), Residual(config)
        self.feed_forward, self.feed_forward_residual = FeedForward(config), Residual(config)

    def forward(self, x, visible):
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, visible))
        return self.feed_forward_residual(x, self.feed_forward)
