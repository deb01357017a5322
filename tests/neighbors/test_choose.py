"""Choosing a parameter on trusted rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.neighbors import (
    CertifiedNeighborsClassifier,
    CertifiedNeighborsRegressor,
    CertifiedRadiusRegressor,
    choose_parameter,
)

RNG = np.random.default_rng(0)
X = RNG.random((400, 1))
CURVE = np.sin(6 * X[:, 0]) + 0.05 * RNG.normal(size=400)
CANDIDATES = [11, 101, 401, 1601]


def share_certified(k: int, radius: int) -> float:
    """What the choice should predict: certified accuracy of a full-size model on fresh rows."""
    rng = np.random.default_rng(1)
    rows, fresh = rng.random((4000, 1)), rng.random((200, 1))
    model = CertifiedNeighborsRegressor(k).fit(rows, np.sin(6 * rows[:, 0]) + 0.05 * rng.normal(size=4000))
    truth = np.sin(6 * fresh[:, 0])
    return float((model.certify(fresh, lower=truth - 0.3, upper=truth + 0.3).radius >= radius).mean())


@pytest.mark.parametrize("radius", [1, 40, 120])
def test_the_choice_is_nearly_the_best_at_full_size(radius: int) -> None:
    model = CertifiedNeighborsRegressor()
    choice = choose_parameter(model, X, CURVE, CANDIDATES, radius=radius, n_rows=4000, within=0.3, relative=False)
    actual = [share_certified(k, radius) for k in CANDIDATES]
    assert actual[CANDIDATES.index(choice.value)] >= max(actual) - 0.05
    assert choice.certified.max() == choice.certified[CANDIDATES.index(choice.value)]


def test_larger_radii_want_more_neighbours() -> None:
    options: Any = {"n_rows": 4000, "within": 0.3, "relative": False}
    values = [
        choose_parameter(CertifiedNeighborsRegressor(), X, CURVE, CANDIDATES, radius=radius, **options).value
        for radius in (1, 120)
    ]
    assert values[0] < values[1]


def test_row_order_does_not_matter() -> None:
    shuffled = np.random.default_rng(2).permutation(400)
    options: Any = {"radius": 30, "n_rows": 4000, "within": 0.3, "relative": False}
    one = choose_parameter(CertifiedNeighborsRegressor(), X, CURVE, CANDIDATES, **options)
    two = choose_parameter(CertifiedNeighborsRegressor(), X[shuffled], CURVE[shuffled], CANDIDATES, **options)
    np.testing.assert_array_equal(one.certified, two.certified)


def test_classes_and_other_parameters() -> None:
    labels = np.where(X[:, 0] < 0.5, "low", "high")
    model = CertifiedNeighborsClassifier(classes=["low", "high"])
    choice = choose_parameter(model, X, labels, [5, 1201], radius=300, n_rows=4000)
    assert choice.value == 1201
    options: Any = {"radius": 30, "n_rows": 4000, "within": 0.3, "relative": False, "parameter": "radius"}
    assert choose_parameter(CertifiedRadiusRegressor(), X, CURVE, [1e-4, 0.05, 3.0], **options).value == 0.05


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"candidates": []}, ParameterError, "candidates is empty"),
        ({"candidates": [5, 8]}, ParameterError, "n_neighbors=8 must be odd .*use 7 or 9"),
        ({"candidates": ["many"]}, ParameterTypeError, "must be an integer"),
        ({"candidates": [4001]}, ParameterError, "n_neighbors=4001, but there will be n_rows=4000"),
        ({"radius": -1}, ParameterError, "at least 0"),
        ({"n_rows": 399}, ParameterError, "at least the 400"),
        ({"within": None}, ParameterError, "within is missing"),
        ({"X": X[:1], "y": CURVE[:1]}, DataError, "give more rows"),
        ({"X": X[:, 0]}, DataError, r"X has shape \(400,\); it must be \(n_rows, n_features\)"),
        ({"y": CURVE[1:]}, DataError, r"y has shape \(399,\); it must be \(400,\)"),
        ({"y": CURVE[:, None]}, DataError, r"y has shape \(400, 1\); it must be \(400,\)"),
        ({"radius": 3.0}, ParameterTypeError, "radius=3.0 must be an integer"),
        ({"n_rows": 4000.5}, ParameterTypeError, "n_rows=4000.5 must be an integer"),
        ({"n_folds": 2.5}, ParameterTypeError, "n_folds=2.5 must be an integer"),
    ],
)
def test_bad_questions(change: Any, error: type[Exception], says: str) -> None:
    question = {"X": X, "y": CURVE, "candidates": CANDIDATES, "radius": 3, "n_rows": 4000, "within": 0.3} | change
    with pytest.raises(error, match=says):
        choose_parameter(CertifiedNeighborsRegressor(), **question)
