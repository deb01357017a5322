"""Many boosted models at once, each without a few of the rows: the lanes of one computation.

A replica grows exactly as :func:`poisonproof.learners.tree_growth.grow` grows a model on the rows it has. The nodes of
all replicas lie next to each other in memory while their splits are searched, so that one pass over the splits serves
all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numba
import numpy as np

from poisonproof.compiled import njit
from poisonproof.learners.tree_growth import TIE, Nodes, settle, threshold_above, unit_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.learners.presort import Presorted
    from poisonproof.learners.tree_growth import Growth

    _Desk = tuple[NDArray[np.float64], NDArray[np.uint16]]

__all__ = ["MOST_ROWS", "Replicas", "grow_replicas", "predict_replicas"]

MOST_ROWS: Final = 2**16 - 1  # what the lanes count to

_LANES: Final = 512  # nodes searched side by side: enough to make a pass worth while, few enough to stay in the cache


class Replicas(NamedTuple):
    """Boosted models side by side: :class:`poisonproof.learners.tree_growth.Trees` with a last axis of replicas."""

    base: NDArray[np.float64]
    unit: NDArray[np.float64]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    leaf: NDArray[np.float64]


class _Lanes(NamedTuple):
    """The nodes being searched side by side.

    Parameters
    ----------
    residual : float64 array (n_rows, n_lanes)
        The residual of each row, 0 where it is not in the node.
    inside : uint16 array (n_rows, n_lanes)
        1 where the row is in the node, 0 elsewhere.
    total, left : float64 arrays (n_lanes,)
        Sums of residuals over the node, and over its left side.
    size, left_size : uint16 arrays (n_lanes,)
        Numbers of rows, ``MOST_ROWS`` at most.
    best : int64 array (n_lanes,)
        The first of the best splits so far, -1 where none is any good.
    gain : float64 array (n_lanes,)
        Its gain.
    """

    residual: NDArray[np.float64]
    inside: NDArray[np.uint16]
    total: NDArray[np.float64]
    size: NDArray[np.uint16]
    left: NDArray[np.float64]
    left_size: NDArray[np.uint16]
    best: NDArray[np.int64]
    gain: NDArray[np.float64]


@njit
def grow_replicas(
    X: NDArray[np.float64], y: NDArray[np.float64], gone: NDArray[np.int64], splits: Presorted, growth: Growth
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    """The fields of :class:`Replicas`: a model without the rows ``gone[r]`` for each ``r``; each must leave a row.

    A row may be named more than once, so that sets of different sizes fit into one array.

    There must be no more than ``MOST_ROWS`` rows.
    """
    n_inner, n_replicas = (1 << growth.depth) - 1, len(gone)
    base, unit, nodes = _start(y, gone, n_inner)
    desk = np.empty(len(y) * _LANES), np.empty(len(y) * _LANES, np.uint16)
    feature = np.zeros((growth.n_trees, n_inner, n_replicas), np.int32)
    threshold = np.empty((growth.n_trees, n_inner, n_replicas))
    leaf = np.empty((growth.n_trees, n_inner + 1, n_replicas))
    used, changing = 0, True
    while used < growth.n_trees and changing:
        _plant(nodes)
        for level in range(growth.depth):
            _split_level(splits, growth, nodes, level, desk)
            _descend(X, nodes, level)
        for r in range(n_replicas):
            settle(growth, _replica(nodes, r), unit[r])
        feature[used], threshold[used], leaf[used] = nodes.feature, nodes.threshold, nodes.value[n_inner:]
        changing = _step(nodes)
        used += 1
    return base, unit, feature[:used].copy(), threshold[:used].copy(), leaf[:used].copy()


@njit
def predict_replicas(replicas: Replicas, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The predictions ``(n_replicas, n_rows)``, summed in the order of the trees."""
    n_trees, n_inner, n_replicas = replicas.feature.shape
    units = np.zeros((len(X), n_replicas))
    for tree in range(n_trees):
        for row in range(len(X)):
            for r in range(n_replicas):
                node = 0
                while node < n_inner:
                    right = X[row, replicas.feature[tree, node, r]] >= replicas.threshold[tree, node, r]
                    node = 2 * node + 1 + right
                units[row, r] += replicas.leaf[tree, node - n_inner, r]
    prediction = np.empty((n_replicas, len(X)))
    for row in range(len(X)):
        for r in range(n_replicas):
            prediction[r, row] = replicas.base[r] + replicas.unit[r] * units[row, r]
    return prediction


@numba.njit(nogil=True)
def _start(
    y: NDArray[np.float64], gone: NDArray[np.int64], n_inner: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], Nodes]:
    """Base and unit of each replica, and the nodes with the first residuals."""
    n_rows, n_replicas = len(y), len(gone)
    base, unit = np.zeros(n_replicas), np.empty(n_replicas)
    at, residual = np.zeros((n_rows, n_replicas), np.int32), np.zeros((n_rows, n_replicas))
    for r in range(n_replicas):
        at[gone[r], r] = -1
        largest, n_left = 0.0, 0
        for i in range(n_rows):
            if at[i, r] == 0:
                base[r] += y[i]
                n_left += 1
        base[r] /= n_left
        for i in range(n_rows):
            if at[i, r] == 0:
                largest = max(largest, abs(base[r] - y[i]))
        unit[r] = unit_of(n_left * largest)
        for i in range(n_rows):
            if at[i, r] == 0:
                residual[i, r] = np.rint((base[r] - y[i]) / unit[r])
    nodes = Nodes(
        residual,
        at,
        np.empty((2 * n_inner + 1, n_replicas)),
        np.empty((2 * n_inner + 1, n_replicas)),
        np.empty((n_inner, n_replicas), np.int32),
        np.empty((n_inner, n_replicas)),
        np.empty((n_inner, n_replicas)),
        np.zeros((2 * n_inner + 1, n_replicas)),
    )
    return base, unit, nodes


@numba.njit(nogil=True)
def _plant(nodes: Nodes) -> None:
    """Put every row that is there into the root of a new tree."""
    nodes.total[:], nodes.size[:] = 0.0, 0.0
    nodes.feature[:], nodes.threshold[:] = -1, np.inf
    n_rows, n_replicas = nodes.at.shape
    for i in range(n_rows):
        for r in range(n_replicas):
            nodes.at[i, r] = min(nodes.at[i, r], 0)
            nodes.total[0, r] += nodes.residual[i, r]
            nodes.size[0, r] += nodes.at[i, r] + 1.0


@numba.njit(nogil=True)
def _replica(nodes: Nodes, r: int) -> Nodes:
    """The nodes of one replica."""
    return Nodes(
        nodes.residual[:, r],
        nodes.at[:, r],
        nodes.total[:, r],
        nodes.size[:, r],
        nodes.feature[:, r],
        nodes.threshold[:, r],
        nodes.saved[:, r],
        nodes.value[:, r],
    )


@numba.njit(nogil=True)
def _split_level(splits: Presorted, growth: Growth, nodes: Nodes, level: int, desk: _Desk) -> None:
    """Give every node of a level its best split, in every replica, where there is any."""
    node_of, replica_of = _divisible(nodes, level, growth.least)
    n_batches = (len(node_of) + _LANES - 1) // _LANES
    for batch in range(n_batches):
        # Batches of equal size: a small one costs little less than a full one.
        start, stop = batch * len(node_of) // n_batches, (batch + 1) * len(node_of) // n_batches
        node_here, replica_here = node_of[start:stop], replica_of[start:stop]
        lanes = _gather(nodes, node_here, replica_here, desk)
        _search(lanes, splits, growth)
        for lane in range(len(node_here)):
            segment, node, r = lanes.best[lane], node_here[lane], replica_here[lane]
            if segment >= 0:
                without = nodes.total[node, r] * nodes.total[node, r] / (nodes.size[node, r] + growth.lam)
                nodes.saved[node, r] = lanes.gain[lane] - without
                nodes.feature[node, r] = splits.feature[splits.owner[segment]]
                nodes.threshold[node, r] = threshold_above(splits, segment, nodes.at, node, r)


@numba.njit(nogil=True)
def _divisible(nodes: Nodes, level: int, least: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The nodes of a level that have rows for two sides, as node and replica."""
    first, n_replicas = (1 << level) - 1, nodes.at.shape[1]
    node_of, replica_of = np.empty((first + 1) * n_replicas, np.int64), np.empty((first + 1) * n_replicas, np.int64)
    found = 0
    for node in range(first, 2 * first + 1):
        for r in range(n_replicas):
            if nodes.size[node, r] >= 2.0 * least:
                node_of[found], replica_of[found] = node, r
                found += 1
    return node_of[:found], replica_of[:found]


@numba.njit(nogil=True)
def _gather(nodes: Nodes, node_of: NDArray[np.int64], replica_of: NDArray[np.int64], desk: _Desk) -> _Lanes:
    """The given nodes side by side on the desk; lanes are filled up to a multiple of sixteen with empty ones."""
    n_rows, n_lanes = len(nodes.at), (len(node_of) + 15) // 16 * 16
    residual = desk[0][: n_rows * n_lanes].reshape(n_rows, n_lanes)
    inside = desk[1][: n_rows * n_lanes].reshape(n_rows, n_lanes)
    residual[:], inside[:] = 0.0, 0
    total, size = np.zeros(n_lanes), np.zeros(n_lanes, np.uint16)
    lane_of = np.full(nodes.total.shape, -1)
    for lane in range(len(node_of)):
        node, r = node_of[lane], replica_of[lane]
        lane_of[node, r] = lane
        total[lane], size[lane] = nodes.total[node, r], np.uint16(nodes.size[node, r])
    for i in range(n_rows):
        for r in range(nodes.at.shape[1]):
            lane = lane_of[max(nodes.at[i, r], 0), r]
            if lane >= 0 and nodes.at[i, r] >= 0:
                residual[i, lane], inside[i, lane] = nodes.residual[i, r], 1
    left, left_size = np.empty(n_lanes), np.empty(n_lanes, np.uint16)
    return _Lanes(residual, inside, total, size, left, left_size, np.full(n_lanes, -1), np.empty(n_lanes))


@numba.njit(nogil=True, error_model="numpy")
def _search(lanes: _Lanes, splits: Presorted, growth: Growth) -> None:
    """The first of the best splits in every lane."""
    total, size, left, left_size = lanes.total, lanes.size, lanes.left, lanes.left_size
    for r in range(len(total)):
        lanes.gain[r] = TIE * (total[r] * total[r]) / (size[r] + growth.lam)
    for f in range(len(splits.feature)):
        left[:], left_size[:] = 0.0, 0.0
        for segment in range(splits.segments[f], splits.segments[f + 1]):
            start, stop = splits.rows_of[segment], splits.rows_of[segment + 1]
            _add_rows(left, lanes.residual, splits.rows, start, stop)
            _add_rows(left_size, lanes.inside, splits.rows, start, stop)
            _judge(lanes, segment, growth.lam, growth.least)
            if splits.from_right[f] and segment == splits.segments[f]:
                for r in range(len(total)):
                    left[r], left_size[r] = total[r] - left[r], size[r] - left_size[r]


@numba.njit(nogil=True, inline="always")
def _add_rows(
    sums: NDArray[np.number], values: NDArray[np.number], rows: NDArray[np.int64], start: int, stop: int
) -> None:
    """Add the values of some rows to every lane's sum, eight or four rows at a time while there are so many."""
    entry = start
    while entry + 8 <= stop:
        i, j, k, m = rows[entry], rows[entry + 1], rows[entry + 2], rows[entry + 3]
        o, p, q, s = rows[entry + 4], rows[entry + 5], rows[entry + 6], rows[entry + 7]
        for r in range(len(sums)):
            # Sound because the sums are exact: grouping does not change them.
            four = (values[i, r] + values[j, r]) + (values[k, r] + values[m, r])
            sums[r] += four + ((values[o, r] + values[p, r]) + (values[q, r] + values[s, r]))
        entry += 8
    while entry + 4 <= stop:
        i, j, k, m = rows[entry], rows[entry + 1], rows[entry + 2], rows[entry + 3]
        for r in range(len(sums)):
            sums[r] += (values[i, r] + values[j, r]) + (values[k, r] + values[m, r])
        entry += 4
    while entry < stop:
        i = rows[entry]
        for r in range(len(sums)):
            sums[r] += values[i, r]
        entry += 1


@numba.njit(nogil=True, inline="always", error_model="numpy")
def _judge(lanes: _Lanes, segment: int, lam: float, least: float) -> None:
    """Keep the split in the lanes where it is strictly better than the best so far."""
    total, size, left, left_size, best, gain = lanes[2:]
    for r in range(len(best)):
        rows_left = np.float64(left_size[r])
        right, rows_right = total[r] - left[r], size[r] - rows_left
        a, b = rows_left + lam, rows_right + lam
        # The same from the left and from the right, so that splits and their mirror images tie.
        # Sound because quotients have one order even after rounding; see ``tree_growth``.
        found = (left[r] * left[r] * b + right * right * a) / (a * b)
        better = (min(rows_left, rows_right) >= least) & (found > gain[r])
        gain[r] = found if better else gain[r]
        best[r] = segment if better else best[r]


@numba.njit(nogil=True)
def _descend(X: NDArray[np.float64], nodes: Nodes, level: int) -> None:
    """Move the rows of a level's nodes to the children, and sum those up."""
    first = (1 << level) - 1
    n_rows, n_replicas = nodes.at.shape
    for i in range(n_rows):
        for r in range(n_replicas):
            node = nodes.at[i, r]
            if node >= first and nodes.feature[node, r] >= 0:
                child = 2 * node + 1 + (X[i, nodes.feature[node, r]] >= nodes.threshold[node, r])
                nodes.at[i, r] = child
                nodes.total[child, r] += nodes.residual[i, r]
                nodes.size[child, r] += 1.0


@numba.njit(nogil=True)
def _step(nodes: Nodes) -> bool:
    """Add the leaves to the residuals, and say whether any changed."""
    changed = False
    n_rows, n_replicas = nodes.at.shape
    for i in range(n_rows):
        for r in range(n_replicas):
            if nodes.at[i, r] >= 0:
                added = nodes.value[nodes.at[i, r], r]
                changed |= added != 0.0
                nodes.residual[i, r] += added
    return changed
