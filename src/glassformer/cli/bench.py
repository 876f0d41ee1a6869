"""`glassformer bench`: the figures, each beside its peers'."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict
from typing import Annotated

import typer

bench = typer.Typer(help="Measure speed beside the peers, in one run.", no_args_is_help=True)


@bench.command("train")
def train(
    rounds: Annotated[int, typer.Option(help="Timed steps of each model.", min=1)] = 7,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """A training step on this machine's CPU: glassformer, Hugging Face Marian and torch.nn.Transformer in turn."""
    import torch

    from glassformer.bench.train import SMALL, training_steps

    def report(text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{text}  ", end="", file=sys.stderr, flush=True)

    rows = training_steps(rounds=rounds, report=report)
    if sys.stderr.isatty():
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    print(
        f"training step, 64 x (24 + 24) tokens, d {SMALL.d_model}, {SMALL.layers}+{SMALL.layers} layers, "
        f"vocabulary {SMALL.vocab_size}; torch {torch.__version__}, {torch.get_num_threads()} threads, "
        f"{platform.machine()}\n"
    )
    print(f"{'':22} {'precision':10} {'ms/step':>8} {'tokens/s':>9}   ratio")
    for row in rows:
        against = "of the best peer's speed" if row.name == "glassformer" else "of ours"
        print(
            f"{row.name:22} {row.precision:10} {1000 * row.seconds:8.0f} {row.tokens:9.0f}   {row.ratio:.2f} {against}"
        )
