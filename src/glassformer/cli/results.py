"""What is printed at the end of a training run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glassformer.evaluation import Evaluation
    from glassformer.report import Report


def show_results(folder: Path, device: str, report: Report) -> None:
    """A run's score on unseen pairs, recorded with them, and a few translations, right ones and wrong ones."""
    from glassformer.evaluation import evaluate, into, record_scores, seen_in_training
    from glassformer.train.folder import saved_recipe

    if int(os.environ.get("RANK", "0")):
        return
    recipe = saved_recipe(folder)
    if recipe.train.objective != "translate":
        return
    split = "test" if recipe.data.test else "valid"
    corpora = recipe.data.test or recipe.data.valid
    if not corpora:
        return
    for to in sorted({corpus.to for corpus in corpora}, key=str):
        found = evaluate(folder, split=split, to=to, device=device, report=report)
        seen = seen_in_training(into(to, corpora), recipe, report)
        command = f"glassformer evaluate {folder} --split {split}" + (f" --to {to}" if to else "")
        details: dict[str, Any] = {"command": command}
        record_scores(folder, found, report, **details | ({} if seen is None else {"met_in_training": seen}))
        told = ", never trained on" if seen == 0 else ""
        if seen:
            told = f" ({seen:,} of {found.scores.sentences:,} are also training pairs)"
        print(f"\n{found.name} pairs{told}:  {found.scores}")
        show_samples(found, recipe.score.samples)


def show_samples(found: Evaluation, count: int) -> None:
    """Some right and some wrong translations, spread over the set."""
    rows = list(zip(found.sources, found.hypotheses, found.references, strict=True))
    wrong = [row for row in rows if row[1] != row[2]]
    right = [row for row in rows if row[1] == row[2]]
    few = wrong[:: max(1, len(wrong) // max(1, count // 4))][: max(count // 4, count - len(right))]
    many = right[:: max(1, len(right) // max(1, count - len(few)))][: count - len(few)]
    print()
    for source, output, _ in many:
        print(f"  ✓ {source}  →  {output}")
    for source, output, reference in few:
        print(f"  ✗ {source}  →  {output}\n      expected: {reference}")
