"""Training a language model of GPT-2 small's shape on a GPU, beside two peers that are compiled whole.

The peers are Hugging Face's GPT-2, with its own loss, and a decoder in plain PyTorch as small trainers have it: fused
attention, the loss inside what is compiled, fused AdamW, gradients clipped. Ours is the real training path, `Stepper`:
once with rows of one text each, as the peers read them, once with rows that hold several texts, none of which sees
another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.throughput import Measure, measured, static_speed
from glassformer.model import DecoderOnly, ModelConfig
from glassformer.train.options import Train
from glassformer.train.parallel import World
from glassformer.train.step import Inputs, Stepper
from glassformer.weights.parity import hugging_face
from glassformer.weights.pretrained import gpt2
from glassformer.weights.pretrained.family import to_settings

GPT2 = ModelConfig(
    vocab_size=50_304,  # GPT-2's 50,257, rounded up to what matrix units like, for everyone
    d_model=768,
    heads=12,
    d_ff=3072,
    layers=12,
    max_length=1024,
    positions="learned",
    activation="gelu_tanh",
    embedding_scale=False,
    dropout=0.0,
)
ROWS, LENGTH = 16, 1024
NAMES = ("glassformer", "glassformer, packed texts", "plain PyTorch", "hugging face GPT-2")


class PlainLayer(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.d_model
        self.heads = config.heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, config.d_ff), nn.Linear(config.d_ff, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.first(x)).chunk(3, -1))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        result: Tensor = x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))
        return result


class PlainDecoder(nn.Module):
    """`model(ids, labels)`: the mean loss."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.places = nn.Embedding(config.max_length, config.d_model)
        self.layers = nn.Sequential(*(PlainLayer(config) for _ in range(config.layers)))
        self.norm = nn.LayerNorm(config.d_model)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        logits = F.linear(self.norm(self.layers(x)), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


class HuggingFaceGPT2(nn.Module):
    """The same call. Its own loss shifts the labels itself, so it is given the ids."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        hf: Any = hugging_face()
        made = hf.GPT2Config(
            vocab_size=config.vocab_size, use_cache=False, embd_pdrop=0.0, **to_settings(config, gpt2.NAMES)
        )
        self.model = hf.GPT2LMHeadModel(made)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        loss: Tensor = self.model(ids, labels=ids).loss
        return loss


def random_text(config: ModelConfig, rows: int, length: int) -> tuple[Tensor, Tensor]:
    """Ids, and the labels, which are the ids that follow."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(3, config.vocab_size, (rows, length + 1), generator=generator)
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def packed_places(rows: int, length: int) -> Tensor:
    """Each token's place in its text, where every row holds texts of 64 to 511 tokens without a hole."""
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(64, 512, (rows, length // 64), generator=generator)
    return torch.stack([torch.cat([torch.arange(int(n)) for n in row])[:length] for row in lengths])


def peer(model: nn.Module, ids: Tensor, labels: Tensor) -> Callable[[], None]:
    """A step as one would write it around such a model."""
    fast: Any = torch.compile(model.train(), dynamic=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), fused=True)

    def step() -> None:
        with torch.autocast(ids.device.type, dtype=torch.bfloat16):
            loss = fast(ids, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def ours(config: ModelConfig, ids: Tensor, labels: Tensor, places: Tensor | None) -> Callable[[], None]:
    train = Train(objective="language", compile=True, precision="bf16", label_smoothing=0.0)
    stepper = Stepper(DecoderOnly(config).to(ids.device).train(), train, World(0, 1, ids.device))
    rows = {"labels": labels, "ids": ids} | ({} if places is None else {"places": places})
    return partial(stepper, Inputs(rows, torch.tensor(1 / labels.numel(), device=ids.device)), 1e-4, 0)


def contestant(name: str, config: ModelConfig, rows: int, length: int, device: str) -> Callable[[], None]:
    """A step of one of NAMES."""
    ids, labels = (tensor.to(device) for tensor in random_text(config, rows, length))
    if name == "plain PyTorch":
        return peer(PlainDecoder(config).to(device), ids, labels)
    if name == "hugging face GPT-2":
        return peer(HuggingFaceGPT2(config).to(device), ids, labels)
    places = packed_places(rows, length).to(device) if name.endswith("texts") else None
    return ours(config, ids, labels, places)


def work(name: str, number: str) -> Measure:
    return static_speed(contestant(name, GPT2, ROWS, LENGTH, "cuda"), ROWS * LENGTH)


def language(say: Callable[[str], None]) -> dict[str, float]:
    """Tokens a second, by contestant; one that fails is left out."""
    found = measured([(name, "0") for name in NAMES], say, __name__)
    return {name: found[name, "0"] for name in NAMES if (name, "0") in found}


if __name__ == "__main__":
    from benchmarks.throughput import when_called

    when_called(work)
