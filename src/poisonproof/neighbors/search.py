"""The nearest rows in their exact order: by distance, then by content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from joblib import Parallel, delayed

from poisonproof.compiled import njit

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from poisonproof.neighbors.metric import Metric

__all__ = ["Search"]

_CHUNK_BYTES: Final = 1 << 26  # of distances held at a time


@dataclass(frozen=True, eq=False)
class Search:
    """Finds the nearest of some rows.

    Parameters
    ----------
    metric : Metric
        What near means.
    rows : float64 array (n_rows, n_features)
        Encoded rows, in the order that breaks ties: of two rows at the same distance the earlier one is nearer.

    Notes
    -----
    All distances are measured. Each depends on its two rows alone, so inserting or deleting other rows leaves the
    order of the remaining ones as it is: certificates rest on that.
    """

    metric: Metric
    rows: NDArray[np.float64]

    def nearest(self, queries: NDArray[np.float64], count: int) -> NDArray[np.int64]:
        """Places of the ``count`` nearest rows of each encoded query, nearest first, ``(n_queries, count)``."""
        distances = self.metric.distances(queries, self.rows)
        places = np.empty((len(queries), count), dtype=np.int64)
        for query, apart in enumerate(distances):
            places[query] = _closest(apart, count)
        return places

    def each_chunk(self, work: Callable[[slice], Any], n_queries: int, n_jobs: int | None = None) -> list[Any]:
        """``work`` on every window of queries, in order: so few at a time that their distances fit into memory."""
        size = max(1, _CHUNK_BYTES // (8 * len(self.rows)))
        windows = [slice(start, min(start + size, n_queries)) for start in range(0, n_queries, size)]
        if len(windows) < 2 or n_jobs in (None, 1):
            return [work(window) for window in windows]
        # Threads suffice: the compiled loops and numpy's sorts let go of the interpreter.
        return list(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(work)(window) for window in windows))


def _closest(distances: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """The places of the ``count`` smallest distances, ascending; of equal ones the earlier place first."""
    if count == len(distances):
        return _ascending(distances)
    farthest = np.partition(distances, count - 1)[count - 1]
    # Every row tied for the last place is a candidate, so that the tie is broken by place, not by the partition.
    candidates = np.flatnonzero(distances <= farthest)
    return candidates[_ascending(distances[candidates])[:count]]


def _ascending(distances: NDArray[np.float64]) -> NDArray[np.intp]:
    # Not a stable sort: numpy's fast one and one pass over the ties take half the time.
    order = np.argsort(distances)
    _settle_ties(distances, order)
    return order


@njit
def _settle_ties(distances: NDArray[np.float64], order: NDArray[np.intp]) -> None:
    """Sort the places within each run of equal distances."""
    start = 0
    for place in range(1, order.shape[0] + 1):
        if place == order.shape[0] or distances[order[place]] != distances[order[start]]:
            if place - start > 1:
                order[start:place] = np.sort(order[start:place])
            start = place
