"""What a text says: its sentences, its language, and its numbers, amounts, times and names, which a model must keep."""
