"""How far rounding may put a formula from a refit: one compiled pass, since blocks are many and small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poisonproof.compiled import njit_any_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["error_by_length", "error_by_solution", "rounding_margin"]


@njit_any_order
def rounding_margin(  # noqa: PLR0917  a compiled loop and what it reads
    weights: NDArray[np.float64],
    apart: NDArray[np.float64],
    seen: NDArray[np.float64],
    rows: NDArray[np.float64],
    relative: float,
    per_seen: float,
    per_row: float,
    absolute: float,
    least: float,
) -> NDArray[np.float64]:
    """The margin of each prediction, ``(n_rows,)``: at least ``least``, and four times what rounding was seen to do.

    Parameters
    ----------
    weights : float array (n_rows, n)
        Weight of each training target in each prediction.
    apart : float array (n_rows,)
        What formula and vote differ for the block as it is.
    seen, rows : float arrays (n_rows, n_seen) and (n_rows, n_features)
        What the weights are linear in, and the rows themselves.
    relative, per_seen, per_row, absolute : float
        The estimated error: so much times the lengths of the weights, of what is seen and of the rows, and the last.
    """
    margin = np.empty(len(weights))
    for row in range(len(weights)):
        rounding = absolute + relative * _length(weights[row]) + per_seen * _length(seen[row])
        if per_row > 0.0:
            rounding += per_row * _length(rows[row])
        # Sound because what is not a number comes first and so stays none: nothing is then claimed.
        margin[row] = max(rounding, least) + 4.0 * abs(apart[row])
    return margin


@njit_any_order
def error_by_length(
    seen: NDArray[np.float64], features: NDArray[np.float64], centre: NDArray[np.float64], per_length: float
) -> NDArray[np.float64]:
    """``per_length`` times the length of each row ``seen`` and of the longest training row about its ``centre``."""
    farthest = 0.0
    for row in range(len(features)):
        squares = 0.0
        for place in range(len(centre)):
            squares += (features[row, place] - centre[place]) ** 2
        farthest = max(farthest, squares)
    # Sound because the mean of the rows that stay is no farther from that of all than the farthest row.
    error = np.empty(len(seen))
    for row in range(len(seen)):
        error[row] = per_length * (_length(seen[row]) + np.sqrt(farthest))
    return error


@njit_any_order
def error_by_solution(  # noqa: PLR0917  a compiled loop and what it reads
    solutions: NDArray[np.float64],
    weights: NDArray[np.float64],
    matrix: NDArray[np.float64],
    freedom: NDArray[np.float64],
    per_length: float,
    most: float,
) -> NDArray[np.float64]:
    """``per_length`` times how long each of the ``solutions`` can get by deletions.

    Parameters
    ----------
    solutions : float array (n_rows, n_features)
        ``A^-1 x`` for each row.
    weights, matrix, freedom : float arrays (n_rows, n), (n_features, n) and (n,)
        Those of the smoother.
    per_length, most : float
        The error for each unit of length, and how many rows may go, over one less their coupling.
    """
    longest = 0.0
    for row in range(matrix.shape[1]):
        squares = 0.0
        for place in range(matrix.shape[0]):
            squares += matrix[place, row] ** 2
        longest = max(longest, squares / freedom[row])
    error = np.empty(len(solutions))
    for row in range(len(solutions)):
        largest = 0.0
        for place in range(len(freedom)):
            largest = max(largest, weights[row, place] ** 2 / freedom[place])
        error[row] = per_length * (_length(solutions[row]) + most * np.sqrt(longest * largest))
    return error


@njit_any_order
def _length(vector: NDArray[np.float64]) -> float:
    squares = 0.0
    for value in vector:
        squares += value * value
    return np.sqrt(squares)
