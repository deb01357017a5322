"""Disjoint blocks: the cheapest votes first. Exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poisonproof.cover.problem import CoverBounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["cheapest_votes"]


def cheapest_votes(
    costs: NDArray[np.integer],
    quota: NDArray[np.int64],
    movable: NDArray[np.bool_] | None = None,
    gains: NDArray[np.integer] | None = None,
) -> CoverBounds:
    """The least total cost of pushing out votes that count ``quota``, where each modification touches one vote.

    Parameters
    ----------
    costs : small int array (n_submodels, n_rows)
        What it takes to push each vote out; 0 where it is out already.
    quota : int64 array (n_rows,)
        What the votes that are out must count together, those that are out already included.
    movable : bool array (n_submodels, n_rows), optional
        False where nothing the attacker may do moves the vote; it then counts only if it is out already.
    gains : small int array (n_submodels, n_rows), optional
        What each vote counts; 1 each by default.

    Notes
    -----
    Exact: the costs of disjoint blocks add up, and among votes that count the same the attacker takes the cheapest.
    Where blocks are shared the total is still the cost of an attack that works, since sharing only helps.
    """
    if gains is None or np.all(gains == 1):
        total, missing = _cheapest(costs, quota.astype(np.int64), movable)
        return _bounds(total, missing > 0)
    free = np.where(costs == 0, gains, 0).sum(axis=0)
    missing = quota.astype(np.int64) - free
    open_votes = (costs > 0) & (gains > 0)
    if movable is not None:
        open_votes &= movable
    total = np.zeros(len(missing), dtype=np.int64)
    infeasible = np.where(open_votes, gains, 0).sum(axis=0) < missing
    for row in np.flatnonzero((missing > 0) & ~infeasible):
        chosen = open_votes[:, row]
        total[row] = least_value(costs[chosen, row].astype(np.int64), gains[chosen, row], int(missing[row]))
    return _bounds(total, infeasible)


def _cheapest(
    costs: NDArray[np.integer], missing: NDArray[np.int64], movable: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The total of the cheapest votes, and how many could not be had."""
    total = np.zeros_like(missing)
    for level in range(int(costs.max(initial=0)) + 1):
        at_level = costs == level
        if movable is not None and level > 0:
            at_level &= movable
        taken = np.clip(missing, 0, np.count_nonzero(at_level, axis=0))
        total += level * taken
        missing = missing - taken
    return total, missing


def _bounds(total: NDArray[np.int64], unbreakable: NDArray[np.bool_]) -> CoverBounds:
    return CoverBounds(total, total.copy(), unbreakable, np.zeros(len(total), dtype=np.bool_), "cheapest votes")


def least_value(values: NDArray[np.int64], gains: NDArray[np.integer], quota: int) -> int:
    """The least sum of values whose gains, at least 1 each, reach the quota: a knapsack, exact, in integers.

    Notes
    -----
    Items of equal gain are taken in ascending order of value. ``best[g]`` is the least value of a gain of at least
    ``g`` from the classes so far; the last class asks for the whole quota only.
    """
    if quota <= 0:
        return 0
    best = np.full(quota + 1, np.iinfo(np.int64).max // 2, dtype=np.int64)
    best[0] = 0
    *classes, last = np.unique(gains).tolist()
    for gain in classes:
        ladder = _ladder(values[gains == gain], gain, quota)
        wanted = np.arange(quota + 1)
        longer = best.copy()
        for taken in range(1, len(ladder)):
            np.minimum(longer, best[np.maximum(wanted - gain * taken, 0)] + ladder[taken], out=longer)
        best = longer
    ladder = _ladder(values[gains == last], last, quota)
    return int(np.min(best[np.maximum(quota - last * np.arange(len(ladder)), 0)] + ladder))


def _ladder(values: NDArray[np.int64], gain: int, quota: int) -> NDArray[np.int64]:
    """What the cheapest 0, 1, 2, … of these items cost, up to as many as fill the quota."""
    return np.concatenate([[0], np.cumsum(np.sort(values))])[: -(-quota // gain) + 1]
