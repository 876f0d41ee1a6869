"""The claims that tutorials make about Transformers, each as an experiment with a verdict."""

from __future__ import annotations

from importlib import import_module

from glassformer.common.errors import ConfigError, did_you_mean
from glassformer.labs.experiment import Finding, Lab, Verdict

__all__ = ["NAMES", "Finding", "Lab", "Verdict", "find"]

# In the order of reading. A lab's file is loaded when `find` is called.
NAMES = (
    "scaling",
    "norm_placement",
    "kv_cache",
    "beam_search",
    "sinusoids",
    "permutation",
    "causal_mask",
    "padding",
    "teacher_forcing",
    "heads",
    "residuals",
    "norm_kind",
    "embedding_scale",
    "memories",
    "smoothing",
    "layout",
    "distance",
    "softmax_axis",
    "identity",
    "repetition",
    "concatenation",
    "length",
    "dropout",
    "initialisation",
    "activations",
)


def find(name: str) -> Lab:
    name = name.replace("-", "_")
    if name not in NAMES:
        raise ConfigError(f"there is no lab `{name}`; `glassformer lab` lists all{did_you_mean(name, NAMES)}")
    file = import_module(f"glassformer.labs.{name}")
    return Lab(name=name, run=file.run, **vars(file.CLAIM))
