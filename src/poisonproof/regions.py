"""Random regions: which leaf of a tree a row falls into, and what its values vote and withstand.

A tree's splits are hashed from its root, so there is nothing to store but the values; a leaf is the path to it, one bit
for each split.
"""

# ruff: noqa: PLR0917  compiled functions take plain arguments

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poisonproof.compiled import njit
from poisonproof.neighborhood import DELETE, NEVER, end_of_sorted, midpoint, withstood_by_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["descend", "find_leaves", "move_votes", "vote", "withstand"]


@njit
def _mixed(word: np.uint64) -> np.uint64:
    """A word whose bits all depend on all bits of the given one (the finaliser of SplitMix64)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit
def _fraction(word: np.uint64) -> float:
    """A number in [0, 1) from the upper bits of a word."""
    return float(word >> np.uint64(11)) * 2.0**-53


@njit
def descend(
    rows: NDArray[np.float64],
    roots: NDArray[np.uint64],
    depth: int,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    shares: NDArray[np.float64],
    codes: NDArray[np.int64],
) -> None:
    """The leaf of each row in each tree.

    Sound because a split is a function of the tree's root, the path to it and the declared ranges: no row has a say.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    for tree in range(len(roots)):
        for row in range(len(rows)):
            low, high = lower.copy(), upper.copy()
            state = roots[tree]
            code = 0
            for _ in range(depth):
                first = _mixed(state + golden)
                feature = min(int(np.searchsorted(shares, _fraction(first), side="right")), len(shares) - 1)
                split = low[feature] + _fraction(_mixed(first + golden)) * (high[feature] - low[feature])
                if rows[row, feature] > split:
                    low[feature] = split
                    code = 2 * code + 1
                    state = _mixed(first ^ golden)
                else:
                    high[feature] = split
                    code = 2 * code
                    state = _mixed(first)
            codes[tree, row] = code


@njit
def find_leaves(
    codes: NDArray[np.int64], wanted: NDArray[np.int64], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> None:
    """Where each wanted leaf starts and stops among the ascending codes of its tree."""
    for tree in range(len(codes)):
        for row in range(wanted.shape[1]):
            starts[tree, row] = np.searchsorted(codes[tree], wanted[tree, row])
            stops[tree, row] = np.searchsorted(codes[tree], wanted[tree, row], side="right")


@njit
def vote(
    values: NDArray[np.float64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    empty: float,
    votes: NDArray[np.float64],
) -> None:
    """The median of each leaf."""
    for tree in range(starts.shape[0]):
        for row in range(starts.shape[1]):
            votes[tree, row] = end_of_sorted(values[tree, starts[tree, row] : stops[tree, row]], 0, DELETE, empty, True)


@njit
def move_votes(
    values: NDArray[np.float64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    budget: int,
    move: int,
    empty: float,
    ends: NDArray[np.float64],
) -> None:
    """The lowest and the highest vote that the budget can give each tree."""
    for tree in range(starts.shape[0]):
        for row in range(starts.shape[1]):
            leaf = values[tree, starts[tree, row] : stops[tree, row]]
            ends[0, tree, row] = end_of_sorted(leaf, budget, move, empty, False)
            ends[1, tree, row] = end_of_sorted(leaf, budget, move, empty, True)


@njit
def withstand(
    values: NDArray[np.float64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    offsets: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    move: int,
    empty: float,
    held: NDArray[np.int64],
) -> None:
    """How many modifications keep each vote at or above ``lower`` (first), and at or below ``upper`` (second)."""
    for tree in range(starts.shape[0]):
        for row in range(starts.shape[1]):
            leaf = values[tree, starts[tree, row] : stops[tree, row]]
            held[0, tree, row] = _withstood_below(leaf, offsets[row], lower[row], move, empty)
            held[1, tree, row] = _withstood_above(leaf, offsets[row], upper[row], move, empty)


@njit
def _withstood_above(leaf: NDArray[np.float64], offset: float, upper: float, move: int, empty: float) -> int:
    if upper == np.inf:
        return NEVER
    size, first, last = len(leaf), 0, len(leaf)
    while first < last:
        middle = (first + last) // 2
        if leaf[middle] + offset <= upper:
            first = middle + 1
        else:
            last = middle
    tie = 0 < first < size and midpoint(leaf[first - 1], leaf[first]) + offset <= upper
    return withstood_by_count(size, first, tie, empty + offset <= upper, move)


@njit
def _withstood_below(leaf: NDArray[np.float64], offset: float, lower: float, move: int, empty: float) -> int:
    if lower == -np.inf:
        return NEVER
    size, first, last = len(leaf), 0, len(leaf)
    while first < last:
        middle = (first + last) // 2
        if leaf[middle] + offset >= lower:
            last = middle
        else:
            first = middle + 1
    tie = 0 < first < size and midpoint(leaf[first - 1], leaf[first]) + offset >= lower
    return withstood_by_count(size, size - first, tie, empty + offset >= lower, move)
