from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

from poisonproof.costs import engine_for
from poisonproof.costs.smoother.factors import kernel_factors, ridge_factors
from poisonproof.costs.smoother.insertions import opening_of, own_leverage
from poisonproof.learners import KernelRidge
from poisonproof.threat import Threat
from poisonproof.votes import fit_submodel

CONSTANT = 0.7

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def fitter(estimator: Any) -> Any:
    return lambda X, y: fit_submodel(estimator, CONSTANT, X, y).vote


def random_block(rng: np.random.Generator, n_most: int) -> tuple[Array, Array, Array, Any]:
    n, d = int(rng.integers(1, n_most)), int(rng.integers(1, 4))
    X = rng.random((n, d))
    if rng.random() < 0.4:
        X = np.round(X)
    transform: Any = [None, "log"][rng.integers(2)]
    estimator = KernelRidge(
        alpha=10 ** rng.uniform(-3, 2.5),
        gamma=[None, 0.3, 2.0][rng.integers(3)],
        linear=[1.0, 0.3][rng.integers(2)],
        target_transform=transform,
        weights=0.2 + rng.random(d),
        ranges=(0.0, 1.0),
        target_range=(0.5, 4.0),
    )
    return X, 0.5 + 3 * rng.random(n), 1.5 * rng.random((3, d)) - 0.25, estimator


@pytest.mark.parametrize("moves", ["insert", "insert+delete"])
@pytest.mark.parametrize("seed", range(4))
def test_random_insertions_and_deletions_never_beat_the_bound(moves: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    nearest = 0.0
    for _ in range(25):
        X, y, rows, estimator = random_block(rng, 8)
        fit = fitter(estimator)
        votes = fit(X, y)(rows)
        engine: Any = engine_for(estimator, Threat(moves), 4)
        reach = engine.reach(engine.prepare(fit, X, y), votes, rows)
        for k in range(1, 4):
            for attempt in range(25):
                gone = min(int(rng.integers(k + 1)), len(y)) if moves == "insert+delete" else 0
                kept = np.sort(rng.permutation(len(y))[gone:])
                corners = 1e3 * rng.integers(-1, 2, (k - gone, X.shape[1]))
                inserted = [rng.random(corners.shape), corners, np.repeat(rows[[attempt % 3]], k - gone, axis=0)]
                labels = np.where(rng.random(k - gone) < 0.5 + 0.5 * (attempt % 2), 1e9, -1e9)
                poisoned = np.vstack([X[kept], inserted[attempt % 3]]), np.append(y[kept], labels)
                vote = fit(*poisoned)(rows)
                assert np.all((reach.low[k] <= vote) & (vote <= reach.high[k]))
                nearest = max(nearest, float(np.max((vote - votes) / (reach.high[k] - votes))))
    # The bound is not vacuous: attacks come close to it.
    assert nearest > 0.8


@pytest.mark.parametrize("seed", range(3))
def test_a_climbing_attacker_never_beats_the_bound(seed: int) -> None:
    rng = np.random.default_rng(50 + seed)
    for _ in range(6):
        X, y, rows, estimator = random_block(rng, 20)
        fit = fitter(estimator)
        row = rows[:1]
        votes = fit(X, y)(row)
        engine: Any = engine_for(estimator, Threat("insert"), 3)
        reach = engine.reach(engine.prepare(fit, X, y), votes, row)
        for sign, label in ((1, 1e9), (-1, -1e9)):

            def loss(inserted: Array, sign: int = sign, label: float = label, to: Any = (fit, X, y, row)) -> float:
                fit, X, y, row = to
                return -sign * fit(np.vstack([X, inserted[None]]), np.append(y, label))(row)[0]

            found = minimize(loss, np.clip(row[0], 0, 1), bounds=[(0, 1)] * X.shape[1], method="L-BFGS-B")
            assert reach.low[1, 0] <= -sign * found.fun <= reach.high[1, 0]


@pytest.mark.parametrize("gamma", [None, 0.5])
def test_the_opening_covers_every_row_that_clipping_lets_through(gamma: float | None) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        X, y, rows, estimator = random_block(rng, 15)
        estimator.set_params(gamma=gamma)
        encoded, learned = estimator.encoded(X), estimator.learned_targets(y)
        factors = kernel_factors(encoded, learned, estimator.kernel(), estimator.alpha)
        opening = opening_of(factors, estimator.box(X.shape[1]), estimator.learned_range())
        anywhere = estimator.encoded(
            np.vstack([rng.random((60, X.shape[1])), rng.integers(0, 2, (60, X.shape[1])), rows])
        )
        levels = factors.weights(anywhere) @ learned
        low, high = estimator.learned_range()
        assert opening.residual >= max(np.max(high - levels), np.max(levels - low)) - 1e-9
        assert np.all(own_leverage(factors, opening, anywhere) <= opening.leverage * (1 + 1e-9) + 1e-9)


def test_own_leverage_is_what_an_inserted_copy_would_have() -> None:
    rng = np.random.default_rng(4)
    X, y, row = rng.random((9, 2)), rng.random(9), rng.random((1, 2))
    estimator = KernelRidge(alpha=0.4, ranges=(0, 1), target_range=(0, 1))
    factors = kernel_factors(X, y, estimator.kernel(), 0.4)
    opening = opening_of(factors, (np.zeros(2), np.ones(2)), (0.0, 1.0))
    own = own_leverage(factors, opening, row)[0]
    # A copy of the row with label 1 moves the prediction by h / (1 + h) times its residual.
    before = clone(estimator).fit(X, y).predict(row)[0]
    after = clone(estimator).fit(np.vstack([X, row]), np.append(y, 1.0)).predict(row)[0]
    assert after - before == pytest.approx(own / (1 + own) * (1 - before), rel=1e-9)


def test_ridge_has_no_opening() -> None:
    rng = np.random.default_rng(0)
    factors = ridge_factors(rng.random((5, 2)), rng.random(5), 1.0, intercept=True)
    with pytest.raises(TypeError, match="kernel ridge"):
        opening_of(factors, (np.zeros(2), np.ones(2)), (0.0, 1.0))
