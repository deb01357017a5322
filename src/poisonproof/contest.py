"""The cheapest of many ways to win a vote, each of which is one cover problem or several at once.

Covers take effort, so the ways are bounded by a closed form first, and only those that may be the cheapest on a row are
looked into.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from poisonproof.cover import closed_form, minimum_cover
from poisonproof.cover.structure import structure_of
from poisonproof.median import Radii

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import scipy.sparse as sp
    from numpy.typing import NDArray

    from poisonproof.cover import CoverBounds, Effort

__all__ = ["NEVER", "Cover", "Ground", "Outcome", "cheapest_goal", "gain_bounds"]

NEVER: Final = int(np.iinfo(np.int64).max // 4)  # the cost of what no attacker can do


class Ground(NamedTuple):
    """Where attackers play.

    Parameters
    ----------
    incidence : sparse bool array (n_submodels, n_blocks)
        Which submodel trains on which blocks.
    capacity : int64 array (n_submodels,), or None
        How many units a submodel has, where the attacker can only touch units that are there.
    caps : int64 array (n_blocks,), or None
        How many units a block has, likewise.
    """

    incidence: sp.csr_array
    capacity: NDArray[np.int64] | None
    caps: NDArray[np.int64] | None = None

    def movable(self, costs: NDArray[np.integer]) -> NDArray[np.bool_] | None:
        """False where a vote costs more than its submodel has units: touching all of them is not enough."""
        return None if self.capacity is None else costs <= self.capacity[:, None]


class Cover(NamedTuple):
    """A cover problem on each of some rows: turn votes that count the quota together.

    Parameters
    ----------
    gains : int array (n_submodels, n_rows)
        What each vote counts once it is turned.
    costs : int array (n_submodels, n_rows)
        What it takes to turn it, at least 1.
    quota : int64 array (n_rows,)
        What must be reached; nothing is to be done where it is 0 or less.
    """

    gains: NDArray[np.integer]
    costs: NDArray[np.integer]
    quota: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What is known of the cheapest goal, one entry per row.

    Parameters
    ----------
    lower : int64 array (n_rows,)
        Proved: no goal is reached for less; :data:`NEVER` where none can be reached.
    upper : int64 array (n_rows,)
        What reaching a goal of a single cover costs, at most; :data:`NEVER` where none was found.
    trusted : bool array (n_rows,)
        Where ``lower`` rests on a floating-point solver's word.
    goal : int64 array (n_rows,)
        Which goal has the lowest bound.
    method : str
        How the bounds were found.
    """

    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    trusted: NDArray[np.bool_]
    goal: NDArray[np.int64]
    method: str

    def radii(self, predicted: NDArray[np.bool_], n_units: int, *, limited: bool) -> Radii:
        """The record of rows, where ``limited`` attackers cannot touch more units than there are."""
        out_of_reach = n_units + 1 if limited else NEVER
        unbreakable = predicted & (self.lower >= out_of_reach)
        lower = np.where(predicted, np.where(unbreakable, n_units + 1, self.lower), 0)
        # An attack that needs more units than there are is none; one more than all stands for "not found".
        upper = np.where(unbreakable | ~predicted, lower, np.minimum(self.upper, out_of_reach))
        return Radii(lower - 1, upper, unbreakable, self.trusted & predicted, self.method)


def cheapest_goal(
    ground: Ground,
    covers: Sequence[Callable[[NDArray[np.intp]], Cover]],
    goals: Sequence[Sequence[int]],
    open_goals: NDArray[np.bool_],
    *,
    effort: Effort = "fast",
    time_limit: float | None = None,
) -> Outcome:
    """Bounds on what the cheapest goal costs on each row.

    Parameters
    ----------
    ground : Ground
        Where the attacker plays.
    covers : sequence of callables
        Each gives its cover problem on the rows it is asked for.
    goals : sequence of sequences of int
        The covers that each goal needs, all of them at once.
    open_goals : bool array (n_goals, n_rows)
        Where the goal counts.
    effort, time_limit
        How hard to look, and for how many seconds at most in each cover of each row.

    Notes
    -----
    A goal costs at least as much as the dearest of its covers. On each row the cheapest goal so far is looked into
    until nothing about it is open: no other goal, whose bound is no lower, can then lower the minimum.
    """
    n_rows = open_goals.shape[1]
    needs = np.zeros((len(goals), len(covers)), dtype=np.bool_)
    for place, members in enumerate(goals):
        needs[place, list(members)] = True
    every = np.arange(n_rows)
    price = np.array([gain_bounds(ground, cover(every)) for cover in covers]).reshape(len(covers), n_rows)
    settled = (price == 0) | (price >= NEVER)
    paid = np.full((len(covers), n_rows), NEVER)
    trusted = np.zeros((len(covers), n_rows), dtype=np.bool_)
    method = "gain bound"
    while True:
        lower, goal = _lowest(price, goals, open_goals)
        waiting = needs[goal] & ~settled.T & (lower < NEVER)[:, None]
        rows = np.flatnonzero(waiting.any(axis=1))
        if len(rows) == 0:
            break
        chosen = np.where(waiting[rows], price.T[rows], -1).argmax(axis=1)
        for one in np.unique(chosen):
            here = rows[chosen == one]
            # What costs at least as much as an attack that works cannot lower the minimum.
            enough = _cheapest_single(paid, goals, open_goals)[here]
            bounds = _cover(ground, covers[one](here), enough, effort, time_limit)
            price[one, here] = np.maximum(price[one, here], np.where(bounds.unbreakable, NEVER, bounds.lower))
            paid[one, here] = np.where(bounds.unbreakable, NEVER, bounds.upper)
            trusted[one, here], settled[one, here], method = bounds.trusted_solver, True, bounds.method
    # A goal that a solver's word made dearer than the cheapest one counts too: the minimum rests on it.
    return Outcome(lower, _cheapest_single(paid, goals, open_goals), np.any(trusted, axis=0), goal, method)


def _cheapest_single(
    paid: NDArray[np.int64], goals: Sequence[Sequence[int]], open_goals: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """What an attack costs that reaches a goal of a single cover: attacks on several covers are no attack on all."""
    single = [place for place, members in enumerate(goals) if len(members) == 1]
    return _lowest(paid, [goals[place] for place in single], open_goals[single])[0]


def _lowest(
    price: NDArray[np.int64], goals: Sequence[Sequence[int]], open_goals: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The lowest price of an open goal on each row, and which goal has it."""
    n_rows = open_goals.shape[1]
    low, best = np.full(n_rows, NEVER, dtype=np.int64), np.zeros(n_rows, dtype=np.int64)
    for place, members in enumerate(goals):
        dearest = np.where(open_goals[place], price[list(members)].max(axis=0), NEVER)
        best[dearest < low] = place
        np.minimum(low, dearest, out=low)
    return low, best


def _cover(
    ground: Ground, cover: Cover, enough: NDArray[np.int64], effort: Effort, time_limit: float | None
) -> CoverBounds:
    return minimum_cover(
        ground.incidence,
        cover.costs,
        cover.quota,
        gains=cover.gains,
        movable=ground.movable(cover.costs),
        caps=ground.caps,
        enough=enough,
        effort=effort,
        time_limit=time_limit,
    )


def gain_bounds(ground: Ground, cover: Cover) -> NDArray[np.int64]:
    """A lower bound on each row's cover that needs no search; :data:`NEVER` where no attack can reach the quota."""
    movable = ground.movable(cover.costs)
    costs = cover.costs if movable is None else np.where(movable, cover.costs, 0)
    users = structure_of(ground.incidence).users
    within_reach = np.where(costs > 0, cover.gains, 0).sum(axis=0, dtype=np.int64)
    bounds = closed_form.gain_bounds(users, costs, cover.gains, cover.quota)
    return np.where(within_reach < np.maximum(cover.quota, 0), NEVER, bounds)
