"""Decoding where kernels are not wanted, not possible or not all there: each is a switch of the environment.

The processor is a pretended one where none of its code is run, so these hold on every machine.
"""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
import torch
from tiny_model import SRC, tiny

import glassformer as gf
from glassformer.decode import kernels as kernels_module
from glassformer.decode.kernels import LEVELS, NoKernels, cpu_supports, load_kernels, supported_levels
from glassformer.decode.precision import prepare, resolve_precision
from glassformer.decode.step import OneDnn

CPU = torch.device("cpu")
FLAGS = {need for level in LEVELS for need in level.needs}
FEATURES = ("avx512", "vnni", "avx512_bf16", "amx_tile")
SETTINGS = ({"GLASSFORMER_KERNELS": "0"}, {"CC": "no-such-compiler"})


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No library from an earlier time, no switch set, and what is found here is forgotten afterwards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("GLASSFORMER_KERNELS", "CC"):
        monkeypatch.delenv(name, raising=False)
    load_kernels.cache_clear()
    yield monkeypatch
    load_kernels.cache_clear()


@pytest.fixture
def xeon(fresh: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A processor that has everything."""
    fresh.setattr(platform, "system", lambda: "Linux")
    fresh.setattr(platform, "machine", lambda: "x86_64")
    fresh.setattr(kernels_module, "features", lambda: frozenset(FLAGS))
    for feature in FEATURES:
        fresh.setattr(torch.cpu, f"_is_{feature}_supported", lambda: True, raising=False)
    fresh.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True, raising=False)
    return fresh


def names() -> list[str]:
    return [level.name for level in supported_levels()]


def test_without_a_switch_all_that_the_processor_can_do_is_used(xeon: pytest.MonkeyPatch) -> None:
    assert names() == ["amx", "vnni", "avxvnni", "avx2"]
    xeon.setenv("GLASSFORMER_KERNELS", "1")
    assert names() == ["amx", "vnni", "avxvnni", "avx2"]
    assert resolve_precision("auto", 512, CPU) == "bf16"


def test_kernels_switched_off(xeon: pytest.MonkeyPatch) -> None:
    xeon.setenv("GLASSFORMER_KERNELS", "0")
    assert load_kernels() == "GLASSFORMER_KERNELS=0"
    assert cpu_supports("vnni")  # the processor is what it was


def test_as_on_a_processor_with_avx2_only(xeon: pytest.MonkeyPatch) -> None:
    assert OneDnn(torch.ones(4, 4), None, "int8").zero == 128
    xeon.setenv("GLASSFORMER_KERNELS", "avx2")
    assert names() == ["avx2"]
    assert OneDnn(torch.ones(4, 4), None, "int8").zero == 64  # what 16 bits can add up
    assert resolve_precision("auto", 512, CPU) == "fp32"


def test_as_on_a_processor_without_matrix_units(xeon: pytest.MonkeyPatch) -> None:
    xeon.setenv("GLASSFORMER_KERNELS", "vnni")
    assert names() == ["vnni", "avxvnni", "avx2"]
    assert resolve_precision("auto", 512, CPU) == "fp32"


def test_a_processor_that_is_a_lesser_one(xeon: pytest.MonkeyPatch) -> None:
    xeon.setattr(kernels_module, "features", lambda: frozenset({"avx2"}))
    assert load_kernels() == "the processor lacks fma"
    load_kernels.cache_clear()
    xeon.setattr(kernels_module, "features", lambda: frozenset({"avx2", "fma", "avx512_vnni"}))
    assert names() == ["avx2"]


def test_a_level_of_another_machine_is_told(xeon: pytest.MonkeyPatch) -> None:
    xeon.setenv("GLASSFORMER_KERNELS", "neon")
    said = "GLASSFORMER_KERNELS=neon is no level of x86_64; it has `amx`, `vnni`, `avxvnni`, `avx2`"
    assert load_kernels() == said
    xeon.setattr(platform, "machine", lambda: "aarch64")
    assert names() == ["neon"]
    xeon.setattr(platform, "machine", lambda: "riscv64")
    load_kernels.cache_clear()
    assert load_kernels() == "they are for Linux on x86_64 and aarch64, not Linux on riscv64"


def test_without_a_compiler(xeon: pytest.MonkeyPatch) -> None:
    xeon.setenv("CC", "no-such-compiler")
    assert load_kernels() == "no C compiler was found; install gcc, or name one in the variable CC"


def test_a_setting_that_does_not_exist_is_told(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("GLASSFORMER_KERNELS", "sse")
    with pytest.raises(
        NoKernels, match="GLASSFORMER_KERNELS=sse is not one of `0`, `1`, `amx`, `vnni`, `avxvnni`, `avx2`, `neon`"
    ):
        supported_levels()


@pytest.fixture(scope="module")
def plain() -> list[list[gf.Hypothesis]]:
    """What the plain model writes, with kernels if this machine has them."""
    return gf.generate(tiny(), SRC, beam=3, max_new_tokens=8)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: "=".join(*one.items()))
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_nothing_is_lost_without_kernels(
    setting: dict[str, str],
    precision: str,
    plain: list[list[gf.Hypothesis]],
    fresh: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The tokens are those of the plain model."""
    for name, value in (setting | {"XDG_CACHE_HOME": str(tmp_path / "empty")}).items():
        fresh.setenv(name, value)
    load_kernels.cache_clear()
    assert isinstance(load_kernels(), str)
    fast = gf.generate(prepare(tiny(), precision), SRC, beam=3, max_new_tokens=8)
    assert [[h.ids for h in row] for row in fast] == [[h.ids for h in row] for row in plain]
    near = {"fp32": 1e-5, "int8": 0.05}[precision]
    for ours, theirs in zip(fast, plain, strict=True):
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=near)
