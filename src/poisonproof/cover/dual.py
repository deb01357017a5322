"""Lower bounds that anyone can check: a load for every submodel, verified in integers.

Give every submodel ``t`` a load ``y_t >= 0`` so that no block carries more than 1 in all. An attack that touches
block ``j`` ``w_j`` times then costs at least ``sum_j w_j · sum_{t of j} y_t >= sum_{t out} cost_t · y_t``, and the
votes that are out must count the quota: so the least ``sum cost_t · y_t`` over such sets is a lower bound. Whatever
loads a solver proposes, :func:`repaired` makes them obey the rule and :func:`proved_bound` checks them exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from poisonproof.compiled import njit
from poisonproof.cover.ordered import least_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.cover.structure import Residual

__all__ = ["degree_bound", "dual_bound", "proved_bound", "repaired"]


def dual_bound(residual: Residual, loads: NDArray[np.float64]) -> int:
    """The lower bound that proposed loads prove, whatever they are; 0 where they prove nothing."""
    unit = _unit(residual)
    weights = repaired(residual, loads, unit)
    bound = proved_bound(residual, weights, unit)
    return max(bound, proved_bound(residual, _topped_up(residual, weights, unit), unit))


def degree_bound(residual: Residual) -> int:
    """The lower bound of loads in proportion to gain over cost, which need no search."""
    return dual_bound(residual, residual.gains / residual.costs)


def proved_bound(residual: Residual, weights: NDArray[np.int64], unit: int) -> int:
    """The lower bound that loads ``weights / unit`` prove, in integers throughout; 0 if they break the rule."""
    if weights.min() < 0 or weights.max() > unit:
        return 0
    # Sound because unit times the largest number of submodels of a block stays below 2**62: the sums do not overflow.
    if block_loads(residual, weights).max() > unit:
        return 0
    # Sound because rounding up an integer quotient is exact, and the cost of an attack is an integer.
    return -(-least_value(residual.costs * weights, residual.gains, residual.quota) // unit)


def _unit(residual: Residual) -> int:
    """The integer that stands for 1: large, but small enough that no sum of costs times loads reaches 2**62."""
    return int(1 << min(40, 61 - (int(residual.costs.sum()) + len(residual.costs)).bit_length()))


def repaired(residual: Residual, loads: NDArray[np.float64], unit: int) -> NDArray[np.int64]:
    """Integer loads that obey the rule, near the proposed ones scaled down to it."""
    proposed = np.where(np.isfinite(loads), np.maximum(loads, 0.0), 0.0)
    top = proposed.max(initial=0.0)
    if top <= 0.0:
        return np.zeros(len(loads), dtype=np.int64)
    return np.minimum(_scaled(residual, proposed / top, unit), unit)


@njit
def block_loads(residual: Residual, weights: NDArray[Any]) -> NDArray[Any]:
    """What each block carries, in the type of the weights."""
    loads = np.zeros(len(residual.caps), weights.dtype)
    for j in range(len(loads)):
        for i in range(residual.block_start[j], residual.block_start[j + 1]):
            loads[j] += weights[residual.submodels[i]]
    return loads


@njit
def _scaled(residual: Residual, loads: NDArray[np.float64], unit: int) -> NDArray[np.int64]:
    """Every load divided by the heaviest block it is part of, in integers, with what rounding left over taken back."""
    start, blocks = residual.start, residual.blocks
    carried = block_loads(residual, loads)
    weights = np.zeros(len(loads), np.int64)
    for t in range(len(loads)):
        heaviest = 0.0
        for i in range(start[t], start[t + 1]):
            heaviest = max(heaviest, carried[blocks[i]])
        if heaviest > 0.0:
            weights[t] = np.int64(loads[t] / heaviest * unit * (1.0 - 1e-12))
    carried_now = block_loads(residual, weights)
    for t in range(len(loads)):
        excess = np.int64(0)
        for i in range(start[t], start[t + 1]):
            excess = max(excess, carried_now[blocks[i]] - unit)
        excess = min(excess, weights[t])
        weights[t] -= excess
        for i in range(start[t], start[t + 1]):
            carried_now[blocks[i]] -= excess
    return weights


def _topped_up(residual: Residual, weights: NDArray[np.int64], unit: int) -> NDArray[np.int64]:
    """Loads without what is of no use, and with the slack that leaves given to the submodels that bind."""
    ratio = residual.costs * weights / residual.gains
    order = np.argsort(ratio, kind="stable")
    enough = np.searchsorted(np.cumsum(residual.gains[order]), residual.quota)
    level = float(ratio[order[min(int(enough), len(order) - 1)]])
    useful = np.floor(level * residual.gains / residual.costs).astype(np.int64) + 1
    trimmed = np.minimum(weights, useful)
    return np.minimum(_filled(residual, trimmed, order, unit), unit)


@njit
def _filled(residual: Residual, weights: NDArray[np.int64], order: NDArray[np.int64], unit: int) -> NDArray[np.int64]:
    """Loads raised in this order as far as every block allows."""
    start, blocks = residual.start, residual.blocks
    carried = block_loads(residual, weights)
    raised = weights.copy()
    for t in order:
        slack = np.int64(unit)
        for i in range(start[t], start[t + 1]):
            slack = min(slack, unit - carried[blocks[i]])
        if slack > 0:
            raised[t] += slack
            for i in range(start[t], start[t + 1]):
                carried[blocks[i]] += slack
    return raised
