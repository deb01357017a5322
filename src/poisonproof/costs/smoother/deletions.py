"""How far deleting rows can move a linear smoother: exact for one and two rows, bounded for more.

Scaled by the roots of ``1 - h``, deleting a set S moves a prediction by ``-a_S' (I - N_SS)^-1 e_S``: ``a`` the weights
of the targets, ``e`` the residuals, ``N`` what is left of the hat matrix off its diagonal. One and two rows are that
formula itself. For more, the series of the inverse is cut after its second term: the first is a sum over rows, the
second a sum over pairs, and the rest is at most ``nu^2 / (1 - nu) |a_S| |e_S|`` where ``nu < 1`` bounds the spectral
norm of every ``N_SS``. Rows with much leverage spoil ``nu``, so a few of them are deleted exactly, in every
combination, and only the other rows are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from poisonproof.costs.smoother.deletion_bounds import bound_alone, bound_together

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NU_LIMIT", "Coupling", "couple", "least_nu", "rise_after_deletions", "rise_by_leverage"]

NU_LIMIT: Final = 1 - 1e-4  # beyond it a bound would hang on rounding
_FREEDOM_LEFT: Final = 1e-4  # share of 1 - h that must survive exact deletions, for the same reason
_COMBINATION_WORK: Final = 1.6e7  # entries of N that all combinations together may visit
_MOST_EXACT: Final = 6


@dataclass(frozen=True, eq=False)
class Coupling:
    """What deletions do to each other, whatever the prediction: everything about N that the bounds need.

    Parameters
    ----------
    scale : float array (n,)
        Roots of ``1 - h``.
    residuals : float array (n,)
        Scaled residuals ``e / scale``.
    matrix : float array (n, n)
        N, its diagonal 0.
    nu : float array (depth + 1,)
        Entry k bounds the spectral norm of N on any k rows; 1 where nothing useful is known.
    largest : float array (n, depth)
        Entry k sums the k largest absolute entries of a row of N.
    largest_met : float array (n, depth)
        The same with each entry times its column's residual.
    """

    scale: NDArray[np.float64]
    residuals: NDArray[np.float64]
    matrix: NDArray[np.float64]
    nu: NDArray[np.float64]
    largest: NDArray[np.float64]
    largest_met: NDArray[np.float64]

    def reliable(self) -> int:
        """The most deletions that are bounded, up to the depth of ``nu``."""
        beyond = np.flatnonzero(self.nu[: len(self.scale) + 1] >= NU_LIMIT)
        return int(beyond[0]) - 1 if len(beyond) else len(self.nu) - 1


class _Exact(NamedTuple):
    """What deleting some rows exactly gives: a move, what it carries over to the other rows, and their coupling."""

    residuals: NDArray[np.float64]
    carried: NDArray[np.float64]
    left: Coupling


def couple(maker: NDArray[np.float64], residuals: NDArray[np.float64], depth: int) -> Coupling:
    """The coupling for up to ``depth`` deletions, from the residual maker ``I - H`` and ``(I - H) y``, of any unit."""
    scale = np.sqrt(maker.diagonal())
    scaled = np.ascontiguousarray(residuals / scale)
    matrix = maker / -np.multiply.outer(scale, scale)
    np.fill_diagonal(matrix, 0.0)
    size = np.abs(matrix)
    largest = _top_sums(size, depth)
    return Coupling(scale, scaled, matrix, least_nu(size, largest), largest, _top_sums(size * np.abs(scaled), depth))


def least_nu(size: NDArray[np.float64], largest: NDArray[np.float64]) -> NDArray[np.float64]:
    """A bound on the spectral norm of N on any k rows, ``(depth + 1,)``, from its absolute entries.

    Notes
    -----
    The largest row sum bounds it; so does, the trace being 0, the Frobenius norm times ``sqrt((k - 1) / k)``.
    """
    depth = largest.shape[1]
    nu = np.zeros(depth + 1)
    n = len(size)
    if n < 2 or depth < 2:
        return nu
    # Sound because a symmetric matrix without trace has its k eigenvalues sum to 0: if one is s, the others' squares
    # sum to at least s^2 / (k - 1), so s^2 <= (k - 1) / k times the sum of all squares.
    above = size[np.triu_indices(n, 1)]
    pairs = min(depth * (depth - 1) // 2, len(above))
    squares = np.sort(np.partition(above, len(above) - pairs)[len(above) - pairs :])[::-1] ** 2
    totals = np.cumsum(squares)
    for k in range(2, depth + 1):
        total = totals[min(k * (k - 1) // 2, pairs) - 1]
        nu[k] = min(float(largest[:, k - 1].max()), float(np.sqrt(2 * total * (k - 1) / k)))
    return np.minimum(nu, 1.0)


def _top_sums(values: NDArray[np.float64], depth: int) -> NDArray[np.float64]:
    """Entry k of each row sums its k largest values, ``(n, depth)``; all of them where there are fewer."""
    n, width = values.shape
    sums = np.zeros((n, depth))
    kept = min(depth - 1, width)
    if kept > 0:
        top = np.sort(np.partition(values, width - kept, axis=1)[:, width - kept :], axis=1)[:, ::-1]
        sums[:, 1 : kept + 1] = np.cumsum(top, axis=1)
        sums[:, kept + 1 :] = sums[:, kept : kept + 1]
    return sums


def rise_after_deletions(coupling: Coupling, weights: NDArray[np.float64], depth: int) -> NDArray[np.float64]:
    """How far at most deleting k rows, or fewer, moves each prediction up and down, ``(2, depth + 1, n_rows)``.

    Parameters
    ----------
    coupling : Coupling
        Of the training rows.
    weights : float array (n_rows, n)
        Weight of each training target in each prediction, unscaled.
    depth : int
        The most deletions.

    Notes
    -----
    Both parts are at least 0; infinite where no bound is known. Emptying a block is not counted here.
    """
    scaled = np.ascontiguousarray(weights / coupling.scale)
    rises = np.stack([_rises(coupling, part, depth) for part in (scaled, -scaled)])
    if depth < 3 or len(coupling.scale) < 3:
        return rises
    exact = _most_exact(len(coupling.scale))
    rises[:, 3:] = np.minimum(rises[:, 3:], _with_some_exact(coupling, scaled, depth, exact)[:, 3:])
    return rises


def rise_by_leverage(
    leverage: NDArray[np.float64], residuals: NDArray[np.float64], weights: NDArray[np.float64], depth: int
) -> NDArray[np.float64]:
    """As :func:`rise_after_deletions`, from the leverages ``h`` alone: for blocks whose N would not fit into memory.

    Notes
    -----
    N plus the diagonal ``h / (1 - h)`` is positive semidefinite, so the k largest of those sum to a bound on its norm;
    with thousands of rows they are small, and the first order is enough.
    """
    scale = np.sqrt(1 - leverage)
    odds = np.sort(leverage / (1 - leverage))[::-1]
    nu = np.minimum(np.concatenate([[0.0, 0.0], np.cumsum(odds)[1:depth], np.ones(depth)])[: depth + 1], 1.0)
    nu[nu >= NU_LIMIT] = 1.0
    scaled = np.ascontiguousarray(weights / scale)
    return np.stack([bound_alone(part, residuals / scale, nu, depth) for part in (scaled, -scaled)])


def _most_exact(n: int) -> int:
    """How many rows to delete exactly in every combination, within the work that is worth it."""
    affordable = int(np.log2(max(_COMBINATION_WORK / n**2, 2.0)))
    return min(_MOST_EXACT, affordable, n - 2)


def _with_some_exact(coupling: Coupling, scaled: NDArray[np.float64], depth: int, exact: int) -> NDArray[np.float64]:
    """The bound with ``exact`` rows of much leverage deleted exactly, in every combination."""
    chosen, others = _hubs(coupling, exact, depth)
    bound = np.zeros((2, depth + 1, len(scaled)))
    known = depth
    for gone in (list(some) for size in range(min(exact, depth) + 1) for some in combinations(chosen, size)):
        size = len(gone)
        if size > known or known < 3:
            continue
        case = _without(coupling, gone, others, known)
        if case is None:
            known = size - 1
            continue
        known = min(known, size + case.left.reliable())
        moved = -(scaled[:, gone] @ case.residuals)
        rest = (scaled[:, others] + scaled[:, gone] @ case.carried) / case.left.scale
        more = np.stack([_rises(case.left, part, known - size) for part in (rest, -rest)])
        # Sound because every set of k rows is one of these combinations and at most k - size of the other rows.
        bound[0, size : known + 1] = np.maximum(bound[0, size : known + 1], moved + more[0])
        bound[1, size : known + 1] = np.maximum(bound[1, size : known + 1], more[1] - moved)
    # Where one combination is unbounded so is their maximum.
    bound[:, known + 1 :] = np.inf
    return bound


def _hubs(coupling: Coupling, exact: int, depth: int) -> tuple[list[int], list[int]]:
    """The rows whose absence lowers the largest row sum most, greedily, and all others."""
    size = np.abs(coupling.matrix)
    others = list(range(len(size)))
    chosen: list[int] = []
    for _ in range(exact):
        among = size[np.ix_(others, others)]
        sums = _top_sums(among, min(depth, 3))[:, -1]
        chosen.append(others.pop(int(np.argmax(sums))))
    return sorted(chosen), others


def _without(coupling: Coupling, gone: list[int], others: list[int], depth: int) -> _Exact | None:
    """The rows ``gone`` deleted exactly; None where what is left would hang on rounding."""
    among = coupling.matrix[np.ix_(others, others)]
    maker = np.eye(len(gone)) - coupling.matrix[np.ix_(gone, gone)]
    if gone and float(np.linalg.eigvalsh(maker)[0]) < _FREEDOM_LEFT:
        return None
    across = coupling.matrix[np.ix_(gone, others)]
    solved = np.linalg.solve(maker, np.column_stack([coupling.residuals[gone], across]))
    residuals, carried = solved[:, 0], solved[:, 1:]
    left = np.eye(len(others)) - among - across.T @ carried
    if left.diagonal().min() < _FREEDOM_LEFT:
        return None
    remaining = coupling.residuals[others] + across.T @ residuals
    return _Exact(
        np.asarray(residuals, dtype=np.float64),
        np.asarray(carried, dtype=np.float64),
        couple(left, remaining, max(depth - len(gone), 1)),
    )


def _rises(coupling: Coupling, scaled: NDArray[np.float64], depth: int) -> NDArray[np.float64]:
    nu = np.where(coupling.nu < NU_LIMIT, coupling.nu, 1.0)
    return bound_together(
        scaled, coupling.residuals, coupling.matrix, nu, coupling.largest, coupling.largest_met, depth
    )
