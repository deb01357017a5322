"""The linear relaxation of the attacker's problem, solved far enough by a first-order method.

Nothing here is proved: it proposes loads, and :mod:`poisonproof.cover.dual` checks what they prove.

The relaxation is a saddle point ``min over (w, z) max over y >= 0`` of
``sum_j w_j + sum_t y_t (cost_t z_t - sum_{j of t} w_j)``, with ``z`` in the box and on the plane
``sum_t gain_t z_t = quota``. It is solved by the primal-dual hybrid gradient method with a diagonal preconditioner
(Pock and Chambolle, 2011), restarted at the average (Applegate et al., 2021).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from poisonproof.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.cover.structure import Residual

    Floats = NDArray[np.float64]

__all__ = ["Relaxation", "least_fraction", "project", "relax"]

_PRIMAL_WEIGHT: Final = 0.15
_STEP: Final = 0.98
_TOLERANCE: Final = 1e-4
_CHECK_EVERY: Final = 20


class Relaxation(NamedTuple):
    """Loads for the dual, what they are worth, and the cost of the best relaxed attack, all in floating point."""

    loads: Floats
    value: float
    attack: float
    iterations: int


class _Steps(NamedTuple):
    """Step sizes of touches, of votes and of loads."""

    touched: Floats
    votes: Floats
    loads: Floats


class _State(NamedTuple):
    """Where the iteration is: how often each block is touched, how far each vote is out, and the loads."""

    touched: Floats
    votes: Floats
    loads: Floats


def relax(residual: Residual, *, iterations: int, stop_at: float) -> Relaxation:
    """Loads of nearly the highest bound; stops early where the bound's integer is settled or reaches ``stop_at``."""
    sharers = np.diff(residual.block_start)
    width = np.diff(residual.start)
    steps = _Steps(
        np.where(sharers > 0, _STEP / _PRIMAL_WEIGHT / np.maximum(sharers, 1), 0.0),
        _STEP / _PRIMAL_WEIGHT / residual.costs,
        _STEP * _PRIMAL_WEIGHT / (width + residual.costs),
    )
    state = _State(
        np.full(len(residual.caps), residual.quota * residual.costs.mean() / len(residual.blocks)),
        np.full(len(residual.costs), residual.quota / residual.gains.sum()),
        residual.gains / residual.costs,
    )
    return Relaxation(*_descend(residual, steps, state, iterations, float(stop_at)))


@njit
def least_fraction(values: Floats, gains: NDArray[np.int64], quota: int) -> float:
    """The least value of a fractional set that reaches the quota.

    By duality it is the most that ``price * quota - sum max(0, price * gain - value)`` can be; bisection finds it.
    """
    low, high = np.inf, 0.0
    for t in range(len(values)):
        low, high = min(low, values[t] / gains[t]), max(high, values[t] / gains[t])
    for _ in range(40):
        price = 0.5 * (low + high)
        gained = 0
        for t in range(len(values)):
            gained += gains[t] if values[t] < price * gains[t] else 0
        if gained < quota:
            low = price
        else:
            high = price
    total = low * quota
    for t in range(len(values)):
        total -= max(0.0, low * gains[t] - values[t])
    return total


@njit
def _dual_value(residual: Residual, loads: Floats) -> float:
    """What the loads would prove once they are scaled down to the rule."""
    carried = np.zeros(len(residual.caps))
    for j in range(len(carried)):
        for i in range(residual.block_start[j], residual.block_start[j + 1]):
            carried[j] += loads[residual.submodels[i]]
    values = np.zeros(len(loads))
    for t in range(len(loads)):
        most = 0.0
        for i in range(residual.start[t], residual.start[t + 1]):
            most = max(most, carried[residual.blocks[i]])
        if most > 0.0:
            values[t] = residual.costs[t] * loads[t] / most
    return least_fraction(values, residual.gains, residual.quota)


@njit
def _attack_value(residual: Residual, touched: Floats) -> float:
    """The cost of the relaxed attack once it is scaled to reach the quota."""
    share = np.empty(len(residual.costs))
    for t in range(len(share)):
        reached = 0.0
        for i in range(residual.start[t], residual.start[t + 1]):
            reached += touched[residual.blocks[i]]
        share[t] = reached / residual.costs[t]
    low, high = 0.2, 4.0
    for _ in range(24):
        scale = 0.5 * (low + high)
        gained = 0.0
        for t in range(len(share)):
            gained += residual.gains[t] * min(1.0, scale * share[t])
        if gained >= residual.quota:
            high = scale
        else:
            low = scale
    return np.inf if high == 4.0 else touched.sum() * high


@njit
def project(points: Floats, steps: Floats, gains: NDArray[np.int64], quota: int, shift: float) -> float:
    """Move ``points`` to the nearest ones, in the metric of ``steps``, in the box and on the plane; returns the shift.

    The nearest point is ``clip(point - shift * step * gain, 0, 1)`` for the one shift that meets the quota, found by
    Newton's method inside a bracket.
    """
    pulls = steps * gains
    low, high = np.inf, -np.inf
    for t in range(len(points)):
        low, high = min(low, (points[t] - 1.0) / pulls[t]), max(high, points[t] / pulls[t])
    for _ in range(60):
        if not low < shift < high:
            shift = 0.5 * (low + high)
        total, slope = 0.0, 0.0
        for t in range(len(points)):
            moved = points[t] - shift * pulls[t]
            if moved >= 1.0:
                total += gains[t]
            elif moved > 0.0:
                total += gains[t] * moved
                slope += gains[t] * pulls[t]
        excess = total - quota
        if abs(excess) < 1e-9 * quota or high - low < 1e-13:
            break
        low, high = (shift, high) if excess > 0.0 else (low, shift)
        shift = shift + excess / slope if slope > 0.0 else 0.5 * (low + high)
    for t in range(len(points)):
        points[t] = min(1.0, max(0.0, points[t] - shift * pulls[t]))
    return shift


@njit
def _iterate(residual: Residual, steps: _Steps, state: _State, ahead: _State, shift: float) -> float:
    """One step of the method; ``ahead`` is work space. Returns the projection's shift, a good guess for the next."""
    touched, votes, loads = state.touched, state.votes, state.loads
    for j in range(len(touched)):
        carried = 0.0
        for i in range(residual.block_start[j], residual.block_start[j + 1]):
            carried += loads[residual.submodels[i]]
        moved = min(float(residual.caps[j]), max(0.0, touched[j] - steps.touched[j] * (1.0 - carried)))
        ahead.touched[j] = 2.0 * moved - touched[j]
        touched[j] = moved
    for t in range(len(votes)):
        ahead.votes[t] = votes[t] - steps.votes[t] * residual.costs[t] * loads[t]
    shift = project(ahead.votes, steps.votes, residual.gains, residual.quota, shift)
    for t in range(len(votes)):
        wanted = residual.costs[t] * (2.0 * ahead.votes[t] - votes[t])
        votes[t] = ahead.votes[t]
        for i in range(residual.start[t], residual.start[t + 1]):
            wanted -= ahead.touched[residual.blocks[i]]
        loads[t] = max(0.0, loads[t] + steps.loads[t] * wanted)
    return shift


@njit
def _descend(
    residual: Residual, steps: _Steps, state: _State, iterations: int, stop_at: float
) -> tuple[Floats, float, float, int]:
    """Iterate, look now and then what the loads are worth, and restart at the average where that pays."""
    touched, votes, loads = state.touched, state.votes, state.loads
    ahead = _State(np.empty_like(touched), np.empty_like(votes), np.empty_like(loads))
    sums = _State(np.zeros_like(touched), np.zeros_like(votes), np.zeros_like(loads))
    best, best_loads, cheapest = -1.0, loads.copy(), np.inf
    shift, last_gap, count, since, used = 0.0, np.inf, 0, 0, 0
    while used < iterations:
        shift = _iterate(residual, steps, state, ahead, shift)
        sums.touched[:] += touched
        sums.votes[:] += votes
        sums.loads[:] += loads
        count += 1
        used += 1
        if used % _CHECK_EVERY and used < iterations:
            continue
        mean_loads, mean_touched = sums.loads / count, sums.touched / count
        value, mean_value = _dual_value(residual, loads), _dual_value(residual, mean_loads)
        if value > best:
            best, best_loads = value, loads.copy()
        if mean_value > best:
            best, best_loads = mean_value, mean_loads
        cheapest = min(cheapest, _attack_value(residual, touched), _attack_value(residual, mean_touched))
        gap = (cheapest - best) / max(1.0, best)
        if best >= stop_at or np.ceil(best - 1e-7) >= np.ceil(cheapest - 1e-7) or gap < _TOLERANCE:
            break
        since += 1
        if gap < 0.5 * last_gap or since >= 6:
            if mean_value > value:
                touched[:], votes[:], loads[:] = mean_touched, sums.votes / count, mean_loads
            sums.touched[:], sums.votes[:], sums.loads[:] = 0.0, 0.0, 0.0
            count, since, last_gap = 0, 0, gap
    return best_loads, best, cheapest, used
