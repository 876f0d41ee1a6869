"""`glassformer trace`: every tensor between a sentence and its translation."""

from __future__ import annotations


def trace() -> None:
    """Follow one tiny batch through a Transformer by hand: every name, shape, formula and value."""
