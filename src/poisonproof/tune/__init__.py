"""Which settings certify most at a wanted radius: a search on trusted rows that goes on where it was interrupted."""

from poisonproof.tune.found import Family, Tried, Tuned
from poisonproof.tune.search import trials, tune
from poisonproof.tune.space import Choice, Dimension, Range, Weights
from poisonproof.tune.spaces import published_space, usual_space

__all__ = [
    "Choice",
    "Dimension",
    "Family",
    "Range",
    "Tried",
    "Tuned",
    "Weights",
    "published_space",
    "trials",
    "tune",
    "usual_space",
]
