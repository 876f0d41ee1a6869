"""How it writes: search over a model's next tokens."""

from glassformer.decode.sampling import Sampling
from glassformer.decode.scoring import score
from glassformer.decode.search import Hypothesis, generate

__all__ = ["Hypothesis", "Sampling", "generate", "score"]
