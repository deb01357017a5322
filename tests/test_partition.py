from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.dummy import DummyRegressor

from poisonproof.ensemble import CertifiedRegressor
from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.partition import blocks_of, canonical, check_key, content_digests, content_order, source_digests

tables = arrays(
    np.float64,
    st.tuples(st.integers(1, 20), st.integers(1, 4)),
    elements=st.floats(-1e6, 1e6, allow_nan=False),
)


def test_digest_is_keyed_blake2b_of_the_canonical_bytes() -> None:
    row = np.array([[1.5, -0.0]])
    expected = hashlib.blake2b(
        np.array([1.5, 0.0], dtype="<f8").tobytes(), digest_size=16, key=(7).to_bytes(16, "little")
    ).digest()
    assert content_digests(canonical(row), key=7).astype("<u8").tobytes() == expected


@given(tables, st.integers(0, 2**64), st.integers(1, 50))
def test_a_block_depends_on_its_row_alone(table: np.ndarray, key: int, n_blocks: int) -> None:
    rows = canonical(table)
    together = blocks_of(content_digests(rows, key), n_blocks)
    apart = [int(blocks_of(content_digests(row[None], key), n_blocks)[0]) for row in rows]
    assert together.tolist() == apart
    assert set(apart) <= set(range(n_blocks))


def test_another_key_gives_other_blocks() -> None:
    rows = canonical(np.random.default_rng(0).normal(size=(200, 3)))
    same = blocks_of(content_digests(rows, 0), 10) == blocks_of(content_digests(rows, 1), 10)
    assert 0 < same.mean() < 0.3


def test_blocks_are_even() -> None:
    rows = canonical(np.arange(20_000.0)[:, None])
    sizes = np.bincount(blocks_of(content_digests(rows), 20), minlength=20)
    assert abs(sizes - 1000).max() < 150


@given(tables, st.randoms(use_true_random=False))
def test_content_order_does_not_depend_on_the_order_of_rows(table: np.ndarray, random: object) -> None:
    rows = canonical(np.concatenate([table, table[:1]]))
    targets = np.arange(len(rows)) % 2.0
    shuffled = np.random.default_rng(random.randrange(2**32)).permutation(len(rows))  # type: ignore[attr-defined]

    def ordered(chosen: np.ndarray) -> tuple[bytes, bytes]:
        digests = content_digests(rows[chosen])
        order = chosen[content_order(digests, targets[chosen], blocks_of(digests, 3))]
        return rows[order].tobytes(), targets[order].tobytes()

    assert ordered(np.arange(len(rows))) == ordered(shuffled)


def test_negative_zero_is_zero() -> None:
    assert np.signbit(canonical([[-0.0]])).sum() == 0
    assert np.array_equal(content_digests(canonical([[-0.0]])), content_digests(canonical([[0.0]])))


def test_sources_are_told_apart_by_name() -> None:
    digests = source_digests(np.array(["a", "b", "a", 7, 7.0, "7", 8], dtype=object))
    assert np.array_equal(digests[0], digests[2])
    assert np.array_equal(digests[3], digests[4])
    assert np.array_equal(digests[3], digests[5])
    assert len(np.unique(digests[:, 0])) == 4


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_source_is_refused(missing: object) -> None:
    with pytest.raises(DataError, match="missing source"):
        source_digests(np.array(["a", missing], dtype=object))


def test_rows_without_features_are_refused() -> None:
    with pytest.raises(DataError, match="no features"):
        content_digests(np.empty((3, 0)))


def test_keys() -> None:
    assert check_key(2**127) == 2**127
    with pytest.raises(ParameterError, match="at least 0"):
        check_key(-1)
    with pytest.raises(ParameterTypeError, match="integer"):
        check_key(True)
    with pytest.raises(ParameterTypeError, match="integer"):
        check_key("secret")  # type: ignore[arg-type]


DAYS = np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]")


@pytest.mark.parametrize(
    "dates",
    [
        DAYS,
        DAYS.astype("M8[ns]"),
        DAYS - DAYS[0],
        DAYS.tolist(),
        list(DAYS),
        pd.Series(DAYS),
        pd.Series(DAYS).dt.tz_localize("UTC"),
        pd.Series(DAYS).dt.to_period("D"),
    ],
    ids=str,
)
def test_dates_are_no_names(dates: Any) -> None:
    """One finer date turns days into seconds for everybody, and all their sources into others."""
    with pytest.raises(DataError, match="turn each into text"):
        source_digests(dates)
    model = CertifiedRegressor(DummyRegressor(), 1, partition_by="source")
    with pytest.raises(DataError, match="turn each into text"):
        model.fit(np.eye(2), np.ones(2), groups=dates)
