"""What it takes to move the median of a set of values, when values can be inserted, deleted or relabelled.

The set is the training rows that speak about one test row. Unlike the votes of an ensemble it grows and shrinks, may be
of even size or empty, and its values may have weights: whole numbers from 0 up to a heaviest weight, so that every sum
of them is exact. The median of a tie is the midpoint of the two middle values; an empty set has a declared value.

This module never sees a row: it knows values, weights and counts.
"""

# ruff: noqa: PLR0917  compiled functions take plain arguments

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from poisonproof.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.threat import Moves

__all__ = [
    "MOVES",
    "NEVER",
    "Neighborhoods",
    "Withstood",
    "end_of_sorted",
    "intervals",
    "medians",
    "radii",
    "withstood_by_count",
]

INSERT: Final = 0
DELETE: Final = 1
RELABEL: Final = 2
# Deleting a value from a median never does more than inserting one beyond the other end, so the first two share a code.
MOVES: Final[dict[Moves, int]] = {"insert+delete": INSERT, "insert": INSERT, "delete": DELETE, "relabel": RELABEL}
NEVER: Final = int(np.iinfo(np.int64).max)  # more modifications than there can be: no attack of this kind succeeds


class Neighborhoods(NamedTuple):
    """The weighted sets of values that speak about some test rows.

    Parameters
    ----------
    values : float64 array (n_values,)
        All values there are, ascending.
    weights : int32 array (n_rows, n_values)
        The weight of each value for each test row; 0 is absent.
    offsets : float64 array (n_rows,)
        What is added to each median.
    heaviest : int
        The largest weight that an inserted value can have.
    empty : float
        The value of an empty set.
    """

    values: NDArray[np.float64]
    weights: NDArray[np.int32]
    offsets: NDArray[np.float64]
    heaviest: int
    empty: float


class Withstood(NamedTuple):
    """How many modifications each prediction withstands: :data:`NEVER` where none of them succeed."""

    above: NDArray[np.int64]
    below: NDArray[np.int64]

    def radius(self, n_units: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The two-sided radius, and where no attack succeeds (there the radius is the number of units)."""
        smaller = np.minimum(self.above, self.below)
        unbreakable = smaller == NEVER
        return np.where(unbreakable, n_units, smaller), unbreakable


def medians(sets: Neighborhoods) -> NDArray[np.float64]:
    """The weighted median of each set, ``(n_rows,)``.

    Examples
    --------
    >>> sets = Neighborhoods(np.array([1.0, 2.0, 6.0]), np.array([[1, 1, 1], [1, 0, 1], [0, 0, 0]], dtype=np.int32),
    ...                      np.zeros(3), 1, 9.0)
    >>> medians(sets).tolist()
    [2.0, 3.5, 9.0]
    """
    out = np.empty(len(sets.weights))
    _shifted_medians(sets.values, sets.weights, 1, 0, sets.empty, out)
    return out + sets.offsets


def radii(sets: Neighborhoods, lower: NDArray[np.float64], upper: NDArray[np.float64], moves: Moves) -> Withstood:
    """How many modifications leave each median at or below ``upper``, and at or above ``lower``; -1 where it is out.

    Notes
    -----
    Exact, if a value can be inserted with the heaviest weight. Let the margin be the weight inside minus the weight
    outside. Inserting takes at most the heaviest weight off it, deleting a value inside takes its own weight,
    relabelling it twice that. A positive margin holds the median inside, a margin of 0 leaves it halfway between the
    last value inside and the first one outside. With unit weights, ``c`` of ``n`` values inside, this is
    ``2c - n - 1``, plus 1 if that midpoint is inside (Hammoudeh and Lowd, "Reducing certified regression to certified
    classification for general poisoning attacks", SaTML 2023, for swaps; here for sets that change their size).

    Examples
    --------
    >>> sets = Neighborhoods(np.arange(5.0), np.ones((1, 5), dtype=np.int32), np.zeros(1), 1, 0.0)
    >>> radii(sets, np.array([-np.inf]), np.array([3.0]), "insert").above.tolist()
    [2]
    """
    sides = []
    for direction, bound in ((1, upper), (-1, -lower)):
        side = sets if direction > 0 else _mirrored(sets)
        out = np.empty(len(sets.weights), dtype=np.int64)
        _withstood(
            side.values, side.weights, side.offsets, bound, side.heaviest, MOVES[moves], side.empty, direction, out
        )
        sides.append(out)
    return Withstood(*sides)


def intervals(sets: Neighborhoods, budget: int, moves: Moves) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lowest and the highest value that ``budget`` modifications can give each median; both are reached."""
    # One more modification than there are values moves the median anywhere already.
    spent = min(budget, len(sets.values) + 1)
    ends = []
    for direction in (-1, 1):
        side = sets if direction > 0 else _mirrored(sets)
        out = np.empty(len(sets.weights))
        if MOVES[moves] == INSERT:
            _shifted_medians(side.values, side.weights, direction, spent * side.heaviest, side.empty, out)
        else:
            _shrunken_medians(side.values, side.weights, direction, spent, MOVES[moves], side.empty, out)
        ends.append(out)
    return -ends[0] + sets.offsets, ends[1] + sets.offsets


def _mirrored(sets: Neighborhoods) -> Neighborhoods:
    """The negated problem, whose upper side is the lower side; the kernels read its weights from the other end."""
    return Neighborhoods(-sets.values[::-1].copy(), sets.weights, -sets.offsets, sets.heaviest, -sets.empty)


@njit
def midpoint(low: float, high: float) -> float:
    """Halfway between two values: never outside them, and no less where either is larger."""
    total = low + high
    if np.isinf(total) and not np.isinf(high):
        return low / 2 + high / 2
    return total / 2


@njit
def withstood_by_count(size: int, inside: int, tie_inside: int, empty_inside: int, move: int) -> int:
    """How many modifications a set of this size withstands on one side; -1 where its median is out.

    ``tie_inside`` says that some value is inside and some outside, and that the midpoint of the last one inside and the
    first one outside is inside; ``empty_inside`` that the value of an empty set is.
    """
    if size == 0:
        if not empty_inside:
            return -1
        return 0 if move == INSERT else NEVER
    if move == DELETE and inside == size:
        return NEVER if empty_inside else size - 1
    step = 2 if move == RELABEL else 1
    # The median stays inside while its doubled rank, which each modification raises by a step, is at most this.
    highest = 2 * inside + tie_inside
    return max(-1, (highest - size - 1) // step)


@njit
def end_of_sorted(values: NDArray[np.float64], budget: int, move: int, empty: float, upward: int) -> float:
    """The highest (or lowest) value that ``budget`` modifications can give the median of ascending ``values``."""
    size = len(values)
    infinity = np.inf if upward else -np.inf
    if size == 0:
        return infinity if move == INSERT and budget > 0 else empty
    if move == DELETE and budget >= size:
        return max(values[-1], empty) if upward else min(values[0], empty)
    doubled_rank = size + 1 + budget * (2 if move == RELABEL else 1)
    first, second = doubled_rank // 2, (doubled_rank + 1) // 2
    if second > size:
        return infinity
    return (
        midpoint(values[first - 1], values[second - 1])
        if upward
        else midpoint(values[size - second], values[size - first])
    )


@njit
def _load(weights: NDArray[np.int32], direction: int, buffer: NDArray[np.int64]) -> None:
    """The weights of one test row, from the end that belongs to the smallest value of the side."""
    n_values = len(weights)
    for place in range(n_values):
        buffer[place] = weights[place] if direction > 0 else weights[n_values - 1 - place]


@njit
def _shifted_medians(
    values: NDArray[np.float64],
    weights: NDArray[np.int32],
    direction: int,
    beyond: int,
    empty: float,
    out: NDArray[np.float64],
) -> None:
    """The weighted medians after a weight ``beyond`` has been added at infinity."""
    buffer = np.empty(len(values), dtype=np.int64)
    for row in range(len(weights)):
        _load(weights[row], direction, buffer)
        total = buffer.sum() + beyond
        out[row] = empty if total == 0 else np.inf
        below = 0
        low = np.inf
        for place in range(len(values)):
            if total == 0 or buffer[place] == 0:
                continue
            below += buffer[place]
            if 2 * below >= total and low == np.inf:
                low = values[place]
            if 2 * below > total:
                out[row] = midpoint(low, values[place])
                break


@njit
def _withstood(
    values: NDArray[np.float64],
    weights: NDArray[np.int32],
    offsets: NDArray[np.float64],
    upper: NDArray[np.float64],
    heaviest: int,
    move: int,
    empty: float,
    direction: int,
    out: NDArray[np.int64],
) -> None:
    buffer = np.empty(len(values), dtype=np.int64)
    for row in range(len(weights)):
        if upper[row] == np.inf:
            out[row] = NEVER
            continue
        _load(weights[row], direction, buffer)
        inside = _count_inside(values, offsets[row], upper[row])
        within, outside = buffer[:inside].sum(), buffer[inside:].sum()
        empty_inside = empty + offsets[row] <= upper[row]
        if within + outside == 0:
            out[row] = withstood_by_count(0, 0, False, empty_inside, move)
        elif move == INSERT:
            tie = _tie_inside(values, buffer, inside, offsets[row], upper[row])
            # Sound because weights are whole numbers, so that no margin is ever rounded.
            out[row] = max(-1, (within - outside - 1 + tie) // heaviest)
        else:
            out[row] = _withstood_from_within(values, buffer, inside, offsets[row], upper[row], move, empty_inside)


@njit
def _count_inside(values: NDArray[np.float64], offset: float, upper: float) -> int:
    """How many values stay at or below the bound once the offset is added, in the predictions' own arithmetic."""
    first, last = 0, len(values)
    while first < last:
        middle = (first + last) // 2
        if values[middle] + offset <= upper:
            first = middle + 1
        else:
            last = middle
    return first


@njit
def _tie_inside(
    values: NDArray[np.float64], weights: NDArray[np.int64], inside: int, offset: float, upper: float
) -> bool:
    """Whether the midpoint of the last value inside and the first value outside is inside."""
    last = inside - 1
    while last >= 0 and weights[last] == 0:
        last -= 1
    first = inside
    while first < len(values) and weights[first] == 0:
        first += 1
    return last >= 0 and first < len(values) and midpoint(values[last], values[first]) + offset <= upper


@njit
def _withstood_from_within(
    values: NDArray[np.float64],
    weights: NDArray[np.int64],
    inside: int,
    offset: float,
    upper: float,
    move: int,
    empty_inside: int,
) -> int:
    """The modifications withstood where each one takes or turns a value inside: the heaviest ones go first."""
    step = 2 if move == RELABEL else 1
    margin = 2 * weights[:inside].sum() - weights.sum()
    if margin <= 0:
        return 0 if margin == 0 and _tie_inside(values, weights, inside, offset, upper) else -1
    ordered = np.sort(weights[:inside])
    spent = 0
    while margin > 0:
        spent += 1
        margin -= step * ordered[inside - spent]
    if margin < 0:
        return spent - 1
    first = inside
    while first < len(values) and weights[first] == 0:
        first += 1
    if first == len(values):
        # Deletions have emptied the set; relabelled values are all there is outside.
        return NEVER if move == DELETE and empty_inside else spent - 1
    kept = _largest_kept(values, weights, inside, ordered, spent)
    return spent if midpoint(kept, values[first]) + offset <= upper else spent - 1


@njit
def _largest_kept(
    values: NDArray[np.float64], weights: NDArray[np.int64], inside: int, ordered: NDArray[np.int64], spent: int
) -> float:
    """The largest value inside that the ``spent`` heaviest can leave, by choice among equally heavy ones."""
    if spent == 0:
        threshold, spare = NEVER, False
    else:
        threshold = ordered[inside - spent]
        spare = spent < inside and ordered[inside - spent - 1] == threshold
    for place in range(inside - 1, -1, -1):
        if 0 < weights[place] < threshold or (spare and weights[place] == threshold):
            return values[place]
    return -np.inf


@njit
def _shrunken_medians(
    values: NDArray[np.float64],
    weights: NDArray[np.int32],
    direction: int,
    budget: int,
    move: int,
    empty: float,
    out: NDArray[np.float64],
) -> None:
    """The highest medians after ``budget`` values have been deleted, or relabelled to infinity."""
    buffer = np.empty(len(values), dtype=np.int64)
    for row in range(len(weights)):
        _load(weights[row], direction, buffer)
        present = np.flatnonzero(buffer)
        out[row] = _shrunken_median(values[present], buffer[present], budget, move, empty)


@njit
def _shrunken_median(
    values: NDArray[np.float64], weights: NDArray[np.int64], budget: int, move: int, empty: float
) -> float:
    size = len(values)
    if size == 0:
        return empty
    # The least number of values that, taken as all that is inside, no attack outweighs; their margin grows with it.
    first, last = 1, size + 1
    while first < last:
        middle = (first + last) // 2
        if _margin_left(weights, middle, budget, move) >= 0:
            last = middle
        else:
            first = middle + 1
    if first > size:
        return np.inf
    highest = values[first - 1]
    if _margin_left(weights, first, budget, move) > 0:
        return highest
    if first == size:
        return max(highest, empty) if move == DELETE else np.inf
    kept = _largest_kept(values, weights, first, np.sort(weights[:first]), min(budget, first))
    return max(highest, midpoint(kept, values[first]))


@njit
def _margin_left(weights: NDArray[np.int64], inside: int, budget: int, move: int) -> int:
    """The margin of the first ``inside`` values after an attack on the heaviest of them."""
    margin = 2 * weights[:inside].sum() - weights.sum()
    step = 2 if move == RELABEL else 1
    if budget >= inside:
        return margin - step * weights[:inside].sum()
    if budget == 0:
        return margin
    heaviest = np.partition(weights[:inside], inside - budget)[inside - budget :]
    return margin - step * heaviest.sum()
