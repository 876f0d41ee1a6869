"""The text room stands on its own: no model, no torch, and no library of the built-in corpus until it is asked for."""

from __future__ import annotations

import subprocess
import sys


def test_importing_text_loads_nothing_heavy() -> None:
    heavy = ("torch", "babel", "num2words", "datasets")
    code = f"import glassformer.data, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
