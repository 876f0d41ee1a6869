"""Decoding on a CPU beside Hugging Face `generate` and CTranslate2.

All have one size and write the same number of tokens. CTranslate2 runs our very weights; Hugging Face's Marian, which
is Post-LN, has random ones of its own.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.bench.peers import marian
from glassformer.decode import generate
from glassformer.errors import GlassformerError
from glassformer.model import EncoderDecoder, ModelConfig

BASE = ModelConfig(vocab_size=10_000, d_model=512, heads=8, d_ff=2048, layers=6, end_id=None)  # never ends early
SOURCE, OUTPUT = 20, 24


@dataclass(frozen=True)
class Row:
    name: str
    beam: int
    rows: int
    tokens: float  # per second


def ctranslate2_folder(model: EncoderDecoder, folder: Path) -> None:
    """The model's weights as a CTranslate2 model."""
    import ctranslate2

    specs = ctranslate2.specs
    config = model.config
    spec: Any = specs.TransformerSpec.from_config(
        (config.layers, config.layers), config.heads, pre_norm=True, activation=specs.common_spec.Activation.RELU
    )

    def linear(target: Any, weight: Tensor, bias: Tensor) -> None:
        target.weight, target.bias = weight.detach().numpy(), bias.detach().numpy()

    def norm(target: Any, source: Any) -> None:
        target.gamma, target.beta = source.weight.detach().numpy(), source.bias.detach().numpy()

    sides: list[tuple[Any, Any]] = [(spec.encoder, model.encoder), (spec.decoder, model.decoder)]
    for side, stack in sides:
        embedding = stack.embedding.tokens.weight.detach().numpy()
        places = side.embeddings if isinstance(side.embeddings, list) else [side.embeddings]
        places[0].weight = embedding
        side.scale_embeddings = True
        side.position_encodings.encodings = stack.embedding.positions.table.numpy()
        norm(side.layer_norm, stack.norm)
        for layer, block in zip(side.layer, stack.blocks, strict=True):
            own = block.self_attention
            norm(layer.self_attention.layer_norm, block.self_attention_residual.norm)
            linear(layer.self_attention.linear[0], own.projection.weight, own.projection.bias)
            linear(layer.self_attention.linear[1], own.output.weight, own.output.bias)
            if side is spec.decoder:
                cross, queries = block.cross_attention, block.cross_attention.projection.rows[0]
                norm(layer.attention.layer_norm, block.cross_attention_residual.norm)
                linear(layer.attention.linear[0], cross.projection.weight[:queries], cross.projection.bias[:queries])
                linear(layer.attention.linear[1], cross.projection.weight[queries:], cross.projection.bias[queries:])
                linear(layer.attention.linear[2], cross.output.weight, cross.output.bias)
            norm(layer.ffn.layer_norm, block.feed_forward_residual.norm)
            linear(layer.ffn.linear_0, block.feed_forward.up.weight, block.feed_forward.up.bias)
            linear(layer.ffn.linear_1, block.feed_forward.down.weight, block.feed_forward.down.bias)
    spec.decoder.projection.weight = model.head.weight.detach().numpy()
    words = ["<pad>", "<s>", "</s>", "<unk>", *(f"t{i}" for i in range(4, config.vocab_size))]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


def contestants(model: EncoderDecoder, src: Tensor, beam: int, folder: Path) -> dict[str, Callable[[], Any]]:
    """What is timed, by name; each writes OUTPUT tokens for every source."""
    try:
        import ctranslate2
    except ImportError:
        raise GlassformerError("the benchmark runs CTranslate2 beside us: pip install ctranslate2") from None
    words = [[f"t{i}" for i in row] for row in src.tolist()]
    peer = marian(model.config).eval()
    half = EncoderDecoder(model.config).eval().bfloat16()

    def engine(kind: str) -> Callable[[], Any]:
        translator = ctranslate2.Translator(
            str(folder), device="cpu", compute_type=kind, intra_threads=torch.get_num_threads(), inter_threads=1
        )
        return lambda: translator.translate_batch(
            words, beam_size=beam, max_decoding_length=OUTPUT, min_decoding_length=OUTPUT, max_batch_size=0
        )

    def hugging_face() -> None:
        with torch.inference_mode():
            peer.generate(
                src,
                num_beams=beam,
                do_sample=False,
                max_new_tokens=OUTPUT,
                min_new_tokens=OUTPUT,
                early_stopping="never",
            )

    return {
        "glassformer float32": lambda: generate(model, src, beam=beam, max_new_tokens=OUTPUT),
        "glassformer bf16": lambda: generate(half, src, beam=beam, max_new_tokens=OUTPUT),
        "hugging face float32": hugging_face,
        "ctranslate2 float32": engine("float32"),
        "ctranslate2 int8": engine("int8"),
    }


def decoding(
    shapes: tuple[tuple[int, int], ...] = ((32, 1), (32, 4), (1, 1)),
    rounds: int = 3,
    say: Callable[[str], None] = print,
) -> list[Row]:
    """Output tokens per second for each (rows, beam), everyone in turn within a round."""
    model = EncoderDecoder(BASE).eval()
    table = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        ctranslate2_folder(model, folder)
        for rows, beam in shapes:
            src = torch.randint(4, BASE.vocab_size, (rows, SOURCE), generator=torch.Generator().manual_seed(0))
            runs = contestants(model, src, beam, folder)
            times: dict[str, list[float]] = {name: [] for name in runs}
            for round_ in range(rounds + 1):
                for name, run in runs.items():
                    begin = time.perf_counter()
                    run()
                    if round_:
                        times[name].append(time.perf_counter() - begin)
                say(f"batch {rows}, beam {beam}: round {round_} of {rounds}")
            table += [Row(name, beam, rows, rows * OUTPUT / statistics.median(t)) for name, t in times.items()]
    return table
