"""The worked example: two short sentences carried from ids to logits, every value on the way kept by name.

Read `weights` (what is given), `steps` (what is computed, in which order), `example` (the run itself), `sums` (single
cells written out), `story` and `texts` (how it is told), `draw` (how it looks).
"""

from glassformer.explain.worked.example import Step, WorkedExample, worked_example

__all__ = ["Step", "WorkedExample", "worked_example"]
