"""A compiled library is kept for the next time, and never run unless it is just as it was kept."""

import shutil
from pathlib import Path

import pytest

from glassformer.decode.kernels import NoKernels, build_library, is_intact

ANSWER = "int answer(void) { return 42; }\n"


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    file = tmp_path / "answer.c"
    file.write_text(ANSWER)
    return file


def test_a_library_is_compiled_once(source, tmp_path, monkeypatch):
    kept = tmp_path / "cache" / "answer.so"
    assert build_library(kept, [source], ["-fPIC"]).answer() == 42
    assert [file.name for file in kept.parent.iterdir()] == ["answer.so"]
    monkeypatch.setenv("CC", "no-such-compiler")
    assert build_library(kept, [source], ["-fPIC"]).answer() == 42
    kept.unlink()
    with pytest.raises(NoKernels, match="no C compiler was found; install gcc, or name one in the variable CC"):
        build_library(kept, [source], ["-fPIC"])
    monkeypatch.setenv("CC", "false")
    with pytest.raises(NoKernels, match="false does not compile them: it says nothing"):
        build_library(kept, [source], ["-fPIC"])


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.9, 0.999, 1.0])
def test_a_damaged_library_is_compiled_again(share, source, tmp_path):
    """To run one that was cut short would end the process with a bus error; the whole one has another byte in it."""
    kept = tmp_path / "cache" / "answer.so"
    build_library(kept, [source], ["-fPIC"])
    data = bytearray(kept.read_bytes())
    kept.unlink()  # the one that is loaded keeps its file
    data[len(data) // 2] ^= 1 if share == 1 else 0
    kept.write_bytes(data[: int(share * len(data))])
    assert not is_intact(kept)
    assert build_library(kept, [source], ["-fPIC"]).answer() == 42
    assert is_intact(kept)


def test_where_nothing_can_be_kept_it_is_compiled_each_time(source):
    assert build_library(Path("/dev/null/answer.so"), [source], ["-fPIC"]).answer() == 42
