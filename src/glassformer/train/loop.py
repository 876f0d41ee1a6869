"""The training loop: steps, validation, checkpoints, and an end that loses nothing."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from glassformer.common.errors import RunError
from glassformer.common.report import Report, clock, process_age
from glassformer.data import Batches
from glassformer.model import Model
from glassformer.train import checkpoint
from glassformer.train.checkpoint import Checkpoint, Progress
from glassformer.train.feed import local_rows, prefetch
from glassformer.train.metrics import CpuContention, Metrics, contention_advice, threads_by_default
from glassformer.train.objective import OBJECTIVES
from glassformer.train.parallel import World, copy_into, distribute, full_tensor, unwrap
from glassformer.train.recipe import Recipe
from glassformer.train.step import Stepper, should_compile
from glassformer.train.tuning import lr_factor
from glassformer.weights.bundle import weights
from glassformer.weights.lora import merged_model

STOP_CHECK_STEPS = 4  # with several processes: steps between two checks whether any of them got a signal

Judge = Callable[[Any], float]  # a model's score on the validation pairs; higher is better


@dataclass
class Trainer:
    """A model in training: made from a recipe or a checkpoint, run to its end, shipped."""

    recipe: Recipe
    model: Model
    train_batches: Batches
    valid_batches: Batches | None
    folder: Path
    world: World
    report: Report
    judge: Judge | None = None
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self.model.to(self.world.device).train()
        train = self.recipe.train
        self.stepper = Stepper(distribute(self.model, self.world, train.parallel), train, self.world)
        self.metrics: Metrics | None = None
        self.best: dict[str, Tensor] = {}  # the weights of the best validation, where they are to be shipped
        self.labels_seen = 0
        self.since = time.perf_counter()
        self.cores, self.advised = CpuContention(), False
        self.latest = "warming up"
        self.pace: tuple[float, int] | None = None  # when the first line was logged, and at which step

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    def run(self) -> None:
        """Train to the last step, or until patience ends."""
        train, progress = self.recipe.train, self.progress
        compiling = should_compile(train, self.world.device)  # in the first step
        feed = prefetch(
            self.train_batches, progress.epoch, progress.index, self.world, train.accumulate, train.objective
        )
        self.metrics = Metrics(self.folder, progress.step, train.tensorboard) if self.world.first else None
        self.since, self.cores = time.perf_counter(), CpuContention()
        try:
            with stop_between_steps(alone=self.world.size == 1) as heard:
                while not self.finished():
                    inputs, position = next(feed)
                    self.stepper(
                        inputs,
                        train.lr * lr_factor(train, progress.step),
                        step_seed(train.seed, progress.step, self.world.rank),
                    )
                    if compiling:
                        compiling = False
                        self.report.say(f"compiled, {process_age():.0f} s after the start")
                    self.labels_seen += inputs.count
                    progress.steps_logged += 1
                    progress.step += 1
                    progress.epoch, progress.index = position
                    self.after_step(heard)
        finally:
            feed.close()
            if self.metrics is not None:
                self.metrics.close()

    def after_step(self, heard: Callable[[], int]) -> None:
        train, step = self.recipe.train, self.progress.step
        last = step == train.steps
        threads = threads_by_default(self.world.device)
        if not self.advised and (advice := contention_advice(self.cores, threads, self.folder)):
            self.advised = True
            self.report.say(advice)
        if last or step % train.log_every == 0:
            self.log()
        else:
            self.report.show(self.line())
        if self.valid_batches is not None and (last or step % train.valid_every == 0):
            self.validate()
        due = self.finished() or step % train.save_every == 0
        told = heard()
        if self.world.size > 1:  # all processes must stop after the same step
            told = int(self.world.max(told)) if step % STOP_CHECK_STEPS == 0 else 0
        if due or told:
            self.save()
        if told:
            raise Interrupted(told)

    def finished(self) -> bool:
        train, progress = self.recipe.train, self.progress
        return progress.step >= train.steps or (train.patience > 0 and progress.stale >= train.patience)

    def log(self) -> None:
        loss = self.world.sum(self.stepper.loss_total.clone()).item() / max(1, self.progress.steps_logged)
        if not math.isfinite(loss):
            raise RunError(
                f"the loss is {loss} at step {self.progress.step}: training has diverged; "
                f"start again with a lower train.lr, a longer train.warmup_steps or a lower train.clip"
            )
        speed = self.labels_seen / (time.perf_counter() - self.since)
        train = self.recipe.train
        lr = train.lr * lr_factor(train, self.progress.step - 1)
        self.record(loss=loss, lr=lr, tokens_per_second=speed, epoch=self.progress.epoch, seconds=process_age())
        unit = "labels" if self.recipe.objective.labelled else "tokens"
        self.latest = f"loss {loss:.3f}  lr {lr:.1e}  {speed:,.0f} {unit}/s"
        if self.report.live:
            self.report.show(self.line(), every=0)
        else:
            self.report.say(self.line())
        self.stepper.loss_total.zero_()
        self.labels_seen, self.progress.steps_logged, self.since = 0, 0, time.perf_counter()
        self.pace = self.pace or (time.perf_counter(), self.progress.step)

    def record(self, **values: float) -> None:
        if self.metrics is not None:
            self.metrics.row(self.progress.step, **values)

    def line(self) -> str:
        train, progress = self.recipe.train, self.progress
        line = f"step {progress.step}/{train.steps}  epoch {progress.epoch + 1}  {self.latest}"
        if self.pace is not None and progress.step > self.pace[1]:
            seconds = (time.perf_counter() - self.pace[0]) / (progress.step - self.pace[1])
            line += f"  {clock(seconds * (train.steps - progress.step))} left"
        if progress.best is not None:
            line += f"  best {train.metric} {progress.best:.3f} at {progress.best_step}"
        return line

    def validate(self) -> None:
        assert self.valid_batches is not None
        train, progress, begin = self.recipe.train, self.progress, time.perf_counter()
        plan, totals, count = self.valid_batches.epoch(0), torch.zeros(2, device=self.world.device), 0
        with self.stepper.averaged():
            for batch in plan:
                inputs = local_rows(batch, self.world, objective=train.objective)
                totals += self.stepper.evaluate(inputs.to(self.world.device))
                count += inputs.count
            loss, right = (total / count for total in self.world.sum(totals).tolist())
            values = {"valid_loss": loss, **OBJECTIVES[train.objective].report(loss, right)}
            score = -loss
            if train.metric == "bleu" and self.judge is not None:
                model = unwrap(self.stepper.model).eval()
                judged = merged_model(model, train.lora_alpha / train.lora_rank) if train.lora_rank else model
                values["valid_bleu"] = score = self.world.broadcast(self.judge(judged) if self.world.first else 0.0)
                model.train()
            sign = 1 if train.metric == "bleu" else -1  # the best loss is the lowest
            better = progress.best is None or score > sign * progress.best
            if better:
                progress.best, progress.best_step, progress.stale = abs(score), progress.step, 0
                if train.keeps_best:  # those of the moving average, which is in place
                    self.best = {name: full_tensor(p.detach()).cpu().clone() for name, p in self.stepper.named()}
            else:
                progress.stale += 1
        self.since += time.perf_counter() - begin  # the speed of training is not the speed of validation
        self.record(**values)
        told = "  ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in values.items())
        self.report.say(f"step {progress.step}: {told}{'  (best so far)' if better else ''}")

    def tensors(self) -> dict[str, Tensor]:
        """All that a step changes, whole, on the CPU."""
        state = {f"best/{name}": value for name, value in self.best.items()}
        averages = iter(self.stepper.ema)
        for name, p in self.stepper.named():
            moments = self.stepper.optimizer.state.get(p, {})
            found = {"model": p.detach(), **{k: v for k, v in moments.items() if isinstance(v, Tensor)}}
            if self.stepper.ema:
                found["ema"] = next(averages) if p.requires_grad else p.detach()
            for part, value in found.items():
                state[f"{part}/{name}"] = full_tensor(value).cpu().clone()
        return state

    def save(self) -> None:
        if self.stepper.scaler.is_enabled():
            self.progress.scale = self.stepper.scaler.get_scale()
            self.progress.scale_age = self.stepper.scaler._get_growth_tracker()
        self.progress.loss_total = self.world.sum(self.stepper.loss_total.clone()).item()
        tensors = self.tensors()
        if self.world.first:
            kept = Checkpoint(self.progress, tensors, self.recipe.to_dict())
            checkpoint.write(self.checkpoints, kept, self.recipe.train.keep_last, self.recipe.train.save_every)
        self.world.barrier()

    def restore(self, saved: Checkpoint) -> None:
        """Be exactly where the checkpoint was written."""
        self.progress = saved.progress
        if self.recipe.train.keeps_best and saved.progress.best is not None:
            self.best = {name[5:]: value for name, value in saved.tensors.items() if name.startswith("best/")}
            if not self.best:
                self.progress.best, self.progress.stale = None, 0
                self.report.say(f"the best weights up to step {saved.progress.step} were not kept; later ones are")
        averages = iter(self.stepper.ema)
        for name, p in self.stepper.named():
            copy_into(p, saved.tensors[f"model/{name}"])
            state: dict[str, Any] = {}
            # In fp16, every step so far may have been left out while the scale was found: then there are no moments.
            for part in ("step", "exp_avg", "exp_avg_sq") if f"step/{name}" in saved.tensors else ():
                value = saved.tensors[f"{part}/{name}"]
                state[part] = value.to(self.world.device) if part == "step" else torch.zeros_like(p)
                if part != "step":
                    copy_into(state[part], value)
            if state:
                self.stepper.optimizer.state[p] = state
            if self.stepper.ema and p.requires_grad:
                copy_into(next(averages), saved.tensors[f"ema/{name}"])
        if self.world.first:
            self.stepper.loss_total.fill_(saved.progress.loss_total)
        if self.stepper.scaler.is_enabled():
            fresh = self.stepper.scaler.state_dict()
            fresh |= {"scale": saved.progress.scale, "_growth_tracker": saved.progress.scale_age}
            self.stepper.scaler.load_state_dict(fresh)

    def ending(self) -> str:
        """Why training stopped, which step was the best, and whose weights are shipped."""
        train, progress = self.recipe.train, self.progress
        patience = f"no better {train.metric} in {progress.stale} validations (train.patience = {train.patience})"
        reason = f"train.steps = {train.steps}" if progress.step >= train.steps else patience
        text = f"training stopped at step {progress.step}: {reason}"
        if progress.best is None:
            return text
        shipped = "whose weights are shipped" if self.best else "the weights of the last are shipped"
        return f"{text}; best {train.metric} {progress.best:.4f} at step {progress.best_step}, {shipped}"

    def final_weights(self) -> dict[str, Tensor]:
        """The weights to give away: the best, the mean of the last checkpoints, the moving average, or the last."""
        if self.best:
            return weights(self.model) | self.best
        train = self.recipe.train
        part = "ema" if train.ema else "model"
        files = checkpoint.listing(self.checkpoints)[-train.average :] if train.average > 1 else []
        saved = [found.tensors for found in map(checkpoint.read, files) if found is not None] or [self.tensors()]
        return weights(self.model) | {
            name: torch.stack([tensors[f"{part}/{name}"].double() for tensors in saved]).mean(0).float()
            for name, _ in self.stepper.named()
        }


def step_seed(seed: int, step: int, rank: int) -> int:
    """A seed for one step's dropout: a function of the position, so that a resumed run draws the same."""
    return ((seed * 1_000_003 + step) * 4_096 + rank) % (1 << 63)


class Interrupted(BaseException):
    """A signal asked the run to stop. A BaseException, so that no `except Exception` on the way catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def signal_handlers(hear: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only the main thread may listen
        yield
        return
    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_at_once(number: int, frame: FrameType | None) -> None:
    raise Interrupted(number)


@contextlib.contextmanager
def stop_between_steps(alone: bool) -> Iterator[Callable[[], int]]:
    """Gives a function that tells the signal heard so far, 0 for none.

    A second signal is obeyed at once, but not among several processes: `torchrun` passes on what the terminal has
    sent them already.
    """
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if heard and alone:
            raise Interrupted(number)
        heard.append(number)

    with signal_handlers(hear):
        yield lambda: heard[0] if heard else 0
