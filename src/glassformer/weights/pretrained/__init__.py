"""Other people's weights in our parts: `load_model` and one small table per family."""

from glassformer.weights.pretrained.loader import load_model

__all__ = ["load_model"]
