"""Hide padding: what fills a row up is nothing to look at."""

from torch import nn


# --- Parts ---
def real(ids):
    return (ids != PAD)[:, None, None, :]  # (B, 1, 1, S): the same for every head and every query


# --- The model ---
class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.encoder, self.decoder = Stack(config, cross=False), Stack(config, cross=True)
        self.decoder.embedding = self.encoder.embedding  # one table for both languages, and for the output

    def encode(self, src):
        return self.encoder(src, real(src))  # (B, S, D)

    def decode(self, tgt, memory, src):
        hidden = self.decoder(tgt, causal(tgt.shape[1]), memory, real(src))  # (B, T, D)
        return hidden @ self.decoder.embedding.tokens.weight.T  # (B, T, V)

    def forward(self, src, tgt):
        return self.decode(tgt, self.encode(src), src)
