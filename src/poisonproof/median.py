"""Votes and costs to radius and interval, for the median of an odd number of votes.

This module never sees a row: it knows votes, how far each can move, and which blocks they share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from poisonproof.cover import Effort, minimum_cover

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from poisonproof.costs import Reach
    from poisonproof.cover import CoverBounds

__all__ = ["Ballot", "Radii", "interval", "median", "radii"]


class Radii(NamedTuple):
    """Radius and attack of every row, how they were found, and where asked for which blocks the attack touches."""

    radius: NDArray[np.int64]
    attack: NDArray[np.int64]
    unbreakable: NDArray[np.bool_]
    trusted_solver: NDArray[np.bool_]
    method: str
    witness: sp.csr_array | None = None


@dataclass(frozen=True, eq=False)
class Ballot:
    """The votes on some rows, with everything that decides how they can be moved.

    Parameters
    ----------
    reach : Reach (max_cost, n_submodels, n_rows)
        How far each vote can move; entry 0 is the vote.
    incidence : sparse bool array (n_submodels, n_blocks), or None
        Which submodel trains on which blocks; None where each has one block to itself.
    capacity : int64 array (n_submodels,), or None
        How many units a submodel has, where the attacker can only touch units that are there.
    n_units : int
        How many units there are in all.
    caps : int64 array (n_blocks,), or None
        How many units each block has, where blocks are shared and the attacker can only touch units that are there.
    """

    reach: Reach
    incidence: sp.csr_array | None
    capacity: NDArray[np.int64] | None
    n_units: int
    caps: NDArray[np.int64] | None = None

    @property
    def votes(self) -> NDArray[np.float64]:
        """The votes themselves, ``(n_submodels, n_rows)``."""
        return self.reach.high[0]

    def mirrored(self) -> Ballot:
        """The ballot of the negated problem: its upper side is this one's lower side."""
        mirror = type(self.reach)(-self.reach.high, -self.reach.low)
        return Ballot(mirror, self.incidence, self.capacity, self.n_units, self.caps)


def median(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median of an odd number of votes, one per row: a vote that was cast, never a mean of two.

    Examples
    --------
    >>> median(np.array([[1.0], [9.0], [2.0]])).tolist()
    [2.0]
    """
    middle = len(votes) // 2
    by_row = votes.T.copy()  # never the caller's own memory, which partition would shuffle
    by_row.partition(middle, axis=1)
    return by_row[:, middle].copy()


def radii(
    ballot: Ballot,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    *,
    effort: Effort = "fast",
    time_limit: float | None = None,
    witness: bool = False,
) -> Radii:
    """How many modifications the median withstands before it leaves ``[lower, upper]``.

    Notes
    -----
    The attacker must break one side, so the two-sided radius is the smaller one, each side with its own costs
    (docs/theory.md, section 1). The attack is on the given costs; it is real where those are exact.
    """
    solve = partial(_broken, ballot, effort=effort, time_limit=time_limit, witness=witness)
    sides = _sides(ballot, lower, upper, solve)
    # One more than all units stands for the cost of a side that cannot be broken: an attack on the other is cheaper.
    never = ballot.n_units + 1
    least = np.min([np.where(side.unbreakable, never, side.lower) for side in sides], axis=0)
    attacks = np.array([np.where(side.unbreakable, never, side.upper) for side in sides])
    return Radii(
        radius=least - 1,
        attack=attacks.min(axis=0),
        unbreakable=np.all([side.unbreakable for side in sides], axis=0),
        trusted_solver=np.any([side.trusted_solver for side in sides], axis=0),
        method=sides[0].method,
        witness=_witness(sides, attacks.argmin(axis=0)) if witness else None,
    )


def _witness(sides: list[CoverBounds], cheaper: NDArray[np.intp]) -> sp.csr_array:
    """How often the cheaper attack on each row touches each block, ``(n_rows, n_blocks)``."""
    stacked = sp.vstack([side.witness for side in sides], format="csr")
    return stacked[cheaper * len(cheaper) + np.arange(len(cheaper))]


def _sides(
    ballot: Ballot,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    solve: Callable[..., CoverBounds],
) -> list[CoverBounds]:
    """The attacker's problems: for every row first the side where fewer votes must move, then the other one.

    A side that has no bound on any row is left out.
    """
    high = costs_of_leaving(ballot.reach, upper)
    if np.all(lower == -np.inf):
        return [solve(high)]
    low = costs_of_leaving(ballot.mirrored().reach, -lower)
    if np.all(upper == np.inf):
        return [solve(low)]
    high_first = np.count_nonzero(high, axis=0) <= np.count_nonzero(low, axis=0)
    first = solve(np.where(high_first, high, low))
    # Sound because the radius is the smaller one: what the other side costs beyond the first one's bound is of no use.
    enough = np.where(first.unbreakable, np.iinfo(np.int64).max, first.lower)
    other = np.where(high_first, low, high)
    return [first, solve(other, enough=enough)]


def _broken(
    ballot: Ballot,
    costs: NDArray[np.integer],
    *,
    enough: NDArray[np.int64] | None = None,
    only_enough: bool = False,
    effort: Effort = "fast",
    time_limit: float | None = None,
    witness: bool = False,
) -> CoverBounds:
    """The attacker's problem of pushing a majority of the votes out at these costs."""
    n_submodels, n_rows = costs.shape
    return minimum_cover(
        ballot.incidence,
        costs,
        np.full(n_rows, (n_submodels + 1) // 2, dtype=np.int64),
        movable=_movable(ballot.capacity, costs),
        caps=None if ballot.incidence is None else ballot.caps,
        enough=enough,
        only_enough=only_enough,
        effort=effort,
        time_limit=time_limit,
        witness=witness,
    )


def costs_of_leaving(reach: Reach, upper: NDArray[np.float64]) -> NDArray[np.integer]:
    """Least modifications that push each vote above ``upper``: 0 where it is above, ``(n_submodels, n_rows)``."""
    if len(reach.high) == 1:
        return (reach.high[0] <= upper).view(np.int8)
    smallest = np.int8 if len(reach.high) < 128 else np.int32
    return np.count_nonzero(reach.high <= upper, axis=0).astype(smallest)


def _movable(capacity: NDArray[np.int64] | None, costs: NDArray[np.integer]) -> NDArray[np.bool_] | None:
    """False where a vote costs more than its submodel has units: touching all of them is not enough."""
    if capacity is None:
        return None
    return costs <= capacity[:, None]


def interval(ballot: Ballot, budget: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lowest and highest value that ``budget`` modifications can give the median.

    Notes
    -----
    At unit cost on disjoint blocks both ends are votes, ``budget`` places from the middle, and both are reached
    (docs/theory.md, section 3). Otherwise each end is the innermost value whose radius is at least the budget.
    """
    unit_cost = len(ballot.reach.high) == 1
    if unit_cost and ballot.incidence is None and ballot.capacity is None:
        return _order_statistics(ballot.votes, budget)
    return -_highest(ballot.mirrored(), budget), _highest(ballot, budget)


def _order_statistics(votes: NDArray[np.float64], budget: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n_submodels, n_rows = votes.shape
    middle = n_submodels // 2
    if budget > middle:
        return np.full(n_rows, -np.inf), np.full(n_rows, np.inf)
    ordered = np.sort(votes, axis=0)
    return ordered[middle - budget].copy(), ordered[middle + budget].copy()


def _highest(ballot: Ballot, budget: int) -> NDArray[np.float64]:
    """The least bound that ``budget`` modifications cannot pass, found by bisection over the values votes can reach."""
    values = np.sort(ballot.reach.high.reshape(-1, ballot.reach.high.shape[-1]), axis=0)
    n_values, n_rows = values.shape
    columns = np.arange(n_rows)
    # Invariant: values[last] holds (at n_values, which stands for +inf, everything does); all before first fail.
    first, last = np.zeros(n_rows, dtype=np.int64), np.full(n_rows, n_values)
    while np.any(first < last):
        middle = (first + last) // 2
        bound = values[np.minimum(middle, n_values - 1), columns]
        costs = costs_of_leaving(ballot.reach, bound)
        side = _broken(ballot, costs, enough=np.full(n_rows, budget + 1), only_enough=True)
        # Sound because only a proved lower bound on the attack's cost lets a value hold.
        holds = side.unbreakable | (side.lower > budget)
        open_rows = first < last
        last = np.where(open_rows & holds, middle, last)
        first = np.where(open_rows & ~holds, middle + 1, first)
    ends = np.append(values, np.full((1, n_rows), np.inf), axis=0)
    return ends[last, columns]
