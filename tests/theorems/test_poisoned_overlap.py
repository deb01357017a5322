"""Overlapping blocks, really poisoned: nothing within the radius moves a prediction out; the witness's blocks do."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.neighbors import KNeighborsRegressor
from tests.strategies import LEARNERS, Poisoner, random_table

from poisonproof import CertifiedRegressor, KernelRidge
from poisonproof.layout import make_layout

FAR = 1e6
LAYOUTS: list[dict[str, Any]] = [
    {"n_partitions": 6, "spread": 4, "layout": "triples"},
    {"n_partitions": 5, "spread": 3, "layout": "paired"},
    {"n_partitions": 5, "spread": 3, "layout": "fano"},
    {"n_partitions": 5, "spread": 3, "layout": "random"},
]

pytestmark = pytest.mark.filterwarnings("ignore:.*have no rows")


def struck(model: CertifiedRegressor, X: np.ndarray, y: np.ndarray, blocks: np.ndarray, label: float) -> Any:
    """The model, refitted with one far-off row in each of these blocks."""
    rows = Poisoner(model, np.random.default_rng(0)).rows_in(blocks)
    return clone(model).fit(np.vstack([X, rows]), np.append(y, np.full(len(rows), label)))


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one["layout"])
def test_insertions(layout: dict[str, Any]) -> None:
    rng = np.random.default_rng(7)
    exact = 0
    for _ in range(12):
        X, y = random_table(rng, 80)
        model = CertifiedRegressor(DummyRegressor(), **layout).fit(X, y)
        query = X[:1]
        width = rng.uniform(0.1, 0.6)
        cert = model.certify(query, within=width, relative=False, witness=True)
        assert cert.lower is not None
        assert cert.upper is not None
        assert cert.witness is not None
        touched = np.flatnonzero(cert.witness.toarray()[0])
        assert cert.witness.sum() == cert.attack[0]
        after = [struck(model, X, y, touched, label).predict(query)[0] for label in (FAR, -FAR)]
        assert any(not cert.lower[0] <= value <= cert.upper[0] for value in after)
        for _ in range(4):
            within = rng.permutation(model.n_blocks_)[: cert.radius[0]] if rng.random() < 0.5 else touched[:-1]
            for label in (FAR, -FAR):
                value = struck(model, X, y, within[: cert.radius[0]], label).predict(query)[0]
                assert cert.lower[0] <= value <= cert.upper[0]
        exact += int(cert.exact[0])
    assert exact >= 10


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one["layout"])
@pytest.mark.parametrize("name", ["ridge", "tree"])
def test_every_small_set_of_deletions(layout: dict[str, Any], name: str) -> None:
    rng = np.random.default_rng(11)
    deepest = 0
    for _ in range(2):
        X, y = random_table(rng, 12)
        model = CertifiedRegressor(LEARNERS[name], threat="delete", max_cost=2, **layout).fit(X, y)
        plain = clone(model).set_params(max_cost=1)
        queries = rng.normal(size=(5, 2))
        cert = model.certify(queries, within=3.0, relative=False)
        unit = clone(plain).fit(X, y).certify(queries, within=3.0, relative=False)
        assert (cert.radius >= unit.radius).all()
        assert cert.lower is not None
        assert cert.upper is not None
        for size in range(1, 3):
            band = model.interval(queries, size)
            for gone in combinations(range(12), size):
                after = clone(plain).fit(np.delete(X, gone, 0), np.delete(y, gone)).predict(queries)
                safe = cert.radius >= size
                assert (after >= cert.lower)[safe].all()
                assert (after <= cert.upper)[safe].all()
                assert (after >= band.lower).all()
                assert (after <= band.upper).all()
                deepest = max(deepest, size if safe.any() else 0)
    assert deepest >= 1


def test_one_modification_breaks_three_submodels_that_share_a_block() -> None:
    shares = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
    rng = np.random.default_rng(0)
    X, y = random_table(rng, 60)
    model = CertifiedRegressor(KNeighborsRegressor(1), layout=shares).fit(X, y)
    query = rng.normal(size=(1, 2))
    cert = model.certify(query, upper=100.0, witness=True)
    assert model.n_submodels_ == 3
    assert (cert.radius[0], cert.attack[0]) == (0, 1)  # one row in the shared block tips two votes of three
    assert cert.witness is not None
    assert cert.witness.toarray()[0].tolist() == [1, 0, 0, 0]
    while True:
        row = query + rng.normal(scale=1e-9, size=(1, 2))
        if model.blocks(row)[0] == 0:
            break
    assert clone(model).fit(np.vstack([X, row]), np.append(y, FAR)).predict(query)[0] > 100.0


def test_costs_never_lower_a_radius_of_the_same_layout() -> None:
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(400, 3))
    y = X.sum(axis=1) + 0.05 * rng.normal(size=400)
    queries = rng.uniform(size=(40, 3))
    gained = 0
    for layout in LAYOUTS:
        radii = [
            CertifiedRegressor(KernelRidge(), threat="delete", max_cost=max_cost, **layout)
            .fit(X, y)
            .certify(queries, within=0.1)
            .radius
            for max_cost in (1, 2)
        ]
        assert (radii[1] >= radii[0]).all()
        gained += int((radii[1] > radii[0]).sum())
    assert gained > 40


def test_a_layout_of_ones_own_is_the_named_one() -> None:
    rng = np.random.default_rng(4)
    X, y = random_table(rng, 100)
    named = CertifiedRegressor(n_partitions=6, spread=4).fit(X, y)
    own = CertifiedRegressor(layout=make_layout(6, 4).incidence).fit(X, y)
    assert np.array_equal(named.votes(X[:5]), own.votes(X[:5]))
    assert np.array_equal(named.certify(X[:5], within=0.2).radius, own.certify(X[:5], within=0.2).radius)
    band = named.interval(X[:5], 2)
    assert (band.lower <= band.prediction).all()
    assert (band.prediction <= band.upper).all()
