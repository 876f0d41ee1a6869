"""Put a second layer on the first: a stack."""

from dataclasses import dataclass

from torch import nn


# --- Parts ---
@dataclass
class Config:
    vocab_size: int
    d_model: int = 64
    heads: int = 4
    d_ff: int = 256
    layers: int = 2


class Stack(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embedding = Embedding(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = LayerNorm(config.d_model)

    def forward(self, ids, visible):
        x = self.embedding(ids)  # (B, T, D)
        for block in self.blocks:
            x = block(x, visible)
        return self.norm(x)


# --- The model ---
class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.decoder = Stack(config)

    def forward(self, src, tgt):
        hidden = self.decoder(tgt, causal(tgt.shape[1]))
        return hidden @ self.decoder.embedding.tokens.weight.T  # (B, T, V)
