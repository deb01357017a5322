from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.strategies import LEARNERS, random_table

from poisonproof import CertifiedRegressor
from poisonproof.errors import DataError, ParameterError, ParameterTypeError, ThreatError

RNG = np.random.default_rng(0)
X, Y = random_table(RNG, 120)
QUERIES = RNG.normal(size=(15, 2))


def fitted(**parameters: Any) -> CertifiedRegressor:
    return CertifiedRegressor(**({"n_partitions": 9} | parameters)).fit(X, Y)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(sorted(LEARNERS)), st.sampled_from(["features", "row"]))
def test_any_order_of_the_rows_gives_the_same_votes(seed: int, name: str, partition_by: Any) -> None:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    model = CertifiedRegressor(LEARNERS[name], 9, partition_by=partition_by)
    votes = clone(model).fit(X, Y).votes(QUERIES)
    assert np.array_equal(votes, clone(model).fit(X[order], Y[order]).votes(QUERIES))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(sorted(LEARNERS)), st.booleans())
def test_a_row_moves_the_votes_of_its_own_block_alone(seed: int, name: str, insert: bool) -> None:
    rng = np.random.default_rng(seed)
    model = CertifiedRegressor(LEARNERS[name], 9).fit(X, Y)
    if insert:
        row = rng.normal(size=2)
        changed_X, changed_Y = np.vstack([X, row]), np.append(Y, rng.normal(scale=100))
    else:
        gone = rng.integers(len(X))
        row, changed_X, changed_Y = X[gone], np.delete(X, gone, 0), np.delete(Y, gone)
    (block,) = model.blocks(row[None])
    votes, changed = model.votes(QUERIES), clone(model).fit(changed_X, changed_Y).votes(QUERIES)
    others = np.arange(9) != block
    assert np.array_equal(votes[others], changed[others])
    assert not np.array_equal(votes[block], changed[block]) or name in {"neighbour", "tree"}


def test_predictions_are_medians_of_the_votes_and_agree_with_the_certificate() -> None:
    model = fitted()
    assert np.array_equal(model.predict(QUERIES), np.median(model.votes(QUERIES), axis=0))
    assert np.array_equal(model.predict(QUERIES), model.certify(QUERIES, lower=0).prediction)
    assert np.array_equal(model.predict(QUERIES), model.interval(QUERIES, 1).prediction)


def test_processes_change_nothing() -> None:
    assert np.array_equal(fitted().votes(QUERIES), fitted(n_jobs=2).votes(QUERIES))


def test_many_rows_are_weighed_in_chunks_without_a_seam() -> None:
    queries = np.random.default_rng(3).normal(size=(1100, 2))
    model = fitted()
    whole = model.certify(queries, within=0.2)
    parts = [model.certify(queries[start : start + 100], within=0.2).radius for start in range(0, 1100, 100)]
    assert np.array_equal(whole.radius, np.concatenate(parts))


@pytest.mark.parametrize("max_cost", [1, 2])
def test_a_row_alone_has_the_radius_and_the_interval_it_has_among_others(max_cost: int) -> None:
    model = fitted(threat="delete", max_cost=max_cost)
    together, band = model.certify(QUERIES, within=0.3), model.interval(QUERIES, 3)
    for row in range(len(QUERIES)):
        alone, end = model.certify(QUERIES[row : row + 1], within=0.3), model.interval(QUERIES[row : row + 1], 3)
        assert (alone.radius[0], alone.attack[0]) == (together.radius[row], together.attack[row])
        # Ends at costs above one carry a margin for rounding, and differ within it.
        assert np.allclose([end.lower[0], end.upper[0]], [band.lower[row], band.upper[row]], rtol=0, atol=1e-9)


def test_within_is_a_distance_around_the_prediction() -> None:
    model = fitted()
    prediction = model.predict(QUERIES)
    relative = model.certify(QUERIES, within=0.5)
    assert np.array_equal(relative.radius, model.certify(QUERIES, relative.lower, relative.upper).radius)
    assert relative.upper is not None
    assert np.allclose(relative.upper - prediction, 0.5 * np.abs(prediction))
    absolute = model.certify(QUERIES, within=0.5, relative=False)
    assert absolute.upper is not None
    assert np.allclose(absolute.upper - prediction, 0.5)
    assert (relative.radius >= 0).all()


def test_two_sides_are_the_smaller_of_one() -> None:
    model = fitted()
    prediction = model.predict(QUERIES)
    both = model.certify(QUERIES, prediction - 0.3, prediction + 0.5).radius
    low = model.certify(QUERIES, lower=prediction - 0.3).radius
    high = model.certify(QUERIES, upper=prediction + 0.5).radius
    assert np.array_equal(both, np.minimum(low, high))


def test_costs_of_two_certify_more_deletions() -> None:
    unit = fitted(threat="delete").certify(QUERIES, within=0.5)
    weighted = fitted(threat="delete", max_cost=2).certify(QUERIES, within=0.5)
    assert (weighted.radius >= unit.radius).all()
    assert (weighted.radius > unit.radius).any()
    assert "costs ≤ 2" in weighted.method
    assert weighted.threat.moves == "delete"


def test_an_offset_is_learned_around_and_added_back() -> None:
    offset = _first_times_ten
    plain = CertifiedRegressor(DummyRegressor(), 9).fit(X, Y - 10 * X[:, 0])
    around = CertifiedRegressor(DummyRegressor(), 9, offset=offset).fit(X, Y)
    assert np.array_equal(around.votes(QUERIES), plain.votes(QUERIES) + 10 * QUERIES[:, 0])
    weighted = CertifiedRegressor(DummyRegressor(), 9, offset=offset, threat="delete", max_cost=2).fit(X, Y)
    assert (weighted.certify(QUERIES, within=0.5).radius >= 0).all()


def _first_times_ten(rows: np.ndarray) -> np.ndarray:
    return 10 * rows[:, 0]


def test_an_offset_must_be_finite() -> None:
    with pytest.raises(DataError, match=r"offset is .* in row"), np.errstate(invalid="ignore"):
        fitted(offset=lambda rows: np.sqrt(rows[:, 0]))


def test_sources_keep_together_and_count_as_one() -> None:
    groups = np.repeat([f"feed {i}" for i in range(30)], 4)
    model = CertifiedRegressor(n_partitions=9, partition_by="source").fit(X, Y, groups=groups)
    blocks = model.blocks(X, groups=groups)
    assert all(len(set(blocks[groups == name])) == 1 for name in set(groups))
    cert = model.certify(QUERIES[:1], within=1.0)
    assert cert.threat.unit == "source"
    assert "training source" in cert.summary(0)
    assert model.n_units_ == 30


@pytest.mark.parametrize(("partition_by", "expected"), [("features", 4), ("row", 2)])
def test_a_relabelled_row_that_is_hashed_with_its_label_touches_two_blocks(partition_by: Any, expected: int) -> None:
    model = fitted(threat="relabel", partition_by=partition_by)
    cert = model.certify(QUERIES, within=1e9)
    assert set(cert.radius) == {expected}
    assert set(cert.attack) == {expected + 1}


def test_relabelling_needs_the_label_to_find_the_block() -> None:
    model = fitted(partition_by="row")
    assert model.blocks(X, Y).shape == (120,)
    with pytest.raises(DataError, match="needs y"):
        model.blocks(X)


def test_deletions_of_everything_inside_are_unbreakable() -> None:
    model = CertifiedRegressor(DummyRegressor(), 5, threat="delete", empty_value=1.0, max_cost=2)
    with pytest.warns(UserWarning, match="more partitions than rows"):
        model.fit([[0.0], [1.0]], [1.0, 1.0])
    cert = model.certify([[0.0]], lower=0, upper=2)
    assert cert.unbreakable.all()
    assert cert.radius.tolist() == [2]
    assert "no modification" in cert.summary(0)


def test_more_partitions_than_rows_warns_and_votes_the_constant() -> None:
    with pytest.warns(UserWarning, match=r"submodels have no rows \(there are more partitions than rows\)"):
        model = CertifiedRegressor(n_partitions=301, empty_value=-4.0).fit(X, Y)
    assert (model.votes(QUERIES) == -4.0).any()


def test_unfittable_estimator_is_reported_not_raised() -> None:
    with pytest.warns(UserWarning, match="9 of 9 were refused by the estimator"):
        model = CertifiedRegressor(Ridge(alpha=-1.0), 9, empty_value=2.0).fit(X, Y)
    assert set(model.predict(QUERIES)) == {2.0}


def test_frames_give_the_same_votes_as_arrays() -> None:
    expected = fitted().votes(QUERIES)
    for frame in (pd.DataFrame, pl.DataFrame):
        columns = {"a": X[:, 0], "b": X[:, 1]}
        model = CertifiedRegressor(n_partitions=9).fit(frame(columns), Y)
        assert model.feature_names_in_.tolist() == ["a", "b"]
        assert np.array_equal(model.votes(frame({"a": QUERIES[:, 0], "b": QUERIES[:, 1]})), expected)


def test_pipelines_searches_clones_and_pickles() -> None:
    model = CertifiedRegressor(Ridge(), 5)
    pipe = make_pipeline(FunctionTransformer(), model).fit(X, Y)
    assert np.array_equal(pipe.predict(QUERIES), clone(model).fit(X, Y).predict(QUERIES))
    search = GridSearchCV(model, {"n_partitions": [3, 5], "estimator__alpha": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert set(search.best_params_) == {"n_partitions", "estimator__alpha"}
    again = pickle.loads(pickle.dumps(fitted(threat="delete", max_cost=2)))  # noqa: S301  our own bytes
    assert np.array_equal(
        again.certify(QUERIES, within=0.3).radius,
        fitted(threat="delete", max_cost=2).certify(QUERIES, within=0.3).radius,
    )


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_partitions": 4}, ParameterError, "n_partitions=4 must be odd so that the median is a vote; use 3 or 5"),
        ({"n_partitions": 0}, ParameterError, "n_partitions=0 must be from 1 to 10,000,000"),
        ({"n_partitions": 3.0}, ParameterTypeError, "n_partitions=3.0 must be an integer"),
        ({"partition_by": "index"}, ParameterError, "partition_by='index' is unknown"),
        ({"threat": "poison"}, ParameterError, "threat='poison' is unknown"),
        ({"max_cost": 0}, ParameterError, "max_cost=0 must be from 1"),
        ({"max_cost": 1.5}, ParameterTypeError, "max_cost=1.5 must be an integer"),
        ({"max_cost": 2, "estimator": DummyRegressor()}, ThreatError, "threat='delete'"),
        ({"max_cost": 2, "threat": "delete", "partition_by": "source"}, ThreatError, "counts sources"),
        ({"empty_value": np.inf}, ParameterError, "empty_value=inf must be a finite number"),
        ({"key": -1}, ParameterError, "key=-1"),
        ({"partition_by": "source"}, DataError, "needs groups"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CertifiedRegressor(**parameters).fit(X, Y)


def test_bad_data() -> None:
    model = fitted()
    with pytest.raises(ValueError, match="NaN"):
        CertifiedRegressor().fit([[np.nan], [1.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="infinity"):
        model.predict([[np.inf, 1.0]])
    with pytest.raises(ValueError, match="features"):
        model.predict([[1.0]])
    with pytest.raises(ValueError, match="0 sample"):
        CertifiedRegressor().fit(np.empty((0, 2)), [])
    with pytest.raises(DataError, match="does not use groups"):
        CertifiedRegressor().fit(X, Y, groups=Y)
    with pytest.raises(DataError, match="groups has shape"):
        CertifiedRegressor(partition_by="source").fit(X, Y, groups=["a"])
    with pytest.raises(DataError, match="above upper"):
        model.certify(QUERIES, lower=1, upper=0)
    with pytest.raises(ParameterError, match="budget=-1"):
        model.interval(QUERIES, -1)
    with pytest.raises(ParameterTypeError, match=r"budget=0\.5"):
        model.interval(QUERIES, 0.5)  # type: ignore[arg-type]


def test_fit_is_silent_where_all_is_well() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted()


def test_a_layout_must_be_given() -> None:
    with pytest.raises(ParameterTypeError, match="layout=None must be one of 'triples'"):
        fitted(layout=None, spread=4)


@pytest.mark.parametrize("layout", [np.eye(5, dtype=int)[[1, 2, 3, 4, 0]], [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]])
def test_a_witness_names_blocks_however_submodels_are_numbered(layout: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    model = CertifiedRegressor(Ridge(), layout=layout).fit(X, y)
    certificate = model.certify(X[:9], within=0.1, witness=True)
    assert certificate.witness is not None
    assert certificate.witness.shape == (9, model.n_blocks_)
    assert certificate.radius.tolist() == model.certify(X[:9], within=0.1).radius.tolist()
    votes, low, high = model.votes(X[:9]), certificate.lower, certificate.upper
    assert low is not None
    assert high is not None
    for row, touched in enumerate(certificate.witness.toarray()):
        assert touched.sum() == certificate.attack[row]
        hit = (model.incidence_ @ touched) > 0
        out = np.maximum((votes[:, row][~hit] < low[row]).sum(), 0), (votes[:, row][~hit] > high[row]).sum()
        assert 2 * (max(out) + hit.sum()) > model.n_submodels_
