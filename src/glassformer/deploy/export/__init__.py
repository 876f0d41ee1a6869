"""Out of here: a model for CTranslate2, Hugging Face and others, each export checked by what it does there."""
