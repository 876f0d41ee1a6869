"""The earlier place of `glassformer.scores`, whose names can be imported from here for one version more.

An import of `glassformer.evaluate` would put a module where `gf.evaluate` is a function. So what is imported under this
name is that function, with the names that used to stand here as its attributes.
"""

import sys

from glassformer.evaluation import evaluate
from glassformer.scores import RESAMPLES, Scores, bleu_by, plain, score

vars(evaluate).update(RESAMPLES=RESAMPLES, Scores=Scores, bleu_by=bleu_by, plain=plain, score=score)
sys.modules[__name__] = evaluate  # type: ignore[assignment]  # a function, as said above
