"""Places where a value can be seen.

A probe is a module that returns what it is given. Its place in the module tree names the value, for example
`decoder.blocks.3.cross_attention.pattern`, and a forward hook on it reads the value, or replaces it by returning
another. A part whose probes nobody watches is free to take a fused kernel that never forms those values.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn


class Probe(nn.Module):
    def forward(self, value: Tensor) -> Tensor:
        return value


def watched(probes: Iterable[Probe]) -> bool:
    return any(probe._forward_hooks for probe in probes)
