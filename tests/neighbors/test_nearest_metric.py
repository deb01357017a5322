"""Distances depend on their two rows alone, and on declared constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.neighbors import Metric

NAMES = ["euclidean", "manhattan", "chebyshev", "cosine", "minkowski"]
SCIPY = {"manhattan": "cityblock"}


@pytest.mark.parametrize("name", NAMES)
def test_distances_are_those_of_scipy(name: Any) -> None:
    rng = np.random.default_rng(1)
    queries, rows = rng.normal(size=(7, 13)), rng.normal(size=(700, 13))
    metric = Metric(name, p=3)
    options = {"p": 3} if name == "minkowski" else {}
    expected = cdist(queries, rows, SCIPY.get(name, name), **options)
    np.testing.assert_allclose(metric.distances(metric.encode(queries), metric.encode(rows)), expected, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_distance_is_the_same_bits_in_any_company(name: Any) -> None:
    rng = np.random.default_rng(2)
    metric = Metric(name, p=1.7)
    queries, rows = metric.encode(rng.normal(size=(9, 37))), metric.encode(rng.normal(size=(1000, 37)))
    together = metric.distances(queries, rows)
    np.testing.assert_array_equal(metric.distances(queries[4:5], rows)[0], together[4])
    some = rng.permutation(1000)[:300]
    np.testing.assert_array_equal(metric.distances(queries, rows[some]), together[:, some])
    np.testing.assert_array_equal(metric.distances(rows[:9], queries), together[:, :9].T)
    np.testing.assert_array_equal(
        metric.encode(rng.normal(size=(5, 37)) * 0 + 1)[3], metric.encode(np.ones((1, 37)))[0]
    )


@settings(max_examples=50, deadline=None)
@given(rows=arrays(np.float64, (6, 3), elements=st.floats(-1e300, 1e300)), name=st.sampled_from(NAMES))
def test_no_row_is_nearer_to_a_row_than_the_row_itself(rows: Any, name: Any) -> None:
    metric = Metric(name)
    encoded = metric.encode(rows)
    distances = metric.distances(encoded, encoded)
    assert not np.isnan(distances).any()
    assert (np.diag(distances) == 0).all()
    assert (distances >= 0).all()


def test_rows_are_clipped_scaled_and_weighted() -> None:
    metric = Metric(ranges=[[0, 10], [-1, 1]], weights=[2, 0.5])
    np.testing.assert_array_equal(metric.encode([[5, 0], [-3, 7]]), [[1, 0.25], [0, 0.5]])
    np.testing.assert_array_equal(Metric(ranges=(0, 4)).encode([[1, 2, 9]]), [[0.25, 0.5, 1]])
    np.testing.assert_array_equal(Metric().encode([[5, -0.0]]), [[5, 0]])


def test_encoding_leaves_its_argument_alone() -> None:
    rows = np.full((3, 2), 7.0)
    for metric in (Metric(ranges=(0, 4), weights=[3, 3]), Metric("cosine"), Metric()):
        metric.encode(rows)[:] = 0
    assert (rows == 7).all()


def test_a_row_of_zeros_has_no_direction() -> None:
    metric = Metric("cosine")
    rows = metric.encode([[0.0, 0.0], [3.0, 4.0], [-6.0, -8.0], [1e-200, 0]])
    np.testing.assert_allclose(metric.distances(rows[:2], rows), [[0, 0.5, 0.5, 0.5], [0.5, 0, 2, 0.4]], atol=1e-15)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"name": "cosin"}, ParameterError, "use one of 'euclidean'"),
        ({"p": 0}, ParameterError, "above 0"),
        ({"p": np.inf}, ParameterError, "chebyshev"),
        ({"p": "2"}, ParameterTypeError, "must be a number"),
        ({"p": True}, ParameterTypeError, "must be a number"),
        ({"ranges": [[0, 1], [3, 3]]}, ParameterError, r"ranges\[1\]=\(3, 3\) is empty"),
        ({"ranges": [[0, 1, 2]]}, ParameterError, r"\(1, 3\) must be"),
        ({"ranges": [[0, np.nan]]}, ParameterError, "NaN"),
        ({"ranges": (-1.7e308, 1.7e308)}, ParameterError, "too wide"),
        ({"ranges": "wide"}, ParameterTypeError, "array of numbers"),
        ({"weights": [1, -2]}, ParameterError, r"weights\[1\]=-2 is negative"),
        ({"weights": [[1.0]]}, ParameterError, r"must be \(n_features,\)"),
    ],
)
def test_bad_declarations_say_what_is_allowed(options: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Metric(**options)


@pytest.mark.parametrize(
    ("metric", "rows", "error", "says"),
    [
        (Metric(ranges=[[0, 1]] * 3), [[1.0, 2.0]], ParameterError, "ranges has 3 pairs, but rows have 2 features"),
        (Metric(weights=[1, 1, 1]), [[1.0, 2.0]], ParameterError, "weights has 3 values, but rows have 2 features"),
        (Metric(), [[1.0, np.nan]], DataError, "NaN"),
        (Metric(), [1.0], DataError, "table"),
        (Metric(weights=[1e300]), [[1e300]], DataError, "overflow"),
    ],
)
def test_rows_that_do_not_fit_are_refused(metric: Metric, rows: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        metric.encode(rows)
