"""Texts in, texts out: paragraphs are cut into sentences, and what must not change does not."""

from glassformer.pipelines.text.translated import Note, TranslatedSentence, TranslatedText
from glassformer.pipelines.text.translator import TextTranslator

__all__ = ["Note", "TextTranslator", "TranslatedSentence", "TranslatedText"]
