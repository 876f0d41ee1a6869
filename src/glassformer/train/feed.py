"""Batches on their way to the device, a few ahead of the step that needs them."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.data import PAD, Batch, Batches
from glassformer.model.loss import IGNORED
from glassformer.train.objective import OBJECTIVES
from glassformer.train.parallel import World
from glassformer.train.step import Inputs

PREFETCHED = 4
ID_ROWS = ("src", "tgt", "ids", "labels")  # that hold tokens, where labels are no names

Position = tuple[int, int]  # epoch and index of the batch that follows


def local_rows(batch: Batch, world: World, portions: int = 1, objective: str = "translate") -> Inputs:
    """This process's rows of a batch, as tensors in memory a GPU can read while it computes.

    Empty rows make them divide evenly, so that the batches themselves are the same whatever the number of processes
    and the portions of their gradient.
    """
    goal, pinned = OBJECTIVES[objective], world.device.type == "cuda"
    made = goal.rows(batch)
    short = -len(made["labels"]) % (world.size * portions)

    def own_rows(name: str, array: NDArray[Any]) -> torch.Tensor:
        """Ids as the model has them, and labels to ignore as the loss has them."""
        labels = name == "labels"
        tokens = name in ID_ROWS and not (goal.labelled and labels)
        ids = batch.input_map(array) if tokens and batch.input_map is not None else array
        tensor = torch.from_numpy(np.where(array == goal.ignored, IGNORED, ids) if labels else ids)
        if short:
            empty = tensor.new_full((short, *tensor.shape[1:]), IGNORED if labels else PAD)
            tensor = torch.cat((tensor, empty))
        tensor = tensor[world.rank :: world.size]
        return tensor.pin_memory() if pinned else tensor

    count = int((made["labels"] != goal.ignored).sum())
    weight = torch.tensor(1.0 / max(1, count))
    return Inputs(
        {name: own_rows(name, x) for name, x in made.items()}, weight.pin_memory() if pinned else weight, count
    )


def prefetch(
    batches: Batches, epoch: int, index: int, world: World, portions: int, objective: str = "translate"
) -> Generator[tuple[Inputs, Position], None, None]:
    """The inputs of every step and the position after each, made in a thread a few steps ahead."""

    def every_input() -> Iterator[tuple[Inputs, Position]]:
        for number in itertools.count(epoch):
            plan = batches.epoch(number)
            for place in range(index if number == epoch else 0, len(plan)):
                after = (number, place + 1) if place + 1 < len(plan) else (number + 1, 0)
                yield local_rows(plan[place], world, portions, objective), after

    following, pool = every_input(), ThreadPoolExecutor(1)
    try:
        waiting = deque(pool.submit(next, following) for _ in range(PREFETCHED))
        while True:
            yield waiting.popleft().result()
            waiting.append(pool.submit(next, following))
    finally:
        pool.shutdown(cancel_futures=True)
