"""Make the translators of the box: train, pack, score, and write their cards.

    python -m glassformer.box.make DATA [en-de] [en-zh] [--runs FOLDER] [--out FOLDER]

DATA holds the corpora that the recipes name (docs-en-de, tatoeba-en-de, ...). Each step is a glassformer command and is
shown before it runs. A training that was stopped goes on; one that has ended is not repeated.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from glassformer import box, recipes
from glassformer.box import card
from glassformer.files import write_text

# What each direction is judged by: a name, and its files in DATA.
SETS = (("docs", "docs-en-{other}/test.{language}.xz"), ("everyday", "tatoeba-en-{other}/valid.{language}.gz"))


def judged_by(model: str) -> dict[str, list[str]]:
    """The sets of a model and the command that scores each, to be run where the corpora are."""
    pair = box.MODELS[model]
    other = pair[1]
    found = {}
    for source, target in (pair, pair[::-1]):
        for name, file in SETS:
            src, ref = (file.format(other=other, language=language) for language in (source, target))
            options = f"--src {src} --ref {ref} --to {target} --beam 4 --precision int8"
            found[f"{name} {source}-{target}"] = ["evaluate", model, *options.split()]
    return found


def glassformer(*words: str | Path, inside: Path | None = None, quiet: bool = False) -> str:
    """Run a command of ours; what it prints to its output is returned, if it is not to be shown."""
    command = [str(word) for word in words]
    print("$ glassformer", shlex.join(command), flush=True)
    ended = subprocess.run(
        [sys.executable, "-m", "glassformer", *command],
        cwd=inside,
        stdout=subprocess.PIPE if quiet else None,
        text=True,
    )
    if ended.returncode:
        raise SystemExit(ended.returncode)
    return ended.stdout or ""


def make(model: str, data: Path, runs: Path, out: Path) -> None:
    """One translator, from its texts to its card in `out`; one that lies there is replaced once all is done."""
    run, place = runs / f"box-{model}", out / model
    check_replaceable(place)
    if not (run / "model.safetensors").is_file():
        going_on = ["--resume"] if (run / "recipe.toml").is_file() else []
        glassformer("train", f"box-{model}", "--out", run, "--set", f"data.root={data}", *going_on)
    runs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"packed-{model}-", dir=runs) as folder:
        new = Path(folder)
        finish(model, run, new, data)
        place.mkdir(parents=True, exist_ok=True)
        for file in new.iterdir():
            shutil.copy(file, place)
    print(f"{place}: {sum(file.stat().st_size for file in place.iterdir()) / 1e6:.1f} MB")


def finish(model: str, run: Path, new: Path, data: Path) -> None:
    """What ships of a run: its weights packed, the recipe, the scores and the card."""
    glassformer("pack", run, "--out", new)
    recipe = recipes.built_in()[f"box-{model}"]
    write_text(new / "recipe.toml", recipe.read_text(encoding="utf-8"))  # the run's own names folders of this machine
    scores = {}
    for name, command in judged_by(model).items():
        told = glassformer("evaluate", new, *command[2:], "--json", inside=data, quiet=True)
        asked = {"precision": "int8", "beam": 4, "command": shlex.join(["glassformer", *command])}
        scores[name] = json.loads(told) | asked
    write_text(new / "scores.json", json.dumps(scores, indent=1) + "\n")
    card.write(new, data, model)


def check_replaceable(place: Path) -> None:
    """Only a translator that has our card is replaced; whatever else lies there is the user's."""
    told = place / card.FILES["en"]
    ours = told.is_file() and told.read_text(encoding="utf-8").startswith(card.title(place.name, "en"))
    if place.exists() and not ours and (not place.is_dir() or any(place.iterdir())):
        raise SystemExit(f"{place} holds something else than a translator of the box; choose another --out")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m glassformer.box.make", description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="the folder that holds the corpora")
    parser.add_argument("models", nargs="*", help=f"{', '.join(box.MODELS)}; all of them if none is named")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where they are trained")
    parser.add_argument("--out", type=Path, default=box.HERE, help="where they are put")
    given = parser.parse_args()
    models = given.models or list(box.MODELS)
    if unknown := [model for model in models if model not in box.MODELS]:
        parser.error(f"{unknown[0]}: the box has {', '.join(box.MODELS)}")
    data = given.data.absolute()
    for model in models:
        needed = {data / word for words in judged_by(model).values() for word in words if "/" in word}
        if missing := sorted(file for file in needed if not file.is_file()):
            raise SystemExit(
                f"{missing[0]} is missing; name the folder that holds the corpora of the recipe box-{model}"
            )
    for model in models:
        make(model, data, given.runs.absolute(), given.out.absolute())


if __name__ == "__main__":
    main()
