"""Presets are declared in full, build what they say, and certify."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from tests.datasets.made_up import csv_of, table_like

from poisonproof.datasets import Preset, load_diamonds, preset, presets, recipe
from poisonproof.datasets.recipes.life import SameCountry
from poisonproof.ensemble import CertifiedRegressor
from poisonproof.errors import ParameterError
from poisonproof.neighbors import CertifiedKernelRegressor, CertifiedNeighborsRegressor

MODELS: dict[str, Any] = {
    "kernel ridge blocks": CertifiedRegressor,
    "neighbors": CertifiedNeighborsRegressor,
    "kernel median": CertifiedKernelRegressor,
}


def test_two_presets_for_each_data_set_of_real_rows() -> None:
    assert [(each.dataset, each.radii) for each in presets()] == [
        (name, radii) for name in ("ames", "austin", "diamonds", "life", "spambase") for radii in ("low", "high")
    ]
    with pytest.raises(ParameterError, match="for data set 'weather'; there are some for 'ames', 'austin'"):
        preset("weather", "low")
    with pytest.raises(ParameterError, match="radii='middle' is unknown; use 'low' or 'high'"):
        preset("ames", "middle")  # type: ignore[arg-type]


@pytest.mark.parametrize("wanted", presets(), ids=lambda each: f"{each.dataset}-{each.radii}")
def test_presets_fit_and_certify(wanted: Preset) -> None:
    chosen = preset(wanted.dataset, wanted.radii)
    assert chosen is wanted
    found = recipe(chosen.dataset)
    texts = table_like(found, 900, seed=1)
    if chosen.dataset == "spambase":
        texts = {name: texts[name] for name in found.header or ()}
    rows = found.prepared(found.read(io.BytesIO(csv_of(texts))), "ours")
    assert len(rows) > 310
    model = chosen.build(size=11)
    assert type(model) is MODELS[chosen.kind]
    assert model.threat == "insert+delete"
    if chosen.offset:
        assert rows.offset is not None
        np.testing.assert_array_equal(model.offset(rows.X), rows.offset(rows.X))
    model.fit(rows.X[:300], rows.y[:300])
    proof = model.certify(rows.X[300:310], rows.y[300:310] - 1, rows.y[300:310] + 1)
    assert proof.radius.shape == (10,)
    assert proof.radius.max() <= 300


def test_every_factor_names_a_column() -> None:
    for each in presets():
        columns = {column.name for column in recipe(each.dataset).ours.columns}
        assert set(each.factors) <= columns, each.dataset
        assert set(recipe(each.dataset).ours.weights) <= columns, each.dataset


def test_sizes_are_odd_and_settings_reach_the_model() -> None:
    for each in presets():
        assert each.size % 2 == 1 or each.kind == "kernel median"
    model = preset("diamonds", "low").build(threat="delete", n_jobs=1, key=7)
    assert (model.n_partitions, model.threat, model.key, model.estimator.alpha) == (801, "delete", 7, 0.03)
    near = preset("life", "high").build()
    assert (near.n_neighbors, near.metric, near.offset) == (501, "manhattan", None)


def test_diamonds_are_certified_far_from_chance() -> None:
    found = recipe("diamonds")
    some = np.random.default_rng(0).choice(53_940, 3200, replace=False)
    rows = found.prepared({name: cells[some] for name, cells in load_diamonds().columns.items()}, "ours")
    model = preset("diamonds", "low").build(size=75).fit(rows.X[200:], rows.y[200:])
    proof = model.certify(rows.X[:200], rows.lower[:200], rows.upper[:200])
    assert (proof.radius >= 1).mean() > 0.7
    assert (proof.radius >= 10).mean() > 0.5


def test_rows_of_one_country_are_alike() -> None:
    found = recipe("life")
    texts = {name: cells.repeat(4) for name, cells in table_like(found, 1).items()}
    texts["Country"] = np.array(["Chile", "Chile", "Peru", "Atlantis"], dtype=object)
    texts["Year"] = np.array(["2000", "2004", "2000", "2000"], dtype=object)
    texts["Life expectancy"] = np.array(["70"] * 4, dtype=object)
    rows = found.prepared(found.checked(texts), "ours").X
    np.testing.assert_array_equal(SameCountry()(rows, rows), [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    np.testing.assert_allclose(SameCountry(reach=8)(rows[:1], rows), [[1, 0.5, 0, 0]])
    np.testing.assert_array_equal(SameCountry(reach=4)(rows[:1], rows[:2]), [[1, 0]])
