"""A model of five tokens, whose every target can be looked at."""

import torch

import glassformer as gf

END = 2


def tiny(seed=0, kind=gf.EncoderDecoder, size=5, **options):
    config = gf.ModelConfig(vocab_size=size, d_model=8, heads=2, d_ff=8, layers=1, max_length=32, seed=seed, **options)
    model, generator = kind(config).eval(), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.7 * torch.randn(p.shape, generator=generator)
    return model


def eager(model, fond):
    """How fond a model is of the end token."""
    with torch.no_grad():
        model.head.bias[END] = fond
    return model


SRC = torch.tensor([[3, 4, 3], [4, 4, 1]])
