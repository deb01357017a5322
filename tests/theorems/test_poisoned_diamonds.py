"""The bundled diamonds, really poisoned: the certified prices hold within the radius, and fall one row beyond it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from poisonproof import CertifiedRegressor
from poisonproof.datasets import load_diamonds

ROWS, QUERIES = 6000, 10
FAR = 1e4  # on a logarithm of a price: one such row moves any submodel anywhere

Table = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def diamonds() -> Table:
    data = load_diamonds()
    chosen = np.random.default_rng(0).permutation(len(data.y))[: ROWS + QUERIES]
    return data.X[chosen[QUERIES:]], np.log(data.y[chosen[QUERIES:]]), data.X[chosen[:QUERIES]]


def look_alikes(model: CertifiedRegressor, query: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Rows that look like the query, one in each of these blocks."""
    rng = np.random.default_rng(2)
    found: dict[int, np.ndarray] = {}
    while not set(blocks.tolist()) <= set(found):
        candidates = np.tile(query, (4 * model.n_blocks_, 1))
        candidates[:, 0] += rng.normal(scale=1e-6, size=len(candidates))
        found |= dict(zip(model.blocks(candidates).tolist(), candidates, strict=True))
    return np.array([found[block] for block in blocks.tolist()]).reshape(len(blocks), len(query))


def test_insertions_break_the_prediction_at_one_more_than_the_radius(diamonds: Table) -> None:
    X, y, queries = diamonds
    model = CertifiedRegressor(Ridge(alpha=0.06), 51).fit(X, y)
    bound = model.predict(queries) + 0.15
    cert = model.certify(queries, upper=bound)
    assert np.median(cert.radius) > 5
    votes = model.votes(queries)
    for row, query in enumerate(queries):
        inside = np.flatnonzero(votes[:, row] <= bound[row])
        for budget, withstood in ((int(cert.radius[row]), True), (int(cert.attack[row]), False)):
            rows = look_alikes(model, query, inside[:budget])
            attacked = clone(model).fit(np.vstack([X, rows]), np.append(y, np.full(budget, FAR)))
            assert (attacked.predict(query[None])[0] <= bound[row]) == withstood


@pytest.mark.parametrize("max_cost", [1, 2])
def test_deletions_within_the_radius_are_withstood(diamonds: Table, max_cost: int) -> None:
    X, y, queries = diamonds
    X, y = X[:1200], y[:1200]
    model = CertifiedRegressor(Ridge(alpha=0.06), 15, threat="delete", max_cost=max_cost).fit(X, y)
    bound = model.predict(queries) + 0.1
    cert = model.certify(queries, upper=bound)
    plain = clone(model).set_params(max_cost=1).fit(X, y)
    assert (cert.radius >= plain.certify(queries, upper=bound).radius).all()
    votes, home = model.votes(queries), model.blocks(X)
    for row in np.argsort(-cert.radius)[:4]:
        # Block by block from the highest vote down, the rows with the lowest prices go: their loss raises the vote.
        order = np.argsort(-np.where(votes[:, row] <= bound[row], votes[:, row], -np.inf))
        losses = [np.flatnonzero(home == block)[np.argsort(y[home == block])[:max_cost]] for block in order]
        gone = np.concatenate(losses)[: cert.radius[row]]
        after = clone(plain).fit(np.delete(X, gone, 0), np.delete(y, gone)).predict(queries[row : row + 1])[0]
        assert after <= bound[row]
