"""The branch and bound settles what it claims to settle, whatever its relaxation says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tests.cover.small_covers import small_problem

from poisonproof.cover import branch as branch_module
from poisonproof.cover import minimum_cover
from poisonproof.cover import search as search_module
from poisonproof.cover.branch import settle
from poisonproof.cover.brute import least_cost
from poisonproof.cover.first_order import Relaxation
from poisonproof.cover.problem import CoverProblem
from poisonproof.cover.structure import Residual, Structure, residual_of
from poisonproof.layout import make_layout

if TYPE_CHECKING:
    import pytest


def cases(seed: int, count: int) -> list[tuple[Residual, int]]:
    """Problems with gains and caps, and their optimum."""
    rng = np.random.default_rng(seed)
    found: list[tuple[Residual, int]] = []
    while len(found) < count:
        problem = small_problem(rng, plain=True)
        structure, costs = Structure.of(problem.incidence), np.asarray(problem.costs)
        gains = rng.integers(1, 3, len(costs)) if rng.random() < 0.5 else None
        caps = rng.integers(1, 4, structure.n_blocks) if rng.random() < 0.5 else None
        if caps is not None:
            costs = np.minimum(costs, structure.capacity(caps))
        best = least_cost(CoverProblem(problem.incidence, costs, problem.quota, gains, caps))
        assert best is not None
        found.append((residual_of(structure, costs, gains, caps, problem.quota), best[0]))
    return found


def check(residual: Residual, optimum: int, goal: int) -> None:
    found = settle(residual, goal, nodes=100_000, iterations=60, deadline=np.inf)
    assert found.proved == (goal <= optimum)
    assert (found.touched is None) == found.proved
    if found.touched is not None:
        assert found.touched.sum() < goal
        assert (found.touched <= residual.caps).all()
        assert residual.gained(found.touched) >= residual.quota


def test_every_goal_is_settled_as_enumeration_says() -> None:
    for residual, optimum in cases(0, 150):
        for goal in range(1, optimum + 3):
            check(residual, optimum, goal)


def test_a_corrupt_relaxation_makes_it_slower_but_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)

    def corrupt(residual: Residual, **_: object) -> Relaxation:
        loads = rng.exponential(size=len(residual.costs)) * 10.0 ** rng.integers(-300, 300)
        loads[rng.integers(len(loads))] = rng.choice([np.nan, np.inf, -1.0])
        return Relaxation(loads, np.inf, 0.0, 1)

    monkeypatch.setattr(branch_module, "relax", corrupt)
    monkeypatch.setattr(branch_module, "gain_bound", lambda _: 1)
    for residual, optimum in cases(2, 80):
        if optimum > 4:
            continue
        for goal in (optimum, optimum + 1):
            check(residual, optimum, goal)


def stubborn() -> Residual:
    structure = Structure.of(make_layout(25, 5, "random").incidence)
    costs = np.random.default_rng(2).integers(1, 3, structure.n_submodels)
    return residual_of(structure, costs, None, None, 70)


def test_it_gives_up_at_its_limits_without_a_claim() -> None:
    proved = search_module.Search(stubborn(), 1, 10**6, 10**6, only_enough=False, deadline=np.inf)
    proved.run(search_module.WORK["fast"], witness=False)
    few = settle(stubborn(), proved.lower + 2, nodes=5, iterations=60, deadline=np.inf)
    assert few == (False, None, 5)
    assert settle(stubborn(), 2, nodes=100, iterations=60, deadline=0.0) == (False, None, 0)


def test_fast_effort_closes_gaps_of_small_ensembles_by_branching(monkeypatch: pytest.MonkeyPatch) -> None:
    incidence = make_layout(25, 17, "random").incidence
    rng = np.random.default_rng(25)
    costs = (rng.random((incidence.shape[0], 6)) < 0.85).astype(np.int64) * rng.integers(1, 3, (1, 6))
    quota = np.full(6, incidence.shape[0] // 2 + 1)
    with_branching = minimum_cover(incidence, costs, quota)
    assert not with_branching.trusted_solver.any()
    plain = search_module.Work(400, 20_000, 9_000, 0.0, nodes=0)
    monkeypatch.setitem(search_module.WORK, "fast", plain)
    without = minimum_cover(incidence, costs, quota)
    assert (with_branching.lower >= without.lower).all()
    assert (with_branching.upper <= without.upper).all()


def test_a_search_ends_where_branching_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "_NEAR", np.inf)
    work = search_module.Work(400, 1000, 9_000, 0.0, nodes=3, goal=1000)
    search = search_module.Search(stubborn(), 1, 10**6, 10**6, only_enough=False, deadline=np.inf)
    assert search.run(work, witness=False) == "effort"
    assert 1 < search.lower < search.upper


def test_goals_out_of_reach_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(search_module, "settle", never)
    monkeypatch.setattr(search_module, "_NEAR", np.inf)
    work = search_module.Work(400, 1000, 9_000, 0.0, nodes=10, goal=5)
    search = search_module.Search(stubborn(), 1, 10**6, 10**6, only_enough=False, deadline=np.inf)
    assert search.run(work, witness=False) == "effort"
    assert search.lower > 5


def test_an_attack_met_on_the_way_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    residual, optimum = next(
        (residual, optimum) for residual, optimum in cases(3, 50) if residual.caps.sum() > optimum > 2
    )
    monkeypatch.setattr(search_module, "greedy_attack", lambda one: one.caps.copy())
    monkeypatch.setattr(search_module, "improved_attack", lambda _, start, *__: start)
    monkeypatch.setattr(search_module, "_NEAR", np.inf)
    work = search_module.Work(20, 0, 9_000, 0.0, nodes=10_000)
    search = search_module.Search(residual, 1, 10**6, 10**6, only_enough=False, deadline=np.inf)
    assert search.run(work, witness=True) == "optimal"
    assert search.lower == search.upper == optimum
    assert not search.trusted_solver
