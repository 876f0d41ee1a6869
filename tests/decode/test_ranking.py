"""The likeliest tokens are the same, by our kernels and without them."""

import pytest
import torch

from glassformer.decode.search import normaliser, top_tokens


@pytest.mark.parametrize("size", [1, 5, 128, 1280, 3001])  # fewer than asked for, whole blocks, and some left over
@pytest.mark.parametrize("count", [1, 4, 8])
def test_the_likeliest_are_those_of_a_sort(size, count, kernels):
    logits = torch.randn(7, size, generator=torch.Generator().manual_seed(size))
    logits[3, : size // 2] = float("-inf")
    best, ids = top_tokens(logits, count)
    ordered = logits.sort(dim=1, descending=True, stable=True)
    assert torch.equal(best, ordered.values[:, :count])
    possible = best > float("-inf")
    assert torch.equal(ids[possible], ordered.indices[:, :count][possible])
    torch.testing.assert_close(normaliser(logits), logits.double().logsumexp(-1, keepdim=True).float())
    turned = logits.t().contiguous().t()  # the same numbers, lying otherwise in memory
    assert torch.equal(top_tokens(turned, count)[0], best)
