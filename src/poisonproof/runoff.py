"""Rankings of classes to the winner of a run-off, and to the modifications that winner withstands.

Round 1: the two classes that most submodels rank first, the smaller ones of equals. Round 2: the one of the two that
more submodels rank above the other; of equals the smaller one. This module never sees a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from poisonproof.compiled import njit
from poisonproof.contest import NEVER
from poisonproof.errors import DataError
from poisonproof.plurality import Poll, class_counts, exact_radii
from poisonproof.runoff_covers import Race, race_bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.cover import Effort
    from poisonproof.median import Radii

__all__ = ["behind_first", "first_choices", "radii", "rankings", "winners"]


def behind_first(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores ``(n_rows, n_classes)``, with classes that have none right behind the highest.

    Rows speak against the classes that are not first, and not against one that none of them has.

    Examples
    --------
    >>> rankings(behind_first(np.array([[0.6, -np.inf, 0.4]]))).T.tolist()
    [[0, 1, 2]]
    """
    second = np.nextafter(scores.max(axis=1, keepdims=True), -np.inf)
    return np.where(np.isneginf(scores), second, scores)


def rankings(scores: NDArray[np.floating[Any]]) -> NDArray[np.integer]:
    """The place of every class in the order of one submodel's scores, 0 for the highest, ``(n_classes, n_rows)``.

    Of equal scores the smaller class comes first. A class that the submodel has never seen scores ``-inf``.

    Parameters
    ----------
    scores : float array (n_rows, n_classes)
        Class scores, such as probabilities; not NaN.

    Examples
    --------
    >>> rankings(np.array([[0.2, 0.5, 0.3], [0.5, -np.inf, 0.5]])).T.tolist()
    [[2, 0, 1], [0, 2, 1]]
    """
    if np.isnan(scores).any():
        raise DataError("scores contain NaN, which has no place in an order; use -inf for a class without a score")
    n_rows, n_classes = scores.shape
    order = np.argsort(-scores, axis=1, kind="stable")
    places = np.empty((n_classes, n_rows), dtype=np.min_scalar_type(n_classes))
    np.put_along_axis(places, order.T, np.arange(n_classes, dtype=places.dtype)[:, None], axis=0)
    return places


def first_choices(ranks: NDArray[np.integer]) -> NDArray[np.integer]:
    """The class each submodel ranks first, ``(n_submodels, n_rows)``, of ``ranks`` (n_classes, n_submodels, n_rows)."""
    return ranks.argmin(axis=0).astype(np.min_scalar_type(len(ranks)))


def winners(ranks: NDArray[np.integer]) -> NDArray[np.int64]:
    """The class that wins the run-off on each row, ``(n_rows,)``.

    Parameters
    ----------
    ranks : int array (n_classes, n_submodels, n_rows)
        The place of each class in the order of each submodel.

    Examples
    --------
    >>> ballots = [[0.5, 0.4, 0.1]] * 3 + [[0.1, 0.6, 0.3]] * 2 + [[0.1, 0.3, 0.6]] * 2
    >>> winners(np.stack([rankings(np.array([ballot])) for ballot in ballots], axis=1)).tolist()
    [1]
    """
    if len(ranks) == 1:
        return np.zeros(ranks.shape[2], dtype=np.int64)
    counts = class_counts(first_choices(ranks), len(ranks))
    rows = np.arange(counts.shape[1])
    one = counts.argmax(axis=0)
    counts[one, rows] = -1
    two = counts.argmax(axis=0)
    prefer = (_places(ranks, one) < _places(ranks, two)).sum(axis=0)
    n_submodels = ranks.shape[1]
    return np.where((2 * prefer > n_submodels) | ((2 * prefer == n_submodels) & (one < two)), one, two)


def _places(ranks: NDArray[np.integer], classes: NDArray[np.int64]) -> NDArray[np.integer]:
    """The place of one class per row in every submodel's order, ``(n_submodels, n_rows)``."""
    return np.take_along_axis(ranks, classes[None, None, :], axis=0)[0]


def radii(
    poll: Poll,
    ranks: NDArray[np.integer],
    target: NDArray[np.int64],
    *,
    effort: Effort = "fast",
    time_limit: float | None = None,
) -> Radii:
    """How many modifications leave each row's run-off with its target class; -1 where it does not win.

    Parameters
    ----------
    poll : Poll
        The first choices as votes. Its costs, if any, have two axes and are what it takes to change the order of a
        submodel in any way, even where its first choice stays.
    ranks : int array (n_classes, n_submodels, n_rows)
        The place of each class in the order of each submodel.
    target : int64 array (n_rows,)
        The class to certify on each row.
    effort, time_limit
        How hard to look where no formula answers, and for how many seconds at most in each cover on each row.

    Notes
    -----
    An attack works if it gets two rivals above the target in round 1, or if one rival beats all third classes in round
    1 and the target in round 2 (run-off election: Rezaei, Banihashem, Chegini and Feizi, 2023). On disjoint blocks at
    unit cost the radius is exact: the least number of submodels, counted by what they vote for and which of the two
    they prefer. Otherwise it is the dearest cover of what each attack needs, which may be too small, never too large.
    """
    _check(poll, ranks)
    counts, mine = class_counts(poll.votes, poll.n_classes), _places(ranks, target)
    predicted = winners(ranks) == target
    if poll.incidence is None and poll.costs is None:
        movable = np.ones(poll.n_submodels, dtype=np.bool_) if poll.capacity is None else poll.capacity > 0
        least = np.full(len(target), NEVER)
        rows = np.flatnonzero(predicted)
        prefer, turnable, both = _types(poll.votes, ranks, mine, movable)
        _least_turns(rows, prefer, turnable, both, counts, target, poll.n_submodels, least)
        return exact_radii(least, predicted, poll.n_units, "run-off by types of votes")
    race = Race(poll, ranks, mine, target, counts)
    outcome = race_bounds(race, predicted, effort=effort, time_limit=time_limit)
    return outcome.radii(predicted, poll.n_units, limited=poll.capacity is not None)


def _check(poll: Poll, ranks: NDArray[np.integer]) -> None:
    if poll.costs is not None and poll.costs.ndim != 2:
        raise DataError("the costs of a run-off must have two axes, what it takes to change each submodel's order")
    shape = (poll.n_classes, *poll.votes.shape)
    if ranks.shape != shape:
        raise DataError(f"ranks have shape {ranks.shape}; they must have shape {shape}")
    if np.any(np.take_along_axis(ranks, poll.votes[None].astype(np.intp), axis=0) != 0):
        raise DataError("a submodel's vote is not the class it ranks first; take the votes from first_choices(ranks)")


@njit
def _types(votes, ranks, mine, movable):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  compiled
    """Submodels by type, for each row.

    Returns how many prefer the target over each class ``(n_rows, n_classes)``, how many movable ones vote for each
    class, likewise, and how many movable ones vote for a class and prefer the target over another
    ``(n_rows, n_classes, n_classes)``.
    """
    n_classes, n_submodels, n_rows = ranks.shape
    prefer = np.zeros((n_rows, n_classes), np.int64)
    turnable = np.zeros((n_rows, n_classes), np.int64)
    both = np.zeros((n_rows, n_classes, n_classes), np.int64)
    for t in range(n_submodels):
        for row in range(n_rows):
            turnable[row, votes[t, row]] += movable[t]
        for rival in range(n_classes):
            for row in range(n_rows):
                if mine[t, row] < ranks[rival, t, row]:
                    prefer[row, rival] += 1
                    both[row, votes[t, row], rival] += movable[t]
    return prefer, turnable, both


@njit
def _least_turns(rows, prefer, turnable, both, counts, target, n_submodels, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917  compiled
    """The least number of turned submodels that changes the winner of each of the rows, into ``out``."""
    n_classes = len(counts)
    for row in rows:
        aim, best = target[row], np.int64(NEVER)
        have = counts[:, row]
        for rival in range(n_classes):
            if rival == aim:
                continue
            short = max(0, (2 * prefer[row, rival] - n_submodels + (aim < rival) + 1) // 2)
            best = min(best, _turns_to_win(have, turnable[row], both[row, :, rival], aim, rival, short))
            for other in range(rival + 1, n_classes):
                if other != aim:
                    best = min(best, _turns_to_oust(have, turnable[row], aim, rival, other))
        out[row] = best
    return out


@njit
def _turns_to_win(have, turnable, prefer, aim, rival, short):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917  compiled
    """How many submodels must rank ``rival`` first before it reaches round 2 and wins it.

    ``short`` of them must be ones that prefer the target; ``prefer`` counts those among the movable by their vote.
    """
    most, preferring = 0, 0
    for vote in range(len(have)):
        if vote != rival:
            most += turnable[vote]
            preferring += prefer[vote]
    if short > preferring:
        return np.int64(NEVER)
    low, high = np.int64(short), np.int64(most) + 1
    # More turned submodels never hurt the rival, so the least number that works is found by bisection.
    while low < high:
        middle = (low + high) // 2
        if _wins_with(middle, have, turnable, prefer, aim, rival, short):
            high = middle
        else:
            low = middle + 1
    return low if low <= most else np.int64(NEVER)


@njit
def _wins_with(turned, have, turnable, prefer, aim, rival, short):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917  compiled
    """Whether some choice of ``turned`` submodels makes the rival win."""
    forced, wasted = 0, 0
    for vote in range(len(have)):
        if vote in (rival, aim):
            continue
        taken = max(0, have[vote] - have[rival] - turned + (vote < rival))
        if taken > turnable[vote]:
            return False
        forced += taken
        # Votes of a third class that must be taken prefer the target as long as there are such.
        wasted += max(0, taken - prefer[vote])
    return forced <= turned and short <= turned - wasted


@njit
def _turns_to_oust(have, turnable, aim, one, two):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  compiled
    """How many submodels must turn before both ``one`` and ``two`` are above the target in round 1."""
    first, second = have[aim] - have[one] + (aim < one), have[aim] - have[two] + (aim < two)
    i, j = max(0, first), max(0, second)
    # Each turned vote for the target takes 2 off one gap and 1 off the other; no other move does better.
    turned = max((i + 1) // 2, (j + 1) // 2, (i + j + 2) // 3)
    ours = turnable[aim]
    if turned <= ours:
        return turned
    third = -ours - turnable[one] - turnable[two]
    for votes in turnable:
        third += votes
    best = np.int64(NEVER)
    for to_one in range(ours + 1):
        # All votes for the target that can be turned are; the rest comes from others, gaining 1 on one gap each.
        left_one, left_two = first - ours - to_one, second - 2 * ours + to_one
        moved = third
        if left_one < 0:
            moved += min(-left_one, turnable[one])
        if left_two < 0:
            moved += min(-left_two, turnable[two])
        missing = max(0, left_one) + max(0, left_two)
        if missing <= moved:
            best = min(best, ours + missing)
    return best
