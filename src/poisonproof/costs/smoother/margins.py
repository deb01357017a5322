"""How far rounding may put a formula from a refit: one compiled pass, since blocks are many and small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poisonproof.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["rounding_margin"]


@njit
def rounding_margin(
    weights: NDArray[np.float64], apart: NDArray[np.float64], relative: float, absolute: float, least: float
) -> NDArray[np.float64]:
    """The margin of each prediction, ``(n_rows,)``: at least ``least``, and four times what rounding was seen to do.

    Parameters
    ----------
    weights : float array (n_rows, n)
        Weight of each training target in each prediction.
    apart : float array (n_rows,)
        What formula and vote differ for the block as it is.
    relative, absolute : float
        The estimated error: ``relative`` times the length of the weights, plus ``absolute``.
    """
    margin = np.empty(len(weights))
    for row in range(len(weights)):
        squares = 0.0
        for i in range(weights.shape[1]):
            squares += weights[row, i] * weights[row, i]
        rounding = np.sqrt(squares) * relative + absolute
        # Sound because what is not a number comes first and so stays none: nothing is then claimed.
        margin[row] = max(rounding, least) + 4.0 * abs(apart[row])
    return margin
