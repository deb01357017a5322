"""The search for one row's least cost: cheap bounds first, and an end as soon as the answer is settled."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from poisonproof.cover.attack import greedy_attack, improved_attack
from poisonproof.cover.branch import settle
from poisonproof.cover.closed_form import gain_bound
from poisonproof.cover.dual import dual_bound
from poisonproof.cover.extended import extended_bound
from poisonproof.cover.first_order import relax
from poisonproof.cover.milp import branch_and_bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.cover.structure import Residual

__all__ = ["WORK", "Search", "Work"]

Effort = Literal["fast", "exact"]


@dataclass(frozen=True)
class Work:
    """How much each step of a search may do.

    Parameters
    ----------
    iterations : int
        Of the first-order method for the relaxation.
    moves : int
        Of the local search for attacks.
    cut_incidences : int
        Up to how many incidences of votes and blocks the relaxation with cuts is worth a try.
    solver_seconds : float
        Of a mixed-integer solver, where no time limit is given; 0 leaves it out.
    solver_submodels : int
        Up to how many submodels it is worth a try.
    nodes, goal : int
        Of a branch and bound with proved leaves, where there are few enough incidences for the relaxation with cuts,
        and up to which bound it is worth a try: its tree doubles with every touch.
    """

    iterations: int
    moves: int
    cut_incidences: int
    solver_seconds: float
    solver_submodels: int = 1000
    nodes: int = 0
    goal: int = 12


_CUT_SECONDS: Final = 60.0  # far more than it takes, so that the clock does not decide what is proved

_NODE_ITERATIONS: Final = 160
_NEAR: Final = 0.6  # how far the relaxation may be below the next bound for branching to be worth a try

WORK: Final[dict[Effort, Work]] = {
    "fast": Work(400, 20_000, 9_000, 0.0, nodes=300),
    "exact": Work(4_000, 400_000, 40_000, 10.0, nodes=3_000, goal=40),
}


@dataclass
class Search:
    """What is known of one row's least cost so far, and when that is enough.

    Parameters
    ----------
    residual : Residual
        The problem.
    lower, upper : int
        No attack is cheaper than ``lower``; one costs ``upper``.
    enough : int
        A lower bound of this much is enough.
    only_enough : bool
        Whether it is also enough to know an attack that costs less than that.
    deadline : float
        When to stop, in the time of :func:`time.perf_counter`.
    touched : int64 array (n_blocks,), or None
        The attack that costs ``upper``, once one was built.
    trusted_solver : bool
        Whether ``lower`` rests on a floating-point solver's word.
    failure : str
        What went wrong with that solver, if anything.
    relaxed : float
        About what the relaxation costs.
    shown : bool
        Whether the attack that costs ``upper`` is to be shown.
    """

    residual: Residual
    lower: int
    upper: int
    enough: int
    only_enough: bool
    deadline: float
    touched: NDArray[np.int64] | None = None
    trusted_solver: bool = False
    failure: str = ""
    relaxed: float = 0.0
    shown: bool = False

    @property
    def status(self) -> str:
        """Why to stop here, or "" to go on."""
        if self.lower >= self.upper and self.touched is not None:
            return "optimal"
        if self.lower >= self.enough or (self.only_enough and self.upper < self.enough):
            return "enough"
        return "time limit" if perf_counter() > self.deadline else ""

    def run(self, work: Work, *, witness: bool) -> str:
        """Take the steps in turn; returns why the search ended."""
        self.shown = witness
        if witness:
            self._attack()
        for step in (self._close_form, self._attack, self._relax, self._improve, self._cut, self._branch, self._solve):
            if self.status:
                return self.status
            step(work)
        return self.status or self.failure or "effort"

    def _close_form(self, work: Work) -> None:
        del work
        self.lower = max(self.lower, gain_bound(self.residual))

    def _attack(self, work: Work | None = None) -> None:
        del work
        if self.touched is None:
            self._use(greedy_attack(self.residual))

    def _relax(self, work: Work) -> None:
        # The relaxation needs to pass the integer below what settles the row, and no more.
        stop_at = min(self.upper, self.enough) - 1 + 1e-6
        found = relax(self.residual, iterations=work.iterations, stop_at=stop_at)
        self.relaxed = found.value
        self.lower = max(self.lower, dual_bound(self.residual, found.loads))

    def _improve(self, work: Work) -> None:
        start = greedy_attack(self.residual) if self.touched is None else self.touched
        self._use(improved_attack(self.residual, start, self.lower, work.moves))

    def _cut(self, work: Work) -> None:
        if self.residual.costs.max() == 2 and len(self.residual.blocks) <= work.cut_incidences:
            seconds = min(self.deadline - perf_counter(), _CUT_SECONDS)
            self.lower = max(self.lower, extended_bound(self.residual, max(seconds, 0.1)))

    def _branch(self, work: Work) -> None:
        left = work.nodes if len(self.residual.blocks) <= work.cut_incidences else 0
        while left > 0 and not self.status and self.lower - self.relaxed < _NEAR:
            goal = self.lower + 1
            if goal > work.goal:
                break
            found = settle(self.residual, goal, nodes=left, iterations=_NODE_ITERATIONS, deadline=self.deadline)
            left -= found.nodes
            if found.proved:
                self.lower = goal
            elif found.touched is not None:
                self._use(found.touched)
            else:
                break

    def _solve(self, work: Work) -> None:
        if len(self.residual.costs) > work.solver_submodels or work.solver_seconds <= 0:
            return
        limited = np.isfinite(self.deadline)
        seconds = max(self.deadline - perf_counter(), 0.1) if limited else work.solver_seconds
        found = branch_and_bound(self.residual, self.upper, seconds)
        if found.touched is not None:
            self._use(found.touched)
        if found.lower > self.lower:
            self.lower, self.trusted_solver = found.lower, True
        self.failure = "" if found.status in {"optimal", "no cheaper attack"} else found.status

    def _use(self, touched: NDArray[np.int64]) -> None:
        """Note an attack if it is cheaper than what is known, or the first that can be shown."""
        cost = int(touched.sum())
        if self.touched is None or cost < int(self.touched.sum()):
            self.touched = touched
            # What is shown has the cost that is told, even where a cheaper attack is known that cannot be.
            self.upper = cost if self.shown else min(self.upper, cost)
