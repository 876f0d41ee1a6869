"""How it learns: a recipe in, a bundle out."""

from glassformer.recipes import built_in
from glassformer.report import Report
from glassformer.train.recipe import Recipe, read_recipe
from glassformer.train.run import train

__all__ = ["Recipe", "Report", "built_in", "read_recipe", "train"]
