"""glassformer: a Transformer you can see through, and ship."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from glassformer.common import aliases
from glassformer.common import errors as errors
from glassformer.common.version import __version__ as __version__

if TYPE_CHECKING:
    from glassformer.decode import Hypothesis as Hypothesis
    from glassformer.decode import Sampling as Sampling
    from glassformer.decode import Search as Search
    from glassformer.decode import generate as generate
    from glassformer.deploy.export.run import Export as Export
    from glassformer.deploy.export.run import export as export
    from glassformer.explain.trace import Trace as Trace
    from glassformer.explain.trace import trace as trace
    from glassformer.explain.what_if import WhatIf as WhatIf
    from glassformer.explain.what_if import what_if as what_if
    from glassformer.model import Cache as Cache
    from glassformer.model import DecoderOnly as DecoderOnly
    from glassformer.model import EncoderDecoder as EncoderDecoder
    from glassformer.model import EncoderOnly as EncoderOnly
    from glassformer.model import ModelConfig as ModelConfig
    from glassformer.pipelines import Classifier as Classifier
    from glassformer.pipelines import Continuation as Continuation
    from glassformer.pipelines import Filling as Filling
    from glassformer.pipelines import Label as Label
    from glassformer.pipelines import MaskFiller as MaskFiller
    from glassformer.pipelines import TextGenerator as TextGenerator
    from glassformer.pipelines.language.invariants import Glossary as Glossary
    from glassformer.pipelines.polyglot import translate as translate
    from glassformer.pipelines.text import TextTranslator as TextTranslator
    from glassformer.pipelines.text import TranslatedText as TranslatedText
    from glassformer.pipelines.translator import Translation as Translation
    from glassformer.pipelines.translator import Translator as Translator
    from glassformer.train.evaluation.evaluate import Evaluation as Evaluation
    from glassformer.train.evaluation.evaluate import evaluate as evaluate
    from glassformer.weights.lora import load_adapter as load_adapter
    from glassformer.weights.pretrained import load_model as load_model

# Loaded on first use, so that `glassformer --help` need not wait for torch.
_FILES = {
    "decode": "Hypothesis Sampling Search generate",
    "deploy.export.run": "Export export",
    "explain.trace": "Trace trace",
    "explain.what_if": "WhatIf what_if",
    "model": "Cache DecoderOnly EncoderDecoder EncoderOnly ModelConfig",
    "pipelines": "Classifier Continuation Filling Label MaskFiller TextGenerator",
    "pipelines.language.invariants": "Glossary",
    "pipelines.polyglot": "translate",
    "pipelines.text": "TextTranslator TranslatedText",
    "pipelines.translator": "Translation Translator",
    "train.evaluation.evaluate": "Evaluation evaluate",
    "weights.lora": "load_adapter",
    "weights.pretrained": "load_model",
}
_HOMES = {name: f"glassformer.{file}" for file, names in _FILES.items() for name in names.split()}

__all__ = sorted(_HOMES)
sys.meta_path.append(aliases.AliasFinder())


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'glassformer' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
