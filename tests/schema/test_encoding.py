"""The declared encoding: what a row becomes hangs on that row alone, and the declaration survives its file."""

from __future__ import annotations

import math
import pickle
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from poisonproof.errors import SchemaError
from poisonproof.schema import Category, Column, Numeric, Ordinal, Schema, Target

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pl = pytest.importorskip("polars")

MIXED = Schema(
    [
        Numeric("size", 0.5, 8, transform="log", weight=3.0, fill=2, indicator=True),
        Numeric("count", -3, 5, scale=False, fill=0),
        Category("shape", ["round", 1, False, 2.5], weight=0.5, indicator=True),
        Category("colour", ["red", "blue"], fill="blue", unknown="missing"),
        Ordinal("grade", ["low", "mid", 3], fill="mid", unknown="missing", indicator=True),
    ]
)
NUMBER_CELLS = st.one_of(st.none(), st.integers(-9, 9), st.floats(width=32), st.booleans())
LABEL_CELLS = st.one_of(
    NUMBER_CELLS,
    st.sampled_from(["round", "ROUND", " round", "1", "1.0", "True", "true", "2.5", "red", "blue", "low", "3", ""]),
)
MIXED_ROWS = st.lists(
    st.tuples(NUMBER_CELLS, NUMBER_CELLS, LABEL_CELLS, LABEL_CELLS, LABEL_CELLS), min_size=1, max_size=12
)


def by_column(rows: list[tuple[Any, ...]], schema: Schema = MIXED) -> dict[str, list[Any]]:
    return {name: [row[place] for row in rows] for place, name in enumerate(schema.column_names)}


def absent(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def same(cell: object, label: object) -> bool:
    """Whether a cell is this category, said differently than in the package: by the number or text that both are."""
    if isinstance(label, bool) and cell in (str(label).lower(), str(label).upper()):
        return True
    return said(cell) == said(label)


def said(cell: object) -> float | str:
    if not isinstance(cell, str):
        assert isinstance(cell, int | float)
        return float(cell)
    spelled = [number for number in range(-9, 10) if cell in (str(number), str(float(number)))]
    spelled += [truth for truth in (False, True) if cell == str(truth)]
    return float(spelled[0]) if spelled else 2.5 if cell == "2.5" else cell


def by_hand(column: Column, cell: Any) -> list[float]:
    if isinstance(column, Numeric):
        gone = absent(cell)
        number = column.fill if gone else cell
        assert number is not None
        value = min(max(float(number), column.low), column.high)
        ends = [column.low, value, column.high]
        if column.transform:
            ends = [getattr(math, column.transform)(end) for end in ends]
        encoded = (ends[1] - ends[0]) / (ends[2] - ends[0]) if column.scale else ends[1]
        return [encoded * column.weight] + [float(gone) * column.weight] * column.indicator
    matches = [place for place, label in enumerate(column.categories) if not absent(cell) and same(cell, label)]
    gone = absent(cell) or (not matches and column.unknown == "missing")
    if gone and column.fill is not None:
        matches = [list(column.categories).index(column.fill)]
    extra = [float(gone) * column.weight] * column.indicator
    if isinstance(column, Ordinal):
        return [matches[0] / (len(column.categories) - 1) * column.weight, *extra]
    return [column.weight * (place in matches) for place in range(len(column.categories))] + extra


def bits(rows: Any) -> list[bytes]:
    return [row.tobytes() for row in np.asarray(rows, dtype=np.float64)]


# ---- a row's features hang on that row alone


@given(MIXED_ROWS)
def test_every_cell_is_encoded_as_by_hand(rows: list[tuple[Any, ...]]) -> None:
    expected = [
        [feature for column, cell in zip(MIXED.columns, row, strict=True) for feature in by_hand(column, cell)]
        for row in rows
    ]
    assert bits(MIXED.transform(by_column(rows))) == bits(np.array(expected) + 0.0)


@given(MIXED_ROWS, st.data())
def test_rows_do_not_see_each_other(rows: list[tuple[Any, ...]], data: st.DataObject) -> None:
    whole = bits(MIXED.transform(by_column(rows)))
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1))
    assert bits(MIXED.transform(by_column([rows[place] for place in chosen]))) == [whole[place] for place in chosen]


@given(MIXED_ROWS, st.data())
@settings(max_examples=50)
def test_the_types_a_frame_guesses_do_not_matter(rows: list[tuple[Any, ...]], data: st.DataObject) -> None:
    whole = bits(MIXED.transform(by_column(rows)))
    chosen = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1)))
    part = [whole[place] for place in chosen]
    columns = by_column([rows[place] for place in chosen])
    assert bits(MIXED.transform(pd.DataFrame(columns, index=chosen[::-1]))) == part
    assert (
        bits(
            MIXED.transform(pl.DataFrame({name: pl.Series(cells, dtype=pl.Object) for name, cells in columns.items()}))
        )
        == part
    )
    cells = np.empty((len(chosen), len(columns)), dtype=object)
    for place, column in enumerate(columns.values()):
        cells[:, place] = column
    assert bits(MIXED.transform(cells)) == part
    assert bits(MIXED.transform(cells.tolist())) == part


@pytest.mark.parametrize("transform", ["log", "log1p"])
def test_transforms_round_alike_wherever_a_number_stands(transform: Any) -> None:
    numbers: NDArray[np.float64] = np.random.default_rng(0).uniform(0.01, 100, 4001)
    schema = Schema([Numeric("x", 0.01, 100, transform=transform, scale=False)])
    whole = schema.transform({"x": numbers})[:, 0]
    assert [schema.transform({"x": [number]})[0, 0] for number in numbers[:200]] == whole[:200].tolist()
    for start in (1, 3, 5):
        assert np.array_equal(schema.transform({"x": numbers[start::7]})[:, 0], whole[start::7])
    assert whole.tolist() == [getattr(math, transform)(number) for number in numbers.tolist()]


def test_all_containers_agree() -> None:
    columns = {"size": [1.0, 9.5, None], "kind": ["a", "b", "elsewhere"], "more": [1, 2, 3]}
    schema = Schema([Category("kind", ["a", "b"]), Numeric("size", 0, 10, fill=5, indicator=True)])
    expected = [[1.0, 0.0, 0.1, 0.0], [0.0, 1.0, 0.95, 0.0], [0.0, 0.0, 0.5, 1.0]]
    frame = pd.DataFrame(columns)
    records = np.array([("a", 1.0), ("b", 9.5), ("elsewhere", np.nan)], dtype=[("kind", "U9"), ("size", "f4")])
    tables = [
        columns,
        frame,
        frame.convert_dtypes(),
        frame.astype({"kind": "category", "size": "Float64"}),
        frame.astype({"kind": object}),
        pl.DataFrame(columns),
        pl.DataFrame(columns, schema_overrides={"kind": pl.Categorical}),
        records,
        np.array([["a", 1.0], ["b", 9.5], ["elsewhere", None]], dtype=object),
        [["a", 1.0], ["b", 9.5], ["elsewhere", pd.NA]],
    ]
    for table in tables:
        np.testing.assert_allclose(schema.transform(table), expected, rtol=0, atol=1e-15)
    assert schema.transform([["b", 9], ["a", 1]]).tolist() == [[0.0, 1.0, 0.9, 0.0], [1.0, 0.0, 0.1, 0.0]]
    assert schema.transform(frame.iloc[:0]).shape == schema.transform([]).shape == (0, 4)


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.float32, np.bool_])
def test_number_arrays_are_read_as_their_cells(kind: type) -> None:
    numbers: NDArray[Any] = np.array([0, 1, 1, 0], dtype=kind)
    schema = Schema([Numeric("x", 0, 2), Category("c", [True, "0"])])
    cells = numbers.tolist()
    assert bits(schema.transform({"x": numbers, "c": numbers})) == bits(schema.transform({"x": cells, "c": cells}))


@pytest.mark.parametrize("declared", [1, True, "1", "1.0", "True"], ids=repr)
def test_a_truth_is_one_whatever_its_column_holds(declared: Any) -> None:
    schema = Schema([Category("c", ["other", declared])])
    cells = [1, True, 1.0, "1", "1.0", "True", np.True_, np.float32(1), "01", "tRUE", "2", 2, False]
    assert schema.transform({"c": cells})[:, 1].tolist() == [1.0] * 8 + [0.0] * 5
    words = schema.transform({"c": ["true", "TRUE"]})[:, 1].tolist()
    assert words == [float(declared is True)] * 2


def test_one_odd_cell_encodes_no_other_anew() -> None:
    schema = Schema([Category("c", [True, False])])
    before = schema.transform(pd.DataFrame({"c": [True, False]})).tolist()
    for odd in (2, 2.5, "x", None):
        with_odd = pd.concat([pd.DataFrame({"c": [True, False]}), pd.DataFrame({"c": [odd]})])
        encoder = Schema([Category("c", [True, False], indicator=True)])
        assert encoder.transform(with_odd)[:2, :2].tolist() == before
        texts = np.asarray([True, False, "x"] if odd is None else [True, False, odd])
        assert schema.transform({"c": texts})[:2].tolist() == before


def test_numbers_that_floats_cannot_hold_are_no_categories() -> None:
    with pytest.raises(SchemaError, match="category 9007199254740993 is no number that floats hold exactly"):
        Category("id", [2**53 + 1, 5])
    schema = Schema([Category("id", ["9007199254740993", "9007199254740992"])])
    assert schema.transform({"id": ["9007199254740993"]}).tolist() == [[1.0, 0.0]]
    with pytest.raises(SchemaError, match="column 'id' holds the number 9007199254740993, which floats cannot hold"):
        schema.transform({"id": np.array([2**53 + 1])})
    assert schema.transform({"id": np.array([2**53 + 1, 2.5])}).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_numbers_are_clipped_and_never_minus_zero() -> None:
    schema = Schema([Numeric("x", -1, 1, scale=False), Numeric("y", -2, 2)])
    out = schema.transform({"x": [-np.inf, -0.0, np.inf, Decimal("0.5")], "y": [-9, 9, 10**30, True]})
    assert out.tolist() == [[-1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.75]]
    assert not np.signbit(out[1, 0])


def test_places_in_an_order_run_from_zero_to_one() -> None:
    schema = Schema([Ordinal("o", ["low", "mid", "high"], weight=2.0)])
    assert schema.transform({"o": ["high", "low", "mid"]}).tolist() == [[2.0], [0.0], [1.0]]
    with pytest.raises(SchemaError, match="column 'o', row 1: 'none' is none of the categories 'low', 'mid', 'high'"):
        schema.transform({"o": ["low", "none"]})
    with pytest.raises(SchemaError, match="column 'o', row 0: the value is missing"):
        schema.transform({"o": [None, "low"]})


# ---- tables and cells that do not fit


GOOD = {"size": [1.0], "kind": ["a"]}
SMALL = Schema([Numeric("size", 0, 10), Category("kind", ["a", "b"], unknown="error")])


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"sise": [1.0], "kind": ["a"]}, r"column 'size' is missing from the table; did you mean 'sise'\?"),
        ({"kind": ["a"]}, "column 'size' is missing from the table; it has 'kind'"),
        ({}, "column 'size' is missing from the table; it has none"),
        ({**GOOD, "size": [1.0, 2.0]}, "column 'kind' has 1 rows but 'size' has 2"),
        ({**GOOD, "size": ["1.0"]}, "column 'size', row 0: '1.0' is of type str; numbers are expected"),
        ({**GOOD, "size": [date(2000, 1, 1)]}, "column 'size', row 0: .* of type date"),
        ({**GOOD, "size": [1 + 2j]}, "of type complex"),
        ({**GOOD, "size": [10**400]}, "column 'size' holds a number that floats cannot hold"),
        ({**GOOD, "size": np.array(["2000-01-01"], dtype="M8[ns]")}, r"column 'size' is of type datetime64\[ns\]"),
        ({**GOOD, "size": np.ma.masked_array([1.0], [True])}, "column 'size' is a masked array"),
        ({**GOOD, "size": np.zeros((1, 1))}, "column 'size' has 2 dimensions"),
        ({**GOOD, "kind": "a"}, "column 'kind' is 'a'; a list or array with one cell per row"),
        ({**GOOD, "kind": 3}, "column 'kind' is 3"),
        ({**GOOD, "kind": [["a"]]}, r"column 'kind', row 0: \['a'\] is of type list; text"),
        ({**GOOD, "kind": [b"a"]}, "of type bytes"),
        ({**GOOD, "kind": ["A"]}, "column 'kind', row 0: 'A' is none of the categories 'a', 'b'"),
        ({**GOOD, "kind": np.array([7])}, "column 'kind', row 0: 7 is none of the categories"),
        ({**GOOD, "kind": [None]}, "column 'kind', row 0: the value is missing; declare a fill"),
        (
            {"size": [1, None, np.nan, 2], "kind": list("aaaa")},
            "column 'size', row 1 and 1 more row: the value is missing",
        ),
        ({"size": [1] * 4, "kind": ["a", "x", "y", "z"]}, "column 'kind', row 1 and 2 more rows: 'x' is none"),
        (pd.DataFrame([[1.0, 2.0, "a"]], columns=["size", "size", "kind"]), "column 'size' appears 2 times"),
        (np.zeros((2, 3)), "the array has 3 columns but the schema declares 2: size, kind"),
        (np.zeros(2), "an array with 1 dimension is no table; give a pandas or polars frame"),
        (np.zeros((2, 2, 2)), "an array with 3 dimensions"),
        (np.ma.masked_array(np.zeros((1, 2))), "masked arrays cannot be read"),
        (5, "a int cannot be read; give a pandas"),
        (pl.LazyFrame(GOOD), "a LazyFrame cannot be read"),
    ],
)
def test_what_does_not_fit_is_named(table: Any, said: str) -> None:
    assert SMALL.transform(GOOD).shape == (1, 3)
    with pytest.raises(SchemaError, match=said):
        SMALL.transform(table)


def test_long_cells_are_cut_in_messages() -> None:
    with pytest.raises(SchemaError) as caught:
        SMALL.transform({**GOOD, "kind": ["x" * 100_000]})
    assert len(str(caught.value)) < 200


def test_missing_values_are_known_by_all_their_names() -> None:
    schema = Schema([Category("c", ["nan", "None"], indicator=True), Numeric("x", 0, 1, fill=0.25)])
    cells = [None, np.nan, float("nan"), pd.NA, pd.NaT, np.float32("nan")]
    assert schema.transform({"c": cells, "x": cells}).tolist() == [[0.0, 0.0, 1.0, 0.25]] * 6
    for cell in cells:
        assert schema.transform({"c": [cell], "x": [cell]}).tolist() == [[0.0, 0.0, 1.0, 0.25]]
    assert schema.transform({"c": ["nan", "None", ""], "x": [0, 0, 0]})[:, :3].tolist() == [
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 0],
    ]


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda: Numeric("", 0, 1), "name='' must be the name of a column"),
        (lambda: Numeric(3, 0, 1), "name=3 must be"),  # type: ignore[arg-type]
        (lambda: Numeric("x", 1, 1), "low=1.0 must be below high=1.0"),
        (lambda: Numeric("x", 2, 1), "must be below"),
        (lambda: Numeric("x", math.nan, 1), "low=nan must be a finite number"),
        (lambda: Numeric("x", 0, math.inf), "high=inf must be a finite number"),
        (lambda: Numeric("x", 0, 10**400), "must be a finite number"),
        (lambda: Numeric("x", "0", 1), "low='0' must be a number"),  # type: ignore[arg-type]
        (lambda: Numeric("x", False, 1), "low=False must be a number"),
        (lambda: Numeric("x", -1e308, 1e308), "too narrow or too wide"),
        (lambda: Numeric("x", 1e300, 1.0000000000000002e300, transform="log"), "too narrow or too wide"),
        (lambda: Numeric("x", 0, 1, transform="sqrt"), "transform='sqrt' is unknown; use 'log', 'log1p'"),  # type: ignore[arg-type]
        (lambda: Numeric("x", 0, 1, transform="log"), "low=0.0 must be above 0 for transform='log'"),
        (lambda: Numeric("x", -1, 1, transform="log1p"), "must be above -1"),
        (lambda: Numeric("x", 0, 1, weight=0), "weight=0.0 must be above 0"),
        (lambda: Numeric("x", 0, 1, weight=math.inf), "weight=inf must be a finite"),
        (lambda: Numeric("x", 0, 1, fill=2), "fill=2.0 must be from low=0.0 to high=1.0"),
        (lambda: Numeric("x", 0, 1, fill=math.nan), "fill=nan must be a finite"),
        (lambda: Numeric("x", 0, 1, indicator=True), "indicator=True needs a fill"),
        (lambda: Numeric("x", 0, 1, scale=1), "scale=1 must be true or false"),  # type: ignore[arg-type]
        (lambda: Category("c", []), "declares 0 categories; at least 1 category must"),
        (lambda: Category("c", "abc"), "categories='abc' must be a list"),
        (lambda: Category("c", 3), "categories=3 must be a list"),  # type: ignore[arg-type]
        (lambda: Category("c", [None]), "category None must be text"),  # type: ignore[list-item]
        (lambda: Category("c", [math.nan]), "category nan must be text, a finite number"),
        (lambda: Category("c", [1, "a", "1"]), "category '1' stands twice in 1, 'a', '1'"),
        (lambda: Category("c", ["true", True]), "category True stands twice"),
        (lambda: Category("c", [*range(20), 3]), r"category 3 stands twice in 0, .*, 9, …"),
        (lambda: Category("c", ["a"], unknown="skip"), "unknown='skip' must be one of 'zero', 'error', 'missing'"),  # type: ignore[arg-type]
        (lambda: Category("c", ["a"], fill="b"), "fill='b' must be one of the categories 'a'"),
        (lambda: Category("c", ["a"], indicator="yes"), "indicator='yes' must be true or false"),  # type: ignore[arg-type]
        (lambda: Ordinal("o", ["a"]), "declares 1 categories; at least 2 categories"),
        (lambda: Ordinal("o", ["a", "b"], unknown="zero"), "unknown='zero' must be one of 'error', 'missing'"),  # type: ignore[arg-type]
        (lambda: Ordinal("o", ["a", "b"], indicator=True), "indicator=True needs a fill"),
        (lambda: Target("y", "exp"), "transform='exp' is unknown"),  # type: ignore[arg-type]
        (lambda: Target(""), "name='' must be"),
        (lambda: Schema([]).fit(GOOD), "declares no columns"),
        (lambda: Schema("abc").fit(GOOD), "columns='abc' must be a list"),  # type: ignore[arg-type]
        (lambda: Schema(["size"]).fit(GOOD), "'size' is no column"),  # type: ignore[list-item]
        (lambda: Schema([Numeric("x", 0, 1), Category("x", ["a"])]).fit(GOOD), "column 'x' is declared twice"),
        (
            lambda: Schema([Numeric("x=a", 0, 1), Category("x", ["a"])]).n_features_out,
            "feature 'x=a' is declared twice",
        ),
        (lambda: Schema([Numeric("y", 0, 1)], Target("y")).fit(GOOD), "column 'y' is the target"),
        (lambda: Schema([Numeric("x", 0, 1)], "y").fit(GOOD), "target='y' must be a Target"),  # type: ignore[arg-type]
    ],
)
def test_wrong_declarations_are_refused_in_one_sentence(declare: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=said) as caught:
        declare()
    assert "\n" not in str(caught.value)


# ---- scikit-learn


def test_fitting_learns_nothing() -> None:
    schema = clone(MIXED)
    before = dict(vars(schema))
    table = by_column([(1.0, 1, "round", "red", "low")])
    assert schema.fit(table) is schema
    assert vars(schema) == before
    assert not schema.__sklearn_tags__().requires_fit
    check_is_fitted(clone(MIXED))
    assert bits(clone(MIXED).transform(table)) == bits(schema.fit_transform(table))
    with pytest.raises(SchemaError, match="missing from the table"):
        schema.fit({"size": [1.0]})


def test_clones_and_pickles_encode_alike() -> None:
    table = by_column([(1.0, 1, "round", "red", "low"), (None, 8, 3, None, 3)])
    for copy in (clone(MIXED), pickle.loads(pickle.dumps(MIXED))):  # noqa: S301  our own bytes
        assert copy.get_params()["columns"] == MIXED.columns
        assert bits(copy.transform(table)) == bits(MIXED.transform(table))


def test_feature_names_follow_the_columns() -> None:
    names = MIXED.get_feature_names_out().tolist()
    assert names[:6] == ["size", "size is missing", "count", "shape=round", "shape=1", "shape=False"]
    assert len(names) == MIXED.n_features_out == MIXED.transform(by_column([(1, 1, 1, "red", 3)])).shape[1]
    assert MIXED.column_types == {"size": float, "count": float, "shape": str, "colour": str, "grade": str}
    assert Schema([Numeric("x", 0, 1)], Target("y", "log")).column_types == {"x": float, "y": float}
    assert Schema([Numeric("x", 0, 1)], Target("y")).column_types == {"x": float}


def test_column_types_make_readers_row_local(tmp_path: Path) -> None:
    schema = Schema([Category("code", ["01", "7"]), Numeric("x", 0, 10, fill=0)])
    file = tmp_path / "rows.csv"
    file.write_text("code,x\n01,1.5\n7,2\n,\n")
    want = schema.column_types
    polars_rows = schema.set_params(
        columns=[Category("code", ["01", "7"], indicator=True), schema.columns[1]]
    ).transform(pl.read_csv(file, schema_overrides=want))
    assert polars_rows.tolist() == schema.transform(pd.read_csv(file, dtype=want)).tolist()
    assert polars_rows.tolist() == [[1, 0, 0, 0.15], [0, 1, 0, 0.2], [0, 0, 1, 0.0]]


def test_frames_come_out_where_asked_for() -> None:
    table = pd.DataFrame({"size": [1.0, 2.0], "kind": ["a", "b"]}, index=[7, 9])
    frame = clone(SMALL).set_output(transform="pandas").transform(table)
    assert list(frame.columns) == ["size", "kind=a", "kind=b"]
    assert list(frame.index) == [7, 9]
    assert clone(SMALL).set_output(transform="polars").fit_transform(table).columns == ["size", "kind=a", "kind=b"]


def test_it_stands_in_a_pipeline() -> None:
    table = pd.DataFrame({"size": [1.0, 2.0, 4.0], "kind": ["a", "b", "a"]})
    pipe = make_pipeline(SMALL, Ridge()).fit(table, [1.0, 2.0, 3.0])
    assert np.array_equal(pipe.predict(table), pipe[-1].predict(SMALL.transform(table)))
    assert pipe[:-1].get_feature_names_out().tolist() == ["size", "kind=a", "kind=b"]


# ---- targets


def test_targets_pass_through_their_transform() -> None:
    for target in (Target("y"), Target("y", "log"), Target("y", "log1p")):
        values = np.array([0.5, 1.0, 400.0])
        np.testing.assert_allclose(target.decode(target.encode(values)), values, rtol=1e-12)
    assert Target("y", "log").decode([1e9]).tolist() == [math.inf]


@pytest.mark.parametrize(
    ("transform", "values", "said"),
    [
        ("log", [1.0, 0.0], "target 'y', row 1: 0.0 must be a finite number above 0, for transform='log'"),
        (None, [None, 1.0], "target 'y', row 0: the value is missing; it must be a finite number"),
        (None, [math.inf, 1.0, math.nan], "target 'y', row 0 and 1 more row: inf"),
        (None, ["1"], "'1' is of type str"),
        ("log1p", pd.Series(pd.to_datetime(["2000-01-01"])), "is of type datetime64"),
    ],
)
def test_targets_that_cannot_be_learnt_are_refused(transform: Any, values: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Target("y", transform).encode(values)
