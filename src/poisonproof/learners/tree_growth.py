"""Exact greedy boosting of regression trees, one model at a time, in sums that are exact.

Residuals are whole multiples of a unit, so small that next to nothing is lost by rounding to it and so large that every
sum of residuals is an integer below 2⁵³. Sums are then the same in whatever order they are taken, and splits that part
a node's rows alike come out equally good to the last bit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numba
import numpy as np

from poisonproof.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.learners.presort import Presorted

__all__ = ["TIE", "Growth", "Nodes", "Trees", "grow", "predict", "settle", "threshold_above", "unit_of"]

TIE: Final = 1.0 + 2.0**-40  # a split must be better than none by more than rounding


class Growth(NamedTuple):
    """How trees grow: the parameters of ``BoostedTreesRegressor`` under their symbols."""

    n_trees: int
    depth: int
    eta: float
    lam: float
    gamma: float
    least: float


class Trees(NamedTuple):
    """Trees of one depth, as arrays: node ``i`` has the children ``2i + 1`` and ``2i + 2``.

    Parameters
    ----------
    base, unit : float
        The prediction is ``base + unit * sum of leaves``.
    feature : int32 array (n_trees, 2**depth - 1)
        Which feature a node asks for.
    threshold : float64 array (n_trees, 2**depth - 1)
        Smaller values go to the left; infinite where a node does not split.
    leaf : float64 array (n_trees, 2**depth)
        What a leaf adds, a whole number of units.
    """

    base: float
    unit: float
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    leaf: NDArray[np.float64]


class Nodes(NamedTuple):
    """A tree while it grows; where many grow together, every array has a last axis of replicas.

    Parameters
    ----------
    residual : float64 array (n_rows,)
        Prediction minus target, a whole number of units.
    at : int32 array (n_rows,)
        The node each row has come to; negative for a row that is not there.
    total, size : float64 arrays (n_nodes,)
        Sum of the residuals in each node, and number of its rows.
    feature : int32 array (n_inner,)
        What the node asks for; negative where it does not split.
    threshold : float64 array (n_inner,)
        Infinite where it does not split.
    saved : float64 array (n_inner,)
        How much the split lowers the penalised loss, in squared units.
    value : float64 array (n_nodes,)
        What the leaf at or above the node adds.
    """

    residual: NDArray[np.float64]
    at: NDArray[np.int32]
    total: NDArray[np.float64]
    size: NDArray[np.float64]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    saved: NDArray[np.float64]
    value: NDArray[np.float64]


@njit
def grow(
    X: NDArray[np.float64], y: NDArray[np.float64], splits: Presorted, growth: Growth
) -> tuple[float, float, NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    """The fields of :class:`Trees` grown on some rows; the last tree may be one that changes nothing."""
    n_inner = (1 << growth.depth) - 1
    base, unit, nodes = _start(y, n_inner)
    feature = np.zeros((growth.n_trees, n_inner), np.int32)
    threshold = np.empty((growth.n_trees, n_inner))
    leaf = np.empty((growth.n_trees, n_inner + 1))
    used, changing = 0, True
    while used < growth.n_trees and changing:
        _plant(nodes)
        for level in range(growth.depth):
            _split_level(splits, growth, nodes, level)
            _descend(X, nodes, level)
        settle(growth, nodes, unit)
        feature[used], threshold[used], leaf[used] = nodes.feature, nodes.threshold, nodes.value[n_inner:]
        changing = _step(nodes)
        used += 1
    return base, unit, feature[:used].copy(), threshold[:used].copy(), leaf[:used].copy()


@njit
def predict(trees: Trees, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The prediction for each row, summed in the order of the trees."""
    n_trees, n_inner = trees.feature.shape
    prediction = np.empty(len(X))
    for row in range(len(X)):
        units = 0.0
        for tree in range(n_trees):
            node = 0
            while node < n_inner:
                right = X[row, trees.feature[tree, node]] >= trees.threshold[tree, node]
                node = 2 * node + 1 + right
            units += trees.leaf[tree, node - n_inner]
        prediction[row] = trees.base + trees.unit * units
    return prediction


@numba.njit(nogil=True)
def unit_of(reach: float) -> float:
    """The power of two of which ``reach``, a bound on every sum of residuals, is at most 2⁵¹.

    Notes
    -----
    For n residuals of size m at most, ``reach = n * m`` will do: it bounds √n times their Euclidean norm, which bounds
    the sum of their sizes. The norm never rises while trees are added, for what a leaf adds, rounded as it is, lies
    between nothing and twice the step to the mean of its targets.
    """
    exponent = math.frexp(reach)[1]
    return math.ldexp(1.0, max(exponent - 51, -1000))


@numba.njit(nogil=True)
def threshold_above(splits: Presorted, segment: int, at: NDArray[np.int32], node: int, r: int) -> float:
    """The threshold of the split in this node of replica ``r``: halfway from its edge to the node's next value.

    Notes
    -----
    The edge itself is a value in the node: without it the split would equal an earlier one, and not have been chosen.
    """
    owner = splits.owner[segment]
    low, high = splits.edge[segment], splits.top[owner]
    for later in range(segment + 1, splits.segments[owner + 1]):
        inside = False
        for entry in range(splits.rows_of[later], splits.rows_of[later + 1]):
            inside |= at[splits.rows[entry], r] == node
        if inside:
            high = splits.edge[later]
            break
    middle = 0.5 * low + 0.5 * high
    # However close the two are: the lower one stays on the left, the higher one on the right.
    return middle if low < middle <= high else high


@numba.njit(nogil=True)
def settle(growth: Growth, nodes: Nodes, unit: float) -> None:
    """Take back the splits that save less than gamma, from the leaves up, and give every node its leaf's value."""
    n_inner = len(nodes.feature)
    for node in range(n_inner - 1, -1, -1):
        child = 2 * node + 1
        childless = child >= n_inner or (nodes.feature[child] < 0 and nodes.feature[child + 1] < 0)
        if childless and nodes.feature[node] >= 0 and nodes.saved[node] * unit * unit < growth.gamma:
            nodes.feature[node] = -1
    for node in range(len(nodes.value)):
        parent = (node - 1) // 2
        if node > 0 and nodes.threshold[parent] == np.inf:
            nodes.value[node] = nodes.value[parent]
        elif nodes.size[node] > 0.0:
            nodes.value[node] = np.rint(-growth.eta * nodes.total[node] / (nodes.size[node] + growth.lam))
        if node < n_inner and nodes.feature[node] < 0:
            # All values are smaller, so that rows go on to the left, down to a node with the same value.
            nodes.feature[node], nodes.threshold[node] = 0, np.inf


@numba.njit(nogil=True)
def _start(y: NDArray[np.float64], n_inner: int) -> tuple[float, float, Nodes]:
    """Base, unit, and the nodes with the first residuals."""
    base, largest = 0.0, 0.0
    for target in y:
        base += target
    base /= len(y)
    for target in y:
        largest = max(largest, abs(base - target))
    unit = unit_of(len(y) * largest)
    nodes = Nodes(
        np.rint((base - y) / unit),
        np.empty(len(y), np.int32),
        np.empty(2 * n_inner + 1),
        np.empty(2 * n_inner + 1),
        np.empty(n_inner, np.int32),
        np.empty(n_inner),
        np.empty(n_inner),
        np.empty(2 * n_inner + 1),
    )
    return base, unit, nodes


@numba.njit(nogil=True)
def _plant(nodes: Nodes) -> None:
    """Put every row into the root of a new tree."""
    nodes.total[:], nodes.size[:] = 0.0, 0.0
    nodes.feature[:], nodes.threshold[:] = -1, np.inf
    nodes.at[:] = 0
    for residual in nodes.residual:
        nodes.total[0] += residual
    nodes.size[0] = len(nodes.at)


@numba.njit(nogil=True)
def _split_level(splits: Presorted, growth: Growth, nodes: Nodes, level: int) -> None:
    """Give every node of a level its best split, where there is any."""
    first = (1 << level) - 1
    best, gain = _best_splits(splits, growth, nodes, level)
    for k in range(first + 1):
        if best[k] >= 0:
            node = first + k
            without = nodes.total[node] * nodes.total[node] / (nodes.size[node] + growth.lam)
            nodes.saved[node] = gain[k] - without
            nodes.feature[node] = splits.feature[splits.owner[best[k]]]
            nodes.threshold[node] = threshold_above(splits, best[k], nodes.at.reshape(-1, 1), node, 0)


@numba.njit(nogil=True, error_model="numpy")
def _best_splits(
    splits: Presorted, growth: Growth, nodes: Nodes, level: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The first of the best splits of each node of a level, -1 where none is any good, and its gain."""
    first, n_level = (1 << level) - 1, 1 << level
    total, size = nodes.total[first : first + n_level], nodes.size[first : first + n_level]
    best, judged = np.full(n_level, -1), np.full(n_level, -1)
    gain = TIE * (total * total) / (size + growth.lam)
    left, left_size = np.empty(n_level), np.empty(n_level)
    for f in range(len(splits.feature)):
        left[:], left_size[:] = 0.0, 0.0
        for segment in range(splits.segments[f], splits.segments[f + 1]):
            members = splits.rows[splits.rows_of[segment] : splits.rows_of[segment + 1]]
            for row in members:
                k = nodes.at[row] - first
                if k >= 0:
                    left[k] += nodes.residual[row]
                    left_size[k] += 1.0
            for row in members:
                k = nodes.at[row] - first
                if k >= 0 and judged[k] != segment:
                    judged[k] = segment
                    right, right_size = total[k] - left[k], size[k] - left_size[k]
                    a, b = left_size[k] + growth.lam, right_size + growth.lam
                    # The same from the left and from the right, so that splits and their mirror images tie.
                    # Sound because rounded quotients have one order, which fractions compared crosswise have not:
                    # a split that a replica meets again in a later feature is no better there than in the first.
                    found = (left[k] * left[k] * b + right * right * a) / (a * b)
                    # A side without rows may have divided by 0; it is not taken.
                    if found > gain[k] and min(left_size[k], right_size) >= growth.least:
                        best[k], gain[k] = segment, found
            if splits.from_right[f] and segment == splits.segments[f]:
                left[:], left_size[:] = total - left, size - left_size
    return best, gain


@numba.njit(nogil=True)
def _descend(X: NDArray[np.float64], nodes: Nodes, level: int) -> None:
    """Move the rows of a level's nodes to the children, and sum those up."""
    first = (1 << level) - 1
    for i in range(len(nodes.at)):
        node = nodes.at[i]
        if node >= first and nodes.feature[node] >= 0:
            child = 2 * node + 1 + (X[i, nodes.feature[node]] >= nodes.threshold[node])
            nodes.at[i] = child
            nodes.total[child] += nodes.residual[i]
            nodes.size[child] += 1.0


@numba.njit(nogil=True)
def _step(nodes: Nodes) -> bool:
    """Add the leaves to the residuals, and say whether any changed."""
    changed = False
    for i in range(len(nodes.at)):
        added = nodes.value[nodes.at[i]]
        changed |= added != 0.0
        nodes.residual[i] += added
    return changed
