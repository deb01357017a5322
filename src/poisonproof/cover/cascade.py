"""Which solver answers the attacker's problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from poisonproof.cover.ordered import cheapest_votes

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from poisonproof.cover.problem import CoverBounds

__all__ = ["Effort", "minimum_cover"]

Effort = Literal["fast", "exact"]


def minimum_cover(
    incidence: sp.csr_array | None,
    costs: NDArray[np.integer],
    quota: NDArray[np.int64],
    *,
    movable: NDArray[np.bool_] | None = None,
    effort: Effort = "fast",
    time_limit: float | None = None,
) -> CoverBounds:
    """Bounds on the least number of modifications that push ``quota`` votes out.

    Parameters
    ----------
    incidence : sparse bool array (n_submodels, n_blocks), or None
        Which submodel trains on which blocks; None where each has one block to itself.
    costs : small int array (n_submodels, n_rows)
        What it takes to push each vote out; 0 where it is out already.
    quota : int64 array (n_rows,)
        How many votes must be out, those that are out already included.
    movable : bool array (n_submodels, n_rows), optional
        False where nothing the attacker may do moves the vote.
    effort, time_limit
        How hard to look where the answer is not immediate.
    """
    del incidence, effort, time_limit  # disjoint blocks are solved exactly at once
    return cheapest_votes(costs, quota, movable)
