"""One odd label must not change what everybody else's is called, nor where it stands among the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from poisonproof import (
    CertifiedClassifier,
    CertifiedForestRegressor,
    CertifiedKernelClassifier,
    CertifiedKernelRegressor,
    CertifiedNeighborsClassifier,
    CertifiedNeighborsRegressor,
    CertifiedRadiusClassifier,
    CertifiedRadiusRegressor,
    CertifiedRegressor,
)
from poisonproof.errors import DataError, ParameterError
from poisonproof.labels import classes_among, codes_of, spelling

if TYPE_CHECKING:
    from collections.abc import Callable

RETYPED = (
    [True, False, True],
    [1, 0, 1],
    [1.0, 0.0, 1.0],
    ["1", "0", "1"],
    ["1.0", "0.0", "1.0"],
    ["True", "False", "True"],
)


@pytest.mark.parametrize("labels", RETYPED, ids=str)
def test_a_label_has_one_name_in_every_type(labels: list[Any]) -> None:
    assert [spelling(label) for label in labels] == ["1", "0", "1"]
    assert [spelling(label) for label in np.asarray(labels)] == ["1", "0", "1"]


def test_what_is_no_number_is_its_own_name() -> None:
    for text in ("spam", "", "1e999", "12345e678", "nan", "inf", "1,5"):
        assert spelling(text) == text
    assert spelling(2**60 + 1) == spelling(str(2**60 + 1)) == str(2**60 + 1)
    with pytest.raises(DataError, match="several integers"):
        spelling(2.0**60)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT])
@pytest.mark.parametrize(
    "model", [CertifiedClassifier, CertifiedNeighborsClassifier, CertifiedRadiusClassifier, CertifiedKernelClassifier]
)
def test_a_missing_label_is_said_to_be_missing(model: Any, missing: Any) -> None:
    X, labels = np.arange(20.0).reshape(-1, 1), ["a", "b"] * 9 + ["a", missing]
    for given in (labels, np.array(labels, dtype=object), pd.Series(labels, dtype=object)):
        with pytest.raises(DataError, match="y, row 19: the label is missing; give every row one"):
            model().fit(X, given)
    fitted = model().fit(X[:18], labels[:18])
    with pytest.raises(DataError, match="y, row 1: the label is missing"):
        fitted.certify(X[:2], np.array(["a", missing], dtype=object))


@pytest.mark.parametrize(
    "model",
    [
        CertifiedRegressor,
        CertifiedForestRegressor,
        CertifiedNeighborsRegressor,
        CertifiedRadiusRegressor,
        CertifiedKernelRegressor,
    ],
)
def test_a_regressor_refuses_labels_by_name(model: Any) -> None:
    X, labels = np.arange(20.0).reshape(-1, 1), ["1.5"] * 18 + ["lo", "hi"]
    for given in (labels, np.array(labels), np.array(labels, dtype=object), pd.Series(labels)):
        with pytest.raises(DataError, match="y, row 18: 'lo' is no number; give numbers, or use a classifier"):
            model().fit(X, given)


def test_classes_keep_their_order_in_every_type() -> None:
    numbers = classes_among(np.array([10, 2, -3, 2]), None)
    assert numbers.tolist() == [-3, 2, 10]
    assert classes_among(np.array([10, 2, -3, "x", "b"]), None).tolist() == ["-3", "2", "10", "b", "x"]
    for declared in (("b", "a"), {"b", "a"}):
        assert classes_among(np.array([0]), cast("Any", declared)).tolist() == ["a", "b"]
    assert codes_of(np.array(["2", "x", "-3"]), np.array(["-3", "2", "10", "x"]), "y", "").tolist() == [1, 3, 0]
    with pytest.raises(DataError, match="mixes labels"):
        classes_among(np.array([0]), cast("Any", ["a", None]))


def test_an_unknown_label_is_named_with_those_there_are() -> None:
    with pytest.raises(DataError, match=r"y contains 1 in row 0, which is not one of the classes \('0', '1'\); say it"):
        codes_of(np.array([1]), np.array(["0", "1"]), "y", "say it")


def poisoned(labels: list[Any], label: Any) -> np.ndarray:
    return np.asarray([*labels, label])


MODELS: dict[str, Callable[[], Any]] = {
    "kernel": CertifiedKernelClassifier,
    "near": lambda: CertifiedNeighborsClassifier(5),
    "radius": lambda: CertifiedRadiusClassifier(0.4),
    "blocks of neighbours": lambda: CertifiedClassifier(KNeighborsClassifier(2), 16),
    "blocks of ridge": lambda: CertifiedClassifier(RidgeClassifier(), 16),
    "rows of trees": lambda: CertifiedClassifier(DecisionTreeClassifier(max_depth=2), 15, partition_by="row"),
    "declared": lambda: CertifiedClassifier(
        DecisionTreeClassifier(max_depth=2), 15, partition_by="row", classes=[0, 1, 2, 9, 10]
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("first", "second", "odd"), [(True, False, 2), (9, 10, "x"), (1, 2, "x"), (9, 10, 2.0), ("10", "9", "x")], ids=str
)
def test_one_row_of_another_type_breaks_no_certificate(name: str, first: Any, second: Any, odd: Any) -> None:
    if name == "declared" and isinstance(odd, str | bool):
        return
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)).round(1)
    labels = (
        np.where(rng.random(200) < 0.5, first, second).tolist()
        if not isinstance(first, str)
        else [first if left else second for left in rng.random(200) < 0.5]
    )
    rows = np.vstack([rng.normal(size=(60, 2)).round(1), X[:20]])
    before = MODELS[name]().fit(X, np.asarray(labels))
    certificate = before.certify(rows)
    for far in ([9.0, 9.0], [0.0, 0.0]):
        after = MODELS[name]().fit(np.vstack([X, [far]]), poisoned(labels, odd)).predict(rows)
        moved = np.array([spelling(a) != spelling(b) for a, b in zip(certificate.prediction, after, strict=True)])
        assert not (moved & (certificate.radius >= 1)).any()


def test_one_source_of_another_type_moves_no_other() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    y = 3 * X[:, 0] + 0.3 * rng.normal(size=200)
    sources: list[Any] = [10**18 + int(place) for place in rng.integers(0, 60, 200)]

    def fitted(more: list[Any]) -> CertifiedRegressor:
        model = CertifiedRegressor(Ridge(), 9, partition_by="source")
        return model.fit(
            np.vstack([X, *[[[0.0]]] * len(more)]), np.append(y, np.zeros(len(more))), groups=sources + more
        )

    band = fitted([]).interval(X[:20], 1)
    for odd in ("x", 0.5, 2**63, True):
        after = fitted([odd]).predict(X[:20])
        assert ((band.lower <= after) & (after <= band.upper)).all()
    with pytest.raises(DataError, match="several integers"):
        CertifiedRegressor(Ridge(), 9, partition_by="source").fit(X, y, groups=np.array(sources, dtype=float))


def test_weights_of_classes_need_declared_classes() -> None:
    X, y = np.arange(40.0)[:, None], np.repeat(["a", "b"], 20)
    weighed = RidgeClassifier(class_weight={"a": 2, "b": 1})
    with pytest.raises(
        ParameterError, match=r"class_weight=\{'a': 2, 'b': 1\} names classes; then declare all of them"
    ):
        CertifiedClassifier(weighed, 3).fit(X, y)
    model = CertifiedClassifier(weighed, 3, classes=["a", "b"]).fit(X, y)
    assert model.predict(X[[0, 39]]).tolist() == ["a", "b"]
