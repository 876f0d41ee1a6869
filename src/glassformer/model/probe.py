"""Places where a value can be seen.

A probe is a module that returns what it is given. Its place in the module tree names the value, for example
`decoder.blocks.3.cross_attention.pattern`, and a forward hook on it reads the value, or replaces it by returning
another; a full backward hook reads its gradient. A part whose probes nobody watches is free to take a fused kernel that
never forms those values.
"""

from collections.abc import Iterable

from torch import Tensor, nn
from torch.nn.modules import module as hooks

GLOBAL_HOOKS = (
    hooks._global_forward_hooks, hooks._global_forward_pre_hooks, hooks._global_backward_hooks,
    hooks._global_backward_pre_hooks,
)  # fmt: skip


class Probe(nn.Module):
    def forward(self, value: Tensor) -> Tensor:
        return value


def has_hooks(probes: Iterable[Probe]) -> bool:
    """Whether a hook of any kind waits for their values: on one of them, or on every module there is."""
    return any(GLOBAL_HOOKS) or any(
        probe._forward_hooks or probe._forward_pre_hooks or probe._backward_hooks or probe._backward_pre_hooks
        for probe in probes
    )
