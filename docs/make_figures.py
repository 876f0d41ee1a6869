"""Draw the handbook's figures: docs/figures/NAME.py gives NAME.en.svg and NAME.zh.svg, a lab gives lab-NAME.*.svg.

A script whose `draw` takes a translator gets the demo's; one that names a `RECIPE` gets the folder of what that trains.

    python docs/make_figures.py            draws all of them
    python docs/make_figures.py attention lab-scaling      draws these
    python docs/make_figures.py --check    draws into the air and says which differ from the files

Training differs in the last bits from machine to machine and with the number of threads, and so does a picture of what
was trained. So all is drawn with one thread, and a picture whose numbers are near those of the file is the same one:
the file stays as it is.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import torch

from glassformer import Translator
from glassformer.labs import NAMES, find
from glassformer.labs.figures import Figure, svg
from glassformer.labs.run import run

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs" / "figures"
# Some figures are drawn with what is measured there.
sys.path += [str(ROOT / "docs" / "build"), str(ROOT / "docs" / "before")]
RUNS = ROOT / "runs"
LANGUAGES = ("en", "zh")
NUMBER = re.compile(r"(?<![\w#])[-−]?\d+(?:\.\d+)?(?![\w#])")
COLOUR = re.compile(r"#[0-9a-f]{6}\b")
NEAR, ALIKE = 4.0, 12  # pixels; shades of red, green or blue, of 256


@cache
def translator() -> Translator:
    """The demo's model, trained now if it is not there."""
    return Translator.load(trained("demo", "demo"))


def trained(name: str, *command: str) -> Path:
    """The folder of a trained model, trained now by that command if it is not there."""
    if not (RUNS / name / "model.safetensors").exists():
        subprocess.run([sys.executable, "-m", "glassformer", *command], cwd=ROOT, check=True)
    return RUNS / name


def names() -> list[str]:
    scripts = sorted(path.stem for path in FIGURES.glob("*.py"))
    return [*scripts, *(f"lab-{name}" for name in NAMES)]


def make(name: str) -> Figure:
    if name.startswith("lab-"):
        return run(find(name.removeprefix("lab-"))).finding.figure
    spec = importlib.util.spec_from_file_location(f"figure_{name.replace('-', '_')}", FIGURES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    if recipe := getattr(script, "RECIPE", None):
        figure: Figure = script.draw(trained(recipe, "train", recipe, "--out", f"runs/{recipe}"))
    else:
        figure = script.draw(translator()) if inspect.signature(script.draw).parameters else script.draw()
    return figure


def near(one: str, other: str) -> bool:
    """Whether two pictures say the same and no number or colour of theirs is far from its counterpart."""
    if COLOUR.sub("#", NUMBER.sub("0", one)) != COLOUR.sub("#", NUMBER.sub("0", other)):
        return False
    colours = zip(COLOUR.findall(one), COLOUR.findall(other), strict=True)
    if any(
        abs(a - b) > ALIKE for pair in colours for a, b in zip(*map(bytes.fromhex, (c[1:] for c in pair)), strict=True)
    ):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(abs(float(a.replace("−", "-")) - float(b.replace("−", "-"))) <= NEAR for a, b in pairs)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="NAME", help="which figures; all if none is named")
    options.add_argument("--check", action="store_true", help="write nothing, name what differs, exit 1 if any does")
    asked = options.parse_args()
    if unknown := sorted(set(asked.names) - set(names())):
        options.error(f"no such figure: {', '.join(unknown)}; there are {', '.join(names())}")
    if not asked.names or any(not name.startswith("lab-") for name in asked.names):
        translator()  # trained, if need be, with all threads
    torch.set_num_threads(1)
    changed = []
    for name in asked.names or names():
        figure = make(name)
        for language in LANGUAGES:
            file, drawn = FIGURES / f"{name}.{language}.svg", svg(figure, language)
            if file.exists() and near(drawn, file.read_text(encoding="utf-8")):
                continue
            changed.append(file.name)
            if not asked.check:
                file.write_text(drawn, encoding="utf-8")
    for one in changed:
        print(f"{one} differs from what is drawn now" if asked.check else f"drew docs/figures/{one}")
    return 1 if asked.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
