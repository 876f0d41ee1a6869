"""Make the translators of the box: train, translate back, train on, pack, score, and write their cards.

    python -m glassformer.box.make DATA [en-de] [en-zh] [--runs FOLDER] [--out FOLDER]

DATA holds the corpora that the recipes name (docs-en-de, tatoeba-en-de, ...) and docs-en, English that nobody has
translated. A first model learns from what people translated. It translates this English, and a second training goes on
from it with the pairs that this makes. Each step is a glassformer command and is shown before it runs. A training that
was stopped goes on; a step that has ended is not repeated.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
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

BACK = 260_000  # English sentences that are translated back


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
    run, first, more = (runs / f"box-{model}{part}" for part in ("", "-int8", "-more"))
    place = out / model
    check_replaceable(place)
    if not first.exists():
        train(f"box-{model}", run, f"data.root={data}")
        glassformer("pack", run, "--out", first)
    if not (more / "model.safetensors").is_file():
        texts = with_back_translations(model, first, data, runs)
        train(f"box-{model}-more", more, f"data.root={texts}", f"train.start={first}")
    runs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"packed-{model}-", dir=runs) as folder:
        new = Path(folder)
        finish(model, more, new, data)
        place.mkdir(parents=True, exist_ok=True)
        for file in new.iterdir():
            shutil.copy(file, place)
    print(f"{place}: {sum(file.stat().st_size for file in place.iterdir()) / 1e6:.1f} MB")


def train(recipe: str, run: Path, *changes: str) -> None:
    if not (run / "model.safetensors").is_file():
        going_on = ["--resume"] if (run / "recipe.toml").is_file() else []
        settings = [word for change in changes for word in ("--set", change)]
        glassformer("train", recipe, "--out", run, *settings, *going_on)


def with_back_translations(model: str, translator: Path, data: Path, runs: Path) -> Path:
    """A folder with all corpora of `data`, and English sentences of docs-en with what the translator makes of them."""
    texts, other = runs / f"box-{model}-data", box.MODELS[model][1]
    own = texts / "docs-en"
    own.mkdir(parents=True, exist_ok=True)
    for corpus in (f"docs-en-{other}", f"tatoeba-en-{other}"):
        if not (texts / corpus).exists():
            (texts / corpus).symlink_to(data / corpus, target_is_directory=True)
    if not (own / "back.en").is_file():
        write_text(own / "back.en", "".join(f"{line}\n" for line in untranslated(data)))
    if not (own / f"back.{other}").is_file():
        options = f"--to {other} --beam 1 --precision int8 --device cpu".split()
        files: list[str | Path] = ["--input", own / "back.en", "--output", own / f"back.{other}"]
        glassformer("translate", translator, *files, *options)
    return texts


def untranslated(data: Path) -> list[str]:
    """English sentences of middling length, each once, none of them in a corpus that has translations."""
    known: set[str] = set()
    for file in sorted(data.glob("docs-en-*/*.en.xz")):
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            known.update(line.strip() for line in lines)
    with lzma.open(data / "docs-en" / "mono.en.xz", "rt", encoding="utf-8") as lines:
        found = dict.fromkeys(line.strip() for line in lines)
    fit = [line for line in found if line not in known and 4 <= len(line.split()) <= 45 and len(line) <= 300]
    random.Random(1).shuffle(fit)
    return fit[:BACK]


def finish(model: str, run: Path, new: Path, data: Path) -> None:
    """What ships of a run: its weights packed, the recipe, the scores and the card."""
    glassformer("pack", run, "--out", new)
    recipe = recipes.built_in()[f"box-{model}-more"]
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
        needed.add(data / "docs-en" / "mono.en.xz")
        if missing := sorted(file for file in needed if not file.is_file()):
            raise SystemExit(
                f"{missing[0]} is missing; name the folder that holds the corpora of the recipe box-{model}"
            )
    for model in models:
        make(model, data, given.runs.absolute(), given.out.absolute())


if __name__ == "__main__":
    main()
