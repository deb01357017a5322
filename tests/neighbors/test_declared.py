"""A fitted model is read with the settings it was fitted with, or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from poisonproof.errors import DataError, ParameterError
from poisonproof.forest import CertifiedForestRegressor
from poisonproof.neighbors import (
    CertifiedKernelClassifier,
    CertifiedKernelRegressor,
    CertifiedNeighborsClassifier,
    CertifiedNeighborsRegressor,
    CertifiedRadiusClassifier,
    CertifiedRadiusRegressor,
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
    (CertifiedKernelClassifier(), "threat", "insert"),
    (CertifiedForestRegressor(3), "depth", 2),
    (CertifiedForestRegressor(3), "n_trees", 5),
    (CertifiedForestRegressor(3), "threat", "delete"),
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


def test_equal_settings_are_the_same() -> None:
    model = CertifiedNeighborsClassifier(5, classes=["high", "low"]).fit(X, LABELS)
    model.set_params(classes=np.array(["high", "low"]), n_neighbors=np.int64(5))
    assert model.certify(X).radius.shape == (30,)


@pytest.mark.parametrize("kind", [CertifiedNeighborsClassifier, CertifiedRadiusClassifier])
def test_errors_call_labels_what_users_call_them(kind: Any) -> None:
    with pytest.raises(DataError, match="'high'") as refused:
        kind(classes=["low"]).fit(X, LABELS)
    assert "np.str_" not in str(refused.value)
