"""Votes for classes to the class with the most, and to the modifications that class withstands.

This module never sees a row: it knows votes, what it takes to change each, and which blocks they share. Classes are
whole numbers from 0 in the order of their declared labels, and of two classes with equal counts the smaller one wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from poisonproof.compiled import njit
from poisonproof.contest import NEVER, Cover, Ground, cheapest_goal, gain_bounds
from poisonproof.errors import DataError
from poisonproof.median import Radii

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from poisonproof.cover import Effort

__all__ = ["Poll", "class_counts", "finite_aggregation", "plurality", "radii", "vote_shares"]


@dataclass(frozen=True, eq=False)
class Poll:
    """The votes for classes on some rows, with everything that decides how they can be changed.

    Parameters
    ----------
    votes : int array (n_submodels, n_rows)
        The class of each vote.
    n_classes : int
        How many classes there may be, those without a vote included. Where rows of a class that nobody declared may
        appear, let class 0 stand for it: without votes, and winning ties.
    incidence : sparse bool array (n_submodels, n_blocks), or None
        Which submodel trains on which blocks; None where each has one block to itself.
    capacity : int64 array (n_submodels,), or None
        How many units a submodel has, where the attacker can only touch units that are there.
    n_units : int
        How many units there are in all.
    costs : int array (n_submodels, n_rows) or (n_classes, n_submodels, n_rows), optional
        What it takes to change each vote, at least 1; None where a single modification may turn it to any class.
        With two axes: the least number of modifications after which the vote may be any other class. With three:
        entry ``k`` holds the least number after which it may be class ``k``, and is not read where it is ``k``
        already. Each must be a lower bound: where no fewer than ``max_cost`` modifications are known to change the
        vote, that is the cost.
    caps : int64 array (n_blocks,), optional
        How many units each block has, where blocks are shared and the attacker can only touch units that are there.
    """

    votes: NDArray[np.integer]
    n_classes: int
    incidence: sp.csr_array | None
    capacity: NDArray[np.int64] | None
    n_units: int
    costs: NDArray[np.integer] | None = None
    caps: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.votes.size and not 0 <= self.votes.min() <= self.votes.max() < self.n_classes:
            given = f"from {self.votes.min()} to {self.votes.max()}"
            raise DataError(
                f"votes are {given}; with n_classes={self.n_classes} they must be 0 to {self.n_classes - 1}"
            )
        if self.costs is None:
            return
        shapes = (self.votes.shape, (self.n_classes, *self.votes.shape))
        if self.costs.shape not in shapes:
            raise DataError(f"costs have shape {self.costs.shape}; they must have shape {shapes[0]} or {shapes[1]}")

    @property
    def n_submodels(self) -> int:
        """How many votes each row has."""
        return len(self.votes)

    def leaving(self, target: NDArray[np.int64]) -> NDArray[np.integer]:
        """The least modifications that turn a vote for the target into one for any other class."""
        if self.costs is None or self.costs.ndim == 2:
            return self.joining(0)
        leave = np.full(self.votes.shape, np.iinfo(self.costs.dtype).max, dtype=self.costs.dtype)
        for rival, join in enumerate(self.costs):
            np.minimum(leave, join, out=leave, where=target != rival)
        return leave

    def joining(self, rival: int) -> NDArray[np.integer]:
        """The least modifications that turn each vote into one for ``rival``."""
        if self.costs is None:
            return np.ones(self.votes.shape, dtype=np.int8)
        return self.costs if self.costs.ndim == 2 else self.costs[rival]

    def ground(self) -> Ground:
        """Where the attacker plays; votes that can be turned in two steps stand there twice."""
        incidence = (
            sp.csr_array(sp.eye_array(self.n_submodels, dtype=np.bool_)) if self.incidence is None else self.incidence
        )
        # Sound because caps are counted by block: where a submodel stands for its own blocks, its
        # capacity says the same of it.
        caps = None if self.incidence is None else self.caps
        if self.costs is None or self.costs.ndim == 2:
            return Ground(incidence, self.capacity, caps)
        # Exact because both copies are reached by the same touches: the first once the target is left, the second
        # once the rival is joined, and each counts 1.
        twice = sp.csr_array(sp.vstack([incidence, incidence], format="csr"))
        return Ground(twice, None if self.capacity is None else np.tile(self.capacity, 2), caps)


def class_counts(votes: NDArray[np.integer], n_classes: int) -> NDArray[np.int64]:
    """How many votes each class has on each row, ``(n_classes, n_rows)``.

    Examples
    --------
    >>> class_counts(np.array([[2, 0], [2, 1], [1, 1]]), 4).tolist()
    [[0, 1], [1, 2], [2, 0], [0, 0]]
    """
    counts = np.zeros((n_classes, votes.shape[1]), dtype=np.int64)
    for rival in range(n_classes):
        np.sum(votes == rival, axis=0, out=counts[rival])
    return counts


def plurality(votes: NDArray[np.integer], n_classes: int) -> NDArray[np.int64]:
    """The class with the most votes on each row, the smaller one of equals, ``(n_rows,)``.

    Examples
    --------
    >>> plurality(np.array([[2, 0], [2, 1], [1, 1], [1, 0]]), 4).tolist()
    [1, 0]
    """
    return class_counts(votes, n_classes).argmax(axis=0)


def vote_shares(votes: NDArray[np.integer], n_classes: int) -> NDArray[np.float64]:
    """The share of the votes that each class has, ``(n_rows, n_classes)``; the first largest is the plurality."""
    return np.ascontiguousarray(class_counts(votes, n_classes).T / len(votes))


def leads_to_lose(counts: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.int64]:
    """How much of its lead the target must lose before each class wins over it, ``(n_classes, n_rows)``.

    A lead is lost by 2 when a vote for the target turns to that class and by 1 when any other vote does, or when a
    vote for the target turns to a third class. The target's own entry is :data:`poisonproof.contest.NEVER`.
    """
    classes, rows = np.arange(len(counts))[:, None], np.arange(len(target))
    leads = counts[target, rows] - counts + (target < classes)
    leads[target, rows] = NEVER
    return leads


def radii(poll: Poll, target: NDArray[np.int64], *, effort: Effort = "fast", time_limit: float | None = None) -> Radii:
    """How many modifications leave each row's plurality at its target class; -1 where it is not the plurality.

    Parameters
    ----------
    poll : Poll
        The votes.
    target : int64 array (n_rows,)
        The class to certify on each row.
    effort, time_limit
        How hard to look where blocks are shared, and for how many seconds at most against each rival on each row.

    Notes
    -----
    The attacker picks one rival and makes it win over the target; the radius is the least over all rivals. On disjoint
    blocks it is exact for the costs: at unit cost the bound of deep partition aggregation (Levine and Feizi, 2021).
    Where blocks are shared, each rival is a cover problem whose votes count 2 or 1, which is never below the bound of
    Finite Aggregation (Wang, Levine and Feizi, 2022).

    Examples
    --------
    >>> poll = Poll(np.array([[0], [0], [0], [0], [1]]), 3, None, None, 50)
    >>> radii(poll, np.array([0])).radius.tolist()
    [1]
    """
    counts = class_counts(poll.votes, poll.n_classes)
    leads = leads_to_lose(counts, target)
    predicted = leads.min(axis=0) > 0
    if poll.incidence is not None:
        goals, open_goals = [[rival] for rival in range(poll.n_classes)], (leads < NEVER) & predicted
        covers = _covers(poll, target, leads)
        outcome = cheapest_goal(poll.ground(), covers, goals, open_goals, effort=effort, time_limit=time_limit)
        return outcome.radii(predicted, poll.n_units, limited=poll.capacity is not None)
    costs = _unit_costs(poll, target, counts, leads) if poll.costs is None else _least_costs(poll, target, leads)
    least = costs.min(axis=0)
    return exact_radii(least, predicted, poll.n_units, "cheapest votes")


def exact_radii(least: NDArray[np.int64], predicted: NDArray[np.bool_], n_units: int, method: str) -> Radii:
    """The record of rows whose cheapest attack is known: one modification fewer is withstood."""
    unbreakable = predicted & (least >= NEVER)
    attack = np.where(predicted, np.where(unbreakable, n_units + 1, least), 0)
    return Radii(attack - 1, attack, unbreakable, np.zeros(len(attack), dtype=np.bool_), method)


def _unit_costs(
    poll: Poll, target: NDArray[np.int64], counts: NDArray[np.int64], leads: NDArray[np.int64]
) -> NDArray[np.int64]:
    """What it takes each class to win, where one modification turns a vote that can be turned to any class."""
    movable = counts if poll.capacity is None else class_counts(poll.votes[poll.capacity > 0], poll.n_classes)
    twos = movable[target, np.arange(len(target))]
    ones = movable.sum(axis=0) - twos - movable
    costs = np.where(leads <= 2 * twos, (leads + 1) // 2, leads - twos)
    return np.where(leads > 2 * twos + ones, NEVER, costs)


def _least_costs(poll: Poll, target: NDArray[np.int64], leads: NDArray[np.int64]) -> NDArray[np.int64]:
    """What it takes each class to win, at the costs of each vote: an exact multiple-choice knapsack."""
    limit = np.full(poll.n_submodels, NEVER) if poll.capacity is None else poll.capacity
    costs = np.full(leads.shape, NEVER)
    by_row, leave = np.ascontiguousarray(poll.votes.T), np.ascontiguousarray(poll.leaving(target).T)
    for rival in range(poll.n_classes):
        rows = np.flatnonzero((target != rival) & (leads[rival] > 0))
        join = leave if poll.joining(rival) is poll.costs else np.ascontiguousarray(poll.joining(rival).T)
        if len(rows):
            _cheapest_switches(rows, by_row, target, rival, leave, join, limit, leads[rival], costs[rival])
    return costs


@njit
def _cheapest_switches(rows, votes, target, rival, leave, join, limit, leads, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917  compiled
    """The least cost of a lead over one rival, for each of the rows, into ``out``."""
    n, base = votes.shape[1], np.int64(join.max()) + 1  # so that whole * base + half sorts by the whole first
    ones, pairs = np.empty(2 * n, np.int64), np.empty(n, np.int64)
    for row in rows:
        n_ones = n_pairs = 0
        for t in range(n):
            if votes[row, t] == rival:
                continue
            whole = np.int64(join[row, t])
            if votes[row, t] != target[row]:
                if whole <= limit[t]:
                    ones[n_ones] = whole
                    n_ones += 1
                continue
            half = min(np.int64(leave[row, t]), whole)
            if whole > limit[t]:
                if half <= limit[t]:
                    ones[n_ones] = half
                    n_ones += 1
            elif whole >= 2 * half:
                # A second half that costs no less than the first is taken no earlier: two votes that count 1 each.
                ones[n_ones], ones[n_ones + 1] = half, whole - half
                n_ones += 2
            else:
                pairs[n_pairs] = whole * base + half
                n_pairs += 1
        out[row] = _cheapest_mixture(_ascending(ones[:n_ones]), _ascending(pairs[:n_pairs]), base, leads[row])
    return out


@njit
def _ascending(values):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  compiled
    """Sorted whole numbers from 0; where they are small they are counted."""
    top = np.int64(0)
    for value in values:
        top = max(top, value)
    if top > 4 * len(values):
        return np.sort(values)
    count, place = np.zeros(top + 1, np.int64), 0
    for value in values:
        count[value] += 1
    ordered = np.empty(len(values), np.int64)
    for value in range(top + 1):
        ordered[place : place + count[value]] = value
        place += count[value]
    return ordered


@njit
def _cheapest_mixture(ones, pairs, base, quota):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  compiled
    """The least total that counts ``quota``: ``ones`` count 1 each; ``pairs`` 2, or 1 at more than half of the price.

    A pair is ``whole * base + half``, what it takes for 2 and for 1; both lists ascend.
    Of two pairs that count 1 each, one counting 2 is cheaper: so at most one does.
    """
    n, big = len(pairs), np.int64(NEVER)
    if quota > len(ones) + 2 * n:
        return big
    least_half = np.full(n + 1, big)
    for i in range(n - 1, -1, -1):
        least_half[i] = min(least_half[i + 1], pairs[i] % base)
    singles = np.zeros(len(ones) + 1, np.int64)
    for i in range(len(ones)):
        singles[i + 1] = singles[i] + ones[i]
    best, wholes, saved = big, np.int64(0), -big
    for count in range(n + 1):
        missing = quota - 2 * count
        if missing <= len(ones):
            best = min(best, wholes + singles[max(missing, 0)])
        if missing <= 0 or count == n:
            break
        whole, half = pairs[count] // base, pairs[count] % base
        saved = max(saved, whole - half)
        if missing - 1 <= len(ones):
            # One more pair counts 1: a dearer one beside these, or one of these with the next in its place.
            part = min(least_half[count], whole - saved)
            best = min(best, wholes + part + singles[missing - 1])
        wholes += whole
    return best


def _cover_of(
    poll: Poll, target: NDArray[np.int64], leads: NDArray[np.int64], rival: int, rows: NDArray[np.intp]
) -> Cover:
    """What the attacker must turn so that ``rival`` wins over the target."""
    votes, aim = poll.votes[:, rows], target[rows]
    ours, others = votes == aim, votes != rival
    join = poll.joining(rival)[:, rows]
    if poll.costs is None or poll.costs.ndim == 2:
        return Cover((ours.view(np.int8) + others).astype(np.int8), join, leads[rival, rows])
    leave = np.minimum(poll.leaving(target)[:, rows], join)
    return Cover(np.concatenate([ours, others]).view(np.int8), np.concatenate([leave, join]), leads[rival, rows])


def _covers(
    poll: Poll, target: NDArray[np.int64], leads: NDArray[np.int64]
) -> list[Callable[[NDArray[np.intp]], Cover]]:
    return [partial(_cover_of, poll, target, leads, rival) for rival in range(poll.n_classes)]


def finite_aggregation(poll: Poll, target: NDArray[np.int64]) -> NDArray[np.int64]:
    """The radius of each row by the bound of Finite Aggregation alone, with no search; -1 where it is not predicted.

    Notes
    -----
    As many modifications as the most gainful ones need if none hindered another (Wang, Levine and Feizi, 2022), here
    for any costs. A row that nothing can break has as many as there are units.
    """
    leads = leads_to_lose(class_counts(poll.votes, poll.n_classes), target)
    predicted = leads.min(axis=0) > 0
    ground, every = poll.ground(), np.arange(len(target))
    bounds = [gain_bounds(ground, cover(every)) for cover in _covers(poll, target, leads)]
    return exact_radii(np.min(bounds, axis=0), predicted, poll.n_units, "gain bound").radius
