"""Where a model runs."""

from __future__ import annotations

import torch

from glassformer.errors import ConfigError


def pick_device(device: str | torch.device) -> torch.device:
    """The device that is meant, tried; `auto` is the GPU where there is one."""
    try:
        picked = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
        torch.empty(1, device=picked)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device={device} cannot be used: {reason}; try auto, cpu, cuda or cuda:0") from None
    return picked
