"""The relaxation with cuts: stronger than the plain one, and right for the loads of any solver."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.cover.small_covers import plain_residual, small_problem

from poisonproof.cover import extended as extended_module
from poisonproof.cover.brute import least_cost
from poisonproof.cover.dual import dual_bound
from poisonproof.cover.extended import SplitLoads, extended_bound, proved_split_bound
from poisonproof.cover.first_order import relax
from poisonproof.cover.problem import CoverProblem
from poisonproof.cover.structure import Residual, Structure, residual_of
from poisonproof.layout import make_layout


def cases(seed: int, count: int) -> list[tuple[Residual, int]]:
    """Problems with costs of 1 and 2, some with gains and caps."""
    rng = np.random.default_rng(seed)
    found: list[tuple[Residual, int]] = []
    while len(found) < count:
        problem = small_problem(rng, plain=True)
        costs = np.minimum(np.asarray(problem.costs), 2)
        gains = rng.integers(1, 3, len(costs)) if rng.random() < 0.3 else None
        structure = Structure.of(problem.incidence)
        caps = rng.integers(1, 3, structure.n_blocks) if rng.random() < 0.3 else None
        if caps is not None:
            costs = np.minimum(costs, structure.capacity(caps))
        best = least_cost(CoverProblem(problem.incidence, costs, problem.quota, gains, caps))
        assert best is not None
        found.append((residual_of(structure, costs, gains, caps, problem.quota), best[0]))
    return found


def test_it_is_sound_and_mostly_tight() -> None:
    pairs = [(extended_bound(residual, 5.0), optimum) for residual, optimum in cases(0, 300)]
    assert all(bound <= optimum for bound, optimum in pairs)
    assert np.mean([bound == optimum for bound, optimum in pairs]) > 0.85


def test_it_beats_the_plain_relaxation_where_votes_cost_two() -> None:
    structure = Structure.of(make_layout(51, 5, "random").incidence)
    costs = np.random.default_rng(0).integers(1, 3, structure.n_submodels)
    residual = residual_of(structure, costs, None, None, 120)
    plain = dual_bound(residual, relax(residual, iterations=2000, stop_at=np.inf).loads)
    assert extended_bound(residual, 30.0) > plain


def test_loads_of_any_kind_prove_nothing_false() -> None:
    rng = np.random.default_rng(1)
    refused = 0
    for residual, optimum in cases(2, 300):
        unit = 1 << 20
        both = rng.integers(0, unit, len(residual.costs)) // rng.integers(1, 20)
        cut = rng.integers(0, unit, len(residual.blocks)) // rng.integers(1, 20)
        for loads in (SplitLoads(both, cut), SplitLoads(both - 1, cut), SplitLoads(both, cut * 0)):
            bound = proved_split_bound(residual, loads, unit)
            assert bound <= optimum
            refused += bound == 0
        assert proved_split_bound(residual, SplitLoads(both + 2 * unit, cut), unit) == 0
    assert refused > 100


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0, 1e300, 3.0])
def test_a_corrupt_solver_proves_nothing_false(monkeypatch: pytest.MonkeyPatch, wrong: float) -> None:
    rng = np.random.default_rng(3)

    def corrupt(*args: object, **options: object) -> object:
        found = linprog(*args, **options)
        weights = found.ineqlin.marginals * rng.uniform(0.5, 2.0, len(found.ineqlin.marginals))
        weights[rng.integers(len(weights))] = -wrong
        return SimpleNamespace(status=found.status, x=found.x, ineqlin=SimpleNamespace(marginals=weights))

    monkeypatch.setattr(extended_module, "linprog", corrupt)
    for residual, optimum in cases(4, 40):
        assert extended_bound(residual, 5.0) <= optimum


def test_a_solver_that_fails_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    (residual, _), *_ = cases(5, 1)

    def crash(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(extended_module, "linprog", lambda *_, **__: SimpleNamespace(status=1))
    assert extended_bound(residual, 1.0) == 0
    monkeypatch.setattr(extended_module, "linprog", crash)
    assert extended_bound(residual, 1.0) == 0


def test_no_relaxation_is_made_of_a_plain_problem() -> None:
    # Costs of 1 alone need no cuts; the bound is still right.
    rng = np.random.default_rng(6)
    for _ in range(20):
        problem = small_problem(rng, plain=True)
        ones = CoverProblem(problem.incidence, np.ones_like(np.asarray(problem.costs)), problem.quota)
        best = least_cost(ones)
        assert best is not None
        assert extended_bound(plain_residual(ones), 5.0) <= best[0]
