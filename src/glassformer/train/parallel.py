"""One process or many: the same recipe, the same global batch, the same checkpoints.

`torchrun` starts the processes and tells each its place; alone, a process is a world of one. Every process takes its
share of each batch's rows. DDP keeps whole copies of the model; FSDP2 shards it. Checkpoints always hold whole
tensors, so that a run can go on in a world of another kind or size.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn

from glassformer.common.device import pick_device
from glassformer.common.errors import ConfigError
from glassformer.model.transformer import Stack


@dataclass(frozen=True)
class World:
    rank: int
    size: int
    device: torch.device

    @property
    def first(self) -> bool:
        return self.rank == 0

    def barrier(self) -> None:
        if self.size > 1:
            dist.barrier()

    def sum(self, value: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.size > 1:
            dist.all_reduce(value)
        return value

    def max(self, value: float) -> float:
        """The largest value of any process."""
        if self.size == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.all_reduce(shared, dist.ReduceOp.MAX)
        return float(shared)

    def broadcast(self, value: float) -> float:
        """The first process's value, everywhere."""
        if self.size == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.broadcast(shared, 0)
        return float(shared)

    def leave(self) -> None:
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()


def init_distributed(device: str = "auto") -> World:
    """Join the other processes, if there are any, on the device this one should use."""
    size, rank, local = (
        int(os.environ.get(name, d)) for name, d in (("WORLD_SIZE", 1), ("RANK", 0), ("LOCAL_RANK", 0))
    )
    place = pick_device(device)
    if place.type == "cuda":
        place = place if place.index is not None else torch.device("cuda", local)
        torch.cuda.set_device(place)
    if size > 1 and not dist.is_initialized():
        if place.type == "cuda":
            dist.init_process_group("nccl", device_id=place)
        else:
            dist.init_process_group("gloo")
    return World(rank, size, place)


def distribute(model: nn.Module, world: World, kind: Literal["ddp", "fsdp"]) -> nn.Module:
    """The model as this process trains it."""
    if world.size == 1:
        return model
    if kind == "ddp":
        return nn.parallel.DistributedDataParallel(
            model, device_ids=[world.device.index] if world.device.type == "cuda" else None
        )
    if world.device.type == "cpu" and torch.__version__.startswith("2.8."):
        raise ConfigError(
            "parallel = 'fsdp': PyTorch 2.8 adds gradients up on CPUs where it should average them; use 'ddp', or "
            "PyTorch 2.9 or newer"
        )
    from torch.distributed.fsdp import fully_shard

    for stack in model.children():
        for block in stack.blocks if isinstance(stack, Stack) else ():
            fully_shard(block)
    # Left whole after a validation, the outermost weights would still be the moving average's in the next step.
    fully_shard(model, reshard_after_forward=True)
    return model


def full_tensor(tensor: Tensor) -> Tensor:
    """A sharded tensor put together again; every process must ask."""
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def copy_into(target: Tensor, value: Tensor) -> None:
    """Copy a whole tensor into a parameter, or this process's shard of it."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    value = value.to(target.device)
    if isinstance(target, DTensor):
        value = distribute_tensor(value, target.device_mesh, target.placements)
    target.copy_(value)


def unwrap(model: nn.Module) -> Any:
    """The model inside DDP's wrapper."""
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
