"""Certified accuracy against counting by hand, and its ways out."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poisonproof.certificate import Certificate
from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.evaluate import certified_accuracy
from poisonproof.threat import Threat


def certificate(radii: list[int], moves: str = "insert+delete", method: str = "unit cost") -> Certificate:
    radius = np.array(radii, dtype=np.int64)
    return Certificate(
        prediction=np.zeros(len(radius)),
        radius=radius,
        attack=radius + 1,
        unbreakable=np.zeros(len(radius), dtype=np.bool_),
        threat=Threat.of(moves),
        method=method,
    )


trials = st.lists(st.lists(st.integers(-1, 12), min_size=1, max_size=20), min_size=1, max_size=4)


@given(trials, st.lists(st.integers(0, 14), min_size=1, max_size=5))
def test_shares_are_counted(radii: list[list[int]], asked: list[int]) -> None:
    accuracy = certified_accuracy([certificate(one) for one in radii], asked)
    for trial, one in enumerate(radii):
        for place, radius in enumerate(asked):
            count = sum(value >= radius for value in one)
            assert accuracy.shares[trial, place] == count / len(one)
    assert accuracy.n_rows.tolist() == [len(one) for one in radii]


@given(trials)
def test_larger_radii_are_never_reached_more_often(radii: list[list[int]]) -> None:
    mean = certified_accuracy([certificate(one) for one in radii], range(14)).mean
    assert (np.diff(mean) <= 0).all()


def test_mean_and_deviation_over_trials() -> None:
    accuracy = certified_accuracy([certificate([5, 5]), certificate([5, 0])], [5])
    assert accuracy.mean.tolist() == [0.75]
    assert accuracy.sd == pytest.approx(np.std([1.0, 0.5], ddof=1))
    assert accuracy.at(5) == 0.75
    assert accuracy.n_trials == 2


def test_one_trial_has_no_deviation() -> None:
    accuracy = certified_accuracy(certificate([1, 2]), 2)
    assert np.isnan(accuracy.sd).all()
    assert accuracy.to_dict()["sd"] == [None]


def test_json_is_one_document() -> None:
    record = json.loads(certified_accuracy([certificate([1, 2]), certificate([0, 9])], [0, 2]).to_json())
    assert record["schema_version"] == 1
    assert record["threat"] == "insert+delete"
    assert record["unit"] == "row"
    assert record["radius"] == [0, 2]
    assert record["certified_accuracy"] == [1.0, 0.5]
    assert record["trials"] == [[1.0, 0.5], [1.0, 0.5]]
    assert record["sd"] == [0.0, 0.0]


def test_frame_has_a_row_for_each_radius() -> None:
    pytest.importorskip("pandas", reason="frames need pandas")
    frame = certified_accuracy(certificate([1, 2]), [0, 2]).to_frame()
    assert frame["radius"].tolist() == [0, 2]
    assert frame["certified_accuracy"].tolist() == [1.0, 0.5]
    assert set(frame["threat"]) == {"insert+delete"}


def test_markdown_shows_percent_and_threat() -> None:
    one = certified_accuracy(certificate([1, 2]), [0, 2]).to_markdown().splitlines()
    assert one[2:4] == ["| 0 | 100.0% |", "| 2 | 50.0% |"]
    assert "insert+delete of rows" in one[-1]
    two = certified_accuracy([certificate([5, 5]), certificate([5, 0])], [5]).to_markdown()
    assert "| 5 | 75.0% ± 35.4 |" in two
    assert "2 trials" in two


def test_radii_must_be_integers_that_are_not_negative() -> None:
    for radii in ([0.5], ["1"], [True], [[1], [2]]):
        with pytest.raises(ParameterTypeError, match="integers"):
            certified_accuracy(certificate([1]), radii)
    with pytest.raises(ParameterError, match="-2; every radius must be at least 0"):
        certified_accuracy(certificate([1]), [3, -2])
    with pytest.raises(ParameterError, match="at least one radius"):
        certified_accuracy(certificate([1]), [])
    with pytest.raises(ParameterError, match=r"radius=4 was not evaluated; use one of \[1\]"):
        certified_accuracy(certificate([1]), [1]).at(4)


def test_only_trials_of_one_kind_are_averaged() -> None:
    with pytest.raises(DataError, match="cannot be averaged"):
        certified_accuracy([certificate([1]), certificate([1], moves="delete")], [1])
    with pytest.raises(DataError, match="cannot be averaged"):
        certified_accuracy([certificate([1]), certificate([1], method="leave-out refits")], [1])
    with pytest.raises(DataError, match="no certificate"):
        certified_accuracy([], [1])
    with pytest.raises(DataError, match="no rows"):
        certified_accuracy([certificate([1]), certificate([])], [1])


def test_without_pandas_the_error_names_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        certified_accuracy(certificate([1]), [1]).to_frame()
