"""Trusted rows in folds: what is certified of them, and what is scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from poisonproof import CertifiedClassifier, CertifiedNeighborsRegressor, CertifiedRegressor
from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.holdout import HoldOut, scaled_radius

RNG = np.random.default_rng(0)
X = RNG.random((120, 2))
Y = 1 + X[:, 0]


def test_each_fold_is_certified_by_a_model_of_the_others() -> None:
    rows = HoldOut.folded(X, Y, radius=3, within=0.1, n_folds=4)
    found = rows.withstood(CertifiedNeighborsRegressor(9))
    for fold in range(4):
        held = rows.folds == fold
        model = CertifiedNeighborsRegressor(9).fit(X[~held], Y[~held])
        radius = model.certify(X[held], 0.9 * Y[held], 1.1 * Y[held]).radius
        np.testing.assert_array_equal(found[held], np.minimum(1, (radius + 1) / 4))
    assert 0 < np.mean(found >= 1) < 1


def test_folds_do_not_depend_on_the_order_of_rows() -> None:
    shuffled = RNG.permutation(120)
    rows = HoldOut.folded(X, Y, radius=3, within=0.1)
    others = HoldOut.folded(X[shuffled], Y[shuffled], radius=3, within=0.1)
    model = CertifiedRegressor(Ridge(), 9)
    np.testing.assert_array_equal(rows.withstood(model)[shuffled], others.withstood(model))


def test_held_rows_are_certified_by_a_model_of_the_known_ones() -> None:
    rows = HoldOut.split(X[:80], Y[:80], X[80:], Y[80:], radius=2, within=0.1)
    radius = CertifiedNeighborsRegressor(9).fit(X[:80], Y[:80]).certify(X[80:], 0.9 * Y[80:], 1.1 * Y[80:]).radius
    np.testing.assert_array_equal(rows.withstood(CertifiedNeighborsRegressor(9)), np.minimum(1, (radius + 1) / 3))
    assert (rows.n_certified, rows.n_known) == (40, 80)


def test_blocks_keep_their_size_and_the_same_share_of_votes_must_hold() -> None:
    rows = HoldOut.folded(X, Y, radius=25, within=0.1, n_rows=1200)
    model, needed = rows.scaled(CertifiedRegressor(Ridge(), 151), 96)
    assert model.n_partitions == 13  # 151 * 96 / 1200 = 12.08
    assert needed == scaled_radius(25, 13 / 151) == 2
    assert rows.scaled(CertifiedNeighborsRegressor(151), 96)[0].n_neighbors == 13
    assert rows.scaled(CertifiedNeighborsRegressor(1199), 96)[0].n_neighbors == 95  # no more than there are rows


def test_an_even_number_is_not_made_to_pass_for_an_odd_one() -> None:
    rows = HoldOut.folded(X, Y, radius=2, within=0.1, n_rows=1200)
    with pytest.raises(ParameterError, match="must be odd"):
        rows.withstood(CertifiedNeighborsRegressor(150))
    classes = CertifiedClassifier(n_partitions=150, classes=["a", "b"])
    assert rows.scaled(classes, 96)[0].n_partitions == 14


@pytest.mark.parametrize("count", [0, -3, True, None, "5", 2.5])
@pytest.mark.parametrize(
    ("kind", "name"), [(CertifiedNeighborsRegressor, "n_neighbors"), (CertifiedRegressor, "n_partitions")]
)
def test_what_is_no_count_is_refused_as_the_model_refuses_it(kind: Any, name: str, count: Any) -> None:
    rows = HoldOut.folded(X, Y, radius=2, within=0.1, n_rows=1200)
    with pytest.raises((ParameterError, ParameterTypeError), match=f"{name}={count!r}"):
        rows.withstood(kind(**{name: count}))


def test_no_model_is_scaled_down_to_fewer_votes_than_tell_models_apart() -> None:
    rows = HoldOut.folded(X, Y, radius=25, within=0.1, n_rows=12_000, fewest=11)
    for count, fewer in ((51, 11), (1001, 11), (2001, 17), (7, 7)):
        model, needed = rows.scaled(CertifiedNeighborsRegressor(count), 96)
        assert model.n_neighbors == fewer
        assert (2 * needed + 1) / fewer >= 51 / count - 1e-12  # at least the share of votes that must hold in the end


@pytest.mark.filterwarnings("ignore:5 of 5 were refused")
def test_refusals_are_errors_only_where_they_are_asked_to_be() -> None:
    rows = HoldOut.folded(X, Y, radius=1, within=0.1)
    refused = CertifiedRegressor(Ridge(alpha=-1), 5)
    assert (rows.withstood(refused) == 0).all()
    with pytest.raises(DataError, match=r"all 5 submodels were refused by the estimator \("):
        rows.withstood(refused, refuse=True)
    assert (rows.withstood(CertifiedRegressor(Ridge(), 5), refuse=True) > 0).any()


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(DataError, match="3 trusted rows cannot be cut into 5 folds"):
        HoldOut.folded(X[:3], Y[:3], radius=1)
    with pytest.raises(DataError, match="fewer than two folds"):
        HoldOut.folded(np.ones((9, 2)), Y[:9], radius=1)
    with pytest.raises(ParameterError, match="n_folds=1 must be at least 2"):
        HoldOut.folded(X, Y, radius=1, n_folds=1)
    with pytest.raises(ParameterError, match="radius=-1 must be at least 0"):
        HoldOut.folded(X, Y, radius=-1)
    with pytest.raises(ParameterError, match="fewest=0 must be at least 1"):
        HoldOut.folded(X, Y, radius=1, fewest=0)
    with pytest.raises(ParameterError, match="n_rows=100 must be at least the 120"):
        HoldOut.folded(X, Y, radius=1, n_rows=100)
    with pytest.raises(ParameterError, match="within is missing"):
        HoldOut.folded(X, Y, radius=1).withstood(CertifiedNeighborsRegressor())
    incidence = CertifiedRegressor(Ridge(), 5, layout=np.eye(5, dtype=bool))
    with pytest.raises(ParameterError, match="layout is a matrix"):
        HoldOut.folded(X, Y, radius=1, within=0.1, n_rows=500).withstood(incidence)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"X": Y}, r"X has shape \(120,\); it must be \(n_rows, n_features\)"),
        ({"y": Y[:-1]}, r"y has shape \(119,\); it must be \(120,\)"),
        ({"y": np.append(Y, 1)}, r"y has shape \(121,\)"),
        ({"y": Y[:, None]}, r"y has shape \(120, 1\)"),
    ],
)
@pytest.mark.parametrize("within", [None, 0.1])
def test_rows_and_targets_belong_together(change: dict[str, Any], says: str, within: float | None) -> None:
    rows = {"X": X, "y": Y} | change
    with pytest.raises(DataError, match=says):
        HoldOut.folded(**rows, radius=1, within=within)
    with pytest.raises(DataError, match=says):
        HoldOut.split(**rows, X_held=X, y_held=Y, radius=1, within=within)
    with pytest.raises(DataError, match=says.replace("X has", "X_held has").replace("y has", "y_held has")):
        HoldOut.split(X, Y, rows["X"], rows["y"], radius=1, within=within)
    with pytest.raises(DataError, match=says):
        HoldOut(**rows, folds=np.arange(120) % 2, radius=1)


def test_columns_have_an_entry_for_each_row() -> None:
    folds = np.arange(120) % 2
    with pytest.raises(DataError, match=r"folds has shape \(119,\)"):
        HoldOut(X, Y, folds[1:], 1)
    with pytest.raises(DataError, match=r"low has shape \(119,\)"):
        HoldOut(X, Y, folds, 1, Y[1:], Y)
    with pytest.raises(DataError, match=r"high has shape \(1,\)"):
        HoldOut(X, Y, folds, 1, Y, Y[:1])
    with pytest.raises(DataError, match="X has 2 features and X_held 1"):
        HoldOut.split(X, Y, X[:, :1], Y, radius=1)


@pytest.mark.parametrize("value", [2.5, 200.0, True, "3"])
@pytest.mark.parametrize("name", ["radius", "n_rows", "n_folds", "fewest"])
def test_counts_are_whole_numbers(name: str, value: Any) -> None:
    with pytest.raises(ParameterTypeError, match=f"{name}=.* must be an integer"):
        HoldOut.folded(X, Y, **{"radius": 1, name: value})
    whole: dict[str, Any] = {"radius": np.int64(1), name: np.int64(200) if name == "n_rows" else np.int64(3)}
    assert HoldOut.folded(X, Y, **whole, within=0.1).withstood(CertifiedNeighborsRegressor(9)).any()


def test_labels_need_no_bounds() -> None:
    labels = np.where(X[:, 0] > 0.5, "a", "b")
    model = CertifiedClassifier(n_partitions=5, classes=["a", "b"])
    assert np.mean(HoldOut.folded(X, labels, radius=1).withstood(model) >= 1) > 0.5
