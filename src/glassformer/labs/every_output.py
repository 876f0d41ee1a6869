"""Models so small that every output they could write can be scored: the reference of a search.

Shapes: B sources, N outputs, L longest output.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from glassformer.labs.little_language import END, START
from glassformer.model import EncoderDecoder, ModelConfig


def random_models(seed: int, models: int, vocabulary: int, sources: int) -> Iterator[tuple[EncoderDecoder, Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    for i in range(models):
        config = ModelConfig(
            vocab_size=vocabulary, d_model=32, heads=2, d_ff=64, layers=1, tied=False, dropout=0.0, seed=100 * seed + i
        )
        yield EncoderDecoder(config).eval(), torch.randint(vocabulary, (sources, 8), generator=generator)


@torch.inference_mode()
def best_of_all(model: EncoderDecoder, src: Tensor, longest: int) -> Tensor:
    """The highest log-probability of any output: ended, or cut off at the longest length, as search does it."""
    going = [token for token in range(model.config.vocab_size) if token != END]
    outputs = torch.tensor(list(itertools.product(going, repeat=longest - 1)))  # (N, L - 1), none of them ended yet
    B, N = len(src), len(outputs)
    tgt = torch.cat((torch.full((N, 1), START), outputs), dim=1).repeat(B, 1)  # (B N, L)
    likely = model.decode(tgt, model.encode(src)).log_softmax(-1).view(B, N, longest, -1)
    each = likely[:, :, :-1].gather(3, outputs.expand(B, N, -1).unsqueeze(3)).squeeze(3)
    before = torch.cat((each.new_zeros(B, N, 1), each.cumsum(2)), dim=2)  # (B, N, L): of what precedes each step
    ended, cut = before + likely[..., END], before[:, :, -1:] + likely[:, :, -1]
    return torch.maximum(ended.flatten(1).amax(1), cut.flatten(1).amax(1))
