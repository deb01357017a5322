"""The loops behind the bounds on deletions: compiled, one prediction at a time, all numbers of deletions together.

Everywhere ``weights (n_rows, n)``, ``residuals (n,)`` and ``matrix (n, n)`` are scaled by the roots of ``1 - h``, as
the module ``deletions`` says; one prediction's weights are ``w (n,)``, and ``first (n,)`` what deleting each row adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poisonproof.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["bound_alone", "bound_together", "rise_after_one"]


@njit
def rise_after_one(weights: Array, loss: Array) -> Array:
    """How far deleting one row moves each prediction up and down at most, ``(2, 1, n_rows)``.

    ``weights`` are those of the training targets, ``loss`` the residuals over ``1 - h``: a row's own prediction error
    without it. A row whose product is not a number makes the rise infinite.
    """
    rises = np.empty((2, 1, len(weights)))
    for row in range(len(weights)):
        up, down = 0.0, 0.0
        for i in range(weights.shape[1]):
            moved = weights[row, i] * loss[i]
            if not abs(moved) < np.inf:
                up, down = np.inf, np.inf
            up, down = max(up, -moved), max(down, moved)
        rises[0, 0, row] = up
        rises[1, 0, row] = down
    return rises


@njit
def bound_together(  # noqa: PLR0917  a compiled loop and what it reads
    weights: Array, residuals: Array, matrix: Array, nu: Array, largest: Array, largest_met: Array, depth: int
) -> Array:
    """The most that deleting k rows or fewer adds to each prediction, ``(depth + 1, n_rows)``: pairs are looked at.

    ``nu (depth + 1,)`` is 1 where nothing is known; ``largest`` and ``largest_met (n, depth)`` sum the largest entries
    of each row of N, as they are and times the residual they meet.
    """
    n_rows, n = weights.shape
    bound = np.zeros((depth + 1, n_rows))
    first = np.empty(n)
    low = np.empty(n)
    high = np.empty(n)
    pairs = np.empty((n, depth + 1))
    known = np.empty(n, dtype=np.bool_)
    for row in range(n_rows):
        w = weights[row]
        known[:] = False
        widest = 0.0
        for i in range(n):
            first[i] = -w[i] * residuals[i]
            widest = max(widest, abs(w[i]))
        if depth >= 1 and n > 0:
            bound[1, row] = max(0.0, first.max())
        for k in range(2, depth + 1):
            if nu[min(k, n)] >= 1.0:
                bound[k:, row] = np.inf
                break
            if k > n:
                bound[k, row] = bound[k - 1, row]
                continue
            _bracket(w, residuals, first, widest, nu[k], k, largest, largest_met, low, high)
            if k == 2:
                bound[2, row] = max(bound[1, row], _best_pair(w, residuals, matrix, first, high))
                continue
            second = _second_order(w, residuals, matrix, low, high, pairs, known, k, depth)
            bound[k, row] = max(bound[k - 1, row], min(second, _first_order(w, residuals, first, nu[k], k)))
    return bound


@njit
def bound_alone(weights: Array, residuals: Array, nu: Array, depth: int) -> Array:
    """The same from ``nu`` alone, to the first order."""
    bound = np.zeros((depth + 1, len(weights)))
    for row in range(len(weights)):
        first = -weights[row] * residuals
        for k in range(1, depth + 1):
            if nu[k] >= 1.0:
                bound[k:, row] = np.inf
                break
            bound[k, row] = max(bound[k - 1, row], _first_order(weights[row], residuals, first, nu[k], k))
    return bound


@njit
def _bracket(  # noqa: PLR0917  a compiled loop and what it reads
    w: Array,
    residuals: Array,
    first: Array,
    widest: float,
    nu: float,
    k: int,
    largest: Array,
    largest_met: Array,
    low: Array,
    high: Array,
) -> None:
    """What each row can add at least and at most, before its own best partners are looked for."""
    rest = 0.5 * nu * nu / (1.0 - nu)
    ratio = _ratio(w, residuals, first, k)
    for i in range(len(w)):
        low[i] = first[i] + rest * (ratio * w[i] * w[i] + residuals[i] * residuals[i] / ratio)
        met = abs(w[i]) * largest_met[i, k - 1] + abs(residuals[i]) * widest * largest[i, k - 1]
        high[i] = low[i] + 0.5 * met


@njit
def _ratio(w: Array, residuals: Array, first: Array, k: int) -> float:
    """The weight between ``a^2`` and ``e^2`` that makes the remainder small on the rows that matter; any is sound."""
    best = np.full(k, -np.inf)
    for i in range(len(w)):
        _keep(best, first[i])
    weight, residual = 1e-300, 1e-300
    for i in range(len(w)):
        if first[i] >= best[k - 1]:
            weight += w[i] * w[i]
            residual += residuals[i] * residuals[i]
    ratio = np.sqrt(residual / weight)
    return min(max(ratio, 1e-100), 1e100)


@njit
def _keep(best: Array, value: float) -> None:
    """Put a value into the descending list of the largest ones."""
    last = len(best) - 1
    if value <= best[last]:
        return
    while last > 0 and best[last - 1] < value:
        best[last] = best[last - 1]
        last -= 1
    best[last] = value


@njit
def _first_order(w: Array, residuals: Array, first: Array, nu: float, k: int) -> float:
    rest = 0.5 * nu / (1.0 - nu)
    ratio = _ratio(w, residuals, first, k)
    best = np.zeros(k)
    for i in range(len(w)):
        _keep(best, first[i] + rest * (ratio * w[i] * w[i] + residuals[i] * residuals[i] / ratio))
    return best.sum()


@njit
def _second_order(  # noqa: PLR0917  a compiled loop and what it reads
    w: Array,
    residuals: Array,
    matrix: Array,
    low: Array,
    high: Array,
    pairs: Array,
    known: NDArray[np.bool_],
    k: int,
    depth: int,
) -> float:
    least = np.zeros(k)
    for i in range(len(w)):
        _keep(least, low[i])
    # Sound because k rows reach this level without their partners: a row that stays below it even with the best
    # partners is among the k largest only by 0, which adds nothing, or by a tie.
    level = least[k - 1]
    best = np.zeros(k)
    for i in range(len(w)):
        if high[i] < level:
            continue
        if not known[i]:
            _best_partners(w, residuals, matrix[i], i, pairs[i], depth)
            known[i] = True
        _keep(best, low[i] + 0.5 * pairs[i, k - 1])
    return best.sum()


@njit
def _best_partners(  # noqa: PLR0917  a compiled loop and what it reads
    w: Array, residuals: Array, coupled: Array, i: int, sums: Array, depth: int
) -> None:
    """Entry k of ``sums``: what the k best partners of row i add by pairs, counting no partner that takes away."""
    best = np.zeros(max(depth - 1, 1))
    for j in range(len(w)):
        value = -coupled[j] * (w[i] * residuals[j] + w[j] * residuals[i])
        if value > best[-1]:
            _keep(best, value)
    sums[0] = 0.0
    for k in range(1, depth + 1):
        sums[k] = sums[k - 1] + (best[k - 1] if k - 1 < len(best) else 0.0)


@njit
def _best_pair(w: Array, residuals: Array, matrix: Array, first: Array, high: Array) -> float:
    """The most that deleting two rows adds, exactly: only pairs whose bounds reach the best one found are looked at."""
    n = len(w)
    start = int(np.argmax(first))
    best = -np.inf
    for j in range(n):
        if j != start:
            best = max(best, _pair(w, residuals, matrix[start, j], first, start, j))
    top = high.max()
    # Sound because a pair moves the prediction by at most the sum of its two bounds.
    candidates = np.flatnonzero(high + top >= best)
    for position in range(len(candidates)):
        i = candidates[position]
        for j in candidates[position + 1 :]:
            if high[i] + high[j] >= best:
                best = max(best, _pair(w, residuals, matrix[i, j], first, i, j))
    return best


@njit
def _pair(  # noqa: PLR0917  a compiled loop and what it reads
    w: Array, residuals: Array, coupled: float, first: Array, i: int, j: int
) -> float:
    return (first[i] + first[j] - coupled * (w[i] * residuals[j] + w[j] * residuals[i])) / (1.0 - coupled * coupled)
