"""Small random models: one of five tokens, whose every target can be looked at, and one of each kind of block."""

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

KINDS = {
    "plain": {},
    "gated": {"gated": True, "activation": "silu", "norm_type": "rms", "bias": False},
    "gelu": {"activation": "gelu", "norm": "post", "positions": "learned", "output_bias": True},
    "grouped": {"kv_heads": 2, "positions": "rotary", "tied": False},
    "biases of q, k and v": {"bias": False, "qkv_bias": True},
    "ssru": {"autoregression": "ssru"},
    "relative": {"positions": "relative", "src_vocab_size": 280},
    "unlike": {"decoder_heads": 8, "kv_heads": 4, "decoder_d_ff": 96, "decoder_layers": 1, "head_width": 12},
}
SIZES = {"vocab_size": 300, "d_model": 64, "heads": 4, "d_ff": 128, "layers": 2, "max_length": 64}


def model_of(kind="plain"):
    return perturb(gf.EncoderDecoder(gf.ModelConfig(**SIZES, **KINDS[kind])).eval(), 0.05)


def perturb(model, amount):
    """Noise on all weights: a bias of zero would hide one that is forgotten."""
    with torch.no_grad():
        for weight in model.parameters():
            weight += amount * torch.randn(weight.shape, generator=torch.Generator().manual_seed(weight.numel()))
    return model
