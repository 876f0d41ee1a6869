"""A small task and a small training loop, shared by the labs that need a model to learn something in a second.

The task is to write a random sequence backwards: position i must find position T - 1 - i, so it takes attention and
a knowledge of positions. It needs no data and has no noise; a model that has understood it reaches a loss of zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from glassformer.labs.figures import Panel, Series, Text
from glassformer.model import DecoderOnly, EncoderOnly, ModelConfig
from glassformer.model.attention import Attention
from glassformer.model.layer import Block
from glassformer.model.loss import smoothed_cross_entropy
from glassformer.model.transformer import initialise

PAD = 0
FIRST = 3  # ids below are padding, start and end
SYMBOLS = 16
LOSS_STEPS = 10  # steps that a loss is averaged over
UNIFORM = math.log(SYMBOLS)  # the loss of a uniform guess among the symbols

LOSS = Text("loss (nats per token)", "损失（奈特/词元）")
UNIFORM_NUMBERS = {Text("loss of knowing nothing", "一无所知时的损失"): UNIFORM}
TASK = Text("The task: write a random sequence backwards.", "任务：把随机序列倒着写出来。")

Pair = tuple[Tensor, Tensor]  # inputs (B, T) and the labels wanted at the same places (B, T)
Build = Callable[[ModelConfig], EncoderOnly]
Part = Callable[[ModelConfig], Attention]
Stack = TypeVar("Stack", EncoderOnly, DecoderOnly)


def small_config(seed: int, layers: int = 2, d_model: int = 32, **changes: object) -> ModelConfig:
    """A configuration of the task's vocabulary, small enough for thousands of steps, without dropout's noise."""
    sizes = {"d_model": d_model, "heads": 4, "d_ff": 2 * d_model, "layers": layers, "max_length": 64}
    return ModelConfig.from_dict(
        {"vocab_size": FIRST + SYMBOLS, "dropout": 0.0, "tied": False, "seed": seed} | sizes | changes
    )


def blocks(model: nn.Module) -> list[Block]:
    return [module for module in model.modules() if isinstance(module, Block)]


def with_attention(kind: type[Stack], config: ModelConfig, part: Part) -> Stack:
    """A model with `part` in the place of every attention, and the weights that the seed gives."""
    model = kind(config)
    for block in blocks(model):
        block.self_attention = part(config)
    initialise(model, config)
    return model


def record(module: nn.Module) -> list[Tensor]:
    """The values that leave a module, such as a probe, from now on."""
    values: list[Tensor] = []
    module.register_forward_hook(lambda _module, _inputs, value: values.append(value))
    return values


def reversals(seed: int, steps: int, batch: int = 32, length: int = 8) -> Iterator[Pair]:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        ids = torch.randint(FIRST, FIRST + SYMBOLS, (batch, length), generator=generator)
        yield ids, ids.flip(1)


def mean_loss(model: Callable[[Tensor], Tensor], pair: Pair) -> Tensor:
    """The mean cross-entropy per label."""
    ids, labels = pair
    return smoothed_cross_entropy(model(ids), labels, 0.0, PAD) / (labels != PAD).sum()


@torch.no_grad()
def accuracy(model: Callable[[Tensor], Tensor], pair: Pair) -> float:
    """The share of labels that the model finds likeliest."""
    ids, labels = pair
    return float((model(ids).argmax(-1) == labels)[labels != PAD].float().mean())


def learn(
    model: nn.Module,
    pairs: Iterable[Any],
    lr: float,
    warmup: int = 0,
    until: float = -math.inf,
    loss: Callable[[Any, Any], Tensor] = mean_loss,
    fall: int = 0,
) -> list[float]:
    """Train in place with the paper's Adam at a constant rate, after a straight warm-up, to the last pair or until the
    final_loss loss is below `until`; the loss of every step. With `fall`, the rate is zero after so many steps."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, betas=(0.9, 0.98), eps=1e-9, fused=True)
    losses = []
    for step, pair in enumerate(pairs):
        rate = lr * (1 - step / fall) if fall else lr
        optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / max(1, warmup))
        optimizer.zero_grad()
        now = loss(model, pair)
        now.backward()
        optimizer.step()
        losses.append(now.item())
        if len(losses) >= LOSS_STEPS and final_loss(losses) < until:
            break
    return losses


def learn_reversals(model: nn.Module, seed: int, steps: int, lr: float, warmup: int = 0) -> list[float]:
    """Short sequences in small batches, for labs that train many models."""
    return learn(model, reversals(seed, steps, batch=16, length=6), lr, warmup)


def final_loss(losses: Sequence[float]) -> float:
    """The loss that training has come to: the mean of its last steps."""
    return sum(losses[-LOSS_STEPS:]) / len(losses[-LOSS_STEPS:])


def loss_after(steps: int) -> Text:
    return Text(f"loss after {steps} steps", f"{steps} 步后的损失")


def power_law(x: Sequence[float], y: Sequence[float]) -> float:
    """The power p of the best y = c x^p: the slope of a straight line through the logarithms."""
    a, b = (torch.tensor(values, dtype=torch.float64).log() for values in (x, y))
    return float((a - a.mean()) @ b / (a - a.mean()).square().sum())


def training_panel(title: Text, curves: Sequence[tuple[Text, Sequence[float]]], *more: Series) -> Panel:
    """The loss of every step, counted from one."""
    series = [Series(name, range(1, len(losses) + 1), losses) for name, losses in curves]
    return Panel(title, Text("step", "步"), LOSS, [*series, *more])


def uniform_line(x: Sequence[float]) -> Series:
    """The loss of knowing nothing, as a line to compare with."""
    return Series(Text("knowing nothing", "一无所知"), x, [UNIFORM] * len(x), dashed=True)
