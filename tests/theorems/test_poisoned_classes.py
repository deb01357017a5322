"""Digits, tumours and mail, really poisoned: classes hold within the radius, and fall one modification beyond it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier

from poisonproof import CertifiedClassifier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Rows = NDArray[np.float64]
    Labels = NDArray[Any]
    Table = tuple[Rows, Labels, Rows]

DATA = Path(os.environ.get("POISONPROOF_DATA", Path(__file__).parents[3] / "shared" / "data"))
QUERIES = 6
TABLES = ("digits", "breast cancer", "spambase")


def table_of(name: str, n_rows: int) -> Table:
    """Rows to train on, their labels, and rows to predict."""
    if name == "spambase":
        path = DATA / "spambase.data.gz"
        if not path.is_file():
            pytest.skip(f"{path} is absent; point POISONPROOF_DATA at a folder that has it")
        values = np.loadtxt(path, delimiter=",")
        X, y = np.log1p(values[:, :-1]), np.where(values[:, -1] > 0, "spam", "mail")
    elif name == "digits":
        X, y = load_digits(return_X_y=True)
        X = X / 16
    else:
        X, y = load_breast_cancer(return_X_y=True)
        X, y = np.log1p(X), np.where(y > 0, "benign", "malignant")
    chosen = np.random.default_rng(1).permutation(len(y))[: n_rows + QUERIES]
    return X[chosen[QUERIES:]], y[chosen[QUERIES:]], X[chosen[:QUERIES]]


def nearest_of_blocks(home: NDArray[np.int64], X: Rows, query: Rows, n_blocks: int) -> NDArray[np.int64]:
    """The row nearest to the query in each block."""
    distance = np.linalg.norm(X - query, axis=1)
    return np.array([np.where(home == block, distance, np.inf).argmin() for block in range(n_blocks)])


def turned(votes: Labels, held: Any, rival: Any, budget: int) -> NDArray[np.int64]:
    """Which blocks to turn to the rival: first those that vote for the class held, then all others."""
    order = np.argsort(votes != held, kind="stable")
    return order[votes[order] != rival][:budget]


def look_alikes(model: CertifiedClassifier, query: Rows, blocks: NDArray[np.int64]) -> Rows:
    """Rows next to the query, one in each of these blocks."""
    rng = np.random.default_rng(2)
    found: dict[int, Rows] = {}
    while not set(blocks.tolist()) <= set(found):
        candidates = np.tile(query, (8 * model.n_blocks_, 1))
        candidates[:, 0] += rng.normal(scale=1e-9, size=len(candidates))
        found |= dict(zip(model.blocks(candidates).tolist(), candidates, strict=True))
    return np.array([found[block] for block in blocks.tolist()]).reshape(len(blocks), len(query))


def attacked(model: CertifiedClassifier, table: Table, row: int, budget: int, how: str) -> Iterator[Any]:
    """What is predicted after so many flips or insertions, in favour of each other class."""
    X, y, queries = table
    query, held = queries[row], model.predict(queries)[row]
    votes = model.votes(queries)[:, row]
    near = nearest_of_blocks(model.blocks(X), X, query, model.n_blocks_)
    for rival in model.classes_[model.classes_ != held]:
        blocks = turned(votes, held, rival, budget)
        if how == "flip":
            rows, labels = X, y.copy()
            labels[near[blocks]] = rival
        else:
            rows = np.vstack([X, look_alikes(model, query, blocks)])
            labels = np.append(y, np.full(len(blocks), rival))
        yield clone(model).fit(rows, labels).predict(query[None])[0]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("how", "threat"), [("flip", "relabel"), ("insert", "insert+delete")])
def test_neighbours_fall_at_one_flip_or_insertion_more_than_the_radius(name: str, how: str, threat: Any) -> None:
    table = table_of(name, 500)
    X, y, queries = table
    model = CertifiedClassifier(KNeighborsClassifier(1), 14, classes=np.unique(y).tolist(), threat=threat).fit(X, y)
    cert = model.certify(queries)
    assert cert.radius.max() > 3
    for row in np.argsort(-cert.radius)[:3]:
        held = {cert.prediction[row]}
        assert set(attacked(model, table, row, int(cert.radius[row]), how)) == held
        assert set(attacked(model, table, row, int(cert.attack[row]), how)) != held


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("rule", ["plurality", "runoff"])
@pytest.mark.parametrize("spread", [1, 4])
def test_ridge_withstands_flips_and_insertions_by_both_rules(name: str, rule: Any, spread: int) -> None:
    table = table_of(name, 500)
    X, y, queries = table
    learner = RidgeClassifier(0.1)
    model = CertifiedClassifier(learner, 9, spread=spread, rule=rule, classes=np.unique(y).tolist()).fit(X, y)
    cert = model.certify(queries)
    assert cert.radius.max() > 1
    for row in np.argsort(-cert.radius)[:2]:
        held = {cert.prediction[row]}
        for how in ("flip", "insert") if spread == 1 else ("random",):
            if how == "random":
                assert set(scattered(model, table, row, int(cert.radius[row]))) == held
            else:
                assert set(attacked(model, table, row, int(cert.radius[row]), how)) == held


def scattered(model: CertifiedClassifier, table: Table, row: int, budget: int) -> Iterator[Any]:
    """What is predicted after insertions into the blocks that most submodels of the class held train on."""
    X, y, queries = table
    held = model.predict(queries)[row]
    ours = model.votes(queries)[:, row] == held
    weight = np.asarray(model.incidence_[ours].sum(axis=0)).ravel()
    rng = np.random.default_rng(3)
    for rival in rng.permutation(model.classes_[model.classes_ != held])[:3]:
        blocks = np.argsort(-weight + rng.random(len(weight)) / 2)[:budget]
        rows = np.vstack([X, look_alikes(model, queries[row], blocks)])
        yield clone(model).fit(rows, np.append(y, np.full(len(blocks), rival))).predict(queries[row : row + 1])[0]


@pytest.mark.parametrize("name", TABLES)
def test_ridge_withstands_the_deletions_that_hurt_most(name: str) -> None:
    X, y, queries = table_of(name, 330)
    model = CertifiedClassifier(RidgeClassifier(0.1), 11, classes=np.unique(y).tolist(), threat="delete", max_cost=3)
    model.fit(X, y)
    cert, home, votes = model.certify(queries), model.blocks(X), model.votes(queries)
    plain = clone(model).set_params(max_cost=1)
    assert (cert.radius >= plain.fit(X, y).certify(queries).radius).all()
    for row in np.argsort(-cert.radius)[:2]:
        held = cert.prediction[row]
        lists = [
            hurtful(X, y, np.flatnonzero(home == block), queries[row], held)
            for block in np.flatnonzero(votes[:, row] == held)
        ]
        # The cheapest blocks first: those that the fewest deletions turn.
        gone = [int(loss) for losses in sorted(lists, key=len) for loss in losses][: cert.radius[row]]
        assert plain.fit(np.delete(X, gone, 0), np.delete(y, gone)).predict(queries[row : row + 1])[0] == held
        # All rows of the class, on the other hand, are more than it withstands.
        gone = np.flatnonzero(y == held).tolist()
        assert plain.fit(np.delete(X, gone, 0), np.delete(y, gone)).predict(queries[row : row + 1])[0] != held


def hurtful(X: Rows, y: Labels, block: NDArray[np.int64], query: Rows, held: Any) -> list[int]:
    """Up to three rows of a block whose loss, one after the other, lowers the score of the class most."""
    gone: list[int] = []
    while len(gone) < 3:
        left = np.setdiff1d(block, gone)
        margins = [margin(X[left[left != out]], y[left[left != out]], query, held) for out in left]
        gone.append(int(left[np.argmin(margins)]))
        if min(margins) < 0:
            break
    return gone


def margin(X: Rows, y: Labels, query: Rows, held: Any) -> float:
    """How far a ridge classifier on these rows has the class held ahead of the next one."""
    classes = np.unique(y)
    if held not in classes or len(classes) < 2:
        return np.inf if held in classes else -np.inf
    centred, sides = X - X.mean(axis=0), np.where(y[:, None] == classes, 1.0, -1.0)
    slopes = np.linalg.solve(centred.T @ centred + 0.1 * np.eye(X.shape[1]), centred.T @ (sides - sides.mean(axis=0)))
    scores = (query - X.mean(axis=0)) @ slopes + sides.mean(axis=0)
    return float(scores[classes == held][0] - scores[classes != held].max())
