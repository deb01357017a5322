"""Costs by leaving rows out and fitting again: any deterministic estimator, deletions only."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from poisonproof.costs.protocol import Reach
from poisonproof.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.costs.protocol import FitVote, Vote

__all__ = ["RefitCosts"]

_MOST_REFITS: Final = 50_000  # of one block, where sets of several rows are left out: all pairs of 315 rows


class RefitCosts:
    """Refits without every set of fewer than ``max_cost`` rows.

    Certifies deletions of rows. Exact: a cost below ``max_cost`` is the number of deletions that really move the vote.

    Notes
    -----
    Every row is actually removed, and the rest keeps its order: a weight of zero is not a deletion for every learner.
    """

    method = "leave-out refits"

    def __init__(self, max_cost: int) -> None:
        self.max_cost = max_cost

    def prepare(self, fit: FitVote, X: NDArray[np.float64], y: NDArray[np.float64]) -> list[list[Vote]]:
        """The replicas without 1, 2, … ``max_cost - 1`` rows, a list for each number."""
        n_refits = sum(comb(len(y), size) for size in range(1, self.max_cost))
        if self.max_cost > 2 and n_refits > _MOST_REFITS:
            raise ParameterError(
                f"max_cost={self.max_cost} takes {n_refits:,} refits of a block of {len(y):,} rows, and at most "
                f"{_MOST_REFITS:,} are made; lower max_cost, cut more partitions, or use an estimator whose costs are "
                "known by formula: Ridge, KernelRidge or RidgeClassifier, with steps that learn nothing from rows"
            )
        return [
            [fit(np.delete(X, gone, axis=0), np.delete(y, gone)) for gone in combinations(range(len(y)), size)]
            for size in range(1, self.max_cost)
        ]

    def reach(self, prepared: object, votes: NDArray[np.float64], X: NDArray[np.float64]) -> Reach:
        """The lowest and highest vote of the replicas, for each number of rows left out."""
        low, high = (np.empty((self.max_cost - 1, len(votes))) for _ in range(2))
        for k, replicas in enumerate(cast("list[list[Vote]]", prepared)):
            # A block with fewer rows than are to be left out has no replica: nothing more can happen to its vote.
            replica_votes = np.array([vote(X) for vote in replicas]) if replicas else votes[None]
            low[k], high[k] = replica_votes.min(axis=0), replica_votes.max(axis=0)
        return Reach.around(votes, low, high)
