"""Ways in which a certificate could have claimed too much, or an answer have hung on its company."""

from __future__ import annotations

import random
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.ensemble import StackingRegressor
from sklearn.linear_model import LassoCV, LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from poisonproof import (
    CertifiedClassifier,
    CertifiedForestRegressor,
    CertifiedKernelClassifier,
    CertifiedKernelRegressor,
    CertifiedNeighborsClassifier,
    CertifiedNeighborsRegressor,
    CertifiedRegressor,
    KernelRidge,
    store,
)
from poisonproof.errors import DataError, FileError, ParameterError, ParameterTypeError
from poisonproof.store.manifest import sealed, unsealed
from poisonproof.votes import Submodel, fit_submodel, make_deterministic, where_possible

if TYPE_CHECKING:
    from pathlib import Path

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3))
Y = X @ [1.0, -2.0, 0.5] + np.sin(5 * X[:, 0]) + 0.5 * rng.normal(size=90)
QUERIES = rng.normal(size=(12, 3))

SPLITTERS = [
    LassoCV(cv=KFold(3, shuffle=True)),
    GridSearchCV(Ridge(), {"alpha": np.logspace(-3, 3, 9)}, cv=KFold(3, shuffle=True)),
    StackingRegressor([("tree", DecisionTreeRegressor(max_depth=3)), ("ridge", Ridge())], cv=KFold(3, shuffle=True)),
]


class GlobalDice(RegressorMixin, BaseEstimator):
    """Draws from the streams that no parameter seeds."""

    def fit(self, _X: np.ndarray, _y: np.ndarray) -> GlobalDice:
        self.level_ = np.random.normal() + random.random()  # noqa: NPY002, S311  the point of it
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self.level_)


class Choosy(ClassifierMixin, RegressorMixin, BaseEstimator):
    """Refuses any batch with a row whose first feature exceeds 100."""

    def fit(self, _X: np.ndarray, y: np.ndarray) -> Choosy:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        if np.any(X[:, 0] > 100):
            raise ValueError("unknown category")
        return X[:, 0]


@pytest.mark.parametrize("estimator", [GlobalDice(), *SPLITTERS], ids=lambda one: type(one).__name__)
def test_a_fit_is_a_function_of_its_rows_where_no_seed_is_a_parameter(estimator: Any) -> None:
    def votes(rows: np.ndarray, targets: np.ndarray, before: int) -> tuple[CertifiedRegressor, np.ndarray]:
        np.random.seed(before)  # noqa: NPY002  the stream it must not hang on
        random.seed(before)
        model = CertifiedRegressor(estimator, n_partitions=3).fit(rows, targets)
        return model, model.votes(QUERIES)

    model, first = votes(X, Y, 1)
    assert np.array_equal(votes(X[::-1], Y[::-1], 2)[1], first)
    # A submodel that is fitted after another one must not feel what that one drew.
    kept = np.arange(len(X)) != np.argmin(model.blocks(X))
    assert np.array_equal(votes(X[kept], Y[kept], 3)[1][1:], first[1:])


def test_fitting_leaves_the_callers_random_numbers_and_splitters_alone() -> None:
    np.random.seed(7)  # noqa: NPY002  the caller's
    random.seed(7)
    expected = np.random.random(), random.random()  # noqa: NPY002, S311  likewise
    np.random.seed(7)  # noqa: NPY002  likewise
    random.seed(7)
    splitter = KFold(3, shuffle=True)
    template = make_deterministic(LassoCV(cv=splitter))
    CertifiedRegressor(LassoCV(cv=splitter), 3).fit(X, Y).predict(X[:2])
    assert (np.random.random(), random.random()) == expected  # noqa: NPY002, S311  likewise
    assert splitter.random_state is None
    assert template.cv.random_state == 0


@pytest.mark.parametrize(
    "estimator",
    [Ridge(copy_X=False), LinearRegression(copy_X=False), make_pipeline(StandardScaler(copy=False), Ridge())],
)
def test_an_estimator_cannot_write_into_the_rows_it_is_given(estimator: Any) -> None:
    rows, targets = X + 50, Y.copy()
    rows.flags.writeable = targets.flags.writeable = False  # as large arrays are in another process
    submodel = fit_submodel(estimator, 0.0, rows, targets)
    assert submodel.reason is None
    assert np.array_equal(rows, X + 50)


def test_costs_do_not_depend_on_whether_the_estimator_works_in_place() -> None:
    for max_cost in (2, 3):
        reaches = [
            CertifiedRegressor(Ridge(copy_X=copy), n_partitions=3, max_cost=max_cost, threat="delete")
            .fit(X + 50, Y)
            .interval(QUERIES + 50, 2)
            for copy in (True, False)
        ]
        assert np.array_equal(reaches[0].upper, reaches[1].upper)
        assert np.array_equal(reaches[0].lower, reaches[1].lower)


class Hungry(RegressorMixin, BaseEstimator):
    """Runs out of memory where it is told to."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fit(self, _X: np.ndarray, _y: np.ndarray) -> Hungry:
        if self.where == "fit":
            raise MemoryError
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        if self.where == "batch" or len(np.unique(X)) == 1:
            raise MemoryError
        raise ValueError("not these rows")


def test_running_out_of_memory_is_no_vote() -> None:
    with pytest.raises(MemoryError):
        fit_submodel(Hungry("fit"), 0.0, X, Y)
    for where in ("batch", "row"):
        submodel = fit_submodel(Hungry(where), 0.0, X, Y)
        with pytest.raises(MemoryError):
            submodel.vote(np.array([[1.0], [2.0]]))


def test_a_row_that_is_refused_leaves_the_others_as_they_are() -> None:
    rows = np.array([[1.0], [500.0], [-1.0], [500.0]])
    submodel = Submodel(Choosy().fit(rows, np.array([3.0, 4.0])), 9.0)
    together = submodel.vote(rows)
    assert together[[1, 3]].tolist() == [9.0, 9.0]
    assert together.tolist() == [float(submodel.vote(row[None])[0]) for row in rows]
    assert together[0] != 9.0


@pytest.mark.parametrize("rule", ["plurality", "runoff"])
def test_a_row_that_a_classifier_refuses_votes_the_declared_class_alone(rule: Any) -> None:
    labels = (X[:, 0] > 0).astype(int)
    model = CertifiedClassifier(Choosy(), 3, rule=rule, classes=[0, 1], empty_value=1).fit(X, labels)
    rows = np.array([[2.0, 0, 0], [500.0, 0, 0], [-2.0, 0, 0]])
    votes = model.votes(rows)
    assert votes[:, 1].tolist() == [1, 1, 1]
    apart = np.concatenate([model.votes(row[None]) for row in rows], axis=1)
    assert votes.tolist() == apart.tolist()


def test_where_possible_keeps_answers_with_several_numbers() -> None:
    def halves(rows: np.ndarray) -> np.ndarray:
        if np.any(rows < 0):
            raise ValueError
        return np.column_stack([rows[:, 0] / 2, rows[:, 0]])

    found = where_possible(halves, np.array([[4.0], [-1.0]]), np.array([7.0, 8.0]))
    assert found.tolist() == [[2.0, 4.0], [7.0, 8.0]]


@pytest.mark.parametrize(
    "change",
    [{"max_cost": 3}, {"threat": "insert"}, {"partition_by": "row"}, {"key": 5}],
    ids=lambda one: next(iter(one)),
)
def test_a_fitted_model_is_not_read_with_other_settings(change: dict[str, Any]) -> None:
    # Costs up to 3 were never prepared, and a changed way of cutting rows changes what a modification touches.
    model = CertifiedRegressor(Ridge(), 3, max_cost=2, threat="delete").fit(X, Y).set_params(**change)
    with pytest.raises(ParameterError, match="fit it again"):
        model.certify(QUERIES, within=1.0)


def test_a_fitted_classifier_is_not_read_with_other_classes() -> None:
    labels = (X[:, 0] > 0).astype(int)
    model = CertifiedClassifier(n_partitions=3).fit(X, labels).set_params(classes=np.array([0, 1]))
    with pytest.raises(ParameterError, match=r"classes was None .* and is \[0, 1\] now"):
        model.predict(QUERIES)


@pytest.mark.parametrize(
    "model", [CertifiedClassifier(n_partitions=3), CertifiedNeighborsClassifier(1), CertifiedKernelClassifier()]
)
@pytest.mark.parametrize("numbers_declared", [True, False])
def test_a_number_is_not_the_word_it_is_spelled_like(model: Any, *, numbers_declared: bool) -> None:
    # Words sort otherwise than numbers, so places found by sorting one among the other are those of other labels.
    numbers = np.arange(40)
    labels = rng.choice(numbers, size=len(X))
    if numbers_declared:
        declared, given = numbers, labels.astype(str)
    else:
        declared, given = numbers.astype(str), labels
    with pytest.raises(DataError, match="classes"):
        model.set_params(classes=declared).fit(X, given)


ODD = {"layout": "paired", "spread": 2}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_partitions": 9},
        {"n_partitions": 5, "threat": "relabel", "partition_by": "row"},
        {"n_partitions": 5, "threat": "delete"},
        {"n_partitions": 5, "threat": "delete", "max_cost": 3, "offset": lambda rows: 0.3 * rows[:, 0]},
        {"n_partitions": 5, "threat": "delete", "max_cost": 2, **ODD},
        {"estimator": KernelRidge(target_range=(-9, 9)), "threat": "relabel", "max_cost": 3},
    ],
)
def test_an_interval_holds_its_budget_and_no_tighter_one_does(parameters: dict[str, Any], seed: int) -> None:
    chosen = np.random.default_rng(seed).permutation(len(X))[:40]
    model = CertifiedRegressor(**{"estimator": Ridge(0.1), **parameters}).fit(X[chosen], Y[chosen])
    for budget in range(4):
        band = model.interval(QUERIES, budget)
        bounded = np.isfinite(band.lower) | np.isfinite(band.upper)
        cert = model.certify(QUERIES, lower=band.lower, upper=band.upper)
        assert np.all((cert.radius >= budget)[bounded])
        finite = np.isfinite(band.lower)
        if finite.any():
            tighter = model.certify(QUERIES[finite], lower=np.nextafter(band.lower[finite], np.inf))
            assert np.all(tighter.radius < budget)
        finite = np.isfinite(band.upper)
        if finite.any():
            tighter = model.certify(QUERIES[finite], upper=np.nextafter(band.upper[finite], -np.inf))
            assert np.all(tighter.radius < budget)


def test_threads_of_one_process_do_not_draw_from_each_others_random_numbers() -> None:
    alone = CertifiedRegressor(SPLITTERS[0], n_partitions=9).fit(X, Y).votes(QUERIES)
    with parallel_config("threading", n_jobs=4):
        beside = CertifiedRegressor(SPLITTERS[0], n_partitions=9, n_jobs=4).fit(X, Y).votes(QUERIES)
    assert np.array_equal(alone, beside)


class Cutter:
    """A splitter whose class, like any class, is nobody's to change."""

    random_state = None


class Classy(RegressorMixin, BaseEstimator):
    def __init__(self, kind: type = Cutter) -> None:
        self.kind = kind


def test_a_class_among_the_parameters_is_not_seeded() -> None:
    make_deterministic(Classy())
    assert Cutter.random_state is None


@pytest.mark.parametrize("change", [{"threat": "insert"}, {"unit": "source"}, {"key": 9}, {"model": "Another"}])
def test_a_file_whose_manifest_speaks_of_another_model_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("skops", reason="model files need the io extra")
    path = tmp_path / "model.poisonproof"
    store.save(CertifiedRegressor(Ridge(), 3, threat="delete").fit(X, Y), path)
    manifest, payload = unsealed(path)
    path.write_bytes(sealed(replace(manifest, **change), payload))
    with pytest.raises(FileError, match=r"says that it holds .* and holds"):
        store.load(path)


OFFSETTERS = [
    CertifiedRegressor(Ridge(), 3),
    CertifiedNeighborsRegressor(3),
    CertifiedKernelRegressor(bandwidth=9.0),
    CertifiedForestRegressor(3, 2, ranges=(-4, 4)),
]


@pytest.mark.parametrize("model", OFFSETTERS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("n_rows", [4, 90, 300])
def test_an_offset_that_pools_rows_is_refused(model: Any, n_rows: int) -> None:
    # An inserted row would change the targets of all others, in every block.
    rows = np.random.default_rng(1).normal(size=(n_rows, 2))
    pooled = clone(model).set_params(offset=lambda block: block[:, 0] - block[:, 0].mean())
    with pytest.raises(DataError, match="depends on the rows beside it"):
        pooled.fit(rows, rows[:, 0])


@pytest.mark.parametrize("model", OFFSETTERS, ids=lambda one: type(one).__name__)
def test_an_offset_of_the_row_alone_is_taken(model: Any) -> None:
    rows = np.random.default_rng(1).normal(size=(301, 9))
    offset = clone(model).set_params(offset=lambda block: block @ np.arange(9.0) + np.exp(block[:, 3]))
    assert np.isfinite(offset.fit(rows, rows[:, 0]).predict(rows[:5])).all()


@pytest.mark.parametrize("model", OFFSETTERS, ids=lambda one: type(one).__name__)
def test_an_offset_gives_one_number_for_each_row(model: Any) -> None:
    with pytest.raises(DataError, match=r"offset of 128 rows has shape \(128, 3\); it must be \(128,\)"):
        clone(model).set_params(offset=lambda block: block).fit(X, Y)
    with pytest.raises(ParameterTypeError, match="offset=3 must be a function"):
        clone(model).set_params(offset=3).fit(X, Y)


def test_a_source_is_the_same_whatever_type_its_column_has_been_read_as() -> None:
    # A reader that guesses types gives numbers, and text as soon as one row has a name.
    spelled = np.array(
        ["007", "12", "1.50", "7.0", "-3", "1e3", "9007199254740993", "nan", "inf", "1e999", "a b", "", "9" * 400]
    )
    read = [7, 12, 1.5, 7.0, -3, 1000.0, 9007199254740993, "nan", "inf", "1e999", "a b", "", "9" * 400]
    rows = np.arange(2.0 * len(read)).reshape(-1, 2)
    model = CertifiedRegressor(Ridge(), 99, partition_by="source")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # most of the blocks are empty
        model.fit(rows, rows[:, 0], groups=spelled)
    as_read = np.empty(len(read), dtype=object)
    as_read[:] = read
    blocks = model.blocks(rows, groups=spelled)
    assert np.array_equal(blocks, model.blocks(rows, groups=as_read))
    assert blocks[0] == blocks[3]
    assert model.n_units_ == len(read) - 1
    assert len(np.unique(blocks)) > 6
