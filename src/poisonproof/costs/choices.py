"""What it takes to change a submodel's choice of a class, from the choices of its leave-out replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Choice = Callable[[NDArray[np.float64]], NDArray[np.integer]]

__all__ = ["costs_of_change", "costs_of_joining"]


def costs_of_joining(
    replicas: Sequence[Sequence[Choice]], X: NDArray[np.float64], n_classes: int, max_cost: int
) -> NDArray[np.int64]:
    """The least number of rows left out after which each class may be chosen, ``(n_classes, n_rows)``.

    ``max_cost`` where fewer than that never bring the class about.
    """
    costs = np.full((n_classes, len(X)), max_cost, dtype=np.int64)
    rows = np.arange(len(X))
    # From many rows left out to few, so that the fewest stand at the end.
    for size in range(len(replicas), 0, -1):
        for choice in replicas[size - 1]:
            costs[choice(X), rows] = size
    return costs


def costs_of_change(
    replicas: Sequence[Sequence[Choice]], X: NDArray[np.float64], ranks: NDArray[np.integer], max_cost: int
) -> NDArray[np.int64]:
    """The least number of rows left out after which the ranking ``(n_classes, n_rows)`` may change, ``(n_rows,)``."""
    costs = np.full(len(X), max_cost, dtype=np.int64)
    for size in range(len(replicas), 0, -1):
        for choice in replicas[size - 1]:
            costs[np.any(choice(X) != ranks, axis=0)] = size
    return costs
