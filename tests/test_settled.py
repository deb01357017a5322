"""A fitted model is read with the settings it was fitted with, or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from poisonproof.ensemble import CertifiedClassifier, CertifiedRegressor
from poisonproof.errors import DataError, ParameterError
from poisonproof.forest import CertifiedForestRegressor
from poisonproof.neighbors import (
    CertifiedKernelClassifier,
    CertifiedKernelRegressor,
    CertifiedNeighborsClassifier,
    CertifiedNeighborsRegressor,
    CertifiedRadiusClassifier,
    CertifiedRadiusRegressor,
    Similarity,
)

RNG = np.random.default_rng(0)
X = RNG.random((30, 2))
LABELS = np.array(["low", "high"])[RNG.integers(0, 2, 30)]


def first(rows: np.ndarray) -> np.ndarray:
    return rows[:, 0]


CHANGES: list[tuple[Any, str, Any]] = [
    # With an even number of neighbours no vote is the median, so its certificate would be false.
    (CertifiedNeighborsRegressor(5), "n_neighbors", 4),
    (CertifiedNeighborsRegressor(5), "offset", first),
    (CertifiedNeighborsClassifier(5), "n_neighbors", 31),
    (CertifiedNeighborsClassifier(5), "classes", ["high", "low"]),
    (CertifiedNeighborsClassifier(5), "threat", "delete"),
    (CertifiedRadiusRegressor(0.3), "radius", 0.2),
    (CertifiedRadiusRegressor(0.3, offset=first), "offset", None),
    (CertifiedRadiusClassifier(0.3), "classes", ["high", "low"]),
    (CertifiedKernelRegressor(), "empty_value", 3.0),
    # A certificate says which similarity it rests on.
    (CertifiedKernelRegressor("box"), "similarity", "gaussian"),
    (CertifiedKernelRegressor([(1.0, "box"), (0.5, Similarity("box", 0.1))]), "similarity", "box"),
    (CertifiedKernelClassifier(), "threat", "insert"),
    (CertifiedForestRegressor(3), "depth", 2),
    (CertifiedForestRegressor(3), "n_trees", 5),
    (CertifiedForestRegressor(3), "threat", "delete"),
    (CertifiedRegressor(DummyRegressor(), 3), "threat", "delete"),
    (CertifiedRegressor(DummyRegressor(), 3, threat="delete"), "max_cost", 2),
    (CertifiedClassifier(DummyClassifier(), 3), "rule", "runoff"),
]


@pytest.mark.parametrize(("model", "name", "value"), CHANGES)
def test_a_fitted_model_refuses_other_settings(model: Any, name: str, value: Any) -> None:
    targets = LABELS if "Classifier" in type(model).__name__ else X[:, 1]
    model.fit(X, targets)
    before = getattr(model, name)
    model.set_params(**{name: value})
    for ask in (model.predict, model.certify):
        with pytest.raises(ParameterError, match=f"{name} was .* when the model was fitted .*; fit it again"):
            ask(X)
    model.set_params(**{name: before}).predict(X)
    model.fit(X, targets).predict(X)


def undefined_below_zero(rows: np.ndarray) -> np.ndarray:
    return np.sqrt(np.where(rows[:, 0] < 0, np.nan, rows[:, 0]))


# Each fits the table above and refuses one of more rows, some of them negative, with other labels.
FAILING: list[tuple[Any, dict[str, Any]]] = [
    (CertifiedNeighborsRegressor(5, offset=undefined_below_zero), {}),
    (CertifiedNeighborsRegressor(5), {"weights": [1.0] * 3}),
    (CertifiedNeighborsClassifier(5), {"ranges": [(0.0, 1.0)]}),
    (CertifiedRadiusRegressor(0.3), {"empty_value": 7.0, "weights": [1.0] * 3}),
    (CertifiedRadiusClassifier(0.3), {"ranges": [(0.0, 1.0)]}),
    (CertifiedKernelClassifier(), {"empty_value": 3}),
    (CertifiedForestRegressor(3, offset=undefined_below_zero), {"ranges": (0.0, 0.5)}),
    (CertifiedRegressor(DummyRegressor(), 3, offset=undefined_below_zero), {}),
    # Costs would be read that nobody has computed.
    (CertifiedRegressor(DummyRegressor(), 1, threat="delete", max_cost=2), {"max_cost": 5}),
    (CertifiedClassifier(DummyClassifier(), 3), {"partition_by": "source"}),
]


@pytest.mark.parametrize(("model", "changes"), FAILING)
def test_a_fit_that_fails_leaves_no_model(model: Any, changes: dict[str, Any]) -> None:
    """Or it would predict one table's rows with another one's labels, classes or splits."""
    classifies = "Classifier" in type(model).__name__
    table = (X, LABELS if classifies else X[:, 1])
    other = np.concatenate([X, X - 1]), np.array(["east", "west"] * 30) if classifies else np.arange(60.0)
    model.fit(*table)
    model.set_params(**changes)
    with pytest.raises((DataError, ParameterError)):
        model.fit(*other)
    for ask in (model.predict, model.certify, check_is_fitted):
        with pytest.raises(NotFittedError):
            ask(X if ask is not check_is_fitted else model)


def test_settings_changed_in_place_are_refused() -> None:
    classes = ["high", "low"]
    model = CertifiedNeighborsClassifier(5, classes=classes).fit(X, LABELS)
    classes.reverse()
    with pytest.raises(ParameterError, match="classes was"):
        model.certify(X)


@pytest.mark.parametrize("model", [each for each, _ in FAILING])
def test_cells_that_are_no_numbers_are_named_in_one_sentence(model: Any) -> None:
    table = X, LABELS if "Classifier" in type(model).__name__ else X[:, 1]
    model.set_params(**type(model)().get_params()).fit(*table)
    for cell, said in ((np.nan, "NaN"), (-np.inf, r"infinity \(inf\)")):
        rows = X.copy()
        rows[4, 1] = cell
        for ask in (lambda wrong: model.fit(wrong, table[1]), model.predict, model.certify):
            model.fit(*table)
            with pytest.raises(DataError, match=f"^X contains {said} in row 4, column 1; .* Schema; .*$"):
                ask(rows)


def test_equal_settings_are_the_same() -> None:
    model = CertifiedNeighborsClassifier(5, classes=["high", "low"]).fit(X, LABELS)
    model.set_params(classes=np.array(["high", "low"]), n_neighbors=np.int64(5))
    assert model.certify(X).radius.shape == (30,)


@pytest.mark.parametrize("kind", [CertifiedNeighborsClassifier, CertifiedRadiusClassifier])
def test_errors_call_labels_what_users_call_them(kind: Any) -> None:
    with pytest.raises(DataError, match="'high'") as refused:
        kind(classes=["low"]).fit(X, LABELS)
    assert "np.str_" not in str(refused.value)
