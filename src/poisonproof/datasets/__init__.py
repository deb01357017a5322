"""Data the package brings along: the diamonds, and the figures published for them and for others."""

from poisonproof.datasets.bundled import Dataset, load_diamonds
from poisonproof.datasets.published import PublishedAccuracy, PublishedSetup, published_accuracy, published_setup

__all__ = [
    "Dataset",
    "PublishedAccuracy",
    "PublishedSetup",
    "load_diamonds",
    "published_accuracy",
    "published_setup",
]
