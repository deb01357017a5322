"""Encodings proposed from trusted rows."""

from __future__ import annotations

import math
import os
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poisonproof.errors import ParameterError, ParameterTypeError, SchemaError
from poisonproof.schema import Category, Numeric, Schema, Target, propose_schema

pl = pytest.importorskip("polars")

DATA = Path(os.environ.get("POISONPROOF_DATA", Path(__file__).parents[3] / "shared" / "data"))


def test_a_proposal_fits_its_table() -> None:
    table = pd.DataFrame(
        {
            "length": [1.03, 2.5, np.nan, 9.7, 2.4],
            "balance": [-3, 0, 17, 5, 5],
            "debt": [-3.5, -0.1, -2, -0.2, -1],
            "kind": ["b", None, "a", "b", "c"],
            "paid": [True, False, True, True, False],
            "mixed": [1, "1", "x", True, "x"],
            "price": [1, 2, 3, 4, 9],
        }
    )
    schema = propose_schema(table, target="price", target_transform="log")
    assert schema.target == Target("price", "log")
    assert schema.columns == (
        Numeric("length", 0.4, 10.2, fill=2.45, indicator=True),
        Numeric("balance", -4.0, 18.0),
        Numeric("debt", -3.7, 0.0),
        Category("kind", ["a", "b", "c"], indicator=True),
        Category("paid", [False, True]),
        Category("mixed", ["1", "x"]),
    )
    assert schema.transform(table).shape == (5, 12)
    assert propose_schema(pl.DataFrame(table.drop(columns="mixed")), "price").columns == schema.columns[:-1]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, unique=True))
def test_a_proposed_range_holds_what_was_seen(numbers: list[float]) -> None:
    if 0 < max(numbers) / 20 - min(numbers) / 20 < 1e300:
        try:
            (column,) = propose_schema({"x": [*numbers, None]}).columns
        except SchemaError as error:
            assert "counts the rows" in str(error) or "too narrow" in str(error)  # noqa: PT017  the other allowed end
            return
        assert isinstance(column, Numeric)
        assert column.low <= min(numbers) <= max(numbers) <= column.high
        assert min(numbers) < 0 or column.low >= 0
        assert column.fill is not None


def test_columns_that_say_nothing_are_left_out_by_name() -> None:
    table = {
        "": [1, 2, 3],
        "row": [1, 2, 3],
        "id": ["x", "y", "z"],
        "same": [4, 4, None],
        "one": ["a", "a", "a"],
        "none": [None, None, None],
        "nan": [Decimal("nan"), Decimal("nan"), None],
        "day": np.array(["2000-01-01"] * 3, dtype="M8[D]"),
        "list": [[1], [2], [3]],
        "x": [Decimal("1.5"), Decimal("2.5"), Decimal(9)],
    }
    with pytest.warns(UserWarning, match="left out of the schema: ''") as caught:
        schema = propose_schema(table)
    assert schema.column_names == ["x"]
    said = str(caught[0].message)
    for name in list(table)[1:-1]:
        assert f"{name!r} (" in said
    assert caught[0].filename == __file__


def test_a_proposed_range_holds_numbers_with_many_digits() -> None:
    low, high = 1234567890123456, 1234567890123457
    for sign in (1, -1):
        (column,) = propose_schema({"x": [sign * high, sign * low]}).columns
        assert isinstance(column, Numeric)
        assert column.low <= min(sign * low, sign * high) < max(sign * low, sign * high) <= column.high


def test_whole_numbers_get_whole_ranges() -> None:
    years = [2018, 2019, 2020, None]
    assert propose_schema({"year": years}).columns == (Numeric("year", 2017, 2021, fill=2020, indicator=True),)


def test_numbers_with_a_text_among_them_are_left_out_by_that_text() -> None:
    table = {
        "width": ["1.5", "2.5", "NA", None, "4", "?"],
        "length": [1.5, 2.5, "1,234.5", 3.5, 4, 5],
        "model": ["3", "5", "i3", "i5", "x", "3"],
        "paid": [True, "1", False, True, "no", False],
        "x": [1, 2, 4, 8, 16, 32],
    }
    with pytest.warns(UserWarning, match="left out") as caught:
        schema = propose_schema(table)
    assert schema.column_names == ["model", "paid", "x"]
    said = str(caught[0].message)
    assert "'width' (numbers, but for 'NA' in row 2 and 1 more row; blank such cells or correct them)" in said
    assert "'length' (numbers, but for '1,234.5' in row 2; blank such cells or correct them)" in said


def test_texts_that_name_almost_every_row_are_left_out() -> None:
    texts = [*map(str, range(99)), "98"]
    with pytest.warns(UserWarning, match="almost every row"):
        schema = propose_schema({"address": texts, "x": range(0, 200, 2)})
    assert schema.column_names == ["x"]
    assert len(propose_schema({"address": texts}, max_categories=99).columns[0].features) == 99


def test_many_categories_are_cut_or_refused() -> None:
    table = {"kind": ["b"] * 3 + ["c"] * 2 + ["a"] * 2 + ["d"]}
    with pytest.warns(UserWarning, match="has 4 categories, more than max_categories=2") as caught:
        schema = propose_schema(table, max_categories=2)
    assert caught[0].filename == __file__
    assert schema.columns == (Category("kind", ["a", "b"]),)
    with pytest.raises(SchemaError, match="raise the limit"):
        propose_schema(table, max_categories=2, too_many="error")


@pytest.mark.parametrize(
    ("propose", "error", "said"),
    [
        (
            lambda: propose_schema({"price": [1, 2]}, "prise"),
            SchemaError,
            r"'prise' is not in the table; did you mean 'price'\?",
        ),
        (lambda: propose_schema({"y": [1, 2]}, "y"), SchemaError, "the target is the only one"),
        (lambda: propose_schema({"y": [1, 1]}), SchemaError, r"no column can be declared: 'y' \(constant\)"),
        (lambda: propose_schema({"y": [1, 2]}, 3), SchemaError, "name=3 must be"),  # type: ignore[arg-type]
        (
            lambda: propose_schema({"x": [1, 2, 4], "y": ["1.5", "NA", "3"]}, "y", target_transform="log"),
            SchemaError,
            "target 'y' holds numbers, but for 'NA' in row 1, so it has no log; correct such cells",
        ),
        (
            lambda: propose_schema({"x": [1, 2, 4], "y": ["a", "b", "c"]}, "y", target_transform="log"),
            SchemaError,
            "column 'y', row 0: 'a' is of type str; numbers are expected",
        ),
        (lambda: propose_schema(np.zeros((2, 2))), SchemaError, "a ndarray has no named columns"),
        (lambda: propose_schema({}), SchemaError, "a dict has no named columns"),
        (lambda: propose_schema({"x": [1, math.inf]}), SchemaError, "an infinite number"),
        (lambda: propose_schema(pd.DataFrame([[1, 2]], columns=["x", "x"])), SchemaError, "appears 2 times"),
        (lambda: propose_schema({"x": [-1e308, 1e308]}), SchemaError, "too narrow or too wide"),
        (lambda: propose_schema({"x": [1]}, max_categories=0), ParameterError, "at least 1"),
        (lambda: propose_schema({"x": [1]}, max_categories=2.5), ParameterTypeError, "must be an integer"),  # type: ignore[arg-type]
        (lambda: propose_schema({"x": [1]}, too_many="drop"), ParameterError, "'frequent' or 'error'"),  # type: ignore[arg-type]
    ],
)
def test_proposals_that_cannot_be_made_say_why(propose: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        propose()


@pytest.mark.skipif(
    not (DATA / "ames.csv.gz").exists(), reason="the houses of Ames are not at hand; set POISONPROOF_DATA"
)
def test_a_real_table_goes_through(tmp_path: Path) -> None:
    table = pd.read_csv(DATA / "ames.csv.gz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema = propose_schema(table.iloc[:500], table.columns[-1])
    schema.to_toml(tmp_path / "ames.toml")
    read = Schema.from_toml(tmp_path / "ames.toml")
    try:
        whole = read.transform(table)
    except SchemaError as error:
        assert "missing" in str(error)  # noqa: PT017  later rows may miss what the first never did
        whole = read.transform(table := table.iloc[:500])
    assert whole.shape == (len(table), read.n_features_out)
    assert whole.min() >= 0
    assert whole.max() <= 1
    some = np.random.default_rng(1).permutation(len(table))[:200]
    assert read.transform(table.iloc[some]).tobytes() == whole[some].tobytes()
