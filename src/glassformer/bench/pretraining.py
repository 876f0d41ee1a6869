"""Does pretraining help, and how much? Few labels, and few pairs, from nothing and from a model of plain texts.

    python -m glassformer.bench.pretraining DATA OUT

DATA holds docs-en/mono.en and tatoeba-en-de (train and valid, en and de), gzip or xz. Two questions, each asked with
several seeds, which also draw the few:

    labels   2,000 short English sentences, each from documentation or from everyday talk: which?
             from nothing; from a model that fills gaps, frozen, tuned, and by an adapter
    pairs    1,000, 3,000 and 10,000 everyday sentences to German
             from nothing; from a model that mends noisy English and German, unaligned
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from glassformer.evaluation import evaluate
from glassformer.report import Report
from glassformer.scores import Scores
from glassformer.text.lines import read_lines
from glassformer.train.recipe import parse
from glassformer.train.run import train
from glassformer.use import Classifier

STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36}  # of 95 %, by the number of seeds
LABELLED, TESTED = 2000, 2000
WORDS, LETTERS = (3, 8), 80  # of a sentence that is labelled
TRAIN: dict[str, Any] = {"schedule": "cosine", "label_smoothing": 0.0, "log_every": 200, "ship": "best", "keep_last": 1}
WAYS: dict[str, dict[str, Any]] = {
    "from nothing": {"lr": 5e-4},
    "frozen": {"lr": 3e-3, "freeze": ["encoder.*"]},
    "tuned": {"lr": 3e-4, "layer_decay": 0.8},
    "adapter": {"lr": 2e-3, "lora_rank": 8, "lora_on": ["*attention.*", "*feed_forward*"]},
}


def lines(folder: Path, name: str) -> list[str]:
    (file,) = folder.glob(f"{name}*")
    return list(read_lines(file))


def write(path: Path, rows: Sequence[str]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return str(path)


def told(values: Sequence[float]) -> str:
    """The mean, and half the width of its interval of 95 %."""
    if len(values) < 2:
        return f"{values[0]:.2f}"
    return f"{mean(values):.2f} ± {STUDENT[len(values)] * stdev(values) / len(values) ** 0.5:.2f}"


class Bench:
    def __init__(self, data: Path, out: Path, seeds: int, scale: float, device: str) -> None:
        self.data, self.out, self.seeds, self.scale, self.device = data, out, seeds, scale, device
        size = {"d_model": 256, "heads": 4, "d_ff": 1024, "layers": 4} if scale == 1 else {"d_model": 64, "heads": 4}
        small = {"d_ff": 128, "layers": 2} if scale < 1 else {}
        self.model = size | small | {"max_length": 136, "dropout": 0.1, "output_bias": True}

    def steps(self, count: int) -> int:
        return max(20, round(count * self.scale))

    def run(self, name: str, steps: int, data: dict[str, Any], **given: Any) -> Path:
        """Train, unless it was done before."""
        folder = self.out / name
        if (folder / "model.safetensors").exists():
            return folder
        steps = self.steps(steps)
        every = {"valid_every": max(10, steps // 10), "save_every": max(10, steps // 10), "warmup_steps": steps // 10}
        model = {} if given.get("start") else self.model
        tokenizer = {"vocab_size": given.pop("vocab_size", 8000 if self.scale == 1 else 800)}
        settings = TRAIN | every | {"steps": steps, "batch_tokens": 8192 if self.scale == 1 else 1024} | given
        recipe = parse({"data": {"max_tokens": 128} | data, "tokenizer": tokenizer, "model": model, "train": settings})
        return train(recipe, folder, device=self.device, report=Report(quiet=True), resume=folder.exists())

    def labels(self) -> dict[str, list[float]]:
        chance, least = random.Random(0), WORDS[0]
        kinds = {
            "docs": lines(self.data / "docs-en", "mono.en"),
            "everyday": lines(self.data / "tatoeba-en-de", "train.en"),
        }
        short = {
            name: sorted(
                {
                    row
                    for row in rows
                    if least <= len(row.split()) <= WORDS[1] and len(row) <= LETTERS and "\t" not in row
                }
            )
            for name, rows in kinds.items()
        }
        for rows in short.values():
            chance.shuffle(rows)
        held = {name: (rows[:TESTED], rows[TESTED : 4 * TESTED]) for name, rows in short.items()}
        apart = {row for both in held.values() for part in both for row in part}
        plain = [row for rows in kinds.values() for row in rows if row not in apart]
        chance.shuffle(plain)
        few = {"text": write(self.out / "data" / "plain.valid", plain[:1000])}
        corpus = {"train": [{"text": write(self.out / "data" / "plain.train", plain[1000:])}], "valid": [few]}
        base = self.run("fills", 20_000, corpus, objective="masked", lr=1e-3)
        tested = [(row, name) for name, (test, _) in held.items() for row in test]
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for seed in range(self.seeds):
            drawn = random.Random(seed + 1)
            rows = [f"{row}\t{name}" for name, (_, rest) in held.items() for row in drawn.sample(rest, LABELLED // 2)]
            drawn.shuffle(rows)
            cut = LABELLED * 9 // 10  # the rest of the labels says when to stop
            data = {
                split: [{"tsv": write(self.out / "data" / f"labels.{seed}.{split}", part)}]
                for split, part in (("train", rows[:cut]), ("valid", rows[cut:]))
            }
            for way, given in WAYS.items():
                begun = (
                    {"vocab_size": 2000 if self.scale == 1 else 400} if way == "from nothing" else {"start": str(base)}
                )
                folder = self.run(f"labels-{way.replace(' ', '-')}-{seed}", 600, data, objective="classify", seed=seed,
                                  precision="fp32", **begun, **given)  # fmt: skip
                said = Classifier.load(folder, self.device).classify([text for text, _ in tested], top=1)
                right = sum(one[0].name == name for one, (_, name) in zip(said, tested, strict=True))
                found[way].append(100 * right / len(tested))
        return found

    def pairs(self, sizes: Sequence[int] = (1000, 3000, 10_000)) -> dict[str, list[float]]:
        folder = self.data / "tatoeba-en-de"
        sides = [lines(folder, f"train.{side}") for side in ("en", "de")]
        order = random.Random(0).sample(range(len(sides[0])), len(sides[0]))
        kept, rest = order[: 5 * max(sizes)], order[5 * max(sizes) :]
        plain = [side[i] for side in sides for i in rest]
        random.Random(1).shuffle(plain)
        few = {"text": write(self.out / "data" / "noisy.valid", plain[:1000])}
        corpus = {"train": [{"text": write(self.out / "data" / "noisy.train", plain[1000:])}], "valid": [few]}
        base = self.run("mends", 20_000, corpus, objective="denoise", noise="infill", lr=7e-4)
        valid = [lines(folder, f"valid.{side}") for side in ("en", "de")]
        half = len(valid[0]) // 2
        found: dict[str, list[float]] = {}
        for count in sizes:
            for seed in range(self.seeds):
                chosen = random.Random(seed + 1).sample(kept, count)
                rows = [f"{sides[0][i]}\t{sides[1][i]}" for i in chosen]
                judged = [f"{en}\t{de}" for en, de in zip(valid[0][:half], valid[1][:half], strict=True)]
                data = {
                    "train": [{"tsv": write(self.out / "data" / f"pairs.{count}.{seed}", rows)}],
                    "valid": [{"tsv": write(self.out / "data" / "pairs.valid", judged)}],
                }
                ways: dict[str, dict[str, Any]] = {
                    "from nothing": {"lr": 1e-3, "vocab_size": 2000 if self.scale == 1 else 500},
                    "tuned": {"lr": 3e-4, "start": str(base)},
                }
                for way, given in ways.items():
                    name = f"pairs-{count}-{way.replace(' ', '-')}-{seed}"
                    made = self.run(name, 3000, data, seed=seed, **given)
                    scored = evaluate(made, valid[0][half:], valid[1][half:], beam=4, device=self.device)
                    assert isinstance(scored.scores, Scores)
                    found.setdefault(f"{count:,} {way}", []).append(scored.scores.bleu)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", choices=("labels", "pairs"))
    parser.add_argument("--seeds", type=int, default=5, choices=range(1, 9))
    parser.add_argument("--scale", type=float, default=1.0, help="of the steps; below 1 the models are small too")
    parser.add_argument("--device", default="auto")
    asked = parser.parse_args()
    bench = Bench(asked.data, asked.out, asked.seeds, asked.scale, asked.device)
    questions: dict[str, Callable[[], dict[str, list[float]]]] = {"labels": bench.labels, "pairs": bench.pairs}
    for name, ask in questions.items():
        if asked.only in (None, name):
            found = ask()
            write(asked.out / f"{name}.json", [json.dumps(found)])
            print(
                f"{name}: {'accuracy, %' if name == 'labels' else 'BLEU'}, mean of {asked.seeds} seeds, 95 % interval"
            )
            for way, values in found.items():
                print(f"  {way:22} {told(values)}", flush=True)


if __name__ == "__main__":
    main()
