"""The bundled rows are the published ones, and the published figures are complete."""

from __future__ import annotations

import gzip
import hashlib
from importlib.resources import files

import numpy as np
import pytest

from poisonproof.datasets import bundled, load_diamonds, published_accuracy, published_setup
from poisonproof.errors import FileError, ParameterError


@pytest.fixture(scope="module")
def diamonds() -> bundled.Dataset:
    return load_diamonds()


def test_the_file_is_the_original_with_its_licence() -> None:
    folder = files("poisonproof.datasets") / "diamonds"
    content = gzip.decompress((folder / "diamonds.csv.gz").read_bytes())
    assert hashlib.sha256(content).hexdigest() == "9574730b03aba241d899c4a97511c5061b19358fab89510774fb6c24168345c4"
    assert (folder / "LICENSE").read_text().startswith("The MIT License")
    assert "plotnine" in (folder / "README.md").read_text()


def test_columns_are_read_as_they_stand(diamonds: bundled.Dataset) -> None:
    assert len(diamonds) == 53_940
    first = {name: column[0] for name, column in diamonds.columns.items()}
    assert first == {
        "carat": 0.23,
        "cut": "Ideal",
        "color": "E",
        "clarity": "SI2",
        "depth": 61.5,
        "table": 55.0,
        "price": 326.0,
        "x": 3.95,
        "y": 3.98,
        "z": 2.43,
    }
    last = {name: column[-1] for name, column in diamonds.columns.items()}
    assert last["price"] == 2757
    assert last["z"] == 3.64
    assert sum(diamonds.columns["cut"] == "Fair") == 1610


def test_every_cell_agrees_with_a_csv_reader(diamonds: bundled.Dataset) -> None:
    polars = pytest.importorskip("polars", reason="needs the io extra")
    content = gzip.decompress((files("poisonproof.datasets") / "diamonds" / "diamonds.csv.gz").read_bytes())
    frame = polars.read_csv(content)
    assert frame.columns == list(diamonds.columns)
    for name, column in diamonds.columns.items():
        np.testing.assert_array_equal(column, frame[name].to_numpy().astype(column.dtype))


def test_the_encoding_is_declared(diamonds: bundled.Dataset) -> None:
    assert diamonds.X.shape == (53_940, 26)
    names = list(diamonds.encoded_names)
    assert names[:7] == ["carat", "depth", "table", "x", "y", "z", "cut=Fair"]
    for prefix, count in (("cut=", 5), ("color=", 7), ("clarity=", 8)):
        places = [place for place, name in enumerate(names) if name.startswith(prefix)]
        assert len(places) == count
        assert (diamonds.X[:, places].sum(axis=1) == 1).all(), "every grade is declared"
    for name, (low, high) in diamonds.ranges.items():
        expected = np.clip(diamonds.columns[name], low, high)
        np.testing.assert_array_equal(diamonds.X[:, names.index(name)], expected)
    np.testing.assert_array_equal(diamonds.y, diamonds.columns["price"])
    assert diamonds.feature_names == (*diamonds.ranges, *diamonds.categories)


def test_encoding_a_row_needs_no_other_row(diamonds: bundled.Dataset) -> None:
    some = {name: column[100:103] for name, column in diamonds.columns.items()}
    np.testing.assert_array_equal(diamonds.schema.transform(some), diamonds.X[100:103])


def test_a_changed_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "_SHA256", "0" * 64)
    with pytest.raises(FileError, match="install poisonproof again"):
        load_diamonds()


def test_published_figures() -> None:
    figures = published_accuracy("diamonds", "PCR", 151)
    assert [(figure.radius, figure.mean, figure.sd) for figure in figures[:3]] == [
        (1, 0.746, 0.038),
        (35, 0.644, 0.046),
        (70, 0.386, 0.057),
    ]
    names = ("ames", "austin", "diamonds", "weather", "life", "spambase")
    everything = [figure for name in names for figure in published_accuracy(name)]
    assert len(everything) == 480
    assert all(0 <= figure.mean <= 1 and figure.sd >= 0 for figure in everything)
    # More modifications are never certified more often, within one method and one number of submodels.
    for method in ("PCR", "OCR", "W-PCR", "W-OCR", "kNN-CR"):
        means = [figure.mean for figure in published_accuracy("diamonds", method, 501)]
        assert means == sorted(means, reverse=True)


def test_published_setups() -> None:
    setup = published_setup("diamonds")
    assert (setup.n_features, setup.submodel, setup.n_partitions) == (26, "ridge", (151, 501, 1001))
    assert setup.baseline_mean == 0.736


def test_unknown_figures_list_those_there_are() -> None:
    with pytest.raises(ParameterError, match="'diamond'; there are 'ames', 'austin', 'diamonds'"):
        published_accuracy("diamond")
    with pytest.raises(ParameterError, match="method 'CR'; there are 'PCR', 'OCR'"):
        published_accuracy("diamonds", "CR")
    with pytest.raises(ParameterError, match="n_partitions 5; there are 1, 151, 501, 1001"):
        published_accuracy("diamonds", "PCR", 5)
    with pytest.raises(ParameterError, match="no figures"):
        published_setup("iris")
