"""Models of one stack at work: a decoder continues texts, an encoder fills gaps or tells labels."""

from glassformer.use.classifier import Classifier, Label
from glassformer.use.filler import Filling, MaskFiller
from glassformer.use.generator import Continuation, TextGenerator

__all__ = ["Classifier", "Continuation", "Filling", "Label", "MaskFiller", "TextGenerator"]
