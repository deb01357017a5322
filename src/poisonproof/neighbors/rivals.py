"""What it takes for another class to win among neighbours, each of which votes for its class with its weight.

Weights are whole numbers, so that every count is exact. The class with the largest count wins; of equal counts, the one
that comes first. A set without weight has a declared class.
"""

# ruff: noqa: PLR0917  compiled functions take plain arguments

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from poisonproof.compiled import njit
from poisonproof.neighborhood import NEVER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.threat import Moves

__all__ = ["UNDECLARED", "Ballots", "pluralities", "withstood"]

UNDECLARED: Final = -1  # the class of an empty set, where nobody declared it

_INSERT: Final = 0
_DELETE: Final = 1
_RELABEL: Final = 2
_INSERT_OR_DELETE: Final = 3
_MOVES: Final[dict[Moves, int]] = {
    "insert": _INSERT,
    "delete": _DELETE,
    "relabel": _RELABEL,
    "insert+delete": _INSERT_OR_DELETE,
}


class Ballots(NamedTuple):
    """The weighted votes on some test rows.

    Parameters
    ----------
    classes : int64 array (n_votes,)
        The class of each training row, from 0.
    weights : int32 array (n_rows, n_votes)
        The weight of each training row for each test row; 0 is absent.
    n_classes : int
        How many classes there are.
    heaviest : int
        The largest weight that an inserted row can have.
    empty : int
        The class of an empty set, or :data:`UNDECLARED`.
    open_ended : bool
        Whether rows may appear with a class that nobody has declared: one more rival, which wins ties.
    """

    classes: NDArray[np.int64]
    weights: NDArray[np.int32]
    n_classes: int
    heaviest: int
    empty: int
    open_ended: bool


def pluralities(ballots: Ballots) -> NDArray[np.int64]:
    """The winning class of each test row, ``(n_rows,)``; class 0 for an empty set of undeclared class.

    Examples
    --------
    >>> weights = np.array([[1, 1, 1], [1, 1, 0], [0, 0, 0]], dtype=np.int32)
    >>> pluralities(Ballots(np.array([1, 0, 1]), weights, 3, 1, 2, open_ended=False)).tolist()
    [1, 0, 2]
    """
    counts = np.empty((len(ballots.weights), ballots.n_classes), dtype=np.int64)
    _count(ballots.classes, ballots.weights, counts)
    return np.where(counts.any(axis=1), counts.argmax(axis=1), max(ballots.empty, 0))


def withstood(ballots: Ballots, targets: NDArray[np.int64], moves: Moves) -> NDArray[np.int64]:
    """How many modifications leave each test row at its target class, ``(n_rows,)``.

    -1 where it is not predicted, :data:`poisonproof.neighborhood.NEVER` where no attack succeeds.

    Notes
    -----
    Exact, if a row can be inserted with the heaviest weight. Each rival is taken by itself: an inserted row takes the
    heaviest weight off the lead over it, a deleted row of the target its own weight, a relabelled one twice that, and a
    relabelled row of a third class its own weight.

    Examples
    --------
    >>> ballots = Ballots(np.array([0, 0, 0, 1]), np.ones((1, 4), dtype=np.int32), 2, 1, 0, open_ended=False)
    >>> withstood(ballots, np.array([0]), "insert").tolist()
    [2]
    """
    counts = np.empty((len(ballots.weights), ballots.n_classes), dtype=np.int64)
    _count(ballots.classes, ballots.weights, counts)
    out = np.full(len(targets), -1, dtype=np.int64)
    rows = np.flatnonzero(pluralities(ballots) == targets)
    settings = (ballots.heaviest, ballots.empty, ballots.open_ended, _MOVES[moves])
    _withstood(rows, ballots.classes, ballots.weights, counts, targets, *settings, out)
    return out


@njit
def _count(classes: NDArray[np.int64], weights: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    counts[:] = 0
    for row in range(len(weights)):
        for place in range(len(classes)):
            counts[row, classes[place]] += weights[row, place]


@njit
def _withstood(
    rows: NDArray[np.intp],
    classes: NDArray[np.int64],
    weights: NDArray[np.int32],
    counts: NDArray[np.int64],
    targets: NDArray[np.int64],
    heaviest: int,
    empty: int,
    open_ended: int,
    move: int,
    out: NDArray[np.int64],
) -> None:
    for row in rows:
        target = targets[row]
        leads = _leads(counts[row], target, open_ended)
        if counts[row].sum() == 0:
            # Sound because the class of an empty set stays only where it is declared and nobody can join it.
            shielded = move in (_DELETE, _RELABEL) and empty == target
            out[row] = NEVER if shielded or len(leads) == 0 else 0
        elif move in (_INSERT, _INSERT_OR_DELETE):
            emptied = move == _INSERT_OR_DELETE and empty != target
            limit = np.count_nonzero(weights[row]) - 1 if emptied else NEVER
            out[row] = min(limit, leads.min() // heaviest) if len(leads) else NEVER
        elif move == _DELETE:
            out[row] = _withstood_deletions(classes, weights[row], counts[row], target, empty)
        else:
            out[row] = _withstood_relabels(classes, weights[row], target, leads)


@njit
def _leads(counts: NDArray[np.int64], target: int, open_ended: int) -> NDArray[np.int64]:
    """How much weight of its lead over each rival the target can lose, the open one last."""
    leads = np.empty(len(counts), dtype=np.int64)
    found = 0
    for rival in range(len(counts)):
        if rival != target:
            leads[found] = counts[target] - counts[rival] - (rival < target)
            found += 1
    if open_ended:
        leads[found] = counts[target] - 1
        found += 1
    return leads[:found]


@njit
def _withstood_deletions(
    classes: NDArray[np.int64], weights: NDArray[np.int32], counts: NDArray[np.int64], target: int, empty: int
) -> int:
    """Deletions take the heaviest rows of the target; a rival must have a row of its own, or the set be emptied."""
    spare = NEVER
    for rival in range(len(counts)):
        if rival != target and counts[rival] > 0:
            spare = min(spare, counts[target] - counts[rival] - (rival < target))
    if spare == NEVER:
        return NEVER if empty == target else int(np.count_nonzero(weights)) - 1
    return _affordable(_weights_of(classes, weights, target), spare)


@njit
def _withstood_relabels(
    classes: NDArray[np.int64],
    weights: NDArray[np.int32],
    target: int,
    leads: NDArray[np.int64],
) -> int:
    """A relabelled row gains twice its weight where it is the target's, and its weight where it is a third class's."""
    best = NEVER
    if len(leads) == 0:
        return best
    own, n_codes = 2 * _weights_of(classes, weights, target), len(leads) + 1
    # Sound because an attack takes the largest gains first, and the target's own are twice its count, more than any
    # lead: it is over before it comes to a gain that is smaller than the last own one that the largest lead takes.
    lightest = own[len(own) - 1 - _affordable(own, leads.max())]
    others = _others_from(classes, weights, target, lightest, n_codes)
    for index in range(len(leads)):
        rival = index + (index >= target)
        best = _affordable_turns(own, others, n_codes, rival, leads[index], best)
    return best


@njit
def _weights_of(classes: NDArray[np.int64], weights: NDArray[np.int32], target: int) -> NDArray[np.int64]:
    """The weights of the rows of a class, ascending, without zeros."""
    found, count = np.empty(len(classes), dtype=np.int64), 0
    for place in range(len(classes)):
        if classes[place] == target and weights[place] > 0:
            found[count] = weights[place]
            count += 1
    return np.sort(found[:count])


@njit
def _others_from(
    classes: NDArray[np.int64], weights: NDArray[np.int32], target: int, lightest: int, n_codes: int
) -> NDArray[np.int64]:
    """The other classes' rows of some weight, each as ``weight * n_codes + class``, ascending."""
    found, count = np.empty(len(classes), dtype=np.int64), 0
    for place in range(len(classes)):
        if classes[place] != target and weights[place] >= lightest:
            found[count] = np.int64(weights[place]) * n_codes + classes[place]
            count += 1
    return np.sort(found[:count])


@njit
def _affordable_turns(
    own: NDArray[np.int64], others: NDArray[np.int64], n_codes: int, rival: int, spare: int, enough: int
) -> int:
    """How many of the largest gains, those of the rival's own rows left out, add up to ``spare``; or ``enough``."""
    count, first, second = 0, len(own) - 1, len(others) - 1
    while count < enough:
        while second >= 0 and others[second] % n_codes == rival:
            second -= 1
        third = second >= 0 and others[second] // n_codes > own[first]
        gain = others[second] // n_codes if third else own[first]
        if gain > spare:
            break
        spare -= gain
        count += 1
        second, first = second - third, first - (not third)
    return count


@njit
def _affordable(ordered: NDArray[np.int64], spare: int) -> int:
    """How many of the largest losses add up to at most ``spare``; they ascend."""
    count = 0
    while count < len(ordered) and ordered[len(ordered) - 1 - count] <= spare:
        count += 1
        spare -= ordered[len(ordered) - count]
    return count
