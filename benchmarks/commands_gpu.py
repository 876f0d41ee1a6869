"""glassformer bench gpu and language: training on a GPU, beside compiled peers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def gpu(
    data: Annotated[
        Path | None, typer.Option(help="A folder with train.en.gz and train.de.gz, to measure real batches too.")
    ] = None,
) -> None:
    """Training throughput on a GPU: glassformer beside compiled Hugging Face Marian and torch.nn.Transformer."""
    import torch

    from benchmarks.throughput import BASE, MATRIX_RATE, REAL, SHAPES, operations, throughput
    from glassformer.common.errors import GlassformerError

    if not torch.cuda.is_available():
        raise GlassformerError("glassformer bench gpu needs a CUDA device, and this torch sees none")
    found = throughput(data, lambda text: print(text, file=sys.stderr, flush=True))
    print(
        f"training, d {BASE.d_model}, {BASE.layers}+{BASE.layers} layers, vocabulary {BASE.vocab_size}, bf16, "
        f"all compiled; torch {torch.__version__}, {torch.cuda.get_device_name()}; thousand target tokens/s\n"
    )
    ours = found.speeds.get("glassformer", {})
    for rows, length in SHAPES:
        shape = f"{rows}x{length}"
        peers = {
            name: speeds[shape] for name, speeds in found.speeds.items() if name != "glassformer" and shape in speeds
        }
        everyone = ({"glassformer": ours[shape]} if shape in ours else {}) | peers
        for name, speed in everyone.items():
            share = speed * operations(BASE, length) / MATRIX_RATE
            print(f"{rows} x ({length} + {length})  {name:22} {speed / 1000:7.0f}   MFU {share:.1%}")
        if peers and shape in ours:
            print(f"  ours to the best peer: {ours[shape] / max(peers.values()):.2f}\n")
    static = f"{SHAPES[0][0]}x{SHAPES[0][1]}"
    if found.real and static in ours:
        print(
            f"real batches of {data}, {REAL.tokens} tokens a step: {found.real_speed / 1000:.0f} thousand non-padding "
            f"target tokens/s, {found.real_speed / ours[static]:.1%} of the static {static}; "
            f"{found.padding:.1%} of the positions are padding"
        )
        for real in found.real:
            print(
                f"  {real.batches:3} of {real.shape.rows:4} x ({real.shape.src} + {real.shape.tgt})  "
                f"{1000 * real.seconds / real.batches:6.1f} ms each  {real.tokens / real.seconds / 1000:5.0f}"
            )


def language() -> None:
    """Training a language model of GPT-2 small's shape on a GPU: glassformer beside compiled Hugging Face GPT-2 and a
    compiled decoder in plain PyTorch."""
    import torch

    from benchmarks.language import GPT2, LENGTH, NAMES, ROWS
    from benchmarks.language import language as measured
    from glassformer.common.errors import GlassformerError

    if not torch.cuda.is_available():
        raise GlassformerError("glassformer bench language needs a CUDA device, and this torch sees none")
    found = measured(lambda text: print(text, file=sys.stderr, flush=True))
    print(
        f"training, d {GPT2.d_model}, {GPT2.layers} layers, vocabulary {GPT2.vocab_size}, {ROWS} x {LENGTH} tokens, "
        f"bf16, all compiled; torch {torch.__version__}, {torch.cuda.get_device_name()}; thousand tokens/s\n"
    )
    best = max((speed for name, speed in found.items() if name in NAMES[2:]), default=float("nan"))
    for name, speed in found.items():
        print(f"{name:26} {speed / 1000:7.0f}   {speed / best:.2f}x the best peer")
