"""How it writes: search over a model's next tokens."""

from glassformer.decode.search import Hypothesis, generate

__all__ = ["Hypothesis", "generate"]
