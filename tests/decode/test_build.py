"""A compiled library is kept for the next time, and never run unless it is just as it was kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from glassformer.decode.kernels import NoKernels, build_library, is_intact

ANSWER = "int answer(void) { return 42; }\n"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CC", raising=False)
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    file = tmp_path / "answer.c"
    file.write_text(ANSWER)
    return file


def test_a_library_is_compiled_once(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "cache" / "answer.so"
    assert build_library(kept, [source], ["-fPIC"]).answer() == 42
    assert [file.name for file in kept.parent.iterdir()] == ["answer.so"]
    monkeypatch.setenv("CC", "no-such-compiler")
    assert build_library(kept, [source], ["-fPIC"]).answer() == 42
    kept.unlink()
    with pytest.raises(NoKernels, match="no C compiler was found"):
        build_library(kept, [source], ["-fPIC"])


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.9, 0.999])
def test_a_library_that_was_cut_short_is_compiled_again(share: float, source: Path, tmp_path: Path) -> None:
    """To run it would end the process with a bus error."""
    kept = tmp_path / "cache" / "answer.so"
    build_library(kept, [source], ["-fPIC"])
    data = kept.read_bytes()
    kept.unlink()  # the one that is loaded keeps its file
    kept.write_bytes(data[: int(share * len(data))])
    assert not is_intact(kept)
    assert build_library(kept, [source], ["-fPIC"]).answer() == 42
    assert is_intact(kept)


def test_a_library_with_another_byte_in_it_is_compiled_again(source: Path, tmp_path: Path) -> None:
    kept = tmp_path / "cache" / "answer.so"
    build_library(kept, [source], ["-fPIC"])
    data = bytearray(kept.read_bytes())
    kept.unlink()
    data[len(data) // 2] ^= 1
    kept.write_bytes(data)
    assert not is_intact(kept)
    assert build_library(kept, [source], ["-fPIC"]).answer() == 42
    assert is_intact(kept)


def test_where_nothing_can_be_kept_it_is_compiled_each_time(source: Path) -> None:
    assert build_library(Path("/dev/null/answer.so"), [source], ["-fPIC"]).answer() == 42
