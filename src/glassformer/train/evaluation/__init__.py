"""How good a model is: references, measures, and scores."""
