"""The loss, against the slow version that spells the wanted distribution out."""

import pytest
import torch
from torch.nn import functional as F

from glassformer.model.loss import smoothed_cross_entropy, two_way_divergence

B, T, V, PAD = 3, 5, 11, 0


@pytest.fixture
def labels():
    ids = torch.randint(1, V, (B, T), generator=torch.Generator().manual_seed(1))
    ids[0, 3:] = PAD
    ids[2, 1:] = PAD
    return ids


def logits(seed):
    made = 3 * torch.randn(B, T, V, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return made.float().requires_grad_()


def wanted(label, smoothing):
    spread = torch.full((V,), smoothing / V, dtype=torch.float64)
    spread[label] += 1 - smoothing
    return spread


def slow(values, labels, smoothing, kl):
    total = torch.zeros((), dtype=torch.float64)
    for b in range(B):
        for t in range(T):
            if labels[b, t] == PAD:
                continue
            q = wanted(int(labels[b, t]), smoothing)
            log_p = values[b, t].double().log_softmax(-1)
            total = total - (q * log_p).sum() + (torch.xlogy(q, q).sum() if kl else 0)
    return total


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_it_is_the_cross_entropy_to_the_smoothed_labels(labels, smoothing):
    values = logits(2)
    fast = smoothed_cross_entropy(values, labels, smoothing, PAD)
    assert fast.item() == pytest.approx(slow(values, labels, smoothing, kl=False).item(), rel=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_its_gradient_is_that_of_the_kl_divergence(labels, smoothing):
    values = logits(3)
    (ours,) = torch.autograd.grad(smoothed_cross_entropy(values, labels, smoothing, PAD), values)
    (reference,) = torch.autograd.grad(slow(values, labels, smoothing, kl=True), values)
    assert torch.allclose(ours, reference.float(), atol=1e-6)
    assert (ours[labels == PAD] == 0).all()


def test_padding_counts_for_nothing(labels):
    values = logits(4).detach()
    changed = values.clone()
    changed[labels == PAD] += 100.0
    assert smoothed_cross_entropy(values, labels, 0.1, PAD) == smoothed_cross_entropy(changed, labels, 0.1, PAD)
    other = logits(5).detach()
    assert two_way_divergence(values, other, labels, PAD) == two_way_divergence(changed, other, labels, PAD)


def test_the_two_way_divergence_is_the_mean_of_both_directions(labels):
    first, second = logits(6), logits(7)
    p, q = first.log_softmax(-1)[labels != PAD], second.log_softmax(-1)[labels != PAD]
    there = F.kl_div(q, p, reduction="sum", log_target=True)  # KL(p || q)
    back = F.kl_div(p, q, reduction="sum", log_target=True)
    ours = two_way_divergence(first, second, labels, PAD)
    assert ours.item() == pytest.approx(((there + back) / 2).item(), rel=1e-5)
    assert two_way_divergence(first, first, labels, PAD) == 0
    fast = torch.autograd.grad(ours, first, retain_graph=True)[0]
    assert torch.allclose(fast, torch.autograd.grad((there + back) / 2, first)[0], atol=1e-5)
