"""Does pretraining help, and how much? Few labels, and few pairs, from nothing and from a model of plain texts.

    python -m benchmarks.pretraining DATA OUT --filler FOLDER

DATA holds docs-en-de and docs-en-zh (valid and test, English) and tatoeba-en-de (train and valid, both sides), gzip or
xz. FOLDER is a model that fills gaps, as the recipe docs-bert makes one, which has met none of these sentences. Two
questions, each asked with several seeds, which also draw the few:

    labels   200 and 2,000 short English sentences, each from documentation or from everyday talk: which?
             from nothing; from the filler, frozen, tuned, and by an adapter
    pairs    1,000, 3,000 and 10,000 everyday sentences to German
             from nothing; from a model, trained first, that mends noisy English and German, unaligned

Each way is trained at each of its two rates, and the rate whose loss is lower on what is held out for that is judged,
once, on sentences that nobody has seen.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from glassformer.common.report import Report
from glassformer.data.readers import read_lines
from glassformer.labs.spread import Spread
from glassformer.pipelines import Classifier
from glassformer.train.evaluation.evaluate import evaluate
from glassformer.train.evaluation.metrics import Scores
from glassformer.train.recipe import parse
from glassformer.train.run import train

LABELLED = (200, 2000)
WORDS, LETTERS = (3, 16), 120  # of a sentence that is labelled
STEPS = {1000: 600, 3000: 1000, 10_000: 2500}  # by the number of pairs
SMALL = {"d_model": 256, "heads": 4, "d_ff": 1024, "layers": 4, "max_length": 136, "dropout": 0.1, "norm": "pre"}
TRAIN: dict[str, Any] = {"schedule": "cosine", "label_smoothing": 0.0, "log_every": 200, "ship": "best", "keep_last": 1}
RATES: dict[str, tuple[float, float]] = {
    "from nothing": (5e-4, 1.5e-3),
    "frozen": (3e-3, 1e-2),
    "tuned": (1e-4, 4e-4),
    "adapter": (1e-3, 4e-3),
}
WAYS: dict[str, dict[str, Any]] = {
    "from nothing": {},
    "frozen": {"freeze": ["encoder.*"]},
    "tuned": {"layer_decay": 0.8},
    "adapter": {"lora_rank": 8, "lora_on": ["*attention.*", "*feed_forward*"]},
}


@dataclass(frozen=True, eq=False)
class Job:
    """One training and its judgement. Those of one question, way and seed differ in their rate alone."""

    question: str
    way: str
    seed: int
    rate: float
    recipe: dict[str, Any]
    folder: Path
    tested: Path  # a sentence, a tab, and its label or translation
    device: str


def lines(*files: Path) -> list[str]:
    return [line for file in files for path in sorted(file.parent.glob(f"{file.name}*")) for line in read_lines(path)]


def write(path: Path, rows: Sequence[str]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return str(path)


def recipe(data: dict[str, Any], steps: int, start: Path | None, vocabulary: int, **given: Any) -> dict[str, Any]:
    every = {"valid_every": max(10, steps // 10), "save_every": steps, "warmup_steps": steps // 10}
    settings = TRAIN | every | {"steps": steps, "batch_tokens": 8192} | given
    begun = {"tokenizer": {"vocab_size": vocabulary}, "model": SMALL} if start is None else {}
    return {"data": {"max_tokens": 128} | data, "train": settings | ({"start": str(start)} if start else {})} | begun


def trained(given: dict[str, Any], folder: Path, device: str) -> Path:
    """Train, unless it was done before."""
    if not (folder / "model.safetensors").exists():
        train(parse(given), folder, device=device, report=Report(quiet=True), resume=folder.exists())
    return folder


def judged(job: Job) -> tuple[float, float]:
    """The lowest loss on what was held out, and the percentage right, or BLEU, on what was not seen at all."""
    trained(job.recipe, job.folder, job.device)
    met = map(json.loads, (job.folder / "metrics.jsonl").read_text().splitlines())
    loss = min(row["valid_loss"] for row in met if "valid_loss" in row)
    sources, wanted = zip(*(row.split("\t") for row in lines(job.tested)), strict=True)
    if job.question.endswith("labels"):
        said = Classifier.load(job.folder, job.device).classify(list(sources), top=1)
        return loss, 100 * mean(one[0].name == label for one, label in zip(said, wanted, strict=True))
    scored = evaluate(job.folder, list(sources), list(wanted), beam=4, device=job.device).scores
    assert isinstance(scored, Scores)
    return loss, scored.bleu


def labels(data: Path, out: Path, seeds: int, filler: Path, device: str) -> Iterator[Job]:
    chance = random.Random(0)
    kinds = {
        "docs": lines(
            *(data / pair / f"{part}.en" for pair in ("docs-en-de", "docs-en-zh") for part in ("valid", "test"))
        ),
        "everyday": lines(data / "tatoeba-en-de" / "train.en"),
    }
    short = {
        name: sorted({row for row in rows if WORDS[0] <= len(row.split()) <= WORDS[1] and len(row) <= LETTERS})
        for name, rows in kinds.items()
    }
    for rows in short.values():
        chance.shuffle(rows)
    cut = len(short["docs"]) // 4
    tests = [f"{row}\t{name}" for name, rows in short.items() for row in rows[:cut]]
    tested = Path(write(out / "data" / "labels.test", tests))
    for count, seed in itertools.product(LABELLED, range(seeds)):
        drawn = random.Random(seed + 1)
        few = [
            f"{row}\t{name}"
            for name, rows in short.items()
            for row in drawn.sample(rows[cut : len(short["docs"])], count // 2)
        ]
        drawn.shuffle(few)
        parts = {
            split: [{"tsv": write(out / "data" / f"labels.{count}.{seed}.{split}", part)}]
            for split, part in (("train", few[: count * 9 // 10]), ("valid", few[count * 9 // 10 :]))
        }
        for way, given in WAYS.items():
            for rate in RATES[way]:
                start = None if way == "from nothing" else filler
                settings = recipe(parts, 400, start, 1000, objective="classify", seed=seed, lr=rate, **given)
                folder = out / f"labels-{count}-{way.replace(' ', '-')}-{seed}-{rate:g}"
                yield Job(f"{count:,} labels", way, seed, rate, settings, folder, tested, device)


def pairs(data: Path, out: Path, seeds: int, device: str) -> Iterator[Job]:
    folder = data / "tatoeba-en-de"
    sides = [lines(folder / f"train.{side}") for side in ("en", "de")]
    order = random.Random(0).sample(range(len(sides[0])), len(sides[0]))
    kept, rest = order[: 5 * max(STEPS)], order[5 * max(STEPS) :]
    plain = [side[i] for side in sides for i in rest]
    random.Random(1).shuffle(plain)
    few = {"text": write(out / "data" / "noisy.valid", plain[:1000])}
    corpus = {"train": [{"text": write(out / "data" / "noisy.train", plain[1000:])}], "valid": [few]}
    mends = recipe(corpus, 8000, None, 8000, objective="denoise", noise="infill", lr=1e-3, batch_tokens=16_384)
    base = trained(mends, out / "mends", device)
    rows = [f"{en}\t{de}" for en, de in zip(*(lines(folder / f"valid.{side}") for side in ("en", "de")), strict=True)]
    valid = [{"tsv": write(out / "data" / "pairs.valid", rows[: len(rows) // 2])}]
    tested = Path(write(out / "data" / "pairs.test", rows[len(rows) // 2 :]))
    for count, steps in STEPS.items():
        for seed in range(seeds):
            drawn = [f"{sides[0][i]}\t{sides[1][i]}" for i in random.Random(seed + 1).sample(kept, count)]
            parts = {"train": [{"tsv": write(out / "data" / f"pairs.{count}.{seed}", drawn)}], "valid": valid}
            for way in ("from nothing", "tuned"):
                for rate in RATES[way]:
                    start = None if way == "from nothing" else base
                    given = recipe(parts, steps, start, 2000, seed=seed, lr=rate)
                    name = out / f"pairs-{count}-{way.replace(' ', '-')}-{seed}-{rate:g}"
                    yield Job(f"{count:,} pairs", way, seed, rate, given, name, tested, device)


def table(found: dict[Job, tuple[float, float]]) -> dict[tuple[str, str], list[float]]:
    """For each question and way, each seed's score at the rate whose loss was lower."""
    best: dict[tuple[str, str, int], tuple[float, float]] = {}
    for job, (loss, score) in found.items():
        key = job.question, job.way, job.seed
        best[key] = min(best.get(key, (loss, score)), (loss, score))
    rows: dict[tuple[str, str], list[float]] = {}
    for (question, way, _), (_, score) in sorted(best.items(), key=lambda item: item[0][2]):
        rows.setdefault((question, way), []).append(score)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--filler", type=Path, help="without it there are no labels")
    parser.add_argument("--only", choices=("labels", "pairs"))
    parser.add_argument("--seeds", type=int, default=5, choices=range(1, 9))
    parser.add_argument("--at-once", type=int, default=1, help="trainings beside each other")
    parser.add_argument("--device", default="auto")
    asked = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // asked.at_once)))
    jobs: list[Job] = []
    if asked.filler is not None and asked.only != "pairs":
        jobs += labels(asked.data, asked.out, asked.seeds, asked.filler, asked.device)
    if asked.only != "labels":
        jobs += pairs(asked.data, asked.out, asked.seeds, asked.device)
    found: dict[Job, tuple[float, float]] = {}
    with ProcessPoolExecutor(asked.at_once, multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(judged, job): job for job in jobs}
        for done in as_completed(waiting):
            job = waiting[done]
            found[job] = done.result()
            row = {"question": job.question, "way": job.way, "seed": job.seed, "rate": job.rate}
            with (asked.out / "found.jsonl").open("a") as file:
                print(json.dumps(row | dict(zip(("loss", "score"), found[job], strict=True))), file=file)
    print(f"accuracy in percent, or BLEU; mean of {asked.seeds} seeds and its 95 % interval")
    for (question, way), values in table(found).items():
        print(f"{question:13} {way:13} {Spread(values):.2f}")


if __name__ == "__main__":
    main()
