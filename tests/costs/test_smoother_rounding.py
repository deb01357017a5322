"""What decides how exactly a smoother is solved: no deletion may change that where a formula is relied on."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from poisonproof import CertifiedRegressor
from poisonproof.costs.smoother.factors import about_mean, kernel_factors, ridge_factors
from poisonproof.learners import KernelRidge
from poisonproof.learners.kernel_ridge import BlockKernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class Divided(FunctionTransformer):
    def transform(self, X: Any) -> Any:
        return X / np.abs(X).max(axis=0)


class Crowd(StandardScaler):
    def transform(self, X: Any, copy: Any = None) -> Any:
        if len(X) < 6:
            raise ValueError("too few rows")
        return super().transform(X, copy)


def certified(estimator: Any, X: Array, y: Array, max_cost: int = 2) -> Any:
    return CertifiedRegressor(estimator, 1, threat="delete", max_cost=max_cost).fit(X, y)


@pytest.mark.parametrize("level", [1e4, 1e6, 1e8])
@pytest.mark.parametrize(("n", "n_features"), [(3, 1), (4, 1), (4, 3), (8, 2), (3, 5)])
def test_features_far_from_zero_round_within_the_margin(level: float, n: int, n_features: int) -> None:
    """Also after two deletions, which multiply what rounding of the centre leaves in the features."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = level + rng.normal(size=(n, n_features)), rng.normal(size=n)
        rows = level + rng.choice([1, 10]) * rng.normal(size=(5, n_features))
        ridge = Ridge(alpha=10.0 ** -(seed % 3 + 1))
        model = certified(ridge, X, y, max_cost=3)
        for count in (1, 2):
            interval = model.interval(rows, count)
            for gone in combinations(range(n), count):
                vote = CertifiedRegressor(ridge, 1).fit(np.delete(X, gone, 0), np.delete(y, gone)).predict(rows)
                assert np.all((interval.lower <= vote) & (vote <= interval.upper))


def test_directions_that_the_rows_do_not_reach_round_within_the_margin() -> None:
    """Columns that almost agree, and a row to predict where they do not: a refit errs there, and no weight tells."""
    first = np.array(
        [
            1.9219864999250806,
            1.5460795517594716,
            -0.9433729477662953,
            0.28832361650734967,
            -1.3130885121969904,
            0.5089065278073525,
            -1.8747201256560164,
            -0.24035199710833746,
            0.47056666126714586,
            -1.322651731159458,
            0.3391324015214289,
            0.21378318841700975,
            -0.627743745744985,
        ]
    )
    second = np.array(
        [
            -0.6197653950827267,
            -0.4985501221069373,
            0.3042008399671512,
            -0.09297307764821638,
            0.423419634098408,
            -0.1641024301049965,
            0.604523839991608,
            0.0775041086150073,
            -0.15173932425870862,
            0.4265033977870538,
            -0.10935692150932133,
            -0.06893670805516987,
            0.20242278008067005,
        ]
    )
    X, y = (
        np.column_stack([first, second]),
        np.array(
            [
                0.5021562002840558,
                0.40395242267777004,
                -0.24646139871504158,
                0.07533052501741481,
                -0.34306500263111844,
                0.13295201172994867,
                -0.48980604292583924,
                -0.06280064502804862,
                0.12294913810452622,
                -0.3455661899958886,
                0.08860875003587078,
                0.05585683321056003,
                -0.16401654840395716,
            ]
        ),
    )
    rows = np.array([[720651.6115071522, 2106961.6273310017]])
    ridge = Ridge(alpha=1.8193652338978594e-09)
    for count in (1, 2):
        interval = certified(ridge, X, y, max_cost=3).interval(rows, count)
        for gone in combinations(range(13), count):
            vote = CertifiedRegressor(ridge, 1).fit(np.delete(X, gone, 0), np.delete(y, gone)).predict(rows)
            assert np.all((interval.lower <= vote) & (vote <= interval.upper))


def check_refits(estimator: Any, X: Array, y: Array, rows: Array) -> Any:
    """Every refit without one row stays in the interval after one deletion, which is returned."""
    interval = certified(estimator, X, y).interval(rows, 1)
    for gone in range(len(y)):
        vote = certified(estimator, np.delete(X, gone, axis=0), np.delete(y, gone)).predict(rows)
        assert np.all((interval.lower <= vote) & (vote <= interval.upper))
    return interval


@pytest.mark.parametrize(
    "step",
    [
        Divided(),
        FrozenEstimator(Divided()),
        FrozenEstimator(make_pipeline(FunctionTransformer(lambda X: X / np.abs(X).max(axis=0)))),
    ],
)
def test_steps_that_look_at_all_rows_are_refitted(step: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=20)
    X[7] = 40
    if isinstance(step, FrozenEstimator):
        step.estimator.fit(X)
    check_refits(make_pipeline(step, Ridge()), X, y, X[:6])


@pytest.mark.parametrize("estimator", [Ridge(), KernelRidge(alpha=1.0)])
@pytest.mark.parametrize("n", [12, 23])
def test_steps_that_round_as_the_table_is_shaped_round_within_the_margin(estimator: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    away = 1e8 + rng.normal(size=(300, 40))
    axes = FrozenEstimator(PCA(17).fit(away))
    interval = check_refits(make_pipeline(axes, estimator), away[:n], rng.normal(size=n), away[-20:])
    assert np.all(interval.upper - interval.lower < 3)


def test_a_step_that_takes_only_tables_of_many_rows_costs_one() -> None:
    X = np.arange(6.0)[:, None]
    interval = certified(make_pipeline(FrozenEstimator(Crowd().fit(X)), Ridge()), X, X[:, 0]).interval(X, 1)
    assert np.all(np.isinf(interval.upper))


@pytest.mark.parametrize(("level", "seed"), [(1e6, 13), (1e9, 5)])
@pytest.mark.parametrize("estimator", [Ridge(), KernelRidge(alpha=1.0, gamma=None)])
def test_targets_far_from_zero_round_within_the_margin(estimator: Any, level: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.append(0.1 * rng.normal(size=3), 30.0)[:, None]
    interval = check_refits(estimator, X, level + rng.normal(size=4), np.array([[3e3]]))
    assert np.all(interval.upper - interval.lower < 2e4)


@pytest.mark.parametrize(("n", "alpha"), [(30, 0.5), (5, 0.5), (30, 1e-6)])
def test_residuals_do_not_know_how_far_from_zero_the_targets_are(n: int, alpha: float) -> None:
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 8)), rng.integers(-9, 9, n).astype(float)
    for factors_of in (
        lambda targets: ridge_factors(X, targets, alpha, intercept=True),
        lambda targets: kernel_factors(X, targets, BlockKernel(0.3, 1.0), alpha),
    ):
        near, far = factors_of(y), factors_of(y + 2.0**40)
        np.testing.assert_allclose(far.residuals, near.residuals, rtol=1e-9, atol=1e-12 * near.spread)
    assert abs(about_mean(y + 2.0**40).mean()) < 1e-14


def test_steps_that_give_32_bits_cost_one_where_the_smoother_keeps_them() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, (25, 2)).astype(float), rng.normal(size=25)
    rows = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    known = np.repeat(np.arange(5.0)[:, None], 2, axis=1)
    wide, narrow = (
        FrozenEstimator(OneHotEncoder(sparse_output=False, dtype=dtype).fit(known))
        for dtype in (np.float64, np.float32)
    )
    assert np.isinf(check_refits(make_pipeline(narrow, Ridge(alpha=1e-3)), X, y, rows).upper).all()
    for estimator in (make_pipeline(wide, Ridge(alpha=1e-3)), make_pipeline(narrow, KernelRidge())):
        assert np.isfinite(check_refits(estimator, X, y, rows).upper).all()


def partly_sparse(threshold: float) -> tuple[ColumnTransformer, Array, float]:
    """Columns that are as sparse as their rows, some rows, and how full they are."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 6, 14).astype(float)
    X = np.column_stack([first, rng.normal(size=(14, 2))])
    # Of other numbers than these the encoder makes zeros.
    encoder = FrozenEstimator(OneHotEncoder(handle_unknown="ignore").fit(np.arange(4.0)[:, None]))
    parts = [("one", encoder, [0]), ("rest", "passthrough", [1, 2])]
    full = (np.count_nonzero(first < 4) + 2 * 14) / (6 * 14)
    return ColumnTransformer(parts, sparse_threshold=full + threshold), X, full


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("estimator", [Ridge(alpha=0.1), KernelRidge()])
@pytest.mark.filterwarnings("ignore")
def test_deletions_that_make_a_table_sparse_are_not_left_to_formulas(estimator: Any, nested: bool) -> None:
    y = np.random.default_rng(1).normal(size=14)
    for above, served in ((-0.1, True), (-1e-5, False), (1e-5, False)):
        step, X, full = partly_sparse(above)
        pipe = make_pipeline(make_pipeline(step) if nested else step, estimator)
        assert np.isfinite(check_refits(pipe, X, y, X[:9]).upper).all() == served
        assert step.sparse_threshold == full + above


def test_a_table_that_is_never_sparse_is_served() -> None:
    step, X, _ = partly_sparse(0.0)
    y = np.random.default_rng(1).normal(size=14)
    step.set_params(sparse_threshold=0.0)
    assert np.isfinite(check_refits(make_pipeline(step, Ridge()), X, y, X[:9]).upper).all()
    step = ColumnTransformer([("rest", "passthrough", [0, 1, 2])], sparse_threshold=1.0)
    assert np.isfinite(check_refits(make_pipeline(step, Ridge()), X, y, X[:9]).upper).all()


def test_more_deletions_make_a_table_sparse_sooner() -> None:
    step, X, _ = partly_sparse(-0.1)
    y = np.random.default_rng(1).normal(size=14)
    for max_cost, served in ((2, True), (4, False)):
        upper = certified(make_pipeline(step, Ridge(alpha=0.1)), X, y, max_cost).interval(X, 1).upper
        assert np.isfinite(upper).all() == served


def test_singular_values_that_are_dropped_are_refitted() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 1)) * 3e-16 * 1.45
    y = rng.normal(size=12) + 9e15 * X[:, 0] / 1.45
    check_refits(Ridge(alpha=1e-32, solver="svd"), X, y, X)


@pytest.mark.parametrize("unit", [1e-318, 1e-250, 1e-130, 1e130])
@pytest.mark.parametrize("estimator", [KernelRidge(), Ridge()])
def test_tiny_targets_round_within_the_margin(estimator: Any, unit: float) -> None:
    rng = np.random.default_rng(0)
    X, y, rows = rng.random((30, 3)), (1e5 + rng.normal(size=30)) * unit, 3 * rng.random((100, 3))
    interval = check_refits(estimator, X, y, rows)
    assert np.isfinite(interval.upper).all() == (unit >= 1e-130)


@pytest.mark.parametrize("estimator", [KernelRidge(), Ridge()])
def test_targets_of_nothing_stay_nothing(estimator: Any) -> None:
    X = np.random.default_rng(0).random((9, 2))
    interval = check_refits(estimator, X, np.zeros(9), X)
    assert not interval.lower.any()
    assert not interval.upper.any()
