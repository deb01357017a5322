"""How far rounding may put a formula from a refit: one compiled pass, since blocks are many and small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poisonproof.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["rounding_margin"]


@njit
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


@njit
def _length(vector: NDArray[np.float64]) -> float:
    squares = 0.0
    for value in vector:
        squares += value * value
    return np.sqrt(squares)
