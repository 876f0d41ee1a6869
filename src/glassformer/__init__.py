"""glassformer: a Transformer you can see through, and ship."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glassformer.adapter import load_adapter as load_adapter
    from glassformer.decode import Hypothesis as Hypothesis
    from glassformer.decode import Sampling as Sampling
    from glassformer.decode import Search as Search
    from glassformer.decode import generate as generate
    from glassformer.evaluation import Evaluation as Evaluation
    from glassformer.evaluation import evaluate as evaluate
    from glassformer.explain.trace import trace as trace
    from glassformer.explain.traced import Trace as Trace
    from glassformer.explain.what_if import WhatIf as WhatIf
    from glassformer.explain.what_if import what_if as what_if
    from glassformer.export.run import Export as Export
    from glassformer.export.run import export as export
    from glassformer.model import Cache as Cache
    from glassformer.model import DecoderOnly as DecoderOnly
    from glassformer.model import EncoderDecoder as EncoderDecoder
    from glassformer.model import EncoderOnly as EncoderOnly
    from glassformer.model import ModelConfig as ModelConfig
    from glassformer.polyglot import translate as translate
    from glassformer.pretrained import load_model as load_model
    from glassformer.prose.glossary import Glossary as Glossary
    from glassformer.texts import TextTranslator as TextTranslator
    from glassformer.texts import TranslatedText as TranslatedText
    from glassformer.translation import Translation as Translation
    from glassformer.translator import Translator as Translator
    from glassformer.use import Classifier as Classifier
    from glassformer.use import Continuation as Continuation
    from glassformer.use import Filling as Filling
    from glassformer.use import Label as Label
    from glassformer.use import MaskFiller as MaskFiller
    from glassformer.use import TextGenerator as TextGenerator

__version__ = "0.1.0"

# Loaded on first use, so that `glassformer --help` need not wait for torch.
_HOMES = {
    "Cache": "glassformer.model",
    "Classifier": "glassformer.use",
    "Continuation": "glassformer.use",
    "DecoderOnly": "glassformer.model",
    "EncoderDecoder": "glassformer.model",
    "EncoderOnly": "glassformer.model",
    "Evaluation": "glassformer.evaluation",
    "Export": "glassformer.export.run",
    "Filling": "glassformer.use",
    "Glossary": "glassformer.prose.glossary",
    "Hypothesis": "glassformer.decode",
    "Label": "glassformer.use",
    "MaskFiller": "glassformer.use",
    "ModelConfig": "glassformer.model",
    "Sampling": "glassformer.decode",
    "Search": "glassformer.decode",
    "TextGenerator": "glassformer.use",
    "TextTranslator": "glassformer.texts",
    "Trace": "glassformer.explain.traced",
    "TranslatedText": "glassformer.texts",
    "Translation": "glassformer.translation",
    "Translator": "glassformer.translator",
    "WhatIf": "glassformer.explain.what_if",
    "evaluate": "glassformer.evaluation",
    "export": "glassformer.export",
    "generate": "glassformer.decode",
    "load_adapter": "glassformer.adapter",
    "load_model": "glassformer.pretrained",
    "trace": "glassformer.explain.trace",
    "translate": "glassformer.polyglot",
    "what_if": "glassformer.explain.what_if",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'glassformer' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
