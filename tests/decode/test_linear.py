"""oneDNN's products are right on processors older than this one too."""

import os
import subprocess
import sys

import pytest
import torch

from glassformer.decode.step import OneDnn

PRODUCT = """
import sys
import torch
from glassformer.decode.step import OneDnn

if sys.argv[1] == "without VNNI":
    torch.cpu._is_vnni_supported = lambda: False
generator = torch.Generator().manual_seed(0)
x, weight = torch.randn(32, 512, generator=generator), torch.randn(2048, 512, generator=generator)
x[0] = 1.0  # all at the top of the range at once: what overflows does so here
weight[0] = 1.0
linear = OneDnn(weight, None, "int8")
y = linear(x)
exact = x.double() @ weight.double().T
print(float((y - exact).abs().max() / exact.abs().max()))
"""


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("AVX2", "without VNNI"),
        pytest.param("AVX512_CORE_VNNI", "with VNNI", marks=pytest.mark.long),
        pytest.param("AVX512_CORE", "without VNNI", marks=pytest.mark.long),
    ],
)
def test_int8_on_older_processors(limit, told):
    if not torch.cpu._is_vnni_supported():
        pytest.skip("this processor is an older one itself")
    told_all = {**os.environ, "ONEDNN_MAX_CPU_ISA": limit}
    command = [sys.executable, "-c", PRODUCT, told]
    done = subprocess.run(command, env=told_all, check=True, capture_output=True, text=True)
    assert float(done.stdout) < 0.01


def test_a_row_of_zeros_and_a_bias():
    weight, bias = torch.ones(5, 40), torch.arange(5.0)
    for kind in ("fp32", "int8"):
        assert torch.equal(OneDnn(weight, bias, kind)(torch.zeros(3, 40)), bias.expand(3, 5))
