"""Real tables, poisoned as the ranks of the model's own search advise: radii hold, and one modification more breaks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from poisonproof.neighbors import CertifiedNeighborsClassifier, CertifiedNeighborsRegressor
from poisonproof.partition import content_digests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from poisonproof.threat import Moves

    Table = tuple[NDArray[np.float64], NDArray[Any]]

HOME = Path(os.environ.get("POISONPROOF_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
THREATS: list[Moves] = ["insert+delete", "insert", "delete", "relabel"]

# Declared ends of some columns of each table, its target, and half the width of the bounds around a prediction.
TABLES: dict[str, tuple[dict[str, tuple[float, float]], str, float]] = {
    "ames": ({"Gr Liv Area": (300, 4000), "Overall Qual": (1, 10), "Year Built": (1870, 2010)}, "SalePrice", 20_000.0),
    "life": ({"Adult Mortality": (0, 600), "Schooling": (0, 20), "Year": (2000, 2015)}, "Life expectancy", 3.0),
    "diamonds": ({"carat": (0.2, 3), "depth": (55, 70), "table": (50, 70)}, "price", 900.0),
}


def read(name: str, **settings: Any) -> pd.DataFrame:
    path = HOME / name
    if not path.exists():
        pytest.skip(f"{path} is absent; point POISONPROOF_DATA at a folder that has it")
    return pd.read_csv(path, **settings)


def labels_that_come_first(near: float, count: int, key: int) -> NDArray[np.float64]:
    """Labels near a value whose hashes are so small that they precede those of other rows like them."""
    labels = near + np.arange(512.0 * (count > 0))
    digests = content_digests(labels[:, None], key)
    return labels[np.lexsort((digests[:, 1], digests[:, 0]))][:count]


def poisoned(model: Any, table: Table, x: NDArray[Any], *, spent: int, bad: Any, good: Any) -> Iterator[Table]:
    """The most promising mixtures of insertions at x and deletions of good neighbours; ``good`` marks good rows."""
    X, y = table
    order = model.kneighbors(x[None], len(y))[1][0]
    victims = order[good[order]]
    if model.threat == "relabel":
        other = y.copy()
        other[victims[:spent]] = bad(spent)
        yield X, other
        return
    inserted = np.arange(min(spent, model.n_neighbors) + 1)
    inserted = inserted[{"insert": spent, "delete": 0}.get(model.threat, slice(None))].reshape(-1)
    ranks = np.append(0, np.cumsum(good[order]))
    reach = model.n_neighbors - inserted + (spent - inserted)
    left = np.where(reach > len(y), -1, ranks[np.minimum(reach, len(y))] - (spent - inserted))
    for count in inserted[np.argsort(left)[:2]]:
        gone = victims[: spent - count]
        rows = np.concatenate([np.delete(X, gone, axis=0), np.tile(x, (count, 1))])
        yield rows, np.append(np.delete(y, gone), bad(count))


@pytest.mark.parametrize("moves", THREATS)
@pytest.mark.parametrize("name", TABLES)
def test_medians_on(name: str, moves: Moves) -> None:
    columns, target, width = TABLES[name]
    frame = read(f"{name}.csv.gz").rename(columns=str.strip)[[*columns, target]].dropna()
    values = frame.sample(min(len(frame), 2510), random_state=2).to_numpy(dtype=np.float64)
    X, y, rows = values[10:, :-1], values[10:, -1], values[:10, :-1]
    model = CertifiedNeighborsRegressor(31, metric="manhattan", ranges=list(columns.values()), threat=moves).fit(X, y)
    cert = model.certify(rows, within=width, relative=False)
    assert cert.exact.all()
    assert cert.radius.max() > 5
    for place, x in enumerate(rows):
        for budget, holds in ((cert.radius[place], True), (cert.attack[place], False)):
            outside = []
            for sign in (-1.0, 1.0):
                bound = cert.prediction[place] + sign * width
                good = sign * y <= sign * bound
                bad = lambda count, sign=sign: labels_that_come_first(sign * 1e9, count, model.key)  # noqa: E731  bound here
                for attacked in poisoned(model, (X, y), x, spent=int(budget), bad=bad, good=good):
                    moved = clone(model).fit(*attacked).predict(x[None])[0] - cert.prediction[place]
                    outside.append(abs(moved) > width)
            assert not any(outside) if holds else any(outside)


@pytest.mark.parametrize("moves", THREATS)
def test_classes_on_spambase(moves: Moves) -> None:
    values = read("spambase.data.gz", header=None).sample(3000, random_state=2).to_numpy(dtype=np.float64)
    encoded = np.log1p(10 * values[:, :-1])
    # Rows that are in the table twice tie with what is inserted there, and no label of two can win every tie.
    encoded, first = np.unique(encoded, axis=0, return_index=True)
    shuffled = np.random.default_rng(3).permutation(len(first))
    X, y = encoded[shuffled], values[first[shuffled], -1].astype(int)
    rows, X, labels = X[:8], X[8:], y[8:]
    model = CertifiedNeighborsClassifier(31, classes=[0, 1], threat=moves).fit(X, labels)
    cert = model.certify(rows)
    assert cert.radius.max() > 5
    for place, x in enumerate(rows):
        kept = cert.prediction[place]
        for budget, holds in ((cert.radius[place], True), (cert.attack[place], False)):
            bad = lambda count, kept=kept: np.full(count, 1 - kept)  # noqa: E731  as above
            attacks = poisoned(model, (X, labels), x, spent=int(budget), bad=bad, good=labels == kept)
            same = [clone(model).fit(*attacked).predict(x[None])[0] == kept for attacked in attacks]
            assert all(same) if holds else not all(same)
