"""The relaxation against a general solver of linear programs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from poisonproof.cover.first_order import least_fraction, project, relax
from poisonproof.cover.structure import Residual, Structure, residual_of
from poisonproof.layout import make_layout


def linear_optimum(residual: Residual) -> float:
    n, m = len(residual.costs), len(residual.caps)
    table = sp.csr_array((np.ones(len(residual.blocks)), residual.blocks, residual.start), shape=(n, m))
    rows = sp.vstack(
        [
            sp.hstack([-table, sp.diags_array(residual.costs.astype(float))]),
            sp.csr_array(np.concatenate([np.zeros(m), -residual.gains.astype(float)])[None]),
        ]
    )
    bounds = [(0, float(cap)) for cap in residual.caps] + [(0, 1)] * n
    price = np.concatenate([np.ones(m), np.zeros(n)])
    return float(linprog(price, rows, np.append(np.zeros(n), -residual.quota), bounds=bounds).fun)


@pytest.mark.parametrize("dearest", [1, 2, 5])
@pytest.mark.parametrize("heaviest", [1, 2])
def test_it_comes_within_a_thousandth_of_the_optimum(dearest: int, heaviest: int) -> None:
    rng = np.random.default_rng([dearest, heaviest])
    structure = Structure.of(make_layout(9, 5, "random").incidence)
    for _ in range(5):
        costs = rng.integers(0, dearest + 1, structure.n_submodels)
        gains = rng.integers(1, heaviest + 1, structure.n_submodels)
        quota = int(gains[costs > 0].sum() * rng.uniform(0.3, 1.0))
        residual = residual_of(structure, costs, gains, None, quota)
        found, best = relax(residual, iterations=20_000, stop_at=np.inf), linear_optimum(residual)
        assert found.value <= best * (1 + 1e-6)
        assert found.attack >= best * (1 - 1e-6)
        # It stops where the integer is settled, or at its tolerance.
        assert np.ceil(found.value - 1e-7) == np.ceil(found.attack - 1e-7) or found.attack < found.value * 1.001


def test_it_stops_where_it_is_told() -> None:
    structure = Structure.of(make_layout(25, 5, "random").incidence)
    residual = residual_of(structure, np.full(structure.n_submodels, 2), None, None, 60)
    assert relax(residual, iterations=1000, stop_at=1.0).iterations == 20
    assert relax(residual, iterations=7, stop_at=np.inf).iterations == 7


def test_the_projection_is_the_nearest_point() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        size = int(rng.integers(1, 8))
        steps, gains = rng.uniform(0.1, 2.0, size), rng.integers(1, 3, size)
        quota = int(rng.integers(1, gains.sum() + 1))
        start = rng.normal(size=size)
        nearest = start.copy()
        project(nearest, steps, gains, quota, 0.0)
        assert gains @ nearest == pytest.approx(quota, abs=1e-6)
        assert nearest.min() >= 0
        assert nearest.max() <= 1
        inner = (nearest > 1e-9) & (nearest < 1 - 1e-9)
        # Where the box does not bind, the gradient of the distance is a multiple of the gains.
        slope = (nearest - start)[inner] / (steps * gains)[inner]
        assert np.ptp(slope) < 1e-6 if inner.any() else True


def test_the_fractional_knapsack_is_a_lower_bound_and_takes_the_cheapest() -> None:
    values = np.array([3.0, 1.0, 2.0])
    assert least_fraction(values, np.array([1, 1, 1]), 2) == pytest.approx(3)
    assert least_fraction(values, np.array([2, 1, 2]), 3) == pytest.approx(1 + 2)
    assert least_fraction(values, np.array([2, 1, 2]), 2) == pytest.approx(1 + 1)
