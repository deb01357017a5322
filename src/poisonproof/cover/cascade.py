"""Which solver answers the attacker's problem, and when to stop."""

from __future__ import annotations

from numbers import Real
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy.sparse as sp

from poisonproof.cover.closed_form import gain_bounds
from poisonproof.cover.grouped import grouped_attack, grouped_costs, groups_of
from poisonproof.cover.ordered import cheapest_votes
from poisonproof.cover.problem import LARGEST, Bound, CoverBounds, check_table
from poisonproof.cover.search import WORK, Effort, Search
from poisonproof.cover.structure import by_rows, residual_of, structure_of
from poisonproof.errors import DataError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.cover.grouped import Shape
    from poisonproof.cover.problem import CoverProblem
    from poisonproof.cover.structure import Structure

__all__ = ["Effort", "check_effort", "minimum_cover", "solve"]

_LARGEST_GAIN: Final = 255  # that the group profiles can tell apart


def minimum_cover(
    incidence: sp.csr_array | None,
    costs: NDArray[np.integer],
    quota: NDArray[np.int64],
    *,
    gains: NDArray[np.integer] | None = None,
    movable: NDArray[np.bool_] | None = None,
    caps: NDArray[np.integer] | None = None,
    enough: NDArray[np.int64] | None = None,
    only_enough: bool = False,
    effort: Effort = "fast",
    time_limit: float | None = None,
    witness: bool = False,
) -> CoverBounds:
    """Bounds on the least number of modifications that push out votes that count ``quota``.

    Parameters
    ----------
    incidence : bool matrix (n_submodels, n_blocks), dense or sparse, or None
        Which submodel trains on which blocks; None where each has one block to itself.
    costs : small int array (n_submodels, n_rows)
        What it takes to push each vote out; 0 where it is out already.
    quota : int64 array (n_rows,)
        What the votes that are out must count together, those that are out already included.
    gains : small int array (n_submodels, n_rows), optional
        What each vote counts; 1 each by default.
    movable : bool array (n_submodels, n_rows), optional
        False where nothing the attacker may do moves the vote.
    caps : int array (n_blocks,), optional
        How many units each block has, where the attacker can touch each only once.
    enough : int64 array (n_rows,), optional
        A lower bound of this much is enough: the search stops there.
    only_enough : bool, default=False
        Whether it also stops once an attack costs less than ``enough``.
    effort : {"fast", "exact"}, default="fast"
        "fast" stops at relaxations, a short search for attacks and little branching. "exact" looks for the optimum,
        and may trust a floating-point solver for it; ``trusted_solver`` says where it did.
    time_limit : float, optional
        Seconds for each row at most, looked at between steps.
    witness : bool, default=False
        Whether to return the attacks.
    """
    check_effort(effort, time_limit)
    incidence = None if incidence is None else by_rows(incidence)
    sizes = (len(costs), len(costs)) if incidence is None else incidence.shape
    _check(sizes, costs, quota, gains=gains, movable=movable, caps=caps)
    # Touching a block more often than any vote costs is of no use, and sums of what is left stay small.
    caps = None if caps is None else np.minimum(caps, LARGEST).astype(np.int64)
    if incidence is None and not witness:
        limits = movable if caps is None else _within(caps, costs, movable)
        return cheapest_votes(costs, quota, limits, gains)
    if incidence is None:
        incidence = sp.csr_array(sp.eye_array(len(costs), dtype=np.bool_))
    if np.any(np.diff(incidence.indptr) == 0):
        raise DataError(f"incidence gives submodel {int(np.argmin(np.diff(incidence.indptr)))} no block")
    batch = _Batch(structure_of(incidence), costs, quota, gains=gains, movable=movable, caps=caps)
    return batch.solve(enough, only_enough=only_enough, effort=effort, time_limit=time_limit, witness=witness)


def check_effort(effort: Effort, time_limit: float | None) -> None:
    """Refuse what :func:`minimum_cover` cannot be asked for."""
    if effort not in WORK:
        raise ParameterError(f"effort={effort!r} is unknown; use 'fast' or 'exact'")
    if time_limit is not None and not (isinstance(time_limit, Real) and time_limit >= 0):
        raise ParameterError(f"time_limit={time_limit!r} must be a number of seconds of at least 0, or None")


def solve(problem: CoverProblem, *, effort: Effort = "exact", time_limit: float | None = None) -> Bound:
    """Bounds on the least cost of one attack, with the attack."""
    started = perf_counter()
    found = minimum_cover(
        problem.incidence,
        np.asarray(problem.costs)[:, None],
        np.array([problem.quota], dtype=np.int64),
        gains=None if problem.gains is None else np.asarray(problem.gains)[:, None],
        movable=None if problem.movable is None else np.asarray(problem.movable)[:, None],
        caps=problem.caps,
        effort=effort,
        time_limit=time_limit,
        witness=True,
    )
    lower, upper, unbreakable = int(found.lower[0]), int(found.upper[0]), bool(found.unbreakable[0])
    return Bound(
        lower=lower,
        upper=upper,
        witness=None if unbreakable or found.witness is None else found.witness.toarray()[0],
        unbreakable=unbreakable,
        trusted_solver=bool(found.trusted_solver[0]),
        method=found.method,
        status="unbreakable" if unbreakable else found.status[0],
        seconds=perf_counter() - started,
    )


def _within(
    caps: NDArray[np.integer], costs: NDArray[np.integer], movable: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    within = costs <= caps[:, None]
    return within if movable is None else within & movable


def _check(
    sizes: tuple[int, int],
    costs: NDArray[np.integer],
    quota: NDArray[np.int64],
    *,
    gains: NDArray[np.integer] | None,
    movable: NDArray[np.bool_] | None,
    caps: NDArray[np.integer] | None,
) -> None:
    n_submodels, n_blocks = sizes
    if costs.ndim != 2 or costs.shape[0] != n_submodels:
        raise DataError(f"costs has shape {costs.shape}; it must have a row for each of the {n_submodels} submodels")
    check_table("costs", costs, costs.shape)
    check_table("gains", gains, costs.shape)
    check_table("caps", caps, (n_blocks,), most=None)
    if movable is not None and movable.shape != costs.shape:
        raise DataError(f"movable has shape {movable.shape}; it must have the shape of costs, {costs.shape}")
    if quota.shape != costs.shape[1:]:
        raise DataError(f"quota has shape {quota.shape}; it must have an entry for each of the {costs.shape[1]} rows")


class _Batch:
    """The problems of some rows that share one structure."""

    def __init__(
        self,
        structure: Structure,
        costs: NDArray[np.integer],
        quota: NDArray[np.int64],
        *,
        gains: NDArray[np.integer] | None,
        movable: NDArray[np.bool_] | None,
        caps: NDArray[np.int64] | None,
    ) -> None:
        self.structure = structure
        self.gains = None if gains is None or np.all(gains == 1) else gains
        self.caps = caps
        worth = np.ones_like(costs) if self.gains is None else self.gains
        self.open_votes = (costs > 0) & (worth > 0)
        if movable is not None:
            self.open_votes &= movable
        if self.caps is not None:
            self.open_votes &= costs <= structure.capacity(self.caps)[:, None]
        self.costs = np.where(self.open_votes, costs, 0)
        self.missing = quota.astype(np.int64) - np.where(costs == 0, worth, 0).sum(axis=0, dtype=np.int64)

    def solve(
        self,
        enough: NDArray[np.int64] | None,
        *,
        only_enough: bool,
        effort: Effort,
        time_limit: float | None,
        witness: bool,
    ) -> CoverBounds:
        """Bounds for every row: those that need no search, then by groups, then row by row."""
        limits = np.full(len(self.missing), np.iinfo(np.int64).max) if enough is None else enough
        found, unbreakable = self._at_once(limits, witness=witness)
        # Where enough is known there still is an attack to be shown, if that was asked for.
        wanted = (self.missing > 0) & ~unbreakable & ((found.lower < limits) | witness)
        for row in np.flatnonzero(~wanted & ~unbreakable & (found.lower < found.upper)).tolist():
            found.status[row] = "enough"
        rows = np.flatnonzero(wanted)
        shapes = self._shapes()
        method = "exact by groups" if shapes else "dual bound"
        if shapes and len(rows):
            rows = self._by_groups(shapes, rows, found)
        for row in rows.tolist():
            search = Search(
                residual_of(self.structure, self.costs[:, row], self._gains(row), self.caps, int(self.missing[row])),
                int(found.lower[row]),
                int(found.upper[row]),
                int(limits[row]),
                only_enough,
                np.inf if time_limit is None else perf_counter() + time_limit,
            )
            found.status[row] = search.run(WORK[effort], witness=witness)
            found.note(row, search)
        if shapes and len(rows):
            method += ", dual bound where costs are too large for that"
        if found.trusted.any():
            method += " and milp"
        attacks = sp.csr_array(np.array(found.attacks)) if found.attacks else None
        return CoverBounds(found.lower, found.upper, unbreakable, found.trusted, method, attacks, tuple(found.status))

    def _at_once(self, limits: NDArray[np.int64], *, witness: bool) -> tuple[_Found, NDArray[np.bool_]]:
        """Bounds from the cheapest votes alone, and where no attack works."""
        # Votes that are no part of the problem must not look as if they were out: they get a cost and cannot be moved.
        simple = cheapest_votes(np.where(self.open_votes, self.costs, 1), self.missing, self.open_votes, self.gains)
        found = _Found(len(self.missing), self.structure.n_blocks if witness else 0)
        # The cheapest votes one by one are an attack, whatever blocks they share.
        found.upper[:] = np.where(self.missing > 0, simple.upper, 0)
        if self.caps is not None:
            found.upper[:] = np.minimum(found.upper, self.caps.sum())
        # Sound because a load of 1 / spread on every submodel lets no block carry more than 1.
        found.lower[:] = -(-found.upper // self.structure.spread)
        rows = np.flatnonzero((found.lower < limits) & (limits < np.iinfo(np.int64).max) & (self.missing > 0))
        if len(rows):
            bounds = gain_bounds(self.structure.users, self.costs[:, rows], self._gains(rows), self.missing[rows])
            found.lower[rows] = np.minimum(np.maximum(found.lower[rows], bounds), found.upper[rows])
        return found, simple.unbreakable & (self.missing > 0)

    def _by_groups(self, shapes: tuple[Shape, ...], rows: NDArray[np.intp], found: _Found) -> NDArray[np.intp]:
        """Solve rows by groups; returns those where costs had to be capped, so that only a lower bound is known."""
        least, exact = grouped_costs(shapes, self.costs[:, rows], self._gains(rows), self.caps, self.missing[rows])
        found.lower[rows] = np.maximum(found.lower[rows], least)
        found.upper[rows[exact]] = least[exact]
        for row in rows[exact].tolist() if found.attacks else ():
            touched = grouped_attack(shapes, self.costs[:, row], self._gains(row), self.caps, int(self.missing[row]))
            found.attacks[row][list(touched)] = list(touched.values())
        return rows[~exact]

    def _gains(self, rows: NDArray[np.intp] | int) -> NDArray[np.integer] | None:
        return None if self.gains is None else self.gains[:, rows]

    def _shapes(self) -> tuple[Shape, ...]:
        if self.gains is not None and self.gains.max() > _LARGEST_GAIN:
            return ()
        return groups_of(self.structure)


class _Found:
    """What is known of each row; rows that need no search cost nothing."""

    def __init__(self, n_rows: int, n_blocks: int) -> None:
        self.lower, self.upper = np.zeros(n_rows, dtype=np.int64), np.zeros(n_rows, dtype=np.int64)
        self.trusted = np.zeros(n_rows, dtype=np.bool_)
        self.status = ["optimal"] * n_rows
        self.attacks = [np.zeros(n_blocks, dtype=np.int64) for _ in range(n_rows)] if n_blocks else []

    def note(self, row: int, search: Search) -> None:
        """Keep what a search found out."""
        # Sound because no attack costs less than the least cost, so a bound never has to exceed an attack.
        self.lower[row], self.upper[row] = min(search.lower, search.upper), search.upper
        self.trusted[row] = search.trusted_solver
        if self.attacks and search.touched is not None:
            self.attacks[row] = search.touched
