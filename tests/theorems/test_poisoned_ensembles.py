"""Really poison, really refit, and look: no attack within the radius moves a prediction out; one more often does."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from tests.strategies import LEARNERS, Poisoner, random_table

from poisonproof import CertifiedRegressor

FAR = 1e6


def poisoned(
    poisoner: Poisoner, X: np.ndarray, y: np.ndarray, blocks: np.ndarray, label: float
) -> tuple[np.ndarray, np.ndarray]:
    """One modification in each of these blocks: an inserted far-off row, or a deletion where that is drawn."""
    home = poisoner.model.blocks(X)
    keep = np.ones(len(X), dtype=bool)
    inserts = []
    for block in blocks:
        inside = np.flatnonzero(home == block)
        if len(inside) and poisoner.rng.random() < 0.3:
            extreme = np.argmin(y[inside]) if label > 0 else np.argmax(y[inside])
            keep[inside[extreme]] = False
        else:
            inserts.append(block)
    rows = poisoner.rows_in(np.array(inserts, dtype=np.int64))
    return np.vstack([X[keep], rows]), np.append(y[keep], np.full(len(rows), label))


def strongest_blocks(
    model: CertifiedRegressor, query: np.ndarray, bound: float, label: float, count: int
) -> np.ndarray:
    """Blocks whose votes are inside, the ones furthest inside last, so that as many as possible can be tipped."""
    votes = model.votes(query)[:, 0]
    inside = votes <= bound if label > 0 else votes >= bound
    order = np.argsort(votes if label < 0 else -votes, kind="stable")
    return np.array([block for block in order if inside[block]][:count], dtype=np.int64)


@pytest.mark.filterwarnings("ignore:.*vote the declared empty_value")
@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_no_attack_within_the_radius_succeeds(name: str) -> None:
    rng = np.random.default_rng([len(name), 7])
    attacks = 0
    for _ in range(40):
        X, y = random_table(rng, int(rng.integers(20, 60)))
        model = CertifiedRegressor(LEARNERS[name], int(rng.choice([5, 7, 11]))).fit(X, y)
        query = X[rng.integers(len(X))][None]
        prediction = model.predict(query)[0]
        low, high = prediction - rng.uniform(0, 1), prediction + rng.uniform(0, 1)
        radius = int(model.certify(query, low, high).radius[0])
        poisoner = Poisoner(model, rng)
        for label, bound in ((FAR, high), (-FAR, low)):
            blocks = strongest_blocks(model, query, bound, label, radius)
            after = clone(model).fit(*poisoned(poisoner, X, y, blocks, label)).predict(query)[0]
            assert low <= after <= high
            attacks += 1
    assert attacks == 80


@pytest.mark.filterwarnings("ignore:.*vote the declared empty_value")
def test_one_more_insertion_breaks_an_ensemble_of_means() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        X, y = random_table(rng, int(rng.integers(20, 60)))
        model = CertifiedRegressor(DummyRegressor(), int(rng.choice([5, 7, 11]))).fit(X, y)
        query = X[:1]
        prediction = model.predict(query)[0]
        low, high = prediction - rng.uniform(0, 1), prediction + rng.uniform(0, 1)
        cert = model.certify(query, low, high)
        assert cert.exact.all()
        broken = False
        for label, bound in ((FAR, high), (-FAR, low)):
            blocks = strongest_blocks(model, query, bound, label, int(cert.attack[0]))
            rows = Poisoner(model, rng).rows_in(blocks)
            attacked = clone(model).fit(np.vstack([X, rows]), np.append(y, np.full(len(rows), label)))
            broken |= not low <= attacked.predict(query)[0] <= high
        assert broken


@pytest.mark.filterwarnings("ignore:.*vote the declared empty_value")
@pytest.mark.parametrize(("name", "max_cost"), [("mean", 2), ("ridge", 2), ("tree", 2), ("neighbour", 2), ("mean", 3)])
def test_every_set_of_deletions_within_the_radius_is_withstood(name: str, max_cost: int) -> None:
    rng = np.random.default_rng([len(name), max_cost])
    deepest = 0
    for _ in range(8):
        X, y = random_table(rng, 9)
        model = CertifiedRegressor(LEARNERS[name], 3, threat="delete", max_cost=max_cost).fit(X, y)
        query = rng.normal(size=(1, 2))
        cert = model.certify(query, within=float(rng.choice([0.5, 2.0, 8.0])), relative=False)
        radius = min(int(cert.radius[0]), 3)
        deepest = max(deepest, radius)
        plain = clone(model).set_params(max_cost=1)
        for size in range(radius + 1):
            for gone in combinations(range(len(X)), size):
                after = plain.fit(np.delete(X, gone, 0), np.delete(y, gone)).predict(query)[0]
                assert cert.lower is not None
                assert cert.upper is not None
                assert cert.lower[0] <= after <= cert.upper[0]
    assert deepest == 3


@pytest.mark.filterwarnings("ignore:.*vote the declared empty_value")
@pytest.mark.parametrize("partition_by", ["features", "row"])
def test_relabelling_within_the_radius_is_withstood(partition_by: Any) -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        X, y = random_table(rng, 40)
        model = CertifiedRegressor(DummyRegressor(), 9, partition_by=partition_by, threat="relabel").fit(X, y)
        query = X[:1]
        cert = model.certify(query, within=1.0, relative=False)
        home = model.blocks(X, y)
        votes = model.votes(query)[:, 0]
        # The lowest votes first: each of them relabelled upwards takes its block above the bound.
        chosen = [np.flatnonzero(home == block)[0] for block in np.argsort(votes) if np.any(home == block)]
        relabelled = y.copy()
        relabelled[chosen[: int(cert.radius[0])]] = FAR
        assert cert.upper is not None
        assert clone(model).fit(X, relabelled).predict(query)[0] <= cert.upper[0]


@pytest.mark.filterwarnings("ignore:.*vote the declared empty_value")
def test_whole_sources_within_the_radius_may_do_anything() -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        X, y = random_table(rng, 60)
        groups = rng.integers(0, 25, 60)
        model = CertifiedRegressor(DummyRegressor(), 9, partition_by="source").fit(X, y, groups=groups)
        cert = model.certify(X[:1], within=1.0, relative=False)
        votes = model.votes(X[:1])[:, 0]
        home = model.blocks(X, groups=groups)
        worst = [groups[home == block][0] for block in np.argsort(votes) if np.any(home == block)]
        bad = np.isin(groups, worst[: int(cert.radius[0])])
        after = clone(model).fit(np.where(bad[:, None], 9.0, X), np.where(bad, FAR, y), groups=groups).predict(X[:1])
        assert cert.upper is not None
        assert after[0] <= cert.upper[0]


@pytest.mark.filterwarnings("ignore:.*vote the declared empty_value")
@pytest.mark.parametrize("budget", [0, 1, 2, 3])
def test_the_interval_contains_every_attacked_prediction_and_its_ends_are_reached(budget: int) -> None:
    rng = np.random.default_rng(budget)
    for _ in range(30):
        X, y = random_table(rng, 50)
        model = CertifiedRegressor(DummyRegressor(), 7).fit(X, y)
        query = X[:1]
        ends = model.interval(query, budget)
        for label in (FAR, -FAR):
            order = np.argsort(np.sign(label) * model.votes(query)[:, 0])
            blocks = order[:budget]
            rows = Poisoner(model, rng).rows_in(blocks)
            after = clone(model).fit(np.vstack([X, rows]), np.append(y, np.full(len(rows), label))).predict(query)[0]
            assert ends.lower[0] <= after <= ends.upper[0]
            assert after == (ends.upper[0] if label > 0 else ends.lower[0])
