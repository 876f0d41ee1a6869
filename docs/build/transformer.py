"""A Transformer by hand: the file that the pages of docs/en/build and docs/zh/build grow, part by part.

Shapes: B batch, S source, T target, D model width, H heads, d = D / H, F feed-forward width, V vocabulary.
"""

import json
import math
import random
import sys
from dataclasses import dataclass, fields

import torch
from safetensors.torch import load_file
from torch import nn

from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.data.numerals import generate

# --- The task ---
PAD, START, END = 0, 1, 2


class Task:
    def __init__(self):
        self.tokenizer = Tokenizer.train(generate("train"), TokenizerOptions(vocab_size=480))
        self.train, self.held_out = self.spelt("train"), self.spelt("valid")

    def spelt(self, split):
        """English and German numbers in words, as ids."""
        pairs = [pair for pair in generate(split) if not any(sign.isdigit() for sign in "".join(pair))]
        sources, targets = zip(*pairs)
        return list(zip(self.tokenizer.encode_source(sources), self.tokenizer.encode_target(targets)))

    def batch(self, pairs):
        """Sources (B, S), what is read of the targets (B, T), and what comes next at each place (B, T)."""
        sources, targets = zip(*pairs)
        reads, labels = [[START, *ids] for ids in targets], [[*ids, END] for ids in targets]
        return table(sources), table(reads), table(labels)


def table(rows):
    """Rows of unequal length as one table, the short ones filled up with padding."""
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])


# --- Parts ---
@dataclass
class Config:
    vocab_size: int
    d_model: int = 64
    heads: int = 4
    d_ff: int = 256
    layers: int = 2


def softmax(scores):
    """Shares that add up to one along the last axis; the highest is taken off first, so that exp cannot overflow."""
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return weights / weights.sum(-1, keepdim=True)


def causal(length):
    return torch.ones(length, length, dtype=torch.bool).tril()  # (T, T), row t: True for each place up to t


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


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up, self.down = nn.Linear(config.d_model, config.d_ff), nn.Linear(config.d_ff, config.d_model)

    def forward(self, x):
        return self.down(self.up(x).clamp(min=0))  # (B, T, D) -> (B, T, F), ReLU -> (B, T, D)


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


# --- Learning ---
def loss(logits, labels, smoothing=0.0):
    """Cross-entropy in nats for each real label, a share of which is spread over the whole vocabulary."""
    surprise = logits.logsumexp(-1, keepdim=True) - logits  # (B, T, V): -log softmax
    right = surprise.gather(-1, labels[..., None]).squeeze(-1)  # (B, T)
    each = (1 - smoothing) * right + smoothing * surprise.mean(-1)
    return each[labels != PAD].mean()


@torch.no_grad()
def measure(model, task):
    src, tgt, labels = task.batch(task.held_out)
    return loss(model(src, tgt), labels).item()


def learn(task, steps=300, seed=0):
    """A model, and the loss of the held-out pairs along the way."""
    torch.manual_seed(seed)
    chance, curve = random.Random(seed), []
    config = Config(task.tokenizer.tgt_size)
    model = Transformer(config)
    optimizer = Adam(model.parameters())
    for step in range(steps + 1):
        if step % (steps // 10) == 0:
            curve.append((step, measure(model, task)))
        src, tgt, labels = task.batch(chance.sample(task.train, 32))
        loss(model(src, tgt), labels, smoothing=0.1).backward()
        optimizer.step(learning_rate(step + 1, config.d_model))
    return model, curve


class Adam:
    def __init__(self, weights):
        self.weights = [(weight, torch.zeros_like(weight), torch.zeros_like(weight)) for weight in weights]
        self.steps = 0

    @torch.no_grad()
    def step(self, rate):
        self.steps += 1
        for weight, mean, square in self.weights:
            mean += (1 - 0.9) * (weight.grad - mean)  # of the gradients, the latest counting most
            square += (1 - 0.98) * (weight.grad.square() - square)
            direction = mean / (1 - 0.9**self.steps)  # both began at zero: this makes up for it
            size = (square / (1 - 0.98**self.steps)).sqrt()
            weight -= rate * direction / (size + 1e-9)
            weight.grad = None


def learning_rate(step, d_model, warmup=100, factor=0.3):
    """The paper's, whose factor is 1: a straight rise for `warmup` steps, then falling as 1 / sqrt(step)."""
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


# --- Writing ---
@torch.no_grad()
def greedy(model, src, limit=48):
    """The target of each source (B, S), as lists of ids without start and end."""
    memory = model.encode(src)
    tgt = torch.full((len(src), 1), START)
    going = torch.ones(len(src), dtype=torch.bool)
    while going.any() and tgt.shape[1] <= limit:
        piece = model.decode(tgt, memory, src)[:, -1].argmax(-1)  # (B)
        tgt = torch.cat((tgt, piece.where(going, PAD)[:, None]), dim=1)
        going &= piece != END
    return [[piece for piece in row if piece not in (PAD, START, END)] for row in tgt.tolist()]


@torch.no_grad()
def beam(model, src, beams=4, limit=48):
    """The target of one source (1, S) with the best mean log-probability that is found, as a list of ids."""
    memory = model.encode(src)
    running, done = [(0.0, [START])], []
    for length in range(1, limit + 1):
        tgt = torch.tensor([ids for _, ids in running])  # (K, T)
        logits = model.decode(tgt, memory.expand(len(tgt), -1, -1), src.expand(len(tgt), -1))[:, -1]  # (K, V)
        totals = torch.tensor([total for total, _ in running])[:, None] + logits.log_softmax(-1)
        best = totals.flatten().topk(2 * beams)  # enough, even if half of them end here
        grown = [
            (total, [*running[place // logits.shape[1]][1], place % logits.shape[1]])
            for total, place in zip(best.values.tolist(), best.indices.tolist())
        ]
        done += [(total / length, ids) for total, ids in grown[:beams] if ids[-1] == END or length == limit]
        running = [(total, ids) for total, ids in grown if ids[-1] != END][:beams]
        if done and max(done)[0] >= running[0][0] / limit:  # totals only fall: none of these can win any more
            break
    return [piece for piece in max(done)[1] if piece not in (START, END)]


# --- The shipped model's weights ---
def load(folder):
    """The model that `make demo` trained, in the classes of this file, and its tokenizer."""
    with open(f"{folder}/config.json", encoding="utf-8") as file:
        settings = json.load(file)
    built = {"norm": "pre", "norm_type": "layer", "activation": "relu", "positions": "sinusoidal", "tied": True}
    assert built.items() <= settings.items(), f"{folder} is another kind of model; this file is one of {built}"
    model = Transformer(Config(**{field.name: settings[field.name] for field in fields(Config)}))
    weights = {}
    for name, tensor in load_file(f"{folder}/model.safetensors").items():
        if ".projection." in name:  # the matrices of q, k and v are stored as one
            for part, rows in zip(("query", "key", "value"), tensor.chunk(3)):
                weights[name.replace("projection", part)] = rows
        elif not name.endswith("positions.table"):  # our waves are computed
            weights[name] = tensor
    weights["decoder.embedding.tokens.weight"] = weights["encoder.embedding.tokens.weight"]  # one table, two names
    model.load_state_dict(weights)
    return model, Tokenizer.load(folder)


def translate(model, tokenizer, texts):
    return tokenizer.decode_target(greedy(model, table(tokenizer.encode_source(texts))))


if __name__ == "__main__":
    print(*translate(*load(sys.argv[1]), sys.argv[2:]), sep="\n")
