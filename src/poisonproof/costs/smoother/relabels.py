"""How far new labels can move a linear smoother: exactly, where labels have a declared range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["rise_after_relabels"]


def rise_after_relabels(
    weights: NDArray[np.float64], targets: NDArray[np.float64], limits: tuple[float, float], depth: int
) -> NDArray[np.float64]:
    """How far k new labels, or fewer, move each prediction up and down, ``(2, depth + 1, n_rows)``.

    Notes
    -----
    Exact: a prediction is a sum of weights times targets, so each label moves it by itself, and most at an end of
    its range; the best k labels are the k that move it most.
    """
    rises = np.zeros((2, depth + 1, len(weights)))
    n = len(targets)
    kept = min(depth, n)
    if kept == 0:
        return rises
    low, high = (weights * (limit - targets) for limit in limits)
    for side, gains in enumerate((np.maximum(low, high), -np.minimum(low, high))):
        top = -np.sort(np.partition(-gains, kept - 1, axis=1)[:, :kept], axis=1)
        rises[side, 1 : kept + 1] = np.cumsum(top, axis=1).T
        rises[side, kept + 1 :] = rises[side, kept]
    return rises
