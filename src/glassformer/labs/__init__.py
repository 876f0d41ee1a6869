"""The claims that tutorials make about Transformers, each as an experiment with a verdict."""

from glassformer.labs.catalogue import NAMES, find
from glassformer.labs.lab import Finding, Lab, Verdict

__all__ = ["NAMES", "Finding", "Lab", "Verdict", "find"]
