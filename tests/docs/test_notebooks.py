"""The notebooks run from top to bottom where nothing is trained yet; both languages hold the same code."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from jupyter_client import KernelManager
from nbclient import NotebookClient
from nbformat import read, validate
from nbformat.v4 import new_code_cell
from words_in_code import split_words

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LANGUAGES = ("en", "zh")
FILES = sorted(NOTEBOOKS.glob("*/*.ipynb"))
NAMES = sorted({path.stem for path in FILES})
SECONDS = 120  # for one cell, on a machine that is busy with other tests
LIGHTER = {"build-it": ("STEPS = 30", "STEPS = 10"), "change-one-part": ("SEEDS = range(4)", "SEEDS = range(2)")}


def cells(language: str, name: str) -> list[dict[str, Any]]:
    return json.loads((NOTEBOOKS / language / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_hold_the_same_code(name):
    en, zh = (cells(language, name) for language in LANGUAGES)
    assert [cell["cell_type"] for cell in en] == [cell["cell_type"] for cell in zh]
    for english, chinese in zip(en, zh, strict=True):
        texts = ["".join(cell["source"]) for cell in (english, chinese)]
        if english["cell_type"] == "code":
            assert split_words(texts[0])[0] == split_words(texts[1])[0]
        else:
            assert texts[0] != texts[1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_notebook_is_stored_without_its_outputs(path):
    validate(read(path, as_version=4))
    for cell in cells(path.parent.name, path.stem):
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"], cell["metadata"]) == ([], None, {})


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """A real kernel, started once: most of what a short notebook takes is loading PyTorch."""
    folder = tmp_path_factory.mktemp("kernel")
    with TemporaryDirectory() as sockets:  # a socket's address may not be long, so not in the tests' own folder
        manager = KernelManager(kernel_name="python3", transport="ipc", ip=f"{sockets}/kernel")
        manager.start_kernel(env=os.environ | {"IPYTHONDIR": str(folder), "TMPDIR": str(folder)}, cwd=str(folder))
        yield manager
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.long
def test_a_notebook_runs(name, kernel, tmp_path):
    notebook = read(NOTEBOOKS / "en" / f"{name}.ipynb", as_version=4)
    whole, less = LIGHTER.get(name, ("", ""))
    assert sum(whole in cell["source"] for cell in notebook.cells if cell["cell_type"] == "code") == 1 or not whole
    for cell in notebook.cells:
        cell["source"] = cell["source"].replace(whole, less) if whole else cell["source"]
    # As if it had just been started, in an empty folder.
    notebook.cells.insert(0, new_code_cell(f"%reset -f\nimport os\nos.chdir({str(tmp_path)!r})\ndel os"))
    client = NotebookClient(notebook, km=kernel, timeout=SECONDS)
    try:
        client.execute()
    finally:
        client.kc.stop_channels()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output["text"] for output in outputs if output.get("name") == "stderr"], "a warning"
    assert [output for output in outputs if "image/png" in output.get("data", {})], "a notebook shows something"
