"""How a model is seen: every value between a sentence and its translation, by name."""
