"""From corpora to a translator both ways, stage by stage. Each stage is commands of glassformer that can be given by
hand: one that is done is not done again, one that was stopped goes on.

    clean     each corpus without what teaches something wrong, and without what is held out
    augment   pairs as people write them, made of the clean ones and of templates
    teacher   a large model, trained on these
    texts     text of one language, translated by the teacher: the student learns from it in both directions
    student   the model that ships, trained on all of it
    model     its weights in int8 or int6, its scores and its cards
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from glassformer.common.device import pick_device
from glassformer.common.errors import ConfigError, DataError, RunError, check_names, did_you_mean
from glassformer.common.files import to_toml, write_text
from glassformer.common.report import clock
from glassformer.data.augmentation import augment, synthetic
from glassformer.data.corpus import Corpus, Pair
from glassformer.data.readers import read_lines, read_pairs
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.pipelines.confidence import read_confidence
from glassformer.train.card import NAMES, write_cards
from glassformer.train.evaluation.calibration import FEWEST
from glassformer.train.recipe import read_toml, set_value
from glassformer.weights.bundle import read_config
from glassformer.weights.quantized import empty_model

SPLITS, STAGES = ("valid", "test"), ("teacher", "student")
KEPT = 1000  # pairs for validation, from the ends of all corpora, where no set is given
MOST_KEPT = 0.1  # of a corpus
DEFAULTS, SMALL = Path(__file__).with_suffix(".toml"), Path(__file__).with_name("make-small.toml")
TRIED = {"cpu": 2048, "cuda": 32_768}  # tokens of a step that is timed
LONG = 24 * 3600.0  # seconds of training that call for a hint
Files = dict[str, Path]  # of a corpus, by language


@dataclass(frozen=True)
class Plan:
    """What is to be made of which corpora, with `settings` as train/make.toml has them."""

    source: str
    target: str
    data: Path
    out: Path
    settings: dict[str, Any]
    device: str = "auto"

    @cached_property
    def files(self) -> dict[str, Files]:
        """The files of both languages, or of one, by their path without the language: NAME, NAME/train, NAME/mono."""
        ending, found = re.compile(rf"\.({self.source}|{self.target})(\.(gz|xz|zst))?$"), dict[str, Files]()
        for file in sorted(self.data.rglob("*")):
            path = file.relative_to(self.data).as_posix()
            if (match := ending.search(path)) and file.is_file() and self.out not in file.parents:
                found.setdefault(path[: match.start()], {})[match[1]] = file
        return found

    def corpora(self, of: str) -> dict[str, Files]:
        """The corpora of `of`: pairs to `train` on, to choose by (`valid`) or to judge by (`test`), or `mono` texts."""
        found = {}
        for path, files in self.files.items():
            folder, _, last = path.rpartition("/")
            split = "mono" if re.fullmatch("mono(-.*)?", last) else last if last in SPLITS else "train"
            name = folder if folder and last in (*SPLITS, "train", "mono") else path
            if split == of and (of == "mono" or len(files) == 2):
                found[name.replace("/", "-")] = files
        chosen = self.settings.get(of)
        for name in chosen or ():
            if name not in found:
                raise DataError(
                    f"{self.data} holds no `{name}` of {self.source} and {self.target}{did_you_mean(name, found)}"
                )
        return found if chosen is None else {name: found[name] for name in chosen}

    def options(self, name: str) -> dict[str, Any]:
        """How a corpus is read: its weight, and the share in which placeholders are learnt."""
        chosen = self.settings.get("train")
        return dict(chosen[name]) if isinstance(chosen, dict) else {}

    def trained(self, stage: str) -> dict[str, Any]:
        """The settings of a training; a student that goes on from the teacher has its vocabulary and its shape."""
        own = self.settings[stage]
        if not own["train"].get("start"):
            return dict(own)
        first, free = self.settings["teacher"], ("dropout", "attention_dropout", "activation_dropout")
        model = first["model"] | {name: value for name, value in own.get("model", {}).items() if name in free}
        return dict(own | {"tokenizer": first["tokenizer"], "model": model})

    @property
    def pairs(self) -> list[Pair]:
        return [(self.source, self.target), (self.target, self.source)]


def read_plan(pair: str, data: Path, out: Path, file: Path | None, changes: Sequence[str], device: str) -> Plan:
    """The plan of `pair`, such as ca-nl, with the settings of a file and then the changes, KEY=VALUE."""
    match = re.fullmatch(r"([a-z]{2,3})-([a-z]{2,3})", pair)
    if not match or match[1] == match[2]:
        raise ConfigError(f"{pair!r:.40} is no pair of languages; write two codes with - between, such as ca-nl")
    if not data.is_dir():
        raise DataError(f"{data} is not a folder; name the one that holds the corpora")
    settings, known = read_toml(DEFAULTS), read_toml(DEFAULTS)
    file = SMALL if file and str(file) == "small" and not file.exists() else file
    for section, values in (read_toml(file) if file else {}).items():
        merge(settings, section, values)
    for change in changes:
        set_value(settings, change)
    check_names([*settings], [*known, *SPLITS, "train", "mono"])
    return Plan(match[1], match[2], data.absolute(), out.absolute(), settings, device)


def merge(into: dict[str, Any], key: str, value: Any) -> None:
    if isinstance(value, dict) and isinstance(into.get(key), dict):
        for name, inner in value.items():
            merge(into[key], name, inner)
    else:
        into[key] = value


def make(plan: Plan) -> None:
    """Every stage that is not done."""
    train, texts = plan.corpora("train"), plan.corpora("mono")
    device = pick_device(plan.device)
    if not train:
        one, both = f"NAME.{plan.source} with NAME.{plan.target}", "NAME/train of both"
        raise DataError(f"{plan.data} holds no pairs; put there {one}, or {both}; and NAME/mono of either")
    keep_plan(plan)
    print_cost(plan, device)
    sets = {split: plan.corpora(split) for split in SPLITS}
    sets["valid"] = sets["valid"] or hold_out(plan, train)
    sets["test"] = sets["test"] or sets["valid"]
    kept = {file for some in sets.values() for files in some.values() for file in files.values()}
    held_out = [word for file in sorted(kept) for word in ("--held-out", file)]
    languages = ("--source", plan.source, "--target", plan.target)
    for name, files in train.items():
        sides = (files[plan.source], files[plan.target])
        glassformer("clean", *sides, *languages, "--out", plan.out / "clean" / name, *held_out)
    for name, files in texts.items():
        for language, file in files.items():
            words = ("--source", language, "--sentences", "--out", plan.out / "texts" / name / language)
            glassformer("clean", file, *words, *held_out)
    for source, target in plan.pairs:
        write_pairs(plan.out / "augment" / f"{source}-{target}.tsv", augmented(plan, source, target, train))
    tsv = [{"tsv": str(plan.out / "augment" / f"{a}-{b}.tsv"), "from": a, "to": b} for a, b in plan.pairs]
    corpora = [*cleaned(plan, train), *tsv]
    learn(plan, "teacher", corpora, sets)
    corpora += [table for name, files in texts.items() for code in files for table in translated(plan, name, code)]
    learn(plan, "student", corpora, sets)
    finish(plan, sets["test"], sets["valid"])


def print_cost(plan: Plan, device: torch.device) -> None:
    """Say about how long what is left to train will take here."""
    left = [stage for stage in STAGES if not (plan.out / stage / "model.safetensors").is_file()]
    needed = {stage: training_seconds(plan.trained(stage), device) for stage in left}
    for stage, seconds in needed.items():
        steps = plan.settings[stage]["train"]["steps"]
        print(f"{stage}: {steps:,} steps, about {clock(seconds)} on {device.type}, if nothing else runs", flush=True)
    if device.type == "cpu" and sum(needed.values()) > LONG:
        print(
            "that is for a GPU (--device cuda); --plan small makes a small translator on a CPU, in minutes", flush=True
        )


def training_seconds(settings: dict[str, Any], device: torch.device) -> float:
    """About how long a training takes, by a few steps on random tokens; compiled on a GPU it takes half as long."""
    model = EncoderDecoder(ModelConfig(vocab_size=settings["tokenizer"]["vocab_size"], **settings["model"])).to(device)
    ids = torch.randint(4, model.config.vocab_size, (TRIED.get(device.type, TRIED["cpu"]) // 32, 32), device=device)
    begin = 0.0
    for _ in range(3):
        with torch.autocast("cuda", torch.bfloat16, device.type == "cuda"):
            loss = torch.nn.functional.cross_entropy(model.train()(ids, ids).flatten(0, 1), ids.flatten())
        loss.backward()
        loss.item()  # waits for the device
        begin = begin or time.perf_counter()  # the first step sets up
    of_a_token = (time.perf_counter() - begin) / 2 / ids.numel()
    return of_a_token * float(settings["train"]["steps"] * settings["train"]["batch_tokens"])


def keep_plan(plan: Plan) -> None:
    """Note in the folder what is made in it; a folder of something else, or with other settings, is left alone."""
    file, told = plan.out / "plan.json", {"data": str(plan.data), "pair": plan.pairs[0], "settings": plan.settings}
    text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
    if file.is_file() and file.read_text(encoding="utf-8") != text:
        raise RunError(
            f"{plan.out} was begun with another folder, pair or settings, which {file} has; name another --out"
        )
    if plan.out.exists() and not file.is_file() and (not plan.out.is_dir() or any(plan.out.iterdir())):
        raise RunError(f"{plan.out} holds something else; name another --out")
    plan.out.mkdir(parents=True, exist_ok=True)
    write_text(file, text)


def hold_out(plan: Plan, corpora: dict[str, Files]) -> dict[str, Files]:
    """The end of each corpus, which is the end of some document, for validation."""
    place, each = plan.out / "held-out", max(1, KEPT // len(corpora))
    place.mkdir(exist_ok=True)
    for name, files in corpora.items():
        made = [place / f"{name}.{language}" for language in (plan.source, plan.target)]
        if all(file.is_file() for file in made):
            continue
        counted = enumerate(read_pairs(Corpus(src=files[plan.source], tgt=files[plan.target], skip_bad=True)), 1)
        last = deque(counted, each)
        pairs = [pair for number, pair in last if number > last[-1][0] * (1 - MOST_KEPT)]
        for file, side in zip(made, zip(*pairs, strict=True), strict=True):
            write_text(file, "".join(f"{text}\n" for text in side))
    return {name: {code: place / f"{name}.{code}" for code in (plan.source, plan.target)} for name in corpora}


def cleaned(plan: Plan, corpora: dict[str, Files]) -> list[dict[str, Any]]:
    """The clean pairs in both directions, as a recipe names them."""
    places = [(plan.out / "clean" / name, plan.options(name)) for name in corpora]
    return [
        {"src": str(place / f"train.{source}"), "tgt": str(place / f"train.{target}"), "from": source, "to": target}
        | options
        for place, options in places
        for source, target in plan.pairs
    ]


def augmented(plan: Plan, source: str, target: str, corpora: dict[str, Files]) -> Iterator[Pair]:
    settings = plan.settings["augment"]
    for name in corpora:
        place = plan.out / "clean" / name
        pairs = read_pairs(Corpus(src=place / f"train.{source}", tgt=place / f"train.{target}"))
        for left, right, _ in augment(pairs, source, target, rate=settings["rate"]):
            yield left, right
    for left, right, _ in synthetic(source, target, settings["templates"]):
        yield left, right


def learn(plan: Plan, stage: str, corpora: list[dict[str, Any]], sets: dict[str, dict[str, Files]]) -> None:
    """Train the teacher or the student by a recipe that is written beside it."""
    run, recipe = plan.out / stage, plan.out / f"{stage}.toml"
    chosen = {
        split: [
            {"src": str(files[source]), "tgt": str(files[target]), "from": source, "to": target}
            for files in sets[split].values()
            for source, target in plan.pairs
        ]
        for split in SPLITS
    }
    about = {"source": plan.source, "target": plan.target} | plan.settings["about"]
    sections = {name: plan.trained(stage).get(name, {}) for name in ("tokenizer", "model", "train", "score")}
    write_text(
        recipe, to_toml({"data": plan.settings["data"] | {"train": corpora} | chosen} | sections | {"about": about})
    )
    if not (run / "model.safetensors").is_file():
        going_on = ["--resume"] if (run / "recipe.toml").is_file() else []
        glassformer("train", recipe, "--out", run, "--device", plan.device, *going_on)


def translated(plan: Plan, name: str, language: str) -> list[dict[str, Any]]:
    """A text and its translation by the teacher, to be learnt in both directions: into the text, which a person wrote,
    and from it, as the teacher would say it."""
    other = plan.target if language == plan.source else plan.source
    place, options = plan.out / "texts" / name / language, plan.settings["texts"]
    text, made = place / f"train.{language}", place / f"to-{other}"
    words = ("--from", language, "--to", other, "--model", plan.out / "teacher", "--beam", options["beam"])
    glassformer("bulk", text, made, *words, "--device", plan.device)
    theirs, ours = str(made / text.name), str(text)
    return [
        {"src": theirs, "tgt": ours, "from": other, "to": language, "weight": options["back"]},
        {"src": ours, "tgt": theirs, "from": language, "to": other, "weight": options["forth"]},
    ]


def finish(plan: Plan, test: dict[str, Files], valid: dict[str, Files]) -> None:
    """The student packed, with its recipe, its scores, how sure it may be, by the first set it was chosen by, and its
    cards. No file of it names a folder of this machine."""
    model, pair = plan.out / "model", "-".join(plan.pairs[0])
    if (model / NAMES["en"]).is_file():
        return
    if not (model / "model.safetensors").is_file():
        glassformer("pack", plan.out / "student", "--out", model, "--weights", plan.settings["model"]["weights"])
    recipe = (plan.out / "student.toml").read_text(encoding="utf-8")
    write_text(model / "recipe.toml", recipe.replace(f"{plan.out}/", "").replace(f"{plan.data}/", ""))
    scores, first = {}, next(iter(valid))
    for name, files in (valid | test).items():
        enough = name == first and len(list(read_lines(files[plan.source]))) >= FEWEST
        for source, target in plan.pairs:
            sides, options = [files[source], files[target]], ("--to", target, "--beam", 4, "--precision", "int8")
            more = ("--device", "cpu", "--json", *(("--calibrate",) if enough else ()))
            told = json.loads(
                glassformer("evaluate", model, "--src", sides[0], "--ref", sides[1], *options, *more, quiet=True)
            )
            src, ref = (side.relative_to(plan.out if side.is_relative_to(plan.out) else plan.data) for side in sides)
            words = ("glassformer", "evaluate", pair, "--src", src, "--ref", ref, *options)
            command = shlex.join(map(str, words))
            scores[f"{name.removesuffix('-' + pair)} {source}-{target}"] = told | {"command": command}
    write_text(model / "scores.json", json.dumps(scores, indent=1) + "\n")
    learnt = plan.corpora("train") | plan.corpora("mono")
    places = {name: plan.out / "clean" / name / f"train.{plan.source}" for name in plan.corpora("train")}
    places |= {
        name: plan.out / "texts" / name / code / f"train.{code}"
        for name, files in plan.corpora("mono").items()
        for code in files
    }
    write_cards(
        model,
        plan.pairs[0],
        sum(one.numel() for one in empty_model(read_config(model).config).parameters()),
        plan.settings,
        {name: sum(1 for _ in read_lines(place)) for name, place in places.items()},
        {name: terms(plan, files) for name, files in learnt.items()},
        read_confidence(model),
    )


def terms(plan: Plan, files: Files) -> str:
    """What a corpus asks to be said of it, in the ATTRIBUTION.txt beside it."""
    place = next(iter(files.values())).parent / "ATTRIBUTION.txt"
    return place.read_text(encoding="utf-8").strip() if place.is_file() and place.parent != plan.data else ""


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Write pairs as TSV, unless the file is there; a stopped try leaves none."""
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        partial = path.with_suffix(".partial")
        with partial.open("w", encoding="utf-8") as file:
            file.writelines(f"{source}\t{target}\n" for source, target in pairs)
        partial.rename(path)


def glassformer(*words: object, quiet: bool = False) -> str:
    """Run a command of glassformer; with `quiet`, return what it prints instead of showing it."""
    command = [str(word) for word in words]
    print("$ glassformer", shlex.join(command), flush=True)
    output = subprocess.PIPE if quiet else None
    ended = subprocess.run([sys.executable, "-m", "glassformer", *command], stdout=output, text=True)
    if ended.returncode:
        raise RunError(
            f"`glassformer {command[0]}` has failed, as it says above; mend that and give the same command again"
        )
    return ended.stdout or ""
