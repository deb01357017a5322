"""Bounds from the literature, for comparison. Nothing else uses them.

Both are of Hammoudeh and Lowd, "Reducing certified regression to certified classification for general poisoning
attacks" (2023), for overlapping ensembles at unit cost.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log
from typing import TYPE_CHECKING

import numpy as np

from poisonproof.cover.attack import greedy_attack
from poisonproof.cover.cascade import solve
from poisonproof.errors import DataError

if TYPE_CHECKING:
    from poisonproof.cover.problem import CoverProblem
    from poisonproof.cover.structure import Residual

__all__ = ["greedy_ratio_bound", "unsound_unit_radius"]


def greedy_ratio_bound(residual: Residual) -> int:
    """A lower bound at unit cost: the greedy attack over the worst ratio that greedy covers can have (Slavik, 1997)."""
    if residual.costs.max() > 1 or residual.gains.max() > 1:
        raise DataError("the greedy ratio holds where every vote costs 1 and counts 1; use the dual bound instead")
    if residual.quota < 2:
        return 1
    largest = int(np.diff(residual.block_start).max())
    harmonic = sum(1 / size for size in range(1, largest + 1))
    logarithmic = log(residual.quota) - log(log(residual.quota)) + 3 + log(log(32)) - log(32)
    # Sound because the margin can only lower the bound, and dropping superfluous touches can too.
    return max(1, ceil(int(greedy_attack(residual).sum()) / min(harmonic, logarithmic) - 1e-9))


def unsound_unit_radius(problem: CoverProblem) -> int:
    """The radius as published, which is NOT a certificate: it can claim one modification too many.

    It is the cost of pushing out one vote fewer than the quota. That would be the radius if no modification could
    push out two votes at once, but a block that two submodels share does. The radius that is proved is the cost of
    the quota itself, less 1.
    """
    if np.max(problem.costs, initial=0) > 1:
        raise DataError("the published formula holds where every vote costs 1; use the proved bound instead")
    return solve(replace(problem, quota=problem.quota - 1)).lower
