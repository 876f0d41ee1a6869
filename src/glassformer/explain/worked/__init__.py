"""The worked example: two short sentences carried from ids to logits by a model whose weights a pencil can follow.

Read `weights` (what is given), `example` (the traces of both sentences), `sums` (single cells written out), `texts`
(the story, in the order of telling), `draw` and `tell` (how it is printed).
"""

from glassformer.explain.worked.example import WorkedExample, worked_example

__all__ = ["WorkedExample", "worked_example"]
