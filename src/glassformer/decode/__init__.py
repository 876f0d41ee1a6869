"""How it writes: search over a model's next tokens."""

from glassformer.decode.beam import Selection
from glassformer.decode.hypothesis import Hypothesis, LengthRule
from glassformer.decode.sampling import Sampling
from glassformer.decode.scoring import alternatives, score
from glassformer.decode.search import generate, stream

__all__ = ["Hypothesis", "LengthRule", "Sampling", "Selection", "alternatives", "generate", "score", "stream"]
