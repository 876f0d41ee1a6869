"""Models of one stack at work: a decoder continues texts, an encoder fills gaps or tells labels."""

from glassformer.pipelines.classifier import Classifier, Label
from glassformer.pipelines.filler import Filling, MaskFiller
from glassformer.pipelines.generator import Continuation, TextGenerator

__all__ = ["Classifier", "Continuation", "Filling", "Label", "MaskFiller", "TextGenerator"]
