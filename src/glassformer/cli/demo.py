"""`glassformer demo`: from nothing to a translator, in a few minutes."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

from typer import Option

from glassformer.cli.options import Device


def demo(
    out: Annotated[Path, Option(help="Where the model goes.")] = Path("runs/demo"),
    seed: Annotated[int, Option(help="Another seed, another run.")] = 0,
    device: Device = "auto",
) -> None:
    """Train an English-German translator of numbers, dates, times and money from scratch, and try it.

    An interrupted demo goes on where it stood; one that is finished is not trained again, but tried again.
    """
    from glassformer.cli.train import show_results
    from glassformer.common.errors import RunError
    from glassformer.common.report import Report
    from glassformer.train import read_recipe
    from glassformer.train import train as run
    from glassformer.train.evaluation.evaluate import validation_bleu
    from glassformer.train.folder import check_continuation, saved_recipe
    from glassformer.weights.bundle import is_bundle

    recipe = read_recipe("numerals", (f"train.seed={seed}",))
    report = Report()
    begun = saved_recipe(out) if (out / "recipe.toml").exists() else None
    if begun is not None:
        try:
            check_continuation(recipe, begun)
        except RunError:
            raise RunError(f"{out} holds another run; choose another --out") from None
    if begun is not None and is_bundle(out) and (out / "model.safetensors").exists():
        another = out.with_name(f"{out.name}-2")
        print(f"{out} holds the trained demo already. To train it again, beside: glassformer demo --out {another}")
    else:
        print("Training an English-German translator of numbers, dates, times and money, from scratch.\n", flush=True)
        begin = time.monotonic()
        run(recipe, out, resume=begun is not None, device=device, report=report, make_judge=validation_bleu)
        print(f"\nTrained in {time.monotonic() - begin:.0f} seconds.")
    show_results(out, device, report)
    called = "python -m glassformer" if sys.argv[0].endswith("__main__.py") else sys.argv[0]
    program = "glassformer" if shutil.which("glassformer") else called
    hints = {
        f'{program} translate {out} "twenty-one" 1999 "March 3 2021"': "use it",
        f"{program} evaluate {out} --split test": "measure it",
        f"{program} serve {out} --open": "look inside it, on a page",
        f'{program} trace {out} "twenty-one"': "look inside it, in the terminal",
        f"{program} lab": "what tutorials claim, put to the test",
        f"{program} train numerals --set model.norm=post": "change a part and train again",
    }
    print("\nWhat to try next:")
    for command, purpose in hints.items():
        print(f"  {command:{max(map(len, hints))}}   {purpose}")
    if (out / "curve.png").exists():
        print(f"The learning curve: {out / 'curve.png'}")
