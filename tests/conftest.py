"""Small tensors and one test process per core: more threads would only wait for each other."""

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
os.environ.pop("PYTHONUNBUFFERED", None)  # which hides a line that was never flushed


@pytest.fixture(autouse=True)
def same_kernels() -> Iterator[None]:
    """Where a processor lacks bf16, PyTorch's first such product turns oneDNN off for good, and float32 rounds anew."""
    import torch

    enabled = torch.backends.mkldnn.enabled
    yield
    torch.backends.mkldnn.enabled = enabled
