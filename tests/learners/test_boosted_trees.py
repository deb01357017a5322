from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.learners import BoostedTreesRegressor
from poisonproof.learners.presort import presort
from poisonproof.learners.tree_growth import Growth, Trees, grow, predict
from poisonproof.learners.tree_replicas import Replicas, grow_replicas, predict_replicas

if TYPE_CHECKING:
    from poisonproof.learners.kernel_ridge import TargetTransform

SETTINGS = [
    Growth(30, 1, 1.0, 0.1, 0.0, 1.0),
    Growth(20, 2, 0.3, 1.0, 0.0, 1.0),
    Growth(12, 3, 0.5, 0.0, 0.0, 2.0),
    Growth(12, 4, 0.3, 1e-6, 0.5, 1.0),
    Growth(5, 9, 1.0, 0.5, 0.01, 1.0),
]


@parametrize_with_checks(
    [
        BoostedTreesRegressor(),
        BoostedTreesRegressor(20, max_depth=4, reg_lambda=0.0, learning_rate=1.0),
        BoostedTreesRegressor(min_split_loss=0.5, min_child_weight=2.0),
    ]
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def table(rng: np.random.Generator, n_rows: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Tables with and without ties: continuous, few values, one-hot columns with duplicates, mirrors and constants."""
    if kind == "continuous":
        return rng.normal(size=(n_rows, 4)), rng.normal(size=n_rows)
    X = rng.integers(0, 4, (n_rows, 5)).astype(float)
    if kind == "one-hot":
        X = np.column_stack([X[:, :2] == 0, X[:, :2] != 0, X[:, 0] > 1, np.ones(n_rows), X[:, 2], -X[:, 2]]).astype(
            float
        )
    return X, rng.integers(0, 5, n_rows).astype(float)


KINDS = ["continuous", "few values", "one-hot"]


def grown(X: np.ndarray, y: np.ndarray, growth: Growth) -> Trees:
    X = np.ascontiguousarray(X)
    return Trees(*grow(X, y, presort(X), growth))


def textbook_tree(
    X: np.ndarray, residuals: list[int], rows: list[int], *, depth: int, growth: Growth, unit: float
) -> Any:
    """One tree by the definition, gains in exact fractions: a leaf's value, or (feature, threshold, left, right)."""
    lam = Fraction(growth.lam)

    def score(chosen: list[int]) -> Fraction:
        return Fraction(sum(residuals[i] for i in chosen)) ** 2 / (len(chosen) + lam)

    leaf = float(np.rint(-growth.eta * sum(residuals[i] for i in rows) / (len(rows) + growth.lam)))
    best: Any = None
    for feature in range(X.shape[1]) if depth else ():
        for low, high in pairwise(sorted({X[i, feature] for i in rows})):
            parts = [i for i in rows if X[i, feature] <= low], [i for i in rows if X[i, feature] > low]
            if min(map(len, parts)) >= growth.least:
                gain = score(parts[0]) + score(parts[1]) - score(rows)
                if gain > (best[0] if best else 2.0**-40 * score(rows)):
                    best = gain, feature, (low + high) / 2, parts
    if best is None:
        return leaf
    gain, feature, threshold, parts = best
    left, right = (textbook_tree(X, residuals, part, depth=depth - 1, growth=growth, unit=unit) for part in parts)
    if not isinstance(left, tuple) and not isinstance(right, tuple) and float(gain) * unit**2 < growth.gamma:
        return leaf
    return feature, threshold, left, right


def textbook_value(tree: Any, row: np.ndarray) -> float:
    while isinstance(tree, tuple):
        feature, threshold, left, right = tree
        tree = left if row[feature] < threshold else right
    return float(tree)


@pytest.mark.parametrize("growth", SETTINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_trees_are_those_of_the_definition(growth: Growth, kind: str) -> None:
    rng = np.random.default_rng([growth.depth, len(kind)])
    for n_rows in (1, 2, 8, 16):
        X, y = table(rng, n_rows, kind)
        trees = grown(X, y, growth)
        queries = np.concatenate([X, table(rng, 10, kind)[0]])
        residuals = [int(np.rint((trees.base - target) / trees.unit)) for target in y]
        units = np.zeros(len(queries))
        for _ in range(len(trees.feature)):
            tree = textbook_tree(X, residuals, list(range(n_rows)), depth=growth.depth, growth=growth, unit=trees.unit)
            residuals = [r + int(textbook_value(tree, row)) for r, row in zip(residuals, X, strict=True)]
            units += [textbook_value(tree, row) for row in queries]
        assert trees.base == pytest.approx(y.mean())
        assert predict(trees, queries) == pytest.approx(trees.base + trees.unit * units, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("growth", SETTINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_replicas_are_refits_to_the_bit(growth: Growth, kind: str) -> None:
    rng = np.random.default_rng([growth.depth, len(kind), 1])
    for n_rows, size in ((2, 1), (5, 1), (7, 2), (9, 3), (20, 1), (70, 1)):
        X, y = table(rng, n_rows, kind)
        gone = np.array(list(combinations(range(n_rows), size)))
        queries = table(rng, 12, kind)[0]
        together = Replicas(*grow_replicas(X, y, gone, presort(X), growth))
        predictions = predict_replicas(together, queries)
        for r, rows in enumerate(gone):
            alone = grown(np.delete(X, rows, axis=0), np.delete(y, rows), growth)
            n_trees = len(alone.feature)
            assert (alone.base, alone.unit) == (together.base[r], together.unit[r])
            assert np.array_equal(alone.feature, together.feature[:n_trees, :, r])
            assert np.array_equal(alone.threshold, together.threshold[:n_trees, :, r])
            assert np.array_equal(alone.leaf, together.leaf[:n_trees, :, r])
            assert not together.leaf[n_trees:, :, r].any()
            assert np.array_equal(predict(alone, queries), predictions[r])


def test_a_split_seen_twice_is_still_the_first_of_the_best() -> None:
    # Parting off 1, 2 or 5 of ten rows is equally good here, but for the last bits; the eleventh row alone tells the
    # last feature from the second one.
    y = [-3.2671424856324967, -2.0878656938427063, -2.087865693842706, -0.9085889020529154, -0.9085889020529156,
         -0.9085889020529156, -0.9085889020529158, -0.9085889020529159, 7.346348640475619, 7.346348640475618,
         0.2706878897368746]  # fmt: skip
    sides = [[3, 4, 5, 6, 7], [1, 2], [0], [1, 2, 10]]
    X = np.array([np.isin(np.arange(11), side) for side in sides]).T.astype(float)
    growth = Growth(1, 1, 1.0, 0.0, 0.0, 1.0)
    together = Replicas(*grow_replicas(X, np.array(y), np.array([[10]]), presort(X), growth))
    alone = grown(X[:10], np.array(y[:10]), growth)
    assert np.array_equal(predict_replicas(together, X)[0], predict(alone, X))


def test_more_nodes_than_are_searched_side_by_side_change_nothing() -> None:
    growth = Growth(4, 5, 0.3, 0.01, 0.0, 1.0)
    X, y = table(np.random.default_rng(0), 150, KINDS[0])
    gone = np.arange(150).reshape(-1, 1)
    together = Replicas(*grow_replicas(X, y, gone, presort(X), growth))
    for r in range(0, 150, 7):
        alone = grown(np.delete(X, r, axis=0), np.delete(y, r), growth)
        assert np.array_equal(alone.feature, together.feature[:, :, r])
        assert np.array_equal(alone.threshold, together.threshold[:, :, r])
        assert np.array_equal(alone.leaf, together.leaf[:, :, r])


@pytest.mark.parametrize(
    ("depth", "lam", "gamma", "weight"), [(1, 0.1, 0.0, 1), (2, 1.0, 0.0, 3), (4, 0.01, 0.2, 1), (6, 1e-3, 0.0, 8)]
)
def test_agrees_with_xgboost_where_nothing_ties(depth: int, lam: float, gamma: float, weight: int) -> None:
    xgboost = pytest.importorskip("xgboost", reason="compares with xgboost, which is not installed")
    rng = np.random.default_rng(depth)
    # Two rows alone in a node are parted equally well by every feature, so leaves must be larger or trees shallower.
    # Single precision holds the features exactly; its sums are what the tolerance is for.
    X, queries = (rng.normal(size=(n, 5)).astype(np.float32).astype(float) for n in (80, 200))
    y = X[:, 0] - X[:, 1] ** 2 + rng.normal(size=80)
    ours = BoostedTreesRegressor(
        25, max_depth=depth, reg_lambda=lam, min_split_loss=gamma, min_child_weight=weight, learning_rate=0.3
    ).fit(X, y)
    theirs = xgboost.train(
        {
            "tree_method": "exact", "max_depth": depth, "eta": 0.3, "lambda": lam, "gamma": gamma,
            "min_child_weight": weight, "base_score": ours.base_, "nthread": 1,
        },
        xgboost.DMatrix(X, y, nthread=1),
        25,
    )  # fmt: skip
    difference = np.abs(ours.predict(queries) - theirs.predict(xgboost.DMatrix(queries, nthread=1)))
    assert np.quantile(difference, 0.9) < 1e-5 * y.std()
    # A test row between two values may fall on either side of a midpoint that single precision rounds.
    assert np.mean(difference > 1e-4 * y.std()) < 0.02


def test_the_order_of_rows_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    X, y = table(rng, 32, "one-hot")  # integer targets, so that their mean is exact
    queries = table(rng, 40, "one-hot")[0]
    model = BoostedTreesRegressor(max_depth=4)
    expected = model.fit(X, y).predict(queries)
    for _ in range(5):
        order = rng.permutation(len(y))
        assert np.array_equal(model.fit(X[order], y[order]).predict(queries), expected)


def test_equal_splits_go_to_the_lowest_feature_then_the_lowest_threshold() -> None:
    X = np.array([[7.0, 0, 1, 0], [7, 1, 0, 1], [7, 2, 0, 2], [7, 3, 1, 3]])
    model = BoostedTreesRegressor(1, learning_rate=1.0, max_depth=1, reg_lambda=0.0)
    # The outer rows differ from the inner ones: only the third feature tells them apart.
    assert model.fit(X, [1, 0, 0, 1]).predict([[0, 9, 0, 9], [0, 0, 1, 0]]).tolist() == [0, 1]
    # A single row at either end is equally good: the lower threshold, 0.5, of the second feature wins.
    model.fit(X, [1, 0, 0, 1])
    assert (model._feature[0, 0], model._threshold[0, 0]) == (2, 0.5)
    model.fit(X[:, :2], [1, 0, 0, 1])
    assert (model._feature[0, 0], model._threshold[0, 0]) == (1, 0.5)
    model.fit(X[:, [1, 3]], [1, 1, 0, 0])
    assert (model._feature[0, 0], model._threshold[0, 0]) == (0, 1.5)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, np.nextafter(1.0, 2)),
        (0.0, 5e-324),
        (-5e-324, 5e-324),
        (-1.7e308, 1.7e308),
        (1.7e308, 1.79e308),
        (-0.0, 1.0),
    ],
)
def test_neighbouring_values_are_parted_however_close_or_far(low: float, high: float) -> None:
    X = np.array([[low], [high], [low], [high]])
    model = BoostedTreesRegressor(1, learning_rate=1.0, max_depth=1, reg_lambda=0.0).fit(X, [1.0, 2.0, 1.0, 2.0])
    assert model.predict(X).tolist() == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize("value", [0.0, 0.1, -3e-310, 1e150])
@pytest.mark.parametrize("n_rows", [1, 7])
def test_constant_targets_are_predicted(value: float, n_rows: int) -> None:
    X = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    model = BoostedTreesRegressor(reg_lambda=0.0).fit(X, np.full(n_rows, value))
    assert model.predict(X) == pytest.approx(value, rel=1e-14, abs=0)
    assert model.n_estimators_ < model.n_estimators


def test_constant_features_leave_the_mean() -> None:
    model = BoostedTreesRegressor().fit(np.ones((4, 2)), [1, 2, 3, 6])
    assert model.predict([[0.0, 5.0]]).tolist() == [3.0]


@pytest.mark.parametrize("scale", [2.0**-400, 2.0**-3, 2.0**60, 2.0**480])
def test_predictions_scale_with_the_targets(scale: float) -> None:
    X, y = table(np.random.default_rng(3), 40, "continuous")
    model = BoostedTreesRegressor(30, max_depth=3)
    expected = model.fit(X, y).predict(X)
    assert np.array_equal(model.fit(X, scale * y).predict(X), scale * expected)


def test_the_model_interpolates_when_nothing_holds_it_back() -> None:
    X, y = table(np.random.default_rng(4), 50, "continuous")
    model = BoostedTreesRegressor(1, learning_rate=1.0, max_depth=9, reg_lambda=0.0).fit(X[:9], y[:9])
    assert model.predict(X[:9]) == pytest.approx(y[:9], abs=1e-12)


def test_a_loss_that_no_split_saves_leaves_the_mean_and_ends_early() -> None:
    X, y = table(np.random.default_rng(5), 30, "continuous")
    model = BoostedTreesRegressor(500, min_split_loss=1e6, reg_lambda=0.0).fit(X, y)
    assert model.predict(X) == pytest.approx(y.mean())
    assert model.n_estimators_ < 500
    assert np.ptp(model.set_params(min_split_loss=0.0).fit(X, y).predict(X)) > 0


def test_target_transforms_learn_on_their_scale() -> None:
    X, y = table(np.random.default_rng(6), 40, "continuous")
    raw = BoostedTreesRegressor(30).fit(X, y).predict(X)
    scales: list[tuple[TargetTransform, Any]] = [("log", np.exp), ("log1p", np.expm1)]
    for name, forward in scales:
        model = BoostedTreesRegressor(30, target_transform=name)
        assert model.fit(X, forward(y)).predict(X) == pytest.approx(forward(raw), rel=1e-6)


@pytest.mark.parametrize(("name", "target"), [("log", 0.0), ("log1p", -1.0), (None, 1e151)])
def test_targets_that_cannot_be_learned_are_named(name: Any, target: float) -> None:
    with pytest.raises(DataError, match="the target of row 1"):
        BoostedTreesRegressor(target_transform=name).fit([[0.0], [1.0]], [1.0, target])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_estimators", 0),
        ("max_depth", 0),
        ("max_depth", 10),
        ("learning_rate", 0.0),
        ("learning_rate", 1.5),
        ("reg_lambda", -1.0),
        ("reg_lambda", np.inf),
        ("min_split_loss", np.nan),
        ("min_child_weight", -1.0),
        ("target_transform", "sqrt"),
        ("target_transform", ["log"]),
    ],
)
def test_parameters_that_are_not_allowed_are_named(parameter: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=parameter):
        clone(BoostedTreesRegressor()).set_params(**{parameter: value}).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize("parameter", ["n_estimators", "max_depth"])
@pytest.mark.parametrize("value", [2.5, True])
def test_counts_must_be_integers(parameter: str, value: Any) -> None:
    with pytest.raises(ParameterTypeError, match=parameter):
        BoostedTreesRegressor().set_params(**{parameter: value}).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize("parameter", ["learning_rate", "reg_lambda", "mixup"])
@pytest.mark.parametrize("value", ["x", None])
def test_rates_must_be_numbers(parameter: str, value: Any) -> None:
    with pytest.raises(ParameterTypeError, match=f"{parameter}={value!r} must be a number"):
        BoostedTreesRegressor().set_params(**{parameter: value}).fit([[0.0], [1.0]], [0.0, 1.0])
