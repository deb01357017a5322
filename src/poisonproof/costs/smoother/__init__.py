"""Costs of linear smoothers: ridge and kernel ridge, alone or inside row-local steps and increasing target transforms.

``recipe`` says what an estimator does, ``factors`` takes a block apart, ``deletions``, ``relabels`` and ``insertions``
say how far it can move, and ``engine`` puts them together.
"""

from poisonproof.costs.smoother.engine import SmootherCosts
from poisonproof.costs.smoother.recipe import Recipe, recipe_of

__all__ = ["Recipe", "SmootherCosts", "recipe_of"]
