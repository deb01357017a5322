from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from poisonproof.errors import DataError, ParameterError
from poisonproof.learners import KernelRidge
from poisonproof.learners.kernel_ridge import contrasts_solved

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@parametrize_with_checks([KernelRidge(), KernelRidge(gamma=None), KernelRidge(linear=0.0)])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def table(seed: int, n: int = 30, d: int = 4) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, np.exp(X[:, 0] - X[:, 1] ** 2) + 0.1 * rng.random(n)


def textbook(X: Array, y: Array, rows: Array, *, alpha: float, gamma: float | None, linear: float) -> Array:
    """Kernel ridge with an unpenalised intercept, from the bordered system."""
    kernel = lambda A, B: (laplacian_kernel(A, B, gamma=gamma) / gamma if gamma else 0) + linear * A @ B.T  # noqa: E731  two lines of algebra
    n = len(y)
    system = np.block([[kernel(X, X) + alpha * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.append(y, 0.0))
    return kernel(rows, X) @ solution[:n] + solution[n]


@pytest.mark.parametrize(("gamma", "linear"), [(0.3, 1.0), (None, 2.0), (1.5, 0.0)])
@pytest.mark.parametrize("n", [2, 3, 30])
def test_solves_the_textbook_system(gamma: float | None, linear: float, n: int) -> None:
    X, y = table(n, n)
    rows = np.random.default_rng(1).random((7, 4)) * 2 - 0.5
    model = KernelRidge(alpha=0.05, gamma=gamma, linear=linear).fit(X, y)
    expected = textbook(X, y, rows, alpha=0.05, gamma=gamma, linear=linear)
    np.testing.assert_allclose(model.predict(rows), expected, atol=1e-11)
    assert model.dual_coef_.sum() == pytest.approx(0, abs=1e-10)


def test_the_linear_part_alone_is_ridge() -> None:
    X, y = table(0)
    ours = KernelRidge(alpha=0.6, gamma=None, linear=2.0).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), Ridge(alpha=0.3).fit(X, y).predict(X), atol=1e-11)


def test_intercept_is_not_penalised() -> None:
    X, y = table(2)
    near, far = KernelRidge(alpha=5.0).fit(X, y), KernelRidge(alpha=5.0).fit(X, y + 1e3)
    np.testing.assert_allclose(far.predict(X), near.predict(X) + 1e3, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 5, 64])
def test_a_prediction_depends_on_its_own_row_to_the_last_bit(size: int) -> None:
    X, y = table(3, 40, 7)
    model = KernelRidge().fit(X, y)
    rows = np.random.default_rng(0).random((64, 7))
    whole = model.predict(rows)
    for start in range(0, 64, size):
        assert np.array_equal(model.predict(rows[start : start + size][::-1])[::-1], whole[start : start + size])


@pytest.mark.parametrize("transform", ["log", "log1p"])
def test_target_transform_learns_on_its_scale_and_comes_back(transform: Any) -> None:
    X, y = table(4)
    forward, inverse = {"log": (np.log, np.exp), "log1p": (np.log1p, np.expm1)}[transform]
    ours = KernelRidge(target_transform=transform).fit(X, y).predict(X)
    np.testing.assert_array_equal(ours, inverse(KernelRidge().fit(X, forward(y)).predict(X)))


def test_rows_and_targets_are_clipped_into_declared_ranges() -> None:
    X, y = table(5)
    wild_X, wild_y = X.copy(), y.copy()
    wild_X[0], wild_y[3] = [9, -9, 0.5, 2], 1e9
    tame_X, tame_y = np.clip(wild_X, 0, 1), np.minimum(wild_y, 3.0)
    model = KernelRidge(ranges=(0, 1), target_range=(0.1, 3.0))
    wild = clone(model).fit(wild_X, wild_y).predict(wild_X)
    np.testing.assert_array_equal(wild, KernelRidge().fit(tame_X, tame_y).predict(tame_X))
    np.testing.assert_array_equal(
        clone(model).set_params(ranges=[(0, 1)] * 4).fit(wild_X, wild_y).predict(wild_X), wild
    )


def test_a_clipped_target_may_have_no_logarithm() -> None:
    X, y = table(6)
    y[0], y[1] = -4.0, 0.0
    model = KernelRidge(target_transform="log", target_range=(0.5, 9.0)).fit(X, y)
    y[:2] = 0.5
    np.testing.assert_array_equal(
        model.predict(X), KernelRidge(target_transform="log").fit(X, np.clip(y, 0.5, 9)).predict(X)
    )


def test_weights_scale_the_features() -> None:
    X, y = table(7)
    weights = np.array([1.0, 0.3, 0.0, 2.0])
    np.testing.assert_array_equal(
        KernelRidge(weights=weights).fit(X, y).predict(X), KernelRidge().fit(X * weights, y).predict(X * weights)
    )
    box: Any = KernelRidge(weights=weights, ranges=(-1, 3)).box(4)
    low, high = box
    assert low.tolist() == [-1, -0.3, 0, -2]
    assert high.tolist() == [3, 0.8999999999999999, 0, 6]


def test_without_ranges_there_is_no_box() -> None:
    assert KernelRidge().box(4) is None


def test_constant_targets_and_single_rows_are_predicted_exactly() -> None:
    X, _ = table(8)
    assert KernelRidge().fit(X, np.full(30, 7.0)).predict(X).tolist() == [7.0] * 30
    assert KernelRidge(alpha=0).fit(X[:1], [3.0]).predict(X[:2]).tolist() == [3.0, 3.0]


def test_no_penalty_interpolates_or_refuses() -> None:
    X, y = table(9)
    np.testing.assert_allclose(KernelRidge(alpha=0.0).fit(X, y).predict(X), y, atol=1e-9)
    with pytest.raises(DataError, match="larger alpha"):
        KernelRidge(alpha=0.0).fit(np.ones((4, 2)), [1.0, 2.0, 3.0, 4.0])


def test_infinite_kernels_are_refused() -> None:
    with np.errstate(all="ignore"), pytest.raises(DataError, match="not finite"):
        KernelRidge().fit(np.array([[1e200], [0.0], [1.0]]), [0.0, 1.0, 2.0])


@pytest.mark.filterwarnings("ignore:.*encountered in matmul:RuntimeWarning")
def test_infinite_coefficients_are_refused() -> None:
    with pytest.raises(DataError, match="coefficients"):
        KernelRidge(alpha=0.0).fit([[0.0], [1e-300], [1.0]], [0.0, 1e300, 2.0])


def test_the_root_solves_in_the_complement_of_the_constant() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 8):
        factor = rng.normal(size=(n, 3))
        gram = factor @ factor.T + 5.0
        root = contrasts_solved(gram, 0.1)
        basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:]
        expected = basis @ np.linalg.inv(basis.T @ gram @ basis + 0.1 * np.eye(n - 1)) @ basis.T
        np.testing.assert_allclose(root @ root.T, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, "alpha=-1.0 must be"),
        ({"alpha": "a"}, "alpha='a' must be"),
        ({"linear": np.inf}, "linear=inf must be"),
        ({"gamma": 0.0}, "None for no Laplace part"),
        ({"gamma": None, "linear": 0.0}, "leaves no kernel"),
        ({"target_transform": "sqrt"}, "None, 'log', 'log1p'"),
        ({"target_transform": ["log"]}, "None, 'log', 'log1p'"),
        ({"weights": [1.0]}, "weights must be 4 finite"),
        ({"weights": [1.0, -1.0, 1.0, 1.0]}, "at least 0"),
        ({"ranges": [1.0, 0.0]}, "lower one first"),
        ({"ranges": [[0, 1]] * 3}, "one pair or 4 pairs"),
        ({"target_range": (1.0, 1.0)}, "lower one first"),
        ({"target_range": (0.0, 1.0), "target_transform": "log"}, "raise its lower end"),
    ],
)
def test_parameters_that_are_not_allowed(parameters: dict[str, Any], message: str) -> None:
    X, y = table(0)
    with pytest.raises(ParameterError, match=message):
        KernelRidge(**parameters).fit(X, y)


@pytest.mark.parametrize(("transform", "message"), [("log", "above 0"), ("log1p", "above -1")])
def test_targets_without_a_logarithm_are_refused(transform: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        KernelRidge(target_transform=transform).fit([[0.0], [1.0]], [-1.0, 1.0])
