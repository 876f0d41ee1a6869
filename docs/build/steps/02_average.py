"""Give each piece a vector, and guess from the average of those that came before."""

import random
from dataclasses import dataclass

import torch
from torch import nn


# --- Parts ---
@dataclass
class Config:
    vocab_size: int
    d_model: int = 64


class Average(nn.Module):
    """Every place gets the mean of itself and all places before it."""

    def __init__(self, config):
        super().__init__()
        self.value = nn.Linear(config.d_model, config.d_model)

    def forward(self, x):
        past = torch.ones(x.shape[1], x.shape[1]).tril()  # (T, T), row t: a one for each place up to t
        weights = past / past.sum(-1, keepdim=True)
        return weights @ self.value(x)  # (T, T) @ (B, T, D) -> (B, T, D)


# --- The model ---
class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.tokens.weight, std=config.d_model**-0.5)
        self.mix = Average(config)

    def forward(self, src, tgt):
        x = self.tokens(tgt)  # (B, T, D)
        x = self.mix(x)
        return x @ self.tokens.weight.T  # (B, T, V): how like each piece's vector it is


# --- Learning ---
def learn(task, steps=300, seed=0):
    """A model, and the loss of the held-out pairs along the way."""
    torch.manual_seed(seed)
    chance, curve = random.Random(seed), []
    model = Transformer(Config(task.tokenizer.tgt_size))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(steps + 1):
        if step % (steps // 10) == 0:
            curve.append((step, measure(model, task)))
        src, tgt, labels = task.batch(chance.sample(task.train, 32))
        optimizer.zero_grad()
        loss(model(src, tgt), labels).backward()
        optimizer.step()
    return model, curve
