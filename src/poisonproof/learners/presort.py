"""Rows in the order of every feature, once for all trees: which rows to add before each possible split."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poisonproof.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Presorted", "presort"]


class Presorted(NamedTuple):
    """The splits there are, in order: by feature, then by threshold.

    A split sends the rows whose value is at most its edge to the left. Going through the splits of one feature, each
    *segment* of rows is added to the left side, and then stands for one split.

    Parameters
    ----------
    feature : int64 array (n_features_used,)
        The features that can split anything, ascending; of several that order the rows alike, or in reverse, the first.
    segments : int64 array (n_features_used + 1,)
        The segments of feature ``f`` are ``segments[f] … segments[f + 1] - 1``.
    from_right : bool array (n_features_used,)
        Whether the first segment is the right side of its split: the two sides change places once it is done.
    rows_of : int64 array (n_segments + 1,)
        The rows of segment ``s`` are ``rows[rows_of[s]:rows_of[s + 1]]``.
    rows : int64 array
        Rows, segment after segment.
    edge : float64 array (n_segments,)
        The largest value on the left side.
    owner : int64 array (n_segments,)
        The place in ``feature`` of the segment's feature.
    top : float64 array (n_features_used,)
        The largest value of the feature, which no left side contains.
    """

    feature: NDArray[np.int64]
    segments: NDArray[np.int64]
    from_right: NDArray[np.bool_]
    rows_of: NDArray[np.int64]
    rows: NDArray[np.int64]
    edge: NDArray[np.float64]
    owner: NDArray[np.int64]
    top: NDArray[np.float64]


def presort(X: NDArray[np.float64]) -> Presorted:
    """The splits of the rows ``(n_rows, n_features)``.

    Notes
    -----
    Sums of residuals are exact, so neither the order in which rows are added nor the side they are added to changes
    any of them. That is why a lowest value that many rows share (zero, above all) need not be added, and why a feature
    that orders the rows as an earlier one does, or in reverse, can be left out: it would never be strictly better.

    Examples
    --------
    >>> splits = presort(np.array([[0.0, 5.0], [0.0, 5.0], [0.0, 7.0], [1.0, 5.0]]))
    >>> splits.feature.tolist(), splits.from_right.tolist(), splits.rows.tolist(), splits.edge.tolist()
    ([0, 1], [True, True], [3, 2], [0.0, 5.0])
    """
    order = np.argsort(X, axis=0, kind="stable")
    ordered = np.take_along_axis(X, order, axis=0)
    ranks = np.zeros(X.shape, dtype=np.int32)
    np.cumsum(ordered[1:] != ordered[:-1], axis=0, out=ranks[1:])
    of_row = np.empty_like(ranks)
    np.put_along_axis(of_row, order, ranks, axis=0)
    chosen = _distinct(of_row)
    segments, from_right, rows_of, rows, edge = _segments(order.T[chosen], ranks.T[chosen], ordered.T[chosen])
    owner = np.repeat(np.arange(len(chosen)), np.diff(segments))
    return Presorted(chosen, segments, from_right, rows_of, rows, edge, owner, ordered[-1, chosen])


def _distinct(of_row: NDArray[np.int32]) -> NDArray[np.int64]:
    """The features that tell rows apart, each way of telling them apart once."""
    highest = of_row.max(axis=0, initial=0)
    seen: set[bytes] = set()
    chosen = []
    for feature in np.flatnonzero(highest).tolist():
        column = of_row[:, feature]
        if column.tobytes() not in seen:
            seen.update((column.tobytes(), (highest[feature] - column).tobytes()))
            chosen.append(feature)
    return np.array(chosen, dtype=np.int64)


@njit
def _segments(
    order: NDArray[np.int64], ranks: NDArray[np.int32], ordered: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The segments of features whose rows are given in ascending order, with rank and value."""
    n_features, n_rows = order.shape
    segments = np.zeros(n_features + 1, np.int64)
    from_right = np.zeros(n_features, np.bool_)
    rows_of = np.zeros(n_features * n_rows + 1, np.int64)
    rows = np.empty(2 * n_features * n_rows, np.int64)
    edge = np.empty(n_features * n_rows)
    segment = written = 0
    for f in range(n_features):
        last = ranks[f, n_rows - 1]
        low, high = 0, 0
        for i in range(n_rows):
            low += ranks[f, i] == 0
            high += ranks[f, i] == last
        # In ascending order all rows are added but those of the last value. From the right, those above the first value
        # are, and those in between a second time.
        from_right[f] = 2 * (n_rows - low) - high < n_rows - high
        start = 0
        if from_right[f]:
            for i in range(low, n_rows):
                rows[written] = order[f, i]
                written += 1
            edge[segment] = ordered[f, 0]
            segment += 1
            rows_of[segment] = written
            start = low
        for i in range(start, n_rows - high):
            rows[written] = order[f, i]
            written += 1
            if ranks[f, i + 1] != ranks[f, i]:
                edge[segment] = ordered[f, i]
                segment += 1
                rows_of[segment] = written
        segments[f + 1] = segment
    return (
        segments,
        from_right,
        rows_of[: segment + 1].copy(),
        rows[:written].copy(),
        edge[:segment].copy(),
    )
