"""What every cost engine gives: how far a few modifications of its training rows can move one submodel's vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Vote = Callable[[NDArray[np.float64]], NDArray[np.float64]]
    FitVote = Callable[[NDArray[np.float64], NDArray[np.float64]], Vote]

__all__ = ["CostEngine", "Reach"]


@dataclass(frozen=True, eq=False)
class Reach:
    """How far a vote can move: ``low[k]`` and ``high[k]`` enclose it after any ``k`` or fewer modifications.

    Parameters
    ----------
    low, high : float arrays (max_cost, ..., n_rows)
        Entry 0 is the vote itself; ``low`` falls and ``high`` rises along the first axis.

    Notes
    -----
    A reach knows no bound: the cost of pushing a vote above ``upper`` is the number of entries of ``high`` that are
    at most ``upper`` (0 where the vote is out already), and never more than ``max_cost``.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def around(cls, votes: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> Reach:
        """The reach whose entry 0 is the vote and whose ends never come back."""
        # Sound because k or fewer modifications include fewer: the running extremes enclose all of them.
        return cls(_running(np.minimum, votes, low), _running(np.maximum, votes, high))


def _running(extreme: np.ufunc, first: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first, and the extreme of it and of the others up to each; a loop, since blocks are many and small."""
    ends = np.empty((len(others) + 1, *first.shape))
    ends[0] = first
    for k, other in enumerate(others):
        extreme(ends[k], other, out=ends[k + 1])
    return ends


class CostEngine(Protocol):
    """What it takes to move a submodel's vote, for one estimator, one threat and costs up to ``max_cost``.

    Every number an engine returns is a bound: it may overstate how far a vote can move, never understate it.
    """

    method: str
    """How the costs are found; it stands in every certificate."""

    def prepare(self, fit: FitVote, X: NDArray[np.float64], y: NDArray[np.float64]) -> object:
        """What the engine keeps of one submodel's rows ``(n, n_features)``, in their fixed order; once, at fit.

        ``fit`` trains a submodel on the rows it is given and returns its vote function; on rows that cannot be
        fitted, no rows included, that function votes the declared constant.
        """
        ...

    def reach(self, prepared: object, votes: NDArray[np.float64], X: NDArray[np.float64]) -> Reach:
        """The reach ``(max_cost, n_rows)`` of the submodel's votes ``(n_rows,)`` on the rows ``X``."""
        ...
