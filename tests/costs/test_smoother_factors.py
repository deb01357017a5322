from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from poisonproof.costs.smoother import factors as module
from poisonproof.costs.smoother.factors import kernel_factors, ridge_factors
from poisonproof.errors import DataError
from poisonproof.learners.kernel_ridge import BlockKernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def hat_matrix(X: Array, alpha: float, *, intercept: bool) -> Array:
    """By definition: column j is the fit to a target that is 1 in row j and 0 elsewhere."""
    model = Ridge(alpha=alpha, fit_intercept=intercept, solver="svd")
    return np.column_stack([model.fit(X, unit).predict(X) for unit in np.eye(len(X))])


def table(n: int, d: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n) + 3, rng.normal(size=(4, d))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("n", "d", "alpha"), [(30, 4, 0.5), (5, 12, 0.5), (5, 12, 1e-6), (20, 6, 1e-6), (3, 3, 1.0), (1, 2, 1.0)]
)
def test_ridge_factors_say_what_ridge_does(n: int, d: int, alpha: float, intercept: bool) -> None:
    X, y, rows = table(n, d)
    factors = ridge_factors(X, y, alpha, intercept=intercept)
    left = np.eye(n) - hat_matrix(X, alpha, intercept=intercept)
    scale = 1e-8 * max(1.0, 1 / np.sqrt(alpha))
    np.testing.assert_allclose(factors.unit * factors.residual_maker(), left, atol=scale)
    np.testing.assert_allclose(factors.unit * factors.freedom, left.diagonal(), atol=scale)
    np.testing.assert_allclose(factors.unit * factors.residuals, left @ y, atol=10 * scale)
    expected = Ridge(alpha=alpha, fit_intercept=intercept, solver="svd").fit(X, y).predict(rows)
    np.testing.assert_allclose(factors.weights(rows) @ y, expected, atol=10 * scale)


@pytest.mark.parametrize(
    ("n", "d", "alpha", "expected"), [(30, 4, 0.5, "none"), (5, 12, 0.5, "dual"), (30, 4, 1e-6, "svd")]
)
def test_the_form_follows_the_shape_and_the_penalty(n: int, d: int, alpha: float, expected: str) -> None:
    X, y, _ = table(n, d)
    factors = ridge_factors(X, y, alpha, intercept=True)
    found = "none" if factors.root is None else ("dual" if factors.unit == alpha else "svd")
    assert found == expected


def test_an_almost_interpolated_row_takes_singular_values() -> None:
    X, y, _ = table(30, 4)
    X[0] = [1e6, 0, 0, 0]
    factors = ridge_factors(X, y, 0.5, intercept=True)
    assert factors.root is not None
    assert 0 < factors.freedom.min() < 1e-3


def test_few_rows_that_repeat_take_singular_values() -> None:
    X, y, _ = table(4, 9)
    X[1] = X[0]
    assert ridge_factors(X, y, 1e-9, intercept=True).unit == 1.0
    X = np.ones((4, 9))
    assert ridge_factors(X, y, 0.0, intercept=True).precision == np.inf


def test_no_penalty_at_all_is_trusted_with_nothing() -> None:
    X, y, _ = table(4, 9)
    assert ridge_factors(X, y, 0.0, intercept=True).precision == np.inf
    X, y, _ = table(9, 4)
    assert not ridge_factors(X, y, 0.0, intercept=False).precision <= 1


def test_hopeless_normal_equations_are_noticed() -> None:
    X, y, _ = table(9, 2)
    X[:, 1] = X[:, 0] = 1e12 * X[:, 0]
    assert not ridge_factors(X, y, 1e-3, intercept=True).precision <= 0.1


def test_singular_values_are_not_tried_on_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_SPECTRAL", 8)
    X, y, _ = table(9, 4)
    with pytest.raises(DataError, match="larger alpha"):
        ridge_factors(X, y, 1e-9, intercept=True)


def without_each_row(X: Array, y: Array, alpha: float, rows: Array) -> Any:
    """Leave-one-out predictions in extended precision, from the bordered normal equations by elimination."""
    votes = []
    for i in range(len(y)):
        kept = np.delete(np.arange(len(y)), i)
        bordered = np.column_stack([np.ones(len(kept)), X[kept]]).astype(np.longdouble)
        system = bordered.T @ bordered + np.diag([0.0] + [alpha] * X.shape[1]).astype(np.longdouble)
        right = bordered.T @ y[kept].astype(np.longdouble)
        votes.append(np.column_stack([np.ones(len(rows)), rows]) @ eliminated(system, right))
    return np.array(votes, dtype=np.longdouble)


def eliminated(system: Any, right: Any) -> Any:
    system, right = system.copy(), right.copy()
    for i in range(len(right)):
        for j in range(i + 1, len(right)):
            factor = system[j, i] / system[i, i]
            system[j] -= factor * system[i]
            right[j] -= factor * right[i]
    solution = np.zeros_like(right)
    for i in reversed(range(len(right))):
        solution[i] = (right[i] - system[i] @ solution) / system[i, i]
    return solution


@pytest.mark.skipif(bool(np.finfo(np.longdouble).eps > 1e-18), reason="needs extended precision as a reference")
@pytest.mark.parametrize("alpha", [1e-3, 1e-6, 1e-8])
def test_tiny_penalties_and_one_hot_columns_agree_with_extended_precision(alpha: float) -> None:
    rng = np.random.default_rng(5)
    X = np.column_stack(
        [rng.random((24, 3)), np.eye(5)[rng.integers(0, 5, 24)], np.eye(4)[np.minimum(np.arange(24), 3)]]
    )
    y = X @ rng.normal(size=12) + 0.1 * rng.normal(size=24)
    rows = X[:6] + 0.05 * rng.random((6, 12))
    factors = ridge_factors(X, y, alpha, intercept=True)
    moved = factors.weights(rows) * (factors.residuals / factors.freedom)
    votes = (factors.weights(rows) @ y)[:, None] - moved
    error = np.abs(votes.T - without_each_row(X, y, alpha, rows)).max()
    assert error <= 1e-9 * y.std() if alpha >= 1e-3 else error <= factors.precision * y.std()


def test_kernel_factors_are_ridge_where_the_kernel_is_linear() -> None:
    X, y, rows = table(12, 3)
    ours = kernel_factors(X, y, BlockKernel(0.0, 1.0), 0.4)
    ridge = ridge_factors(X, y, 0.4, intercept=True)
    np.testing.assert_allclose(ours.weights(rows), ridge.weights(rows), atol=1e-12)
    np.testing.assert_allclose(0.4 * ours.residual_maker(), ridge.residual_maker(), atol=1e-12)
    np.testing.assert_allclose(0.4 * ours.residuals, ridge.residuals, atol=1e-12)
    assert ours.spread == pytest.approx(ridge.spread)
