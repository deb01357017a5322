from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import laplacian_kernel

from poisonproof.costs import engine_for
from poisonproof.costs.smoother.deletions import couple, least_nu, rise_after_deletions, rise_by_leverage
from poisonproof.learners import KernelRidge
from poisonproof.threat import Threat
from poisonproof.votes import fit_submodel

DELETE = Threat("delete")
CONSTANT = -1.5

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def fitter(estimator: Any) -> Any:
    return lambda X, y: fit_submodel(estimator, CONSTANT, X, y).vote


def design(rng: np.random.Generator, n: int, d: int) -> tuple[Array, Array]:
    """Rows and targets of one of five kinds: smooth, rounded, duplicated, one-hot, of very different sizes."""
    kind = int(rng.integers(5))
    X = rng.normal(size=(n, d))
    if kind in (1, 2):
        X = np.round(X)
    if kind == 2:
        X[n // 2 :] = X[: n - n // 2]
    if kind == 3:
        X = np.eye(d)[rng.integers(0, d, n)]
    if kind == 4:
        X = X * np.exp(2 * rng.normal(size=d))
    y = 2 * rng.normal(size=n) + X[:, 0] + 10 * (rng.random() < 0.3)
    return X, np.round(y) if rng.random() < 0.3 else y


def votes_without(gram: Array, cross: Array, y: Array, alpha: float, size: int) -> Array:
    """The votes ``(n_sets, n_rows)`` without every set of ``size`` rows, each from its own bordered system."""
    n = len(y)
    kept = np.array([np.delete(np.arange(n), gone) for gone in combinations(range(n), size)])
    left = n - size
    system = np.ones((len(kept), left + 1, left + 1))
    system[:, :left, :left] = gram[kept[:, :, None], kept[:, None, :]] + alpha * np.eye(left)
    system[:, left, left] = 0.0
    right = np.zeros((len(kept), left + 1, 1))
    right[:, :left, 0] = y[kept]
    solved = np.linalg.solve(system, right)[:, :, 0]
    return np.einsum("rsk,sk->sr", cross[:, kept], solved[:, :left]) + solved[:, left:]


def kernels(estimator: Any, X: Array, rows: Array) -> tuple[Array, Array]:
    if isinstance(estimator, Ridge):
        return X @ X.T, rows @ X.T
    gamma, linear = estimator.gamma, estimator.linear
    laplace = [laplacian_kernel(A, X, gamma=gamma) / gamma if gamma else 0 for A in (X, rows)]
    return linear * X @ X.T + laplace[0], linear * rows @ X.T + laplace[1]


def random_smoother(rng: np.random.Generator, alpha: float) -> Any:
    if rng.random() < 0.5:
        return Ridge(alpha=alpha)
    return KernelRidge(alpha=alpha, gamma=[None, 0.3, 1.0][rng.integers(3)], linear=[0.5, 1.0][rng.integers(2)])


@pytest.mark.parametrize("seed", range(10))
def test_no_set_of_up_to_four_rows_passes_its_reach(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(150):
        n, d = int(rng.integers(1, 10)), int(rng.integers(1, 9))
        _hold_all_sets(rng, n, d)
    _hold_all_sets(rng, 15, int(rng.integers(1, 20)))


def _hold_all_sets(rng: np.random.Generator, n: int, d: int) -> None:
    X, y = design(rng, n, d)
    alpha = 10 ** rng.uniform(-2, 2)
    estimator = random_smoother(rng, alpha)
    rows = np.vstack([rng.normal(size=(2, d)), X[:1]])
    fit = fitter(estimator)
    engine: Any = engine_for(estimator, DELETE, 5)
    votes = fit(X, y)(rows)
    reach = engine.reach(engine.prepare(fit, X, y), votes, rows)
    gram, cross = kernels(estimator, X, rows)
    low, high = votes.copy(), votes.copy()
    # What the bordered system itself loses where features have very different sizes.
    slack = 1e-11 * (1 + np.trace(gram) / alpha) * (np.abs(y).max() + 1)
    for k in range(1, 5):
        if k < n:
            without = votes_without(gram, cross, y, alpha, k)
            low, high = np.minimum(low, without.min(axis=0)), np.maximum(high, without.max(axis=0))
        elif k == n:
            low, high = np.minimum(low, CONSTANT), np.maximum(high, CONSTANT)
        assert np.all(reach.high[k] >= high - slack)
        assert np.all(reach.low[k] <= low + slack)
        if k <= 2 and np.trace(gram) < 1e4 * alpha:
            np.testing.assert_allclose(reach.high[k], high, atol=1e-4 * float(np.std(y) + 1e-3))
            np.testing.assert_allclose(reach.low[k], low, atol=1e-4 * float(np.std(y) + 1e-3))


@pytest.mark.parametrize("seed", range(3))
def test_real_refits_stay_inside_down_to_tiny_penalties(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    for _ in range(25):
        n, d = int(rng.integers(1, 7)), int(rng.integers(1, 7))
        X, y = design(rng, n, d)
        alpha = 10 ** rng.uniform(-10, 0)
        estimator = random_smoother(rng, alpha)
        if isinstance(estimator, Ridge):
            estimator.set_params(fit_intercept=bool(rng.integers(2)), solver=["auto", "cholesky"][rng.integers(2)])
        rows = rng.normal(size=(3, d))
        fit = fitter(estimator)
        engine: Any = engine_for(estimator, DELETE, 4)
        votes = fit(X, y)(rows)
        reach = engine.reach(engine.prepare(fit, X, y), votes, rows)
        low, high = votes.copy(), votes.copy()
        for k in range(1, 4):
            for gone in combinations(range(n), k):
                vote = fit(np.delete(X, gone, axis=0), np.delete(y, gone))(rows)
                low, high = np.minimum(low, vote), np.maximum(high, vote)
            assert np.all(reach.low[k] <= low)
            assert np.all(reach.high[k] >= high)


@pytest.mark.parametrize("n", [30, 150])
def test_agrees_with_refits_to_a_billionth(n: int) -> None:
    rng = np.random.default_rng(n)
    X = rng.random((n, 6))
    y = X[:, 0] + rng.normal(size=n)
    rows = rng.random((20, 6))
    for estimator in (Ridge(alpha=1e-3), Ridge(alpha=1.0, fit_intercept=False), KernelRidge(alpha=1e-3)):
        fit = fitter(estimator)
        engine: Any = engine_for(estimator, DELETE, 2)
        votes = fit(X, y)(rows)
        reach = engine.reach(engine.prepare(fit, X, y), votes, rows)
        without = np.array([fit(np.delete(X, i, axis=0), np.delete(y, i))(rows) for i in range(n)])
        exact_high = np.maximum(votes, without.max(axis=0))
        exact_low = np.minimum(votes, without.min(axis=0))
        # Half of the bar is the declared margin, which only widens.
        scale = 1e-9 * y.std()
        factors = engine.prepare(fit, X, y).factors
        moved = factors.weights(rows if isinstance(estimator, Ridge) else estimator.encoded(rows)) * (
            factors.residuals / factors.freedom
        )
        np.testing.assert_allclose((votes[:, None] - moved).T, without, atol=scale)
        assert np.all(reach.high[1] >= exact_high)
        assert np.all(reach.low[1] <= exact_low)


@pytest.mark.parametrize("n", [96, 130])
def test_three_deletions_are_bounded_closely_and_attacks_stay_inside(n: int) -> None:
    rng = np.random.default_rng(n)
    X = np.column_stack([rng.random((n, 5)), np.eye(6)[rng.integers(0, 6, n)]])
    y = X @ rng.normal(size=11) + 0.2 * rng.normal(size=n)
    rows = X[:8] + 0.01
    fit = fitter(Ridge(alpha=0.5))
    engine: Any = engine_for(Ridge(alpha=0.5), DELETE, 9)
    votes = fit(X, y)(rows)
    block = engine.prepare(fit, X, y)
    reach = engine.reach(block, votes, rows)
    ratios = []
    for row in range(8):
        gone: list[int] = []
        for k in range(1, 9):
            kept = np.delete(np.arange(n), gone)
            tried = {
                i: fit(X[kept[kept != i]], y[kept[kept != i]])(rows[[row]])[0] for i in kept[:: 1 if k <= 3 else 5]
            }
            gone.append(max(tried, key=tried.__getitem__))
            assert tried[gone[-1]] <= reach.high[k, row]
            if k == 3:
                ratios.append((reach.high[3, row] - votes[row]) / (tried[gone[-1]] - votes[row]))
    assert np.median(ratios) <= 1.5


def test_large_blocks_are_bounded_by_leverages_alone() -> None:
    rng = np.random.default_rng(0)
    n = 2600
    X = rng.random((n, 3))
    y = X[:, 0] + rng.normal(size=n)
    rows = rng.random((4, 3))
    fit = fitter(Ridge())
    engine: Any = engine_for(Ridge(), DELETE, 4)
    votes = fit(X, y)(rows)
    block = engine.prepare(fit, X, y)
    reach = engine.reach(block, votes, rows)
    moved = -block.factors.weights(rows) * (block.factors.residuals / block.factors.freedom)
    for row in range(4):
        worst = np.argsort(-moved[row])
        for k in (1, 2, 3):
            vote = fit(np.delete(X, worst[:k], axis=0), np.delete(y, worst[:k]))(rows[[row]])[0]
            assert vote <= reach.high[k, row]
            assert reach.high[k, row] - votes[row] <= 1.05 * (vote - votes[row])


def test_leverage_bound_holds_on_every_set_and_gives_up_where_it_must() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        n, d = 9, 2
        X = rng.normal(size=(n, d))
        y = rng.normal(size=n)
        about = X - X.mean(axis=0)
        hat = 1 / n + about @ np.linalg.solve(about.T @ about + 5 * np.eye(d), about.T)
        residuals = y - hat @ y
        rises = rise_by_leverage(hat.diagonal(), residuals, hat, 4)
        exact = rise_after_deletions(couple(np.eye(n) - hat, residuals, 4), hat, 4)
        for k in range(1, 5):
            moves = np.array(
                [
                    -hat[:, gone] @ np.linalg.solve(np.eye(k) - hat[np.ix_(gone, gone)], residuals[list(gone)])
                    for gone in combinations(range(n), k)
                ]
            )
            for side, most in enumerate((moves.max(axis=0), -moves.min(axis=0))):
                assert np.all(rises[side, k] >= most - 1e-12)
                assert np.all(exact[side, k] >= most - 1e-12)
    assert np.isinf(rise_by_leverage(np.full(5, 0.6), np.ones(5), np.ones((1, 5)), 3)[:, 2:]).all()


def test_nu_bounds_the_norm_of_every_subset() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        n = int(rng.integers(2, 9))
        coupled = rng.normal(size=(n, n)) * 0.2
        coupled = (coupled + coupled.T) / 2
        np.fill_diagonal(coupled, 0)
        coupling = couple(np.eye(n) - coupled, np.ones(n), 5)
        nu = least_nu(np.abs(coupling.matrix), coupling.largest)
        assert nu[:2].tolist() == [0, 0]
        for k in range(2, 6):
            norms = [np.abs(np.linalg.eigvalsh(coupled[np.ix_(s, s)])).max() for s in combinations(range(n), min(k, n))]
            assert nu[k] >= min(max(norms), 1.0) - 1e-12
