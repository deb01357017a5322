"""Each row becomes numbers by itself, by declared constants; the real files become what is known of them."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.datasets.made_up import csv_of, table_like

from poisonproof.datasets import data_file, load_dataset, load_diamonds, recipe, sources
from poisonproof.datasets.recipes.cells import columns_in
from poisonproof.datasets.recipes.recipe import Encoding, Recipe
from poisonproof.datasets.recipes.weather import COLUMNS
from poisonproof.datasets.synthetic import synthetic_weather, synthetic_weather_columns
from poisonproof.errors import DataError, FileError, ParameterError
from poisonproof.schema import Category, Numeric

if TYPE_CHECKING:
    from poisonproof.datasets.recipes.recipe import EncodingName

NAMES = tuple(each.name for each in sources())
ENCODINGS: tuple[EncodingName, ...] = ("plain", "ours")
HOME = Path(os.environ.get("POISONPROOF_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", NAMES)
def test_a_row_becomes_the_same_bits_in_any_company(name: str, encoding: EncodingName) -> None:
    wanted = recipe(name)
    texts = table_like(wanted, 60)
    whole = wanted.prepared(wanted.checked(dict(texts)), encoding)
    order = np.random.default_rng(1).permutation(60)
    shuffled = wanted.prepared(wanted.checked({column: cells[order] for column, cells in texts.items()}), encoding)
    kept = _kept(wanted, texts)
    places = np.cumsum(kept) - 1
    moved = places[order][kept[order]]
    assert 0 < len(whole) == kept.sum()
    for part in ("X", "y", "lower", "upper"):
        assert getattr(shuffled, part).tobytes() == getattr(whole, part)[moved].tobytes()
    for row in np.flatnonzero(kept)[:7]:
        alone = wanted.prepared(wanted.checked({column: cells[[row]] for column, cells in texts.items()}), encoding)
        assert alone.X.tobytes() == whole.X[[places[row]]].tobytes()
        if whole.offset is not None:
            assert whole.offset(alone.X).tobytes() == whole.offset(whole.X)[[places[row]]].tobytes()


def _kept(wanted: Recipe, texts: dict[str, np.ndarray]) -> np.ndarray:
    if wanted.name == "austin":
        price = texts["latestPrice"].astype(float)
        return (texts["homeType"] == "Single Family") & (price >= 81_000) & (price <= 2_600_000)
    if wanted.name == "life":
        return texts["Life expectancy"] != ""
    return np.ones(len(next(iter(texts.values()))), dtype=bool)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", NAMES)
def test_features_lie_between_their_declared_ends(name: str, encoding: EncodingName) -> None:
    wanted = recipe(name)
    made = wanted.prepared(wanted.checked(table_like(wanted, 200, seed=2)), encoding)
    assert np.isfinite(made.X).all()
    assert made.X.shape == (len(made), len(made.feature_names)) == (len(made), len(made.weights))
    assert made.ranges.shape == (made.X.shape[1], 2)
    assert (made.ranges[:, 0] < made.ranges[:, 1]).all()
    slack = 1e-12 * np.abs(made.ranges).max(axis=1)
    assert (np.clip(made.X, made.ranges[:, 0] - slack, made.ranges[:, 1] + slack) == made.X).all()
    assert (made.weights > 0).all()
    assert (made.lower <= made.y).all()
    assert (made.y <= made.upper).all()
    if encoding == "ours":
        np.testing.assert_array_equal(made.ranges, [[0.0, 1.0]] * made.X.shape[1])
    assert repr(made) == f"<Prepared {name!r}, {encoding} encoding: {len(made)} rows, {made.X.shape[1]} features>"


@pytest.mark.parametrize("name", NAMES)
def test_files_are_read_cell_by_cell(name: str) -> None:
    wanted = recipe(name)
    texts = table_like(wanted, 40, seed=3)
    if name == "weather":
        texts = {column: texts[column] for column in COLUMNS}
    read = wanted.read(io.BytesIO("\ufeff".encode() + csv_of(texts)))
    expected = wanted.checked({column: cells[:: wanted.source.every] for column, cells in texts.items()})
    assert set(read) == set(expected)
    for column, cells in expected.items():
        np.testing.assert_array_equal(read[column], cells)


def test_spambase_may_have_a_line_of_names_or_not() -> None:
    wanted = recipe("spambase")
    texts = table_like(wanted, 10)
    assert wanted.header is not None
    texts = {column: texts[column] for column in wanted.header}
    with_names, without = (wanted.read(io.BytesIO(csv_of(texts, header=header))) for header in (True, False))
    for column, cells in with_names.items():
        np.testing.assert_array_equal(without[column], cells)
    made = wanted.prepared(without)
    spam = texts["spam"] == "1"
    np.testing.assert_array_equal(made.y, np.where(spam, 1, -1))
    # Predictions of 0 and above call a mail spam.
    for prediction, says_spam in ((0.0, True), (-0.0, True), (3.0, True), (-1e-300, False), (-2.0, False)):
        right = (made.lower <= prediction) & (prediction <= made.upper)
        np.testing.assert_array_equal(right, spam == says_spam)


def test_prices_may_be_off_by_a_share_and_years_by_a_number() -> None:
    columns = load_diamonds().columns
    made = recipe("diamonds").prepared({name: cells[:50] for name, cells in columns.items()})
    np.testing.assert_allclose(np.exp(made.upper), 1.15 * columns["price"][:50])
    np.testing.assert_allclose(np.exp(made.lower), 0.85 * columns["price"][:50])
    np.testing.assert_allclose(np.exp(made.y), columns["price"][:50])
    life = recipe("life")
    lives = life.prepared(life.checked(table_like(life, 30)))
    np.testing.assert_allclose(lives.upper - lives.y, 3)
    np.testing.assert_allclose(lives.y - lives.lower, 3)
    assert set(lives.groups) == {"Country", "Year"}


def test_declared_offsets_are_those_of_the_columns() -> None:
    wanted = recipe("diamonds")
    columns = {name: cells[:200] for name, cells in load_diamonds().columns.items()}
    made = wanted.prepared(columns, "ours")
    assert made.offset is not None
    np.testing.assert_allclose(made.offset(made.X), 5 / 3 * np.log(columns["carat"]), atol=1e-12)
    life = recipe("life")
    table = life.checked(
        table_like(life, 50) | {"Year": np.array([str(2000 + year % 16) for year in range(50)], dtype=object)}
    )
    lives = life.prepared(table, "ours")
    assert lives.offset is not None
    np.testing.assert_allclose(lives.offset(lives.X), 0.3 * (table["Year"] - 2007), atol=1e-12)
    assert life.prepared(table).offset is None


def test_an_offset_in_units_and_of_no_number() -> None:
    raw = Encoding([Category("kind", ["a", "b"]), Numeric("size", 2, 5, scale=False)], offset=("size", 2.0, 1.0))
    offset = raw.offset_function()
    assert offset is not None
    np.testing.assert_array_equal(offset(np.array([[1.0, 0.0, 4.0]])), [6.0])
    with pytest.raises(ParameterError, match="'kind' is no number"):
        Encoding([Category("kind", ["a", "b"])], offset=("kind", 2.0, 1.0)).offset_function()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no rows"),
        (b"a,b\r\n", "no rows"),
        (b"a,b\r\n1\r\n", "row 0 of it has 1 cells, but there are 2 columns"),
        (b"a,b\r\n\xff\xfe,1\r\n", "no CSV file"),
    ],
)
def test_broken_files_are_named(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        columns_in(io.BytesIO(content), "it")


def test_blank_lines_and_quotes() -> None:
    read = columns_in(io.BytesIO(b'a, b\r\n"1, 2",x \r\n\r\n3,y\r\n'), "it")
    assert {name: cells.tolist() for name, cells in read.items()} == {"a": ["1, 2", "3"], "b": ["x", "y"]}


def test_missing_columns_and_words_for_numbers() -> None:
    wanted = recipe("spambase")
    texts = table_like(wanted, 5)
    with pytest.raises(DataError, match="spambase has no column 'word_freq_make'"):
        wanted.checked({name: cells for name, cells in texts.items() if name != "word_freq_make"})
    with pytest.raises(DataError, match="spambase has no column 'spam'"):
        wanted.checked({name: cells for name, cells in texts.items() if name != "spam"})
    texts["word_freq_make"][3] = "many"
    with pytest.raises(DataError, match="'word_freq_make' of spambase holds 'many', which is no number"):
        wanted.checked(texts)
    with pytest.raises(ParameterError, match="encoding='theirs' is unknown; use 'plain' or 'ours'"):
        wanted.encoding("theirs")  # type: ignore[arg-type]


def test_weather_files_are_checked_while_they_are_read() -> None:
    wanted = recipe("weather")
    texts = {column: cells for column, cells in table_like(wanted, 30).items() if column in COLUMNS}
    with pytest.raises(DataError, match="no column 'fact_latitude'"):
        wanted.read(io.BytesIO(csv_of({name: cells for name, cells in texts.items() if name != "fact_latitude"})))
    with pytest.raises(DataError, match="no rows"):
        wanted.read(io.BytesIO(csv_of(texts).split(b"\r\n")[0]))
    lines = csv_of(texts).split(b"\r\n")
    lines[11] = b"1,2,3"
    with pytest.raises(DataError, match="used row 1 of weather has 3 cells"):
        wanted.read(io.BytesIO(b"\r\n".join(lines)))


def test_synthetic_weather_says_what_it_is() -> None:
    made = synthetic_weather(500, seed=4, data_dir="nowhere")
    assert made.synthetic
    assert made.name == "synthetic weather"
    assert "SYNTHETIC" in repr(made)
    assert made.X.shape == (500, 140)
    assert len(set(made.feature_names)) == 140
    assert (made.X.std(axis=0) > 0).sum() > 130
    again, other = (synthetic_weather(500, seed=seed, data_dir="nowhere") for seed in (4, 5))
    np.testing.assert_array_equal(again.X, made.X)
    assert (other.y != made.y).any()
    ours = synthetic_weather(500, seed=4, encoding="ours", data_dir="nowhere")
    assert ours.offset is not None
    assert np.abs(ours.offset(ours.X) - ours.y).mean() < 3, "forecasts are about right"
    for wrong in (0, 1.5, True):
        with pytest.raises(ParameterError, match="n_rows="):
            synthetic_weather(wrong)  # type: ignore[arg-type]


def test_synthetic_weather_follows_statistics_at_hand(tmp_path: Path) -> None:
    folder = tmp_path / "weather"
    folder.mkdir()
    names = ["gfs_u_wind", "gfs_v_wind"]
    edges = {"gfs_u_wind": "[0, 1, 10]", "gfs_v_wind": "[5, 6]"}
    entries = ", ".join(f'{{"name": "{name}", "bin_edges": {edges[name]}}}' for name in names)
    (folder / "shifts_weather_train_marginals.json").write_text(f'{{"features": [{entries}]}}')
    ranks = folder / "shifts_weather_train_rankcorr.npz"
    np.savez(ranks, names=np.array(names), corr=np.array([[1.0, -0.9], [-0.9, 1.0]]))
    columns = synthetic_weather_columns(4000, data_dir=tmp_path)
    u, v = columns["gfs_u_wind"], columns["gfs_v_wind"]
    assert 0 <= u.min() < u.max() <= 10
    assert abs(np.median(u) - 1) < 0.2
    assert np.corrcoef(u, v)[0, 1] < -0.6
    ranks.write_bytes(b"no arrays")
    with pytest.raises(FileError, match="remove them to go without"):
        synthetic_weather_columns(10, data_dir=tmp_path)


def test_diamonds_need_no_file(tmp_path: Path) -> None:
    for encoding, width in (("plain", 26), ("ours", 27)):
        made = load_dataset("diamonds", encoding, tmp_path)  # type: ignore[arg-type]
        assert made.X.shape == (53_940, width)
        assert len(set(made.feature_names)) == width


FACTS = {  # rows, plain features
    "ames": (2930, 327),
    "austin": (14_111, 111),
    "life": (2928, 204),
    "spambase": (4601, 57),
}


@pytest.mark.parametrize("name", FACTS)
def test_the_real_files_become_what_is_known_of_them(name: str) -> None:
    try:
        data_file(name, HOME)
    except FileError:
        pytest.skip(f"{name} is not in {HOME}; set POISONPROOF_DATA")
    plain, ours = (load_dataset(name, encoding, HOME) for encoding in ENCODINGS)
    assert plain.X.shape == FACTS[name]
    np.testing.assert_array_equal(plain.y, ours.y)
    # Every declared one-hot block finds its category in nearly every row, so the lists fit the file.
    for encoding, made in (("plain", plain), ("ours", ours)):
        declared = recipe(name).encoding(encoding)  # type: ignore[arg-type]
        owners = np.array(declared.owners)
        for column in declared.columns:
            hot = isinstance(column, Category) and column.name != "latestPriceSource"
            if hot and "NA" not in _labels(name, column.name):
                assert made.X[:, owners == column.name].any(axis=1).mean() > 0.98, column.name


def _labels(name: str, column: str) -> tuple[str, ...]:
    return next(tuple(map(str, each.categories)) for each in recipe(name).ours.columns if each.name == column)  # type: ignore[union-attr]
