"""Batches on their way to the device, a few ahead of the step that needs them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from glassformer.text import PAD, Batch, Batches
from glassformer.train.parallel import World
from glassformer.train.step import Inputs

AHEAD = 4

Position = tuple[int, int]  # epoch and index of the batch that follows


def local_rows(batch: Batch, world: World, portions: int = 1) -> Inputs:
    """This process's rows of a batch, as tensors in memory a GPU can read while it computes.

    Empty rows make them divide evenly, so that the batches themselves are the same whatever the number of processes
    and the portions of their gradient.
    """
    short = -len(batch.src) % (world.size * portions)

    def rows(array: NDArray[np.int64] | NDArray[np.bool_]) -> torch.Tensor:
        tensor = torch.from_numpy(array)
        if short:
            tensor = functional.pad(tensor, (0, 0, 0, short), value=PAD)
        return tensor[world.rank :: world.size]

    tensors = [rows(array) for array in (batch.src, batch.src_mask, batch.tgt_in, batch.labels)]
    tensors.append(torch.tensor(1.0 / max(1, batch.tokens)))
    if batch.src_places is not None and batch.tgt_places is not None:
        tensors += [rows(batch.src_places), rows(batch.tgt_places)]
    return Inputs(*(tensor.pin_memory() if world.device.type == "cuda" else tensor for tensor in tensors))


def follow(batches: Batches, epoch: int, index: int) -> Iterator[tuple[Batch, Position]]:
    """Every batch from (epoch, index) on, without end, and the position after it."""
    while True:
        plan = batches.epoch(epoch)
        while index < len(plan):
            batch = plan[index]
            index += 1
            yield batch, ((epoch, index) if index < len(plan) else (epoch + 1, 0))
        epoch, index = epoch + 1, 0


class Feed:
    """Reads ahead in a thread; iterate, then close."""

    def __init__(self, batches: Batches, epoch: int, index: int, world: World, portions: int) -> None:
        self.queue: queue.Queue[tuple[Inputs, Batch, Position] | BaseException] = queue.Queue(AHEAD)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.fill, args=(batches, epoch, index, world, portions), daemon=True)
        self.thread.start()

    def fill(self, batches: Batches, epoch: int, index: int, world: World, portions: int) -> None:
        try:
            for batch, position in follow(batches, epoch, index):
                if not self.offer((local_rows(batch, world, portions), batch, position)):
                    return
        except BaseException as error:  # whatever it is, the training loop must hear of it
            self.offer(error)

    def offer(self, item: tuple[Inputs, Batch, Position] | BaseException) -> bool:
        """Wait for room, unless the loop has ended."""
        while not self.stopped.is_set():
            try:
                self.queue.put(item, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False

    def next(self) -> tuple[Inputs, Batch, Position]:
        item = self.queue.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        self.stopped.set()
        self.thread.join()
