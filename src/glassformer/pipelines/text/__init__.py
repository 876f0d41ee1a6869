"""Texts in, texts out: cut into sentences, with all that must not change."""

from glassformer.pipelines.text.translator import Note, TextTranslator, TranslatedText

__all__ = ["Note", "TextTranslator", "TranslatedText"]
