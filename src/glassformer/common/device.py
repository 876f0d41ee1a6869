"""Where a model runs."""

from __future__ import annotations

import contextlib
import threading

import torch

from glassformer.common.errors import ConfigError


def pick_device(device: str | torch.device) -> torch.device:
    """The device that is meant, tried; `auto` is the GPU where there is one."""
    try:
        picked = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
        torch.empty(1, device=picked)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device={device} cannot be used: {reason}; try auto, cpu, cuda or cuda:0") from None
    return picked


class DisableCudnnSdp(contextlib.ContextDecorator):
    """Inside, attention on a GPU is computed by kernels that take any shape as it comes.

    cuDNN, which PyTorch prefers on recent GPUs, first makes a plan for each new shape, which takes longer than writing
    a whole sentence. That pays in training, where shapes are few; not where every text brings its own. PyTorch has this
    setting once for all threads, so it is set by the first to come, and set back by the last to go.
    """

    def __init__(self) -> None:
        self.lock, self.inside, self.before = threading.Lock(), 0, True

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.before = torch.backends.cuda.cudnn_sdp_enabled()
                torch.backends.cuda.enable_cudnn_sdp(False)
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                torch.backends.cuda.enable_cudnn_sdp(self.before)


disable_cudnn_sdp = DisableCudnnSdp()
