"""How it learns: a recipe in, a bundle out."""

from glassformer.common.report import Report
from glassformer.train.recipe import Recipe, built_in, read_recipe
from glassformer.train.run import train

__all__ = ["Recipe", "Report", "built_in", "read_recipe", "train"]
