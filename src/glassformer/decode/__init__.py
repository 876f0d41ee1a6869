"""How it writes: search over a model's next tokens."""

from glassformer.decode.beam import Selection
from glassformer.decode.generation import generate, stream
from glassformer.decode.scoring import alternatives, score
from glassformer.decode.search import Hypothesis, LengthRule, Sampling, Search

__all__ = ["Hypothesis", "LengthRule", "Sampling", "Search", "Selection", "alternatives", "generate", "score", "stream"]
