"""The dual bound is right for the loads of any solver, however corrupt."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cover.small_covers import plain_residual, small_problem

from poisonproof.cover.brute import least_cost
from poisonproof.cover.dual import block_loads, degree_bound, dual_bound, proved_bound, repaired
from poisonproof.cover.first_order import relax
from poisonproof.cover.structure import Residual, Structure, residual_of
from poisonproof.layout import make_layout


def cases(seed: int, count: int) -> list[tuple[Residual, int]]:
    rng = np.random.default_rng(seed)
    found: list[tuple[Residual, int]] = []
    while len(found) < count:
        problem = small_problem(rng, plain=True)
        optimum = least_cost(problem)
        assert optimum is not None
        found.append((plain_residual(problem), optimum[0]))
    return found


def corrupted(rng: np.random.Generator, loads: np.ndarray, kind: int) -> np.ndarray:
    wrong = loads.copy()
    place = rng.integers(len(loads))
    wrong[place] = [np.nan, np.inf, -np.inf, -1.0, 1e300, 5e-324, loads[place] * 1.5][kind]
    return wrong if kind < 6 else wrong * rng.choice([1e-12, 1e12, 3.0])


def test_loads_of_any_kind_prove_nothing_false() -> None:
    rng = np.random.default_rng(0)
    for residual, optimum in cases(1, 300):
        good = relax(residual, iterations=200, stop_at=np.inf).loads
        proposals = [good, rng.exponential(size=len(good)), np.zeros(len(good)), np.full(len(good), 1e308)]
        proposals += [corrupted(rng, good, kind) for kind in range(7)]
        for loads in proposals:
            assert dual_bound(residual, loads) <= optimum
        assert degree_bound(residual) <= optimum


def test_the_checker_itself_refuses_what_breaks_the_rule() -> None:
    rng = np.random.default_rng(2)
    refused = 0
    for residual, optimum in cases(3, 300):
        unit = 1 << 20
        weights = repaired(residual, rng.exponential(size=len(residual.costs)), unit)
        assert block_loads(residual, weights).max() <= unit
        for wrong in (weights * 3, weights - 1, weights + rng.integers(0, unit, len(weights))):
            bound = proved_bound(residual, wrong, unit)
            assert bound <= optimum
            refused += bound == 0
    assert refused > 300


def test_good_loads_are_mostly_tight() -> None:
    pairs = [(dual_bound(residual, relax(residual, iterations=400, stop_at=np.inf).loads), optimum)
             for residual, optimum in cases(4, 300)]  # fmt: skip
    assert np.mean([bound == optimum for bound, optimum in pairs]) > 0.6


@pytest.mark.parametrize("dearest", [1, 100])
def test_large_problems_do_not_overflow(dearest: int) -> None:
    layout = make_layout(51, 5, "random")
    structure = Structure.of(layout.incidence)
    costs = np.full(layout.n_submodels, dearest)
    residual = residual_of(structure, costs, None, None, layout.n_submodels)
    # Every vote has to go, and each block must be touched so often that its submodels are: the loads 1/5 prove it.
    assert degree_bound(residual) == pytest.approx(dearest * layout.n_submodels / 5, abs=1)
    assert dual_bound(residual, relax(residual, iterations=100, stop_at=np.inf).loads) >= degree_bound(residual)
