"""Submodels made for certification: each knows, or lets an engine know, how far a few of its rows can move it."""

from poisonproof.learners.boosted_trees import BoostedTreesRegressor
from poisonproof.learners.kernel_ridge import KernelRidge

__all__ = ["BoostedTreesRegressor", "KernelRidge"]
