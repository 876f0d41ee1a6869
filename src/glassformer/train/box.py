"""Make the translators of the box: train in four parts, pack, score, and write their cards.

    python -m glassformer.train.box DATA [en-de] [en-zh] [--runs FOLDER] [--out FOLDER]

DATA holds the corpora of the recipes (docs-en-de, tatoeba-en-de, ...) and docs-en, English without translations. The
first part learns from human translations; the second from docs-en too, translated by the first; the third and fourth
from translations of a larger model, the teacher. A stopped training goes on; a finished step is not repeated.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from glassformer.common.files import read_json, read_tensors, to_toml, write_text
from glassformer.data.readers import read_lines
from glassformer.pipelines import box
from glassformer.train.recipe import built_in, read_toml
from glassformer.weights import bundle

# What each direction is judged by: a name, and its files in DATA.
SETS = (("docs", "docs-en-{other}/test.{language}.xz"), ("everyday", "tatoeba-en-{other}/valid.{language}.gz"))

BACK = 260_000  # English sentences that are translated back
TEACHER = "box-teacher"
LESSONS = {"de": (280_000, 400), "zh": (320_000, 160)}  # sentences the teacher translates, and their longest in letters

CARDS = {"en": "README.md", "zh": "README.zh-CN.md"}
LANGUAGES = {
    "en": {"en": "English", "de": "German", "zh": "Chinese"},
    "zh": {"en": "英语", "de": "德语", "zh": "中文"},
}


def evaluation_commands(model: str) -> dict[str, list[str]]:
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
    """Run a glassformer command; with `quiet`, return what it prints instead of showing it."""
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
    place = out / model
    check_replaceable(place)
    first, more, taught, last = (runs / f"box-{model}{part}" for part in ("", "-more", "-taught", "-last"))
    mixed, texts, other = runs / f"box-{model}-mixed", runs / f"box-{model}-data", box.MODELS[model][1]
    if not finished(mixed):
        texts.mkdir(parents=True, exist_ok=True)
        for corpus in (f"docs-en-{other}", f"tatoeba-en-{other}"):
            if not (texts / corpus).exists():
                (texts / corpus).symlink_to(data / corpus, target_is_directory=True)
        train(first, data)
        back = texts / "docs-en" / "back"
        options = f"--to {other} --beam 1 --precision int8 --device cpu"
        translate_file(f"{back}.en", f"{back}.{other}", lambda: untranslated(data), pack(first), options)
        train(more, texts, start=pack(first))
        train(runs / TEACHER, data)
        own, options = texts / "taught" / f"{other}-en", "--to en --beam 4 --batch-tokens 131072"
        translate_file(f"{own}.{other}", f"{own}.en", lambda: lessons(data, other), runs / TEACHER, options)
        train(taught, texts, start=pack(more))
        train(last, texts, start=taught)
        mix(taught, last, mixed)
    with tempfile.TemporaryDirectory(prefix=f"packed-{model}-", dir=runs) as folder:
        new = Path(folder)
        finish(model, mixed, new, data)
        place.mkdir(parents=True, exist_ok=True)
        for file in new.iterdir():
            shutil.copy(file, place)
    print(f"{place}: {sum(file.stat().st_size for file in place.iterdir()) / 1e6:.1f} MB")


def finished(run: Path) -> bool:
    return (run / "model.safetensors").is_file()


def train(run: Path, texts: Path, start: Path | None = None) -> None:
    """Train by the recipe that a run is named after."""
    if not finished(run):
        going_on = ["--resume"] if (run / "recipe.toml").is_file() else []
        settings = [f"data.root={texts}", *([f"train.start={start}"] if start else [])]
        glassformer("train", run.name, "--out", run, *(word for one in settings for word in ("--set", one)), *going_on)


def pack(run: Path) -> Path:
    """A run in int8, as the box holds it."""
    small = run.with_name(f"{run.name}-int8")
    if not small.exists():
        glassformer("pack", run, "--out", small)
    return small


def mix(older: Path, newer: Path, out: Path) -> None:
    """The newer model with weights between those of the two."""
    before, after = (read_tensors(run / "model.safetensors") for run in (older, newer))
    out.mkdir(exist_ok=True)
    for file in newer.iterdir():
        if file.is_file() and file.name != "model.safetensors":
            shutil.copy(file, out)
    weights = {name: torch.lerp(before[name], weight, box.SHARE) for name, weight in after.items()}
    bundle.write_weights(out, weights, read_json(out / "config.json") or {})  # last: with it the folder is finished


def translate_file(source: str, target: str, lines: Callable[[], list[str]], model: Path, options: str) -> None:
    """Write the lines to `source` and their translations to `target`, unless the files exist."""
    Path(source).parent.mkdir(exist_ok=True)
    if not Path(source).is_file():
        write_text(Path(source), "".join(f"{line}\n" for line in lines()))
    if not Path(target).is_file():
        glassformer("translate", model, *options.split(), "--input", source, "--output", target)


def untranslated(data: Path) -> list[str]:
    """English sentences of middling length, each once, none of them in a corpus that has translations."""
    known = {line.strip() for file in data.glob("docs-en-*/*.en.xz") for line in read_lines(file)}
    found = dict.fromkeys(line.strip() for line in read_lines(data / "docs-en" / "mono.en.xz"))
    fit = [line for line in found if line not in known and 4 <= len(line.split()) <= 45 and len(line) <= 300]
    random.Random(1).shuffle(fit)
    return fit[:BACK]


def lessons(data: Path, other: str) -> list[str]:
    """Sentences of both corpora of a language that are not too long, each once."""
    count, longest = LESSONS[other]
    files = (data / f"docs-en-{other}/train.{other}.xz", data / f"tatoeba-en-{other}/train.{other}.gz")
    found = dict.fromkeys(line.strip() for file in files for line in read_lines(file))
    fit = [line for line in found if line and len(line) <= longest]
    random.Random(1).shuffle(fit)
    return fit[:count]


def finish(model: str, run: Path, new: Path, data: Path) -> None:
    """What ships of a run: its weights packed, the recipe, the scores and the card."""
    glassformer("pack", run, "--out", new)
    recipe = read_toml(built_in()[f"box-{model}-last"])
    write_text(new / "recipe.toml", to_toml(recipe))  # the run's own names folders of this machine
    scores = {}
    for name, command in evaluation_commands(model).items():
        told = glassformer("evaluate", new, *command[2:], "--json", inside=data, quiet=True)
        asked = {"precision": "int8", "beam": 4, "command": shlex.join(["glassformer", *command])}
        scores[name] = json.loads(told) | asked
    write_text(new / "scores.json", json.dumps(scores, indent=1) + "\n")
    for language, file in CARDS.items():
        write_text(new / file, card(new, data, model, language))


def check_replaceable(place: Path) -> None:
    """Only a translator that has our card is replaced; whatever else lies there is the user's."""
    readme, title = place / CARDS["en"], template("en").split("\n")[0].format(name=place.name)
    ours = readme.is_file() and readme.read_text(encoding="utf-8").startswith(title)
    if place.exists() and not ours and (not place.is_dir() or any(place.iterdir())):
        raise SystemExit(f"{place} holds something else than a translator of the box; choose another --out")


def template(language: str) -> str:
    return Path(__file__).with_name(f"box_card.{language}.md").read_text(encoding="utf-8")


def card(folder: Path, data: Path, name: str, language: str) -> str:
    """The card of a bundle; `data` holds the corpora that its recipe names, each with its ATTRIBUTION.txt."""
    recipe = tomllib.loads((folder / "recipe.toml").read_text(encoding="utf-8"))
    scores: dict[str, Any] = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    a, b = (LANGUAGES[language][code] for code in name.split("-"))
    rows = [
        f"| {judged} | {one['bleu']:.2f} | {one['chrf']:.2f} | {one['sentences']:,} |" for judged, one in scores.items()
    ]
    commands = [f"{judged}\n  {one['command']}\n  {one['bleu_signature']}" for judged, one in scores.items()]
    licences = [f"### {corpus}\n\n```text\n{text}\n```" for corpus, text in attributions(recipe, data).items()]
    before = {"first": f"box-{name}", "more": f"box-{name}-more", "taught": f"box-{name}-taught"}
    size = (folder / "model.safetensors").stat().st_size / 1e6  # a byte for each parameter, and little else
    return template(language).format(
        name=name,
        a=a,
        b=b,
        parameters=f"{size:.0f}",
        rows="\n".join(rows),
        commands="\n".join(commands),
        attributions="\n\n".join(licences),
        last=recipe["train"]["steps"],
        share=box.SHARE,
        seed=recipe["train"].get("seed", 0),
        **{part: read_toml(built_in()[of_part])["train"]["steps"] for part, of_part in before.items()},
    )


def attributions(recipe: dict[str, Any], data: Path) -> dict[str, str]:
    """What each corpus of the recipe asks to be said of it; one that says nothing must not be in a card."""
    corpora = recipe["data"]["train"]
    names = dict.fromkeys(str(one.get("src") or one.get("tsv")).split("/")[0] for one in corpora)
    names.pop("taught", None)  # made of the others
    return {name: (data / name / "ATTRIBUTION.txt").read_text(encoding="utf-8").strip() for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m glassformer.train.box", description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="the folder that holds the corpora")
    parser.add_argument("models", nargs="*", help=f"{', '.join(box.MODELS)}; all of them if none is named")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where they are trained")
    parser.add_argument("--out", type=Path, default=box.HERE, help="where they are put")
    given = parser.parse_args()
    models = given.models or list(box.MODELS)
    if unknown := [model for model in models if model not in box.MODELS]:
        parser.error(f"{unknown[0]}: the box has {', '.join(box.MODELS)}")
    data = given.data.absolute()
    teacher = read_toml(built_in()[TEACHER])["data"]
    for model in models:
        needed = {data / word for words in evaluation_commands(model).values() for word in words if "/" in word}
        needed.add(data / "docs-en" / "mono.en.xz")
        needed.update(data / one[side] for one in teacher["train"] for side in ("src", "tgt"))  # of both languages
        if missing := sorted(file for file in needed if not file.is_file()):
            raise SystemExit(
                f"{missing[0]} is missing; name the folder that holds the corpora of the recipes "
                f"box-{model} and {TEACHER}"
            )
    for model in models:
        make(model, data, given.runs.absolute(), given.out.absolute())


if __name__ == "__main__":
    main()
