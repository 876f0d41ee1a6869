"""Small random models to look into: what they say is nonsense, but always the same nonsense."""

import torch

import glassformer as gf
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.weights import bundle

SIZES = {"d_model": 16, "heads": 4, "d_ff": 24, "layers": 2, "max_length": 40}
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"]
PAIRS = [(word, word.upper()) for word in WORDS]


def lively(model):
    """Weights larger than fresh ones, which say one word whatever they read; norms that are not ones and zeros."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight *= 1.5
            else:
                weight += 0.2 * torch.randn(weight.shape, generator=generator)
    return model.eval()


def tiny(kind=None, **settings):
    return lively((kind or gf.EncoderDecoder)(gf.ModelConfig(**{"vocab_size": 23} | SIZES | settings)))


def translator(**settings):
    tokenizer = Tokenizer.train(PAIRS, TokenizerOptions(kind="words"))
    return gf.Translator(tiny(vocab_size=tokenizer.tgt_size, **settings), tokenizer)


def saved(folder, **settings):
    made = translator(**settings)
    bundle.save(folder, made.model, bundle.weights(made.model), made.tokenizer)
    return folder
