"""Both ways to run on a CPU: by our own kernels, where they can be compiled, and by PyTorch's."""

import pytest

import glassformer.decode.kernels as module


@pytest.fixture(params=["our kernels", "torch's kernels"])
def kernels(request, monkeypatch):
    """The kernels in use."""
    if request.param == "torch's kernels":
        monkeypatch.setattr(module, "load_kernels", lambda: "not wanted")
    elif isinstance(module.load_kernels(), str):
        pytest.skip(f"no kernels: {module.load_kernels()}")
    return module.available_kernels()
