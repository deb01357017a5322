"""Closed forms, attacks, bounds from the literature and the general solver, each on its own."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from tests.cover.small_covers import plain_residual, small_problem

from poisonproof.cover import CoverProblem, solve
from poisonproof.cover import milp as milp_module
from poisonproof.cover import search as search_module
from poisonproof.cover.attack import greedy_attack, improved_attack
from poisonproof.cover.brute import least_cost
from poisonproof.cover.closed_form import gain_bound, gain_bounds
from poisonproof.cover.milp import branch_and_bound
from poisonproof.cover.paper import greedy_ratio_bound, unsound_unit_radius
from poisonproof.cover.structure import Residual, Structure, residual_of
from poisonproof.errors import DataError
from poisonproof.layout import make_layout

SHARED = sp.csr_array(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=np.bool_))


def drawn(seed: int, count: int) -> list[tuple[CoverProblem, Residual, int]]:
    rng = np.random.default_rng(seed)
    found: list[tuple[CoverProblem, Residual, int]] = []
    while len(found) < count:
        problem = small_problem(rng, plain=True)
        best = least_cost(problem)
        assert best is not None
        found.append((problem, plain_residual(problem), best[0]))
    return found


def large(dearest: int) -> Residual:
    structure = Structure.of(make_layout(25, 5, "random").incidence)
    costs = np.random.default_rng(dearest).integers(1, dearest + 1, structure.n_submodels)
    return residual_of(structure, costs, None, None, 70)


def test_the_order_of_bounds_holds() -> None:
    for _, residual, optimum in drawn(0, 300):
        attack = greedy_attack(residual)
        assert gain_bound(residual) <= optimum <= attack.sum()
        users = Structure(*residual[:4]).users
        together = gain_bounds(users, residual.costs[:, None], residual.gains[:, None], np.array([residual.quota]))
        assert together[0] == gain_bound(residual)
        assert residual.gained(attack) >= residual.quota
        better = improved_attack(residual, attack, optimum, 2000)
        assert optimum <= better.sum() <= attack.sum()
        assert residual.gained(better) >= residual.quota
        assert (better <= residual.caps).all()


@pytest.mark.parametrize("dearest", [17, 60])
def test_the_gain_bound_is_sound_where_shares_are_rounded(dearest: int) -> None:
    costs = np.array([dearest, dearest - 1, 3, 1, dearest])
    table = sp.csr_array(np.array([[1, 0], [1, 1], [0, 1], [1, 0], [0, 1]], dtype=np.bool_))
    for quota in range(1, 6):
        problem = CoverProblem(table, costs, quota)
        best = least_cost(problem)
        assert best is not None
        assert gain_bound(plain_residual(problem)) <= best[0]


@pytest.mark.parametrize("dearest", [1, 2, 4])
def test_the_local_search_finds_cheaper_attacks_and_is_repeatable(dearest: int) -> None:
    residual = large(dearest)
    # A poor start: every block once for every vote it could ever push out.
    start = residual.caps.copy()
    better = improved_attack(residual, start, 1, 60_000)
    assert residual.gained(better) >= residual.quota
    assert better.sum() < start.sum() // 2
    assert (better <= residual.caps).all()
    assert (improved_attack(residual, start, 1, 60_000) == better).all()
    assert (improved_attack(residual, better, int(better.sum()), 1000) == better).all()


def test_attacks_respect_what_blocks_hold() -> None:
    structure = Structure.of(make_layout(9, 4, "random").incidence)
    rng = np.random.default_rng(5)
    for _ in range(20):
        caps = rng.integers(0, 3, structure.n_blocks)
        costs = np.minimum(rng.integers(1, 4, structure.n_submodels), structure.capacity(caps))
        residual = residual_of(structure, costs, None, caps, int(rng.integers(1, np.count_nonzero(costs))))
        attack = improved_attack(residual, greedy_attack(residual), 1, 3000)
        assert (attack <= caps).all()
        assert residual.gained(attack) >= residual.quota


def test_the_greedy_ratio_is_a_lower_bound() -> None:
    checked = 0
    for _, residual, optimum in drawn(1, 400):
        if residual.costs.max() == 1:
            assert 1 <= greedy_ratio_bound(residual) <= optimum
            checked += 1
    assert checked > 50
    assert greedy_ratio_bound(large(1)) < gain_bound(large(1))
    with pytest.raises(DataError, match="every vote costs 1"):
        greedy_ratio_bound(large(2))


def test_the_published_unit_radius_claims_one_modification_too_many() -> None:
    problem = CoverProblem(SHARED, np.ones(3, dtype=np.int64), quota=2)
    # One modification breaks it, so the true radius is 0.
    assert unsound_unit_radius(problem) == 1
    assert solve(problem).lower - 1 == 0
    with pytest.raises(DataError, match="every vote costs 1"):
        unsound_unit_radius(CoverProblem(SHARED, np.array([1, 2, 1]), quota=2))


@pytest.fixture
def scipy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if highspy were not installed."""
    monkeypatch.setattr(milp_module, "find_spec", lambda _: None)


@pytest.mark.parametrize("solver", ["scipy", "highspy"])
def test_the_solver_agrees_with_enumeration(monkeypatch: pytest.MonkeyPatch, solver: str) -> None:
    if solver == "highspy":
        pytest.importorskip("highspy")
    else:
        monkeypatch.setattr(milp_module, "find_spec", lambda _: None)
    for _, residual, optimum in drawn(2, 80):
        found = branch_and_bound(residual, optimum + 1, 10.0)
        assert found.lower == optimum
        assert found.touched is not None
        assert found.touched.sum() == optimum
        none = branch_and_bound(residual, optimum, 10.0)
        assert (none.lower, none.touched) == (optimum, None)


class _Answer:
    """What a solver that went wrong may return."""

    def __init__(self, status: int, bound: float | None, x: np.ndarray | None) -> None:
        self.status, self.mip_dual_bound, self.x = status, bound, x


def test_highspy_tells_its_bound_where_time_ends_without_an_attack() -> None:
    pytest.importorskip("highspy")
    residual = large(2)
    best = int(improved_attack(residual, greedy_attack(residual), 1, 200_000).sum())
    found = branch_and_bound(residual, best, 2.0)
    assert found.status in {"solver time limit", "no cheaper attack"}
    assert 0 < found.lower <= best


def test_a_solver_that_is_not_there_leaves_what_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milp_module, "find_spec", lambda _: "found, but it does not load")
    monkeypatch.setitem(sys.modules, "highspy", None)
    found = branch_and_bound(large(2), 50, 1.0)
    assert (found.lower, found.touched) == (0, None)
    assert found.status.startswith("solver failed: import of highspy halted")


@pytest.mark.usefixtures("scipy_alone")
def test_a_solver_that_fails_leaves_what_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    residual = large(2)

    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("out of licences")

    monkeypatch.setattr(milp_module, "milp", crash)
    assert branch_and_bound(residual, 50, 1.0) == (0, None, "solver failed: out of licences")
    work = search_module.Work(iterations=40, moves=100, cut_incidences=0, solver_seconds=1.0)
    search = search_module.Search(residual, 1, 10**6, 10**6, only_enough=False, deadline=np.inf)
    assert search.run(work, witness=False).startswith("solver failed")
    assert not search.trusted_solver
    assert 1 < search.lower < search.upper


@pytest.mark.usefixtures("scipy_alone")
@pytest.mark.parametrize(
    ("answer", "lower", "status"),
    [
        (_Answer(1, 20.2, None), 21, "solver time limit"),
        (_Answer(1, 20.0001, None), 20, "solver time limit"),
        (_Answer(1, np.nan, None), 0, "solver time limit"),
        (_Answer(1, None, None), 0, "solver time limit"),
        (_Answer(4, -np.inf, None), 0, "solver failed"),
        (_Answer(1, 1e9, None), 50, "solver time limit"),
        (_Answer(0, 30.0, np.full(1000, np.nan)), 30, "optimal"),
        (_Answer(0, 30.0, np.zeros(1000)), 30, "optimal"),
    ],
)
def test_no_answer_of_a_solver_is_taken_at_its_word(
    monkeypatch: pytest.MonkeyPatch, answer: _Answer, lower: int, status: str
) -> None:
    monkeypatch.setattr(milp_module, "milp", lambda *_, **__: answer)
    found = branch_and_bound(large(2), 50, 1.0)
    assert (found.lower, found.touched, found.status) == (lower, None, status)


@pytest.mark.usefixtures("scipy_alone")
def test_what_a_solver_raises_is_marked_as_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    residual = large(2)
    work = search_module.Work(iterations=40, moves=100, cut_incidences=0, solver_seconds=1.0)
    proved = search_module.Search(residual, 1, 10**6, 10**6, only_enough=False, deadline=np.inf)
    proved.run(search_module.WORK["fast"], witness=True)
    monkeypatch.setattr(milp_module, "milp", lambda *_, **__: _Answer(1, proved.upper - 0.5, None))
    search = search_module.Search(residual, 1, 10**6, 10**6, only_enough=False, deadline=1e18)
    search.run(work, witness=False)
    assert search.trusted_solver
    assert search.lower > proved.lower


def test_many_submodels_are_not_given_to_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(search_module, "branch_and_bound", never)
    work = search_module.Work(40, 100, 0, 1.0, solver_submodels=10)
    search = search_module.Search(large(2), 1, 10**6, 10**6, only_enough=False, deadline=np.inf)
    assert search.run(work, witness=False) == "effort"
    assert not search.trusted_solver


def test_a_cheaper_attack_of_a_solver_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    residual = large(2)
    cheaper = improved_attack(residual, greedy_attack(residual), 1, 200_000)
    monkeypatch.setattr(search_module, "branch_and_bound", lambda *_: milp_module.Solved(0, cheaper, "time limit"))
    start = residual.caps.copy()
    monkeypatch.setattr(search_module, "greedy_attack", lambda _: start)
    work = search_module.Work(iterations=20, moves=0, cut_incidences=0, solver_seconds=1.0)
    search = search_module.Search(residual, 1, 10**6, 10**6, only_enough=False, deadline=np.inf)
    search.run(work, witness=True)
    assert search.upper == cheaper.sum()
    assert not search.trusted_solver


@pytest.mark.usefixtures("scipy_alone")
@pytest.mark.parametrize(
    ("answer", "status"),
    [(_Answer(1, None, None), "solver time limit"), (_Answer(4, None, None), "solver failed")],
)
def test_the_status_says_how_a_solver_ended(monkeypatch: pytest.MonkeyPatch, answer: _Answer, status: str) -> None:
    monkeypatch.setattr(milp_module, "milp", lambda *_, **__: answer)
    work = search_module.Work(iterations=40, moves=100, cut_incidences=0, solver_seconds=1.0)
    search = search_module.Search(large(2), 1, 10**6, 10**6, only_enough=False, deadline=np.inf)
    assert search.run(work, witness=False) == status
    assert not search.trusted_solver


def test_batches_of_any_size_have_the_same_gain_bounds() -> None:
    structure = Structure.of(make_layout(9, 4, "random").incidence)
    rng = np.random.default_rng(9)
    costs = rng.integers(0, 4, (structure.n_submodels, 300))
    quota = rng.integers(-1, 2**62, 300) // 2 ** rng.integers(0, 62, 300)
    whole = gain_bounds(structure.users, costs, None, quota)
    for row in range(0, 300, 37):
        one = slice(row, row + 1)
        assert gain_bounds(structure.users, costs[:, one], None, quota[one])[0] == whole[row]
    assert (whole[quota <= 0] == 0).all()
    assert (whole[quota > 0] >= 1).all()
