"""What training lowers: cross-entropy with label smoothing, padding left out.

With smoothing e the target distribution is 1 - e on the label and e spread over the V pieces of the vocabulary;
the cross-entropy to it differs from the KL divergence by that distribution's own entropy, a constant, so both have the
same gradient.

Shapes: B batch, T target, V vocabulary.
"""

from torch import Tensor
from torch.nn import functional as F

IGNORED = -100  # the label of positions that do not count


def smoothed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float, pad: int) -> Tensor:
    """The sum over all real labels; logits (B, T, V), labels (B, T); or (B, V) and (B)."""
    return F.cross_entropy(
        logits.flatten(0, -2).float(), labels.flatten(), ignore_index=pad, reduction="sum", label_smoothing=smoothing
    )


def two_way_divergence(first: Tensor, second: Tensor, labels: Tensor, pad: int) -> Tensor:
    """R-Drop: the mean of KL(p || q) and KL(q || p) of two passes that differ by their dropout, summed over labels."""
    p, q = first.float().log_softmax(-1), second.float().log_softmax(-1)
    apart = ((p.exp() - q.exp()) * (p - q)).sum(-1) / 2  # KL(p||q) + KL(q||p), halved
    return apart.masked_fill(labels == pad, 0.0).sum()
