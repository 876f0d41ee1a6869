"""How many lines the toy corpus of chapter 19 needs."""

from __future__ import annotations

import io
import random
import tempfile
from pathlib import Path

from glassformer.labs.figures import Figure, Panel, Series, Text
from glassformer.pipelines.translator import Translator
from glassformer.train import Report, read_recipe, train

NOUNS = (
    "cat Katze f,dog Hund m,horse Pferd n,bird Vogel m,mouse Maus f,calf Kalb n,"
    "wolf Wolf m,duck Ente f,pig Schwein n,fish Fisch m,bee Biene f,lamb Lamm n"
)
VERBS = "sees sieht,hears hört,likes mag,finds findet,calls ruft,follows verfolgt"
DOER = {"m": ("der", "ein"), "f": ("die", "eine"), "n": ("das", "ein")}
DONE_TO = DOER | {"m": ("den", "einen")}
SIZES = (30, 60, 125, 250, 500, 1000)
TEST = 200
RECIPE = """
[[data.train]]
tsv = "train.tsv"
[tokenizer]
kind = "words"  # so that every size has the same pieces
[model]
d_model = 64
heads = 4
d_ff = 128
layers = 1
max_length = 272
dropout = 0.0
[train]
steps = 150
batch_tokens = 512
lr = 4e-3
schedule = "cosine"
warmup_steps = 20
label_smoothing = 0.0
precision = "fp32"
log_every = 150
save_every = 150
"""


def draw() -> Figure:
    pairs = corpus()
    shares = [learnt(pairs[:size], pairs[-TEST:]) for size in SIZES]
    return Figure(
        panels=[
            Panel(
                Text("How many lines does it take?", "要多少行才够？"),
                Text("training lines", "训练用的行数"),
                Text("exact matches on unseen sentences, %", "未见句子的完全匹配率（%）"),
                [Series(Text("150 steps each", "各训 150 步"), SIZES, shares)],
                log_x=True,
            )
        ],
        caption=Text(
            "The animals of this chapter: 12 nouns, 6 verbs, 2 articles; each word a piece of its own.",
            "本章的动物语料：12 个名词、6 个动词、2 种冠词；一个词就是一个词元。",
        ),
    )


def corpus() -> list[tuple[str, str]]:
    nouns, verbs = ([entry.split() for entry in table.split(",")] for table in (NOUNS, VERBS))
    pairs = [
        (
            f"{('the', 'a')[i]} {subject[0]} {verb[0]} {('the', 'a')[j]} {thing[0]}",
            f"{DOER[subject[2]][i]} {subject[1]} {verb[1]} {DONE_TO[thing[2]][j]} {thing[1]}",
        )
        for subject in nouns
        for verb in verbs
        for thing in nouns
        if subject != thing
        for i in (0, 1)
        for j in (0, 1)
    ]
    random.Random(0).shuffle(pairs)
    return pairs


def learnt(lines: list[tuple[str, str]], unseen: list[tuple[str, str]]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "train.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in lines), encoding="utf-8")
        (place / "recipe.toml").write_text(RECIPE, encoding="utf-8")
        train(read_recipe(str(place / "recipe.toml")), place / "run", device="cpu", report=Report(io.StringIO()))
        found = Translator.load(place / "run").translate([source for source, _ in unseen])
    return 100 * sum(best[0].text == target for best, (_, target) in zip(found, unseen, strict=True)) / len(unseen)
