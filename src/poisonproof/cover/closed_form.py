"""Lower bounds on the cost of an attack that need no search."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING, Final

import numpy as np

from poisonproof.compiled import njit

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from poisonproof.cover.structure import Residual

__all__ = ["gain_bound", "gain_bounds"]

_LARGEST_UNIT: Final = 1 << 24
_CHUNK_ROWS: Final = 256  # rows whose blocks are weighed at a time, over the highest cost, so that memory stays bounded


def gain_bound(residual: Residual) -> int:
    """As many modifications as the most gainful ones need to reach the quota, if none hindered another.

    Notes
    -----
    Let a vote that has been touched ``i`` times of ``cost`` be worth ``gain · i / cost``. The ``k``-th touch of a
    block is worth at most the sum of ``gain / cost`` over its submodels of cost ``k`` or more, since the others are
    out by then. At unit cost this is the bound of Finite Aggregation (Wang, Levine and Feizi, 2022).
    """
    unit = _unit(int(residual.costs.max()))
    # Sound because shares are rounded up, which can only make a modification look more gainful.
    shares = -(-residual.gains * unit // residual.costs)
    worth = _worth_of_touches(residual, shares)
    total = np.cumsum(np.sort(worth)[::-1])
    return min(int(np.searchsorted(total, residual.quota * unit)) + 1, len(worth))


def gain_bounds(
    users: sp.csr_array,
    costs: NDArray[np.integer],
    gains: NDArray[np.integer] | None,
    quota: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The same bound for many rows at once, ``(n_rows,)``, whatever the blocks hold.

    Parameters
    ----------
    users : sparse int array (n_blocks, n_submodels)
        1 where the submodel trains on the block.
    costs, gains : int arrays (n_submodels, n_rows)
        What it takes to push each vote out, 0 where it is no part of the problem, and what it counts (None: 1 each).
    quota : int64 array (n_rows,)
        What the votes that are pushed out must count together; more than all of them count is taken as all.
    """
    size = max(1, _CHUNK_ROWS // int(costs.max(initial=1)))
    bounds = [np.zeros(0, dtype=np.int64)]
    for start in range(0, len(quota), size):
        part = slice(start, start + size)
        worth = np.ones_like(costs[:, part]) if gains is None else gains[:, part]
        bounds.append(_chunk_of_bounds(users, costs[:, part].astype(np.int64), worth.astype(np.int64), quota[part]))
    return np.concatenate(bounds)


def _chunk_of_bounds(
    users: sp.csr_array, costs: NDArray[np.int64], gains: NDArray[np.int64], quota: NDArray[np.int64]
) -> NDArray[np.int64]:
    highest = int(costs.max(initial=1))
    unit = _unit(highest)
    # Sound for the same reason; a vote that is no part of the problem has no share.
    shares = np.where(costs > 0, -(-gains * unit // np.maximum(costs, 1)), 0)
    touches = [users @ np.where(costs >= level, shares, 0) for level in range(1, highest + 1)]
    total = np.cumsum(-np.sort(-np.concatenate(touches), axis=0), axis=0)
    wanted = np.minimum(quota, np.where(costs > 0, gains, 0).sum(axis=0))
    return np.where(wanted > 0, np.count_nonzero(total < wanted * unit, axis=0) + 1, 0)


def _unit(highest: int) -> int:
    """A number that costs up to ``highest`` divide, where it is not too large."""
    return min(lcm(*range(1, min(highest, 40) + 1)), _LARGEST_UNIT)


@njit
def _worth_of_touches(residual: Residual, shares: NDArray[np.int64]) -> NDArray[np.int64]:
    """What each useful touch of each block is worth at most, in no order."""
    costs, caps = residual.costs, residual.caps
    highest = costs.max()
    worth = np.empty(caps.sum(), np.int64)
    at_cost = np.zeros(highest + 2, np.int64)
    size = 0
    for j in range(len(caps)):
        at_cost[:] = 0
        for i in range(residual.block_start[j], residual.block_start[j + 1]):
            t = residual.submodels[i]
            at_cost[costs[t]] += shares[t]
        for k in range(highest - 1, 0, -1):
            at_cost[k] += at_cost[k + 1]
        for k in range(1, caps[j] + 1):
            worth[size] = at_cost[k]
            size += 1
    return worth
