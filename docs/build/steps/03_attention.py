"""Let each place choose what it takes from the past: attention instead of the average."""

from torch import nn

# --- Parts ---
del Average


def softmax(scores):
    """Shares that add up to one along the last axis; the highest is taken off first, so that exp cannot overflow."""
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def causal(length):
    return torch.ones(length, length, dtype=torch.bool).tril()  # (T, T), row t: True for each place up to t


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(config.d_model, config.d_model) for _ in range(3))

    def forward(self, x, visible):
        q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, D) each
        scores = q @ k.transpose(-2, -1)  # (B, T, T): how well each key fits each query
        weights = softmax(scores.masked_fill(~visible, float("-inf")))
        return weights @ v  # (B, T, D)


# --- The model ---
class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.tokens.weight, std=config.d_model**-0.5)
        self.attention = Attention(config)

    def forward(self, src, tgt):
        x = self.tokens(tgt)  # (B, T, D)
        x = self.attention(x, causal(tgt.shape[1]))
        return x @ self.tokens.weight.T  # (B, T, V)
