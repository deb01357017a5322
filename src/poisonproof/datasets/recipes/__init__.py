"""Recipes: how the rows of each data set become numbers, with every constant declared and none read from the rows.

file → columns (:mod:`~poisonproof.datasets.recipes.cells`) → derived columns → features, by a schema
(:mod:`~poisonproof.datasets.recipes.recipe`); one module for each data set.
"""

from poisonproof.datasets.recipes.recipe import Encoding, LinearOffset, Prepared, Recipe

__all__ = ["Encoding", "LinearOffset", "Prepared", "Recipe"]
