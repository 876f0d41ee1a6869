"""A training step beside the peers': forward, loss, backward, clip, AdamW."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.bench.peers import contestants
from glassformer.model import ModelConfig

SMALL = ModelConfig(
    vocab_size=8000,
    d_model=256,
    heads=4,
    d_ff=1024,
    layers=3,
    dropout=0.1,
    attention_dropout=0.0,
    activation_dropout=0.0,
)


@dataclass(frozen=True)
class Row:
    name: str
    precision: str
    seconds: float  # of a median step
    tokens: float  # target tokens per second
    ratio: float  # of ours to the best peer's in the same run; of a peer's to ours


def stepper(model: nn.Module, src: Tensor, tgt: Tensor, labels: Tensor, bf16: bool) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    model.train()

    def step() -> None:
        with torch.autocast(src.device.type, dtype=torch.bfloat16, enabled=bf16):
            logits = model(src, tgt)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def training_steps(
    config: ModelConfig = SMALL,
    rows: int = 64,
    length: int = 24,
    rounds: int = 7,
    report: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Median time of a step for each contestant, their steps taken in turn so that all meet the same machine."""
    generator = torch.Generator().manual_seed(0)
    src, tgt, labels = (torch.randint(3, config.vocab_size, (rows, length), generator=generator) for _ in range(3))
    table = []
    for precision in ("float32", "bf16"):
        steps = {
            name: stepper(model, src, tgt, labels, precision == "bf16") for name, model in contestants(config).items()
        }
        times: dict[str, list[float]] = {name: [] for name in steps}
        for round_ in range(rounds + 1):
            for name, step in steps.items():
                begin = time.perf_counter()
                step()
                if round_:  # the first one warms up
                    times[name].append(time.perf_counter() - begin)
            report(f"{precision}: round {round_} of {rounds}")
        medians = {name: statistics.median(values) for name, values in times.items()}
        best = min(value for name, value in medians.items() if name != "glassformer")
        for name, seconds in medians.items():
            ratio = (best if name == "glassformer" else medians["glassformer"]) / seconds
            table.append(Row(name, precision, seconds, rows * length / seconds, ratio))
    return table
