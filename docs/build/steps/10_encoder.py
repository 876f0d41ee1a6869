"""Read the source at last: an encoder, and attention from the target to it."""

import math

from torch import nn


# --- Parts ---
class Attention(nn.Module):  # x asks, `seen` answers; in self-attention `seen` is x itself
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.query, self.key, self.value, self.output = (nn.Linear(config.d_model, config.d_model) for _ in range(4))

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)  # (B, T, D) -> (B, T, H, d) -> (B, H, T, d)

    def forward(self, x, seen, visible):
        q, k, v = self.split(self.query(x)), self.split(self.key(seen)), self.split(self.value(seen))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, T, S)
        if visible is not None:
            scores = scores.masked_fill(~visible, float("-inf"))
        mixed = softmax(scores) @ v  # (B, H, T, d)
        return self.output(mixed.transpose(1, 2).flatten(2))  # (B, T, H, d) -> (B, T, D)


class Block(nn.Module):  # a layer of the encoder, or with `cross` of the decoder, which sees the memory too
    def __init__(self, config, cross):
        super().__init__()
        self.self_attention, self.self_attention_residual = Attention(config), Residual(config)
        if cross:
            self.cross_attention, self.cross_attention_residual = Attention(config), Residual(config)
        self.feed_forward, self.feed_forward_residual = FeedForward(config), Residual(config)

    def forward(self, x, visible, memory, memory_visible):
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, visible))
        if memory is not None:
            x = self.cross_attention_residual(x, lambda y: self.cross_attention(y, memory, memory_visible))
        return self.feed_forward_residual(x, self.feed_forward)


class Stack(nn.Module):
    def __init__(self, config, cross):
        super().__init__()
        self.embedding = Embedding(config)
        self.blocks = nn.ModuleList(Block(config, cross) for _ in range(config.layers))
        self.norm = LayerNorm(config.d_model)

    def forward(self, ids, visible, memory=None, memory_visible=None):
        x = self.embedding(ids)  # (B, T, D)
        for block in self.blocks:
            x = block(x, visible, memory, memory_visible)
        return self.norm(x)


# --- The model ---
class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.encoder, self.decoder = Stack(config, cross=False), Stack(config, cross=True)
        self.decoder.embedding = self.encoder.embedding  # one table for both languages, and for the output

    def encode(self, src):
        return self.encoder(src, None)  # (B, S, D): every place sees every other

    def decode(self, tgt, memory, src):
        hidden = self.decoder(tgt, causal(tgt.shape[1]), memory)  # (B, T, D)
        return hidden @ self.decoder.embedding.tokens.weight.T  # (B, T, V)

    def forward(self, src, tgt):
        return self.decode(tgt, self.encode(src), src)
