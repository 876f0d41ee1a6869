"""One training step: forward, loss, backward, clip, AdamW, moving average.

On a GPU, small steps are bound by launching kernels, not by running them. There, the second time a batch shape comes
along, the whole step is recorded as a CUDA graph, and from then on it is one launch.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.common.errors import ConfigError
from glassformer.model.loss import IGNORED, smoothed_cross_entropy, two_way_divergence
from glassformer.train.options import Train
from glassformer.train.parallel import World, unwrap
from glassformer.train.tuning import layer_distance

WORTH_COMPILING = 3_000  # steps for each shape of batch
LARGE_VOCABULARY = 16_384  # pieces of a vocabulary: worth a kernel of their loss's own


@dataclass
class Inputs:
    """One process's share of a batch, on its device. `loss_weight` is 1 / all labels of the global batch."""

    rows: dict[str, Tensor]  # `labels`, and what the model's forward takes, by name
    loss_weight: Tensor
    count: int = 0  # all labels of the global batch

    def tensors(self) -> list[Tensor]:
        return [*self.rows.values(), self.loss_weight]

    def to(self, device: torch.device) -> Inputs:
        rows = {name: tensor.to(device, non_blocking=True) for name, tensor in self.rows.items()}
        return Inputs(rows, self.loss_weight.to(device, non_blocking=True), self.count)


def precision(train: Train, device: torch.device) -> str:
    """What "auto" means on this device: bf16 where the hardware multiplies it faster."""
    if train.precision == "bf16" and device.type == "cpu" and crashes_in_bf16():
        raise ConfigError(
            "precision = 'bf16': PyTorch 2.8 on ARM crashes when it trains in it; use fp32, or PyTorch 2.9 or newer"
        )
    if train.precision != "auto":
        return train.precision
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "fp16"
    # Without matrix units for bf16, a CPU emulates it more slowly than it computes float32.
    capability = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    return "bf16" if capability() else "fp32"


def crashes_in_bf16() -> bool:
    """The backward pass of attention ends the process there."""
    return platform.machine() == "aarch64" and torch.__version__.startswith("2.8.")


def compile_options() -> dict[str, str | int | bool | Callable[..., Any]]:
    """Settings of the compiler that differ from its own.

    It likes to sum a norm's gradients along both axes in one kernel; two kernels take less than half the time.
    """
    from torch import _inductor

    wanted: dict[str, str | int | bool | Callable[..., Any]] = {"triton.mix_order_reduction": False}
    return {name: value for name, value in wanted.items() if name in _inductor.list_options()}


def should_compile(train: Train, device: torch.device) -> bool:
    """Whether a run is compiled. "auto": where the steps ahead are worth half a minute for each shape of batch, which
    they are on a GPU, in long runs."""
    if train.compile == "auto":
        return device.type == "cuda" and train.steps >= WORTH_COMPILING * (1 if train.pack else train.shapes)
    return train.compile


class Stepper:
    """The model, its optimizer and its moving average, and the one thing they do together."""

    def __init__(self, model: nn.Module, train: Train, world: World) -> None:
        self.model, self.train, self.world = model, train, world
        self.precision = precision(train, world.device)
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        cuda = world.device.type == "cuda"
        self.graphs_wanted = cuda and train.cuda_graphs and world.size == 1 and self.precision != "fp16"
        self.optimizer = torch.optim.AdamW(
            self.groups(),
            betas=(0.9, 0.98),
            eps=1e-9,
            fused=True if cuda or world.size == 1 else None,
            capturable=self.graphs_wanted,
        )
        self.scaler = torch.amp.GradScaler(world.device.type, enabled=self.precision == "fp16")
        self.ema = [p.detach().clone() for p in self.parameters] if train.ema else []
        self.rows_loss: Callable[..., Tensor] = self.loss
        if should_compile(train, world.device):  # the loss too: logits in float32 are never written out
            torch._dynamo.config.recompile_limit = max(64, torch._dynamo.config.recompile_limit)
            self.rows_loss = self.compiled_loss()
        self.loss_total = torch.zeros((), device=world.device)
        self.graphs: dict[tuple[int, ...], tuple[torch.cuda.CUDAGraph, Inputs] | None] = {}
        self.pool: Any = None

    def groups(self) -> list[dict[str, object]]:
        """Weight decay pulls matrices only; norms and biases are left alone. Each distance from the head has a rate."""
        table: dict[tuple[float, float], list[nn.Parameter]] = {}
        for name, p in self.named():
            if p.requires_grad:
                decay = self.train.layer_decay
                factor = decay ** layer_distance(name, unwrap(self.model)) if decay < 1 else 1.0
                table.setdefault((self.train.weight_decay if p.dim() > 1 else 0.0, factor), []).append(p)
        # A recorded step reads its learning rate from the device.
        return [
            {
                "params": params,
                "weight_decay": decay,
                "factor": factor,
                "lr": torch.tensor(0.0, device=self.world.device) if self.graphs_wanted else 0.0,
            }
            for (decay, factor), params in table.items()
        ]

    def autocast(self) -> contextlib.AbstractContextManager[None]:
        dtype = torch.float16 if self.precision == "fp16" else torch.bfloat16
        return torch.autocast(self.world.device.type, dtype=dtype, enabled=self.precision != "fp32")

    def loss(self, labels: Tensor, **given: Tensor) -> Tensor:
        """The summed loss of some rows; to be called under `autocast`.

        Entered in here, it would be part of what is compiled, and the compiler does not keep that in its cache.
        """
        smoothing, r_drop = self.train.label_smoothing, self.train.r_drop
        if not r_drop:
            logits = self.model(**given)
        else:
            logits, second = self.model(**{name: torch.cat((x, x)) for name, x in given.items()}).chunk(2)
        loss = smoothed_cross_entropy(logits, labels, smoothing, IGNORED)
        if r_drop:
            loss = (loss + smoothed_cross_entropy(second, labels, smoothing, IGNORED)) / 2
            loss = loss + r_drop * two_way_divergence(logits, second, labels, IGNORED)
        return loss

    def compiled_loss(self) -> Callable[..., Tensor]:
        one_gpu = self.world.device.type == "cuda" and self.world.size == 1
        plain = not one_gpu or self.precision == "fp16" or self.train.r_drop
        if not plain and len(unwrap(self.model).head.weight) >= LARGE_VOCABULARY:
            from glassformer.train.head_loss import JoinedLoss

            dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32
            return JoinedLoss(self.model, self.train.label_smoothing, dtype, compile_options())
        return torch.compile(self.loss, dynamic=False, options=compile_options())

    def work(self, inputs: Inputs) -> None:
        """All of a step but its learning rate and its seed; nothing here reads a value back from the device."""
        self.optimizer.zero_grad(set_to_none=True)
        count = self.train.accumulate
        for number, portion in enumerate(zip(*(x.chunk(count) for x in inputs.rows.values()), strict=True), 1):
            # DDP exchanges gradients after the last portion only.
            last, model = number == count, self.model
            ddp = model if isinstance(model, nn.parallel.DistributedDataParallel) and not last else None
            with contextlib.nullcontext() if ddp is None else ddp.no_sync():
                with self.autocast():
                    loss = self.rows_loss(**dict(zip(inputs.rows, portion, strict=True)))
                loss = loss * inputs.loss_weight
                # Gradients are averaged over the processes; the loss is shared out over the global batch already.
                self.scaler.scale(loss * self.world.size).backward()
                self.loss_total += loss.detach()
        self.scaler.unscale_(self.optimizer)
        if self.train.clip:
            self.clip(self.train.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.ema:
            torch._foreach_lerp_(self.ema, [p.detach() for p in self.parameters], 1 - self.train.ema)

    def clip(self, most: float) -> None:
        """Bring the gradients' norm down to `most`; AdamW's one kernel on a GPU divides them while it reads them."""
        if not self.graphs_wanted:
            nn.utils.clip_grad_norm_(self.parameters, most)
            return
        norm = nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])
        vars(self.optimizer).update(grad_scale=(norm / most).clamp_min(1.0), found_inf=torch.zeros_like(norm))

    def __call__(self, inputs: Inputs, lr: float, seed: int) -> None:
        """Take the step; `inputs` may still be in the CPU's memory."""
        for group in self.optimizer.param_groups:
            if self.graphs_wanted:
                group["lr"].fill_(lr * group["factor"])
            else:
                group["lr"] = lr * group["factor"]
        torch.manual_seed(seed)
        if not self.graphs_wanted:
            self.work(inputs.to(self.world.device))
            return
        key = tuple(chain.from_iterable(tensor.shape for tensor in inputs.rows.values()))
        if key not in self.graphs:
            self.graphs[key] = None  # the first time is also the warm-up that recording needs, on a stream of its own
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self.work(inputs.to(self.world.device))
            torch.cuda.current_stream().wait_stream(stream)
            return
        recorded = self.graphs[key]
        if recorded is None:
            recorded = self.graphs[key] = self.record(inputs)
        graph, static = recorded
        for ours, given in zip(static.tensors(), inputs.tensors(), strict=True):
            ours.copy_(given, non_blocking=True)
        graph.replay()

    def record(self, inputs: Inputs) -> tuple[torch.cuda.CUDAGraph, Inputs]:
        static = inputs.to(self.world.device)
        graph = torch.cuda.CUDAGraph()
        # The thread that reads ahead may ask the driver for memory meanwhile; only this thread's calls are recorded.
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            self.work(static)
        self.pool = graph.pool()
        return graph, static

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """The model with its moving average in place of its weights, for validation."""
        if not self.ema:
            yield
            return
        kept = [p.detach().clone() for p in self.parameters]
        self.assign(self.ema)
        try:
            yield
        finally:
            self.assign(kept)

    @torch.no_grad()
    def assign(self, values: list[Tensor]) -> None:
        """Set the parameters one by one: sharded ones cannot be copied as a list."""
        for p, value in zip(self.parameters, values, strict=True):
            p.copy_(value)

    @torch.no_grad()
    def evaluate(self, inputs: Inputs) -> Tensor:
        """The summed cross-entropy of some rows, without smoothing or dropout, and how many labels were likeliest."""
        labels, given = inputs.rows["labels"], {n: x for n, x in inputs.rows.items() if n != "labels"}
        self.model.eval()
        with self.autocast():
            logits = self.model(**given)
        self.model.train()
        right = (logits.argmax(-1) == labels) & (labels != IGNORED)
        return torch.stack((smoothed_cross_entropy(logits, labels, 0.0, IGNORED), right.sum().float()))

    def named(self) -> list[tuple[str, nn.Parameter]]:
        return list(unwrap(self.model).named_parameters())
