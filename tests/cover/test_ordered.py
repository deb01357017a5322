"""Disjoint blocks, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from poisonproof.cover.ordered import cheapest_votes, least_value


def enumerated(costs: np.ndarray, gains: np.ndarray, movable: np.ndarray, quota: int) -> int | None:
    totals = [
        int(costs[list(chosen)].sum())
        for mask in product([False, True], repeat=len(costs))
        if movable[(chosen := np.flatnonzero(mask))].all() and gains[chosen].sum() >= quota
    ]
    return min(totals, default=None)


@pytest.mark.parametrize("heaviest", [1, 2, 3])
@pytest.mark.parametrize("some_fixed", [False, True])
def test_the_cheapest_votes_cost_what_enumeration_says(heaviest: int, some_fixed: bool) -> None:
    rng = np.random.default_rng([heaviest, some_fixed])
    for _ in range(150):
        costs = rng.integers(0, 4, (5, 3))
        gains = rng.integers(1, heaviest + 1, costs.shape)
        movable = rng.random(costs.shape) < 0.7 if some_fixed else np.ones(costs.shape, dtype=np.bool_)
        quota = rng.integers(-1, 5 * heaviest + 2, 3)
        found = cheapest_votes(costs, quota, movable if some_fixed else None, gains if heaviest > 1 else None)
        for row in range(3):
            free = movable[:, row] | (costs[:, row] == 0)
            true = enumerated(costs[:, row], gains[:, row], free, int(quota[row]))
            assert found.unbreakable[row] == (true is None)
            if true is not None:
                assert found.lower[row] == found.upper[row] == true


def test_the_knapsack_equals_enumeration() -> None:
    rng = np.random.default_rng(7)
    for _ in range(400):
        size = int(rng.integers(1, 8))
        values, gains = rng.integers(0, 20, size), rng.integers(1, 5, size)
        quota = int(rng.integers(-1, gains.sum() + 1))
        true = enumerated(values, gains, np.ones(size, dtype=np.bool_), quota)
        assert least_value(values, gains, quota) == true
