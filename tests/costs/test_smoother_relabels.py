from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from poisonproof.costs import engine_for
from poisonproof.costs.smoother.relabels import rise_after_relabels
from poisonproof.learners import KernelRidge
from poisonproof.threat import Threat
from poisonproof.votes import fit_submodel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def fitter(estimator: Any) -> Any:
    return lambda X, y: fit_submodel(estimator, 0.0, X, y).vote


@pytest.mark.parametrize("transform", [None, "log", "log1p"])
@pytest.mark.parametrize("seed", range(4))
def test_relabels_are_exact(seed: int, transform: Any) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(12):
        n, d = int(rng.integers(1, 7)), int(rng.integers(1, 4))
        X, y = rng.random((n, d)), 0.1 + 4 * rng.random(n)
        gamma = [None, 0.3, 2.0][rng.integers(3)]
        estimator = KernelRidge(
            alpha=10 ** rng.uniform(-2, 2), gamma=gamma, target_transform=transform, target_range=(0.05, 5.0)
        )
        rows = rng.normal(size=(3, d))
        fit = fitter(estimator)
        votes = fit(X, y)(rows)
        engine: Any = engine_for(estimator, Threat("relabel"), 4)
        reach = engine.reach(engine.prepare(fit, X, y), votes, rows)
        low, high = votes.copy(), votes.copy()
        for k in range(1, 4):
            for chosen in combinations(range(n), min(k, n)):
                for ends in product((-1e6, 1e6), repeat=len(chosen)):
                    labels = y.copy()
                    labels[list(chosen)] = ends
                    vote = fit(X, labels)(rows)
                    low, high = np.minimum(low, vote), np.maximum(high, vote)
            assert np.all(reach.low[k] <= low)
            assert np.all(reach.high[k] >= high)
            np.testing.assert_allclose(reach.low[k], low, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(reach.high[k], high, rtol=1e-6, atol=1e-6)


def test_no_label_inside_the_range_moves_it_further() -> None:
    rng = np.random.default_rng(9)
    X, y, rows = rng.random((12, 2)), rng.random(12), rng.random((4, 2))
    estimator = KernelRidge(target_range=(0.0, 1.0))
    fit = fitter(estimator)
    votes = fit(X, y)(rows)
    engine: Any = engine_for(estimator, Threat("relabel"), 4)
    reach = engine.reach(engine.prepare(fit, X, y), votes, rows)
    for _ in range(200):
        labels = y.copy()
        labels[rng.choice(12, 3, replace=False)] = rng.random(3)
        vote = fit(X, labels)(rows)
        assert np.all((reach.low[3] <= vote) & (vote <= reach.high[3]))


def test_more_labels_than_rows_change_no_more() -> None:
    weights, targets = np.array([[0.5, -0.25]]), np.array([1.0, 0.0])
    rises = rise_after_relabels(weights, targets, (-1.0, 1.0), 4)
    assert rises[0, :, 0].tolist() == [0, 0.25, 0.25, 0.25, 0.25]
    assert rises[1, :, 0].tolist() == [0, 1.0, 1.25, 1.25, 1.25]
    assert not rise_after_relabels(np.empty((2, 0)), np.empty(0), (0.0, 1.0), 3).any()
