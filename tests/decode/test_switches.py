"""Decoding where kernels are not wanted, not possible or not all there: each is a switch of the environment.

The processor is a pretended one where none of its code is run, so these hold on every machine.
"""

import platform

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
def fresh(monkeypatch, tmp_path):
    """No library from an earlier time, no switch set, and what is found here is forgotten afterwards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("GLASSFORMER_KERNELS", "CC"):
        monkeypatch.delenv(name, raising=False)
    load_kernels.cache_clear()
    yield monkeypatch
    load_kernels.cache_clear()


@pytest.fixture
def xeon(fresh):
    """A processor that has everything."""
    fresh.setattr(platform, "system", lambda: "Linux")
    fresh.setattr(platform, "machine", lambda: "x86_64")
    fresh.setattr(kernels_module, "features", lambda: frozenset(FLAGS))
    for feature in FEATURES:
        fresh.setattr(torch.cpu, f"_is_{feature}_supported", lambda: True, raising=False)
    fresh.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True, raising=False)
    return fresh


def names():
    return [level.name for level in supported_levels()]


@pytest.mark.parametrize(
    ("switch", "levels", "precision", "zero"),
    [
        (None, ["amx", "vnni", "avxvnni", "avx2"], "bf16", 128),
        ("1", ["amx", "vnni", "avxvnni", "avx2"], "bf16", 128),
        ("vnni", ["vnni", "avxvnni", "avx2"], "fp32", 128),
        ("avx2", ["avx2"], "fp32", 64),  # what 16 bits can add up
    ],
)
def test_the_switch_limits_what_is_used_of_a_processor(xeon, switch, levels, precision, zero):
    if switch:
        xeon.setenv("GLASSFORMER_KERNELS", switch)
    assert names() == levels
    assert resolve_precision("auto", 512, CPU) == precision
    assert OneDnn(torch.ones(4, 4), None, "int8").zero == zero


def test_kernels_switched_off(xeon):
    xeon.setenv("GLASSFORMER_KERNELS", "0")
    assert load_kernels() == "GLASSFORMER_KERNELS=0"
    assert cpu_supports("vnni")  # the processor is what it was


def test_a_processor_that_is_a_lesser_one(xeon):
    xeon.setattr(kernels_module, "features", lambda: frozenset({"avx2"}))
    assert load_kernels() == "the processor lacks fma"
    load_kernels.cache_clear()
    xeon.setattr(kernels_module, "features", lambda: frozenset({"avx2", "fma", "avx512_vnni"}))
    assert names() == ["avx2"]


def test_a_level_of_another_machine_is_told(xeon):
    xeon.setenv("GLASSFORMER_KERNELS", "neon")
    said = "GLASSFORMER_KERNELS=neon is no level of x86_64; it has `amx`, `vnni`, `avxvnni`, `avx2`"
    assert load_kernels() == said
    xeon.setattr(platform, "machine", lambda: "aarch64")
    assert names() == ["neon"]
    xeon.setattr(platform, "machine", lambda: "riscv64")
    load_kernels.cache_clear()
    assert load_kernels() == "they are for Linux on x86_64 and aarch64, not Linux on riscv64"


def test_without_a_compiler(xeon):
    xeon.setenv("CC", "no-such-compiler")
    assert load_kernels() == "no C compiler was found; install gcc, or name one in the variable CC"


def test_a_setting_that_does_not_exist_is_told(fresh):
    fresh.setenv("GLASSFORMER_KERNELS", "sse")
    with pytest.raises(
        NoKernels, match="GLASSFORMER_KERNELS=sse is not one of `0`, `1`, `amx`, `vnni`, `avxvnni`, `avx2`, `neon`"
    ):
        supported_levels()


@pytest.fixture(scope="module")
def plain():
    """What the plain model writes, with kernels if this machine has them."""
    return gf.generate(tiny(), SRC, beam=3, max_new_tokens=8)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: "=".join(*one.items()))
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_nothing_is_lost_without_kernels(setting, precision, plain, fresh, tmp_path):
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
