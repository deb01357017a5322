"""From the order of the neighbours to exact radii: what it takes to move the median or the plurality of the nearest k.

This module never sees a row. It knows the targets of the training rows in order of their distance to a test row. With
``i`` insertions, nearer than every row at worst, and ``j`` deletions, the new neighbours are the inserted rows and the
nearest ``k - i`` of what is left: the first ``p = k - i + j`` ranks without the deleted ones. The attacker deletes the
votes that hurt him, so counts of votes among the first ``p`` ranks decide. Where the digest of a label orders identical
rows, no attack is cheaper than these costs either, but one of just that cost may take a lucky key.

A value inside its bound is a vote for, a value outside one against, and an odd k cannot tie: a side of the median is a
plurality of two. So both models share one attacker, and one that needs no more than two arrays of counts. Success is
monotone in the number of modifications, which makes bisection exact.
"""

# ruff: noqa: FBT001, PLR0917  compiled functions take plain arguments, by place

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from poisonproof.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.threat import Threat

    Counts = NDArray[np.int64]

__all__ = ["UNDECIDED", "median_costs", "median_ends", "plurality_costs", "ranks_for_budget", "ranks_for_costs"]

UNDECIDED: Final = -1


def ranks_for_costs(k: int, n_rows: int, threat: Threat) -> int:
    """How many ranks to know before costs are asked for; with deletions alone some rows may need all of them."""
    if not threat.deletes:
        return k
    # Sound because (k + 1) / 2 insertions always succeed, so no cheaper mixture deletes more than that.
    return min(n_rows, k + (k + 1) // 2)


def ranks_for_budget(k: int, n_rows: int, threat: Threat, budget: int) -> int:
    """How many ranks decide what ``budget`` modifications can do."""
    return min(n_rows, k + budget) if threat.deletes else k


def median_costs(
    ranked: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    *,
    k: int,
    n_rows: int,
    threat: Threat,
) -> NDArray[np.int64]:
    """The least number of modifications that move the median of the nearest k out of its bounds.

    Parameters
    ----------
    ranked : float64 array (n_queries, n_known)
        Values of the nearest ``n_known`` training rows, nearest first.
    lower, upper : float64 arrays (n_queries,)
        Bounds, both inclusive; a side with an infinite bound cannot be left.
    k : int
        Odd number of neighbours.
    n_rows : int
        How many training rows there are.
    threat : Threat
        What the attacker may do.

    Returns
    -------
    int64 array (n_queries,)
        0 where the median is out already; ``n_rows + 1`` where nothing moves it; ``UNDECIDED`` where more ranks must be
        known. Fewer than k remaining rows count as moved.
    """
    costs = np.empty(len(ranked), dtype=np.int64)
    _median_costs(ranked, lower, upper, k, n_rows, threat.inserts, threat.deletes, costs)
    return costs


def median_ends(
    ranked: NDArray[np.float64], *, k: int, n_rows: int, threat: Threat, budget: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lowest and the highest median that ``budget`` modifications can reach, each ``(n_queries,)``.

    An end is a value of a training row, or infinite.
    """
    low, high = (np.empty(len(ranked)) for _ in range(2))
    moves = threat.inserts, threat.deletes
    _highest_medians(-ranked, k, n_rows, *moves, budget, low)
    _highest_medians(ranked, k, n_rows, *moves, budget, high)
    return -low, high


def plurality_costs(
    ranked: NDArray[np.int64],
    target: NDArray[np.int64],
    *,
    n_classes: int,
    newcomer: bool,
    k: int,
    n_rows: int,
    threat: Threat,
) -> NDArray[np.int64]:
    """The least number of modifications that take the plurality of the nearest k away from the target class.

    Parameters
    ----------
    ranked : int64 array (n_queries, n_known)
        Class numbers of the nearest ``n_known`` training rows, nearest first.
    target : int64 array (n_queries,)
        The class to keep. Ties go to the smaller number.
    n_classes : int
        Declared classes; those without a row are rivals too.
    newcomer : bool
        Whether an undeclared class, which wins ties, is a rival as well.
    k, n_rows, threat
        As for :func:`median_costs`.

    Returns
    -------
    int64 array (n_queries,)
        As for :func:`median_costs`.
    """
    costs = np.empty(len(ranked), dtype=np.int64)
    moves = threat.inserts, threat.deletes
    _plurality_costs(ranked, target, n_classes, newcomer, k, n_rows, *moves, costs)
    return costs


@njit
def _flips(
    own: Counts,
    rival: Counts,
    tie: int,
    total: int,
    k: int,
    n_rows: int,
    inserts: bool,
    deletes: bool,
) -> bool:
    """Whether ``total`` modifications let the rival class win: over all mixtures of insertions and deletions.

    ``own[p]`` and ``rival[p]`` count votes among the first p ranks; ``tie`` is 1 where the rival wins ties.
    """
    if not inserts and not deletes:
        return own[k] - rival[k] - 2 * total - tie < 0
    most = min(total, (k + 1) // 2) if inserts else 0
    fewest = 0 if deletes else most
    for inserted in range(fewest, most + 1):
        deleted = total - inserted if deletes else 0
        ranks = k - inserted + deleted
        if ranks > n_rows:
            return True
        # Sound because deleting own votes first is best, and asking for no more of them than there are would make
        # success non-monotone, so that bisection would miss attacks.
        if max(own[ranks] - deleted, 0) - rival[ranks] - inserted - tie < 0:
            return True
    return False


@njit
def _least(
    own: Counts,
    rival: Counts,
    tie: int,
    bound: int,
    k: int,
    n_rows: int,
    inserts: bool,
    deletes: bool,
) -> int:
    """The least total up to ``bound`` that lets the rival win, by bisection; ``bound + 1`` where none does."""
    if own[k] - rival[k] - tie < 0:
        return 0
    if not inserts and not deletes:
        return min(bound, (own[k] - rival[k] - tie) // 2) + 1
    last = min(bound, (k + 1) // 2) if inserts else bound
    if last < 1 or not _flips(own, rival, tie, last, k, n_rows, inserts, deletes):
        return bound + 1
    first = 1
    while first < last:
        middle = (first + last) // 2
        if _flips(own, rival, tie, middle, k, n_rows, inserts, deletes):
            last = middle
        else:
            first = middle + 1
    return last


@njit
def _median_costs(
    ranked: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    k: int,
    n_rows: int,
    inserts: bool,
    deletes: bool,
    costs: Counts,
) -> None:
    known = ranked.shape[1]
    own, rival = np.zeros(known + 1, np.int64), np.zeros(known + 1, np.int64)
    certain = n_rows - k + 1 if deletes else n_rows + 1
    limit = known - k if deletes and known < n_rows else certain
    for query in range(ranked.shape[0]):
        best = certain
        for side in range(2):
            sign, bound = (1.0, upper[query]) if side == 0 else (-1.0, -lower[query])
            if bound == np.inf:
                continue
            for rank in range(known):
                inside = 1 if sign * ranked[query, rank] <= bound else 0
                own[rank + 1] = own[rank] + inside
                rival[rank + 1] = rival[rank] + 1 - inside
            best = min(best, _least(own, rival, 0, min(best - 1, limit), k, n_rows, inserts, deletes))
        costs[query] = best if best <= limit or limit == certain else UNDECIDED


@njit
def _highest_medians(
    ranked: NDArray[np.float64],
    k: int,
    n_rows: int,
    inserts: bool,
    deletes: bool,
    budget: int,
    ends: NDArray[np.float64],
) -> None:
    """The least value that ``budget`` modifications cannot push the median above, by bisection over the values."""
    known = ranked.shape[1]
    own, rival = np.zeros(known + 1, np.int64), np.zeros(known + 1, np.int64)
    for query in range(ranked.shape[0]):
        ends[query] = np.inf
        if deletes and budget > n_rows - k:
            continue
        values = np.sort(ranked[query])
        # Invariant: every value before first can be passed; values[last] cannot, or last stands for infinity.
        first, last = 0, known
        while first < last:
            middle = (first + last) // 2
            for rank in range(known):
                inside = 1 if ranked[query, rank] <= values[middle] else 0
                own[rank + 1] = own[rank] + inside
                rival[rank + 1] = rival[rank] + 1 - inside
            if _flips(own, rival, 0, budget, k, n_rows, inserts, deletes):
                first = middle + 1
            else:
                last = middle
        if last < known:
            ends[query] = values[last]


@njit
def _plurality_costs(
    ranked: Counts,
    target: Counts,
    n_classes: int,
    newcomer: bool,
    k: int,
    n_rows: int,
    inserts: bool,
    deletes: bool,
    costs: Counts,
) -> None:
    known = ranked.shape[1]
    own, rival = np.zeros(known + 1, np.int64), np.zeros(known + 1, np.int64)
    certain = n_rows - k + 1 if deletes else n_rows + 1
    limit = known - k if deletes and known < n_rows else certain
    for query in range(ranked.shape[0]):
        best = certain
        for rank in range(known):
            own[rank + 1] = own[rank] + (ranked[query, rank] == target[query])
        for other in range(n_classes + newcomer):
            if other == target[query]:
                continue
            for rank in range(known):
                rival[rank + 1] = rival[rank] + (ranked[query, rank] == other)
            tie = 1 if other < target[query] or other == n_classes else 0
            best = min(best, _least(own, rival, tie, min(best - 1, limit), k, n_rows, inserts, deletes))
        costs[query] = best if best <= limit or limit == certain else UNDECIDED
