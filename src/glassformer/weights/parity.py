"""The parity table: our parts against Hugging Face transformers, tensor for tensor.

`python -m glassformer.weights.parity` makes small random models of every family, saves them, loads them with
`load_model` and prints the largest difference between any two logits. Each family also has controls: one part of it
is broken on purpose, and the difference must then exceed the bar, which shows that the bar can tell.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from glassformer.model import EncoderDecoder, Model
from glassformer.model.attention import Attention
from glassformer.model.layer import Residual
from glassformer.model.position import Rotary, sinusoid
from glassformer.weights.pretrained.llama import swapped
from glassformer.weights.pretrained.loader import load_model
from glassformer.weights.pretrained.marian import sines_first
from glassformer.weights.random_models import Case, cases, hugging_face, random_model, saved

BAR = 1e-5


@dataclass(frozen=True)
class Batch:
    """Three padded rows of odd lengths; `mask` marks the real tokens of `ids`, `tgt` is a target where there is one,
    and `images` are in their place where a model reads images."""

    ids: Tensor
    mask: Tensor
    tgt: Tensor
    images: Tensor


def random_batch(vocab: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, vocab, (3, 11), generator=generator)
    mask = torch.arange(11) < torch.tensor([[11], [7], [3]])
    tgt = torch.randint(3, vocab, (3, 9), generator=generator)
    return Batch(ids, mask, tgt, torch.randn(3, 3, 16, 16, generator=generator))


def peer_logits(peer: Any, batch: Batch) -> Tensor:
    if peer.config.model_type == "vit":
        of_images: Tensor = peer(pixel_values=batch.images).logits.unsqueeze(1)
        return of_images  # (B, 1, V): one position, as in a text
    arguments = {"input_ids": batch.ids, "attention_mask": batch.mask.long()}
    if peer.config.is_encoder_decoder:
        arguments["decoder_input_ids"] = batch.tgt
    logits: Tensor = peer(**arguments).logits
    return logits


def our_logits(model: Model, batch: Batch) -> Tensor:
    if model.config.patch_size is not None:
        of_images: Tensor = model(batch.images)[:, :1]
        return of_images
    arguments = (batch.ids, batch.tgt, batch.mask) if isinstance(model, EncoderDecoder) else (batch.ids, batch.mask)
    logits: Tensor = model(*arguments)
    return logits


def difference(ours: Tensor, theirs: Tensor, batch: Batch) -> float:
    """The largest difference of any two logits, at every real token."""
    apart = (ours - theirs).abs()
    return float(apart[batch.mask].max() if apart.shape[:2] == batch.mask.shape else apart.max())


def measure(case: Case, spoil: Spoil | None = None) -> float:
    """The difference of one case, after `spoil` has broken something if it is given."""
    with saved(peer := random_model(case), case) as folder, torch.no_grad():
        model = load_model(folder)
        vocab = min(model.config.vocab_size, model.config.encoder.vocab_size)
        batch = random_batch(vocab, case.seed)
        ours = our_logits(model, (spoil(model, batch) if spoil else None) or batch)
        return difference(ours, peer_logits(peer, batch), batch)


Part = TypeVar("Part", bound=nn.Module)


def parts(model: Model, kind: type[Part]) -> list[Part]:
    return [module for module in model.modules() if isinstance(module, kind)]


def tables(model: Model, name: str) -> list[Tensor]:
    """Those whose names end so, learnt or not."""
    every = [*model.named_parameters(), *model.named_buffers()]
    return [table for known, table in every if known.endswith(name)]


def wrong_norm_order(model: Model, batch: Batch) -> None:
    for module in parts(model, Residual):
        module.pre = not module.pre


def ignored_padding(model: Model, batch: Batch) -> Batch:
    return replace(batch, mask=torch.ones_like(batch.mask))


def missing_offset(model: Model, batch: Batch) -> None:
    """As if the position table were read from its first stored row."""
    for table in tables(model, "positions.table"):
        table.copy_(table.roll(2, 0))


def interleaved_sinusoid(model: Model, batch: Batch) -> None:
    for table in tables(model, "positions.table"):
        table.copy_(sinusoid(*table.shape))


def marian_sinusoid(model: Model, batch: Batch) -> None:
    """As if the slowest frequency were that of the paper, one step above 1/10000."""
    for table in tables(model, "positions.table"):
        table.copy_(sines_first(len(table) + 2, table.shape[1])[2:])


def scaled_scores(model: Model, batch: Batch) -> None:
    """As if the scores had the 1/sqrt(d) that the family leaves out."""
    for module in parts(model, Attention):
        module.scale = 1 / math.sqrt(module.d_head)


def missing_fold(model: Model, batch: Batch) -> None:
    """As if the last norm did not carry the scale of the decoder's output."""
    model.get_parameter("decoder.norm.weight").mul_(math.sqrt(model.config.d_model))


def missing_segments(model: Model, batch: Batch) -> None:
    for table in tables(model, "segments.weight"):
        table.zero_()


def missing_transform_norm(model: Model, batch: Batch) -> None:
    model.get_submodule("head.transform").norm = nn.Identity()


def turned_squares(model: Model, batch: Batch) -> Batch:
    """As if each square were read by columns."""
    squares = batch.images.unfold(2, 4, 4).unfold(3, 4, 4)  # (B, C, 4, 4, P, P)
    return replace(batch, images=squares.permute(0, 1, 2, 5, 3, 4).reshape_as(batch.images))


def missing_first(model: Model, batch: Batch) -> None:
    model.get_parameter("encoder.embedding.first").zero_()


def untransposed(model: Model, batch: Batch) -> None:
    for module in parts(model, Attention):
        module.output.weight.copy_(module.output.weight.T.clone())


def unslowed(model: Model, batch: Batch) -> None:
    """As if no pair turned slower than it did in training."""
    for module in parts(model, Rotary):
        module.factor = 1.0


def halves_for_pairs(model: Model, batch: Batch) -> None:
    """As if the rows of W_Q and W_K were left in the file's order."""
    for module in parts(model, Attention):
        q, k, v = module.projection.weight.split(module.projection.rows)
        again = [swapped(part, module.d_head // 2, 2) for part in (q, k)]
        module.projection.weight.copy_(torch.cat((*again, v)))


def other_groups(model: Model, batch: Batch) -> None:
    """As if each query head belonged to the group of its neighbour."""
    for module in parts(model, Attention):
        queries, outputs = module.projection.weight[: module.projection.rows[0]], module.output.weight.T
        for rows in (queries, outputs):
            rows.copy_(rows.roll(module.d_head, 0))


def missing_biases(model: Model, batch: Batch) -> None:
    for module in parts(model, Attention):
        module.projection.bias.zero_()


Spoil = Callable[[Model, Batch], Batch | None]  # breaks the model, or gives another batch

CONTROLS: dict[str, tuple[Spoil, ...]] = {
    "marian": (wrong_norm_order, interleaved_sinusoid, ignored_padding),
    "bart": (wrong_norm_order, missing_offset, ignored_padding),
    "mbart": (wrong_norm_order, missing_offset, ignored_padding),
    "m2m_100": (wrong_norm_order, missing_offset, marian_sinusoid, ignored_padding),
    "pegasus": (wrong_norm_order, interleaved_sinusoid, ignored_padding),
    "t5": (wrong_norm_order, scaled_scores, missing_fold, ignored_padding),
    "bert": (wrong_norm_order, missing_segments, ignored_padding),
    "roberta": (wrong_norm_order, missing_offset, missing_segments, ignored_padding),
    "xlm-roberta": (wrong_norm_order, missing_offset, ignored_padding),
    "distilbert": (wrong_norm_order, missing_offset, missing_transform_norm, ignored_padding),
    "vit": (wrong_norm_order, missing_offset, turned_squares, missing_first),
    "gpt2": (wrong_norm_order, missing_offset, untransposed),
    "llama": (wrong_norm_order, unslowed, halves_for_pairs, other_groups),
    "mistral": (wrong_norm_order, halves_for_pairs, other_groups),
    "qwen2": (wrong_norm_order, missing_biases, halves_for_pairs, other_groups),
}


def main() -> int:
    """Print the table; 1 if any case misses the bar or any control meets it."""
    hf = hugging_face()
    print(
        f"max |logit difference| to transformers {hf.__version__}, torch {torch.__version__}, float32, padded batches"
    )
    print(f"bar: {BAR:.0e}; a control is broken on purpose and must exceed it\n")
    failed = 0
    for case in cases():
        value = measure(case)
        failed += value > BAR
        print(f"  {case.family:11} {case.name:32} {value:9.1e}  {'ok' if value <= BAR else 'FAILED'}")
    print()
    for family, controls in CONTROLS.items():
        case = next(case for case in cases() if case.family == family)
        for spoil in controls:
            value = measure(case, spoil)
            failed += value <= BAR
            name = f"control: {spoil.__name__.replace('_', ' ')}"
            print(f"  {family:11} {name:32} {value:9.1e}  {'fails, as it must' if value > BAR else 'NOT NOTICED'}")
    print(f"\n{'all hold' if not failed else f'{failed} FAILED'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
