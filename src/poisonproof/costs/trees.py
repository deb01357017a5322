"""Costs of boosted trees: all models without one row, or without two, grown together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from poisonproof.costs.protocol import Reach
from poisonproof.learners.presort import presort
from poisonproof.learners.tree_replicas import MOST_ROWS, Replicas, grow_replicas, predict_replicas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from poisonproof.costs.protocol import FitVote, Vote
    from poisonproof.learners.boosted_trees import BoostedTreesRegressor

    Extremes = tuple[NDArray[np.float64], NDArray[np.float64]]

__all__ = ["TreeCosts"]

_MOST_SETS: Final = 780  # all pairs of 40 rows
_TOGETHER: Final = 128  # replicas grown side by side
_WORKING_BYTES: Final = 1 << 26
_ULPS: Final = 16.0  # more than a transform of the target and its inverse can be off by


@dataclass(frozen=True, eq=False)
class _Block:
    """The rows of one submodel, its vote without any, and the replicas that are kept by number of rows left out.

    ``n_grown`` counts the rows with their mixtures.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    n_grown: int
    empty: Vote
    kept: dict[int, list[Replicas]]


class TreeCosts:
    """Grows the replicas of a boosted model without every set of fewer than ``max_cost`` rows.

    Certifies deletions of rows. Exact as far as it looks: at every single row, and at larger sets while there are at
    most 780 of one size (pairs of 40 rows, triples of 17). Beyond, and in blocks of over 65,535 rows and mixtures, a
    vote counts as movable anywhere.

    Parameters
    ----------
    estimator : BoostedTreesRegressor
        The submodels' estimator.
    max_cost : int
        The largest cost looked for.
    keep_bytes : int, default=2**20
        Replicas are kept from fit on where those of a block need no more memory than this, and otherwise grown again
        whenever rows are certified: 0 keeps the training rows and nothing else.

    Notes
    -----
    A replica equals, bit by bit, the model that is fitted without the rows. Growing costs about as much as predicting a
    thousand rows, so keeping replicas pays where few rows are certified at a time, and costs memory in every block.
    """

    method = "boosted-tree replicas"

    def __init__(self, estimator: BoostedTreesRegressor, max_cost: int, *, keep_bytes: int = 1 << 20) -> None:
        self.estimator = estimator
        self.max_cost = max_cost
        self.keep_bytes = keep_bytes
        self._growth = estimator.growth()

    def prepare(self, fit: FitVote, X: NDArray[np.float64], y: NDArray[np.float64]) -> object:
        """The rows, the constant they leave behind, and the replicas where those are small."""
        learnable = self.estimator.learnable(y).all()
        n_grown = len(self.estimator.mixed(X, y).y) if learnable else len(y)
        block = _Block(np.ascontiguousarray(X), y, n_grown, fit(X[:0], y[:0]), {})
        sizes = [size for size in range(1, self.max_cost) if self._looks_at(block, size)]
        needed = sum(comb(len(y), size) for size in sizes) * self._replica_bytes()
        if needed <= self.keep_bytes and learnable:
            block.kept.update({size: list(self._grown(block, size)) for size in sizes})
        return block

    def reach(self, prepared: object, votes: NDArray[np.float64], X: NDArray[np.float64]) -> Reach:
        """The lowest and highest vote of the replicas, for each number of rows left out."""
        block = cast("_Block", prepared)
        ends = [self._extremes(block, size, votes, np.ascontiguousarray(X)) for size in range(1, self.max_cost)]
        low, high = (np.reshape([end[side] for end in ends], (self.max_cost - 1, len(votes))) for side in (0, 1))
        return Reach.around(votes, low, high)

    def _extremes(self, block: _Block, size: int, votes: NDArray[np.float64], X: NDArray[np.float64]) -> Extremes:
        """The lowest and highest vote without any ``size`` of the block's rows."""
        n_rows = len(block.y)
        n_unusable = np.count_nonzero(~self.estimator.learnable(block.y))
        if size > n_rows or size < n_unusable:
            # Sound because no such set exists, or it leaves a row that no fit accepts, and the vote stays the constant.
            return votes, votes
        constant = block.empty(X)
        if size == n_rows:
            return constant, constant
        if n_unusable or not self._looks_at(block, size):
            return np.full(len(X), -np.inf), np.full(len(X), np.inf)
        low, high = np.full(len(X), np.inf), np.full(len(X), -np.inf)
        for replicas in block.kept.get(size) or self._grown(block, size):
            replica_votes = self.estimator.in_target_units(predict_replicas(replicas, X))
            replica_votes = np.where(np.isfinite(replica_votes), replica_votes + 0.0, constant)
            np.minimum(low, replica_votes.min(axis=0), out=low)
            np.maximum(high, replica_votes.max(axis=0), out=high)
        # Sound because votes are the replicas' to the bit, but for how a transform rounds in arrays of other shapes.
        slack = _ULPS if self.estimator.target_transform else 0.0
        return low - slack * np.spacing(np.abs(low)), high + slack * np.spacing(np.abs(high))

    def _grown(self, block: _Block, size: int) -> Iterator[Replicas]:
        """The replicas without each set of ``size`` rows, as many at a time as memory allows."""
        mixed = self.estimator.mixed(block.X, block.y)
        splits = presort(mixed.X)
        gone = np.array(list(combinations(range(len(block.y)), size)), dtype=np.int64)
        together = min(_TOGETHER, max(1, _WORKING_BYTES // self._replica_bytes()))
        for start in range(0, len(gone), together):
            missing = mixed.without(gone[start : start + together])
            yield Replicas(*grow_replicas(mixed.X, mixed.y, missing, splits, self._growth))

    def _looks_at(self, block: _Block, size: int) -> bool:
        # Sound because whatever is not looked at counts as movable.
        n_rows = len(block.y)
        return size < n_rows and block.n_grown <= MOST_ROWS and (size == 1 or comb(n_rows, size) <= _MOST_SETS)

    def _replica_bytes(self) -> int:
        n_leaves = 1 << self._growth.depth
        return self._growth.n_trees * (12 * (n_leaves - 1) + 8 * n_leaves)
