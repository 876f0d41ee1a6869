"""Batches on their way to the device, a few ahead of the step that needs them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
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

    def known(name: str, array: NDArray[Any]) -> NDArray[Any]:
        """As the model numbers its tokens, and the loss what is not asked."""
        tokens = name in ID_ROWS and not (goal.labelled and name == "labels")
        ours = batch.input_map(array) if tokens and batch.input_map is not None else array
        return np.where(array == goal.ignored, IGNORED, ours) if name == "labels" else ours

    def share(name: str, array: NDArray[Any]) -> torch.Tensor:
        tensor = torch.from_numpy(known(name, array))
        if short:
            empty = tensor.new_full((short, *tensor.shape[1:]), IGNORED if name == "labels" else PAD)
            tensor = torch.cat((tensor, empty))
        tensor = tensor[world.rank :: world.size]
        return tensor.pin_memory() if pinned else tensor

    count = int((made["labels"] != goal.ignored).sum())
    weight = torch.tensor(1.0 / max(1, count))
    return Inputs({name: share(name, x) for name, x in made.items()}, weight.pin_memory() if pinned else weight, count)


def endless_batches(batches: Batches, epoch: int, index: int) -> Iterator[tuple[Batch, Position]]:
    """Every batch from (epoch, index) on, without end, and the position after it."""
    while True:
        plan = batches.epoch(epoch)
        while index < len(plan):
            batch = plan[index]
            index += 1
            yield batch, ((epoch, index) if index < len(plan) else (epoch + 1, 0))
        epoch, index = epoch + 1, 0


class Prefetcher:
    """Reads ahead in a thread; iterate, then close."""

    def __init__(
        self, batches: Batches, epoch: int, index: int, world: World, portions: int, objective: str = "translate"
    ) -> None:
        self.queue: queue.Queue[tuple[Inputs, Position] | BaseException] = queue.Queue(PREFETCHED)
        self.stopped = threading.Event()
        given = (endless_batches(batches, epoch, index), world, portions, objective)
        self.thread = threading.Thread(target=self.fill, args=given, daemon=True)
        self.thread.start()

    def fill(self, following: Iterator[tuple[Batch, Position]], world: World, portions: int, objective: str) -> None:
        try:
            for batch, position in following:
                if not self.offer((local_rows(batch, world, portions, objective), position)):
                    return
        except BaseException as error:  # whatever it is, the training loop must hear of it
            self.offer(error)

    def offer(self, item: tuple[Inputs, Position] | BaseException) -> bool:
        """Wait for room, unless the loop has ended."""
        while not self.stopped.is_set():
            try:
                self.queue.put(item, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False

    def next(self) -> tuple[Inputs, Position]:
        item = self.queue.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        self.stopped.set()
        self.thread.join()
