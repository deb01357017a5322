"""Nearest neighbours at scale and in strength: search, certificates and memory, one JSON line each."""

from __future__ import annotations

import json
import resource
import time
from typing import TYPE_CHECKING

import numpy as np
from bench.measure import ratio
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from poisonproof.datasets import load_diamonds
from poisonproof.neighbors import CertifiedNeighborsRegressor

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, FEATURES, NEIGHBOURS, QUERIES = 301_000, 140, 150_645, 100


def resident() -> float:
    """The largest memory so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


def scale() -> None:
    """A neighbourhood of half a large table, against scikit-learn's exhaustive search for the same neighbours."""
    rng = np.random.default_rng(0)
    X, queries = rng.random((ROWS, FEATURES)), rng.random((QUERIES, FEATURES))
    y = X[:, :10].sum(axis=1) + rng.normal(size=ROWS)
    CertifiedNeighborsRegressor(5).fit(X[:100], y[:100]).certify(queries[:2], within=0.1)  # compile
    before = resident()
    model = CertifiedNeighborsRegressor(NEIGHBOURS, ranges=(0, 1)).fit(X, y)
    cert = model.certify(queries, within=0.02)
    memory = resident() - before
    facts = {"data": "synthetic", "rows": ROWS, "features": FEATURES, "k": NEIGHBOURS, "queries": QUERIES}
    print(json.dumps({"case": "memory above the data", "GiB": round(memory, 3), "bar": 1.5} | facts), flush=True)

    theirs = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute").fit(X)
    with threadpool_limits(limits=1):
        ratio(
            "certify / scikit-learn brute kneighbors",
            lambda: model.certify(queries, within=0.02),
            lambda: theirs.kneighbors(queries),
            repeats=3,
            bar=1.5,
            **facts,
        )
    # The search knows as many ranks as certificates need: more than the neighbours themselves.
    known = min(ROWS, NEIGHBOURS + (NEIGHBOURS + 1) // 2)
    search = min(seconds(lambda: model.predict(queries)) for _ in range(3))
    ranks = min(seconds(lambda: ranked_values(model, queries, known)) for _ in range(3))
    whole = min(seconds(lambda: model.certify(queries, within=0.02)) for _ in range(3))
    line = {"case": "certification after the search", "search_s": ranks, "certify_s": whole, "predict_s": search}
    shares = {"share": round(whole / ranks - 1, 3), "bar": 0.1, "median_radius": int(np.median(cert.radius))}
    print(json.dumps(line | shares | facts), flush=True)


def ranked_values(model: CertifiedNeighborsRegressor, queries: np.ndarray, known: int) -> None:
    """The search alone: neighbours in order, and their values."""
    votes_of = model._votes_of(queries)  # noqa: SLF001  the search is not public on its own
    model._each_chunk(lambda window: votes_of(window, known).shape, len(queries))  # noqa: SLF001  as above


def growth() -> None:
    """CPU seconds per query as rows are added."""
    rng = np.random.default_rng(1)
    for n_rows in (50_000, 100_000, 200_000, 400_000):
        X, queries = rng.random((n_rows, 20)), rng.random((50, 20))
        for k in (501, n_rows // 2 + 1 - n_rows // 2 % 2):
            model = CertifiedNeighborsRegressor(k).fit(X, X[:, 0])
            spent = min(seconds(lambda: model.certify(queries, within=0.1)) for _ in range(3))  # noqa: B023  used at once
            line = {"case": "certify, per query", "data": "synthetic", "rows": n_rows, "k": k}
            print(json.dumps(line | {"ms": round(20 * spent, 3)}), flush=True)


def strength() -> None:
    """Exact over published radius on diamonds, bounds of 15 % around the true price."""
    data = load_diamonds()
    X, y = data.X, data.y
    ends = [*data.ranges.values()]
    ends += [(0.0, 1.0)] * (X.shape[1] - len(ends))
    for threat in ("insert+delete", "insert", "delete"):
        ratios = []
        for split in range(3):
            chosen = np.random.default_rng(split).permutation(len(y))
            test, train = chosen[:500], chosen[len(y) // 10 :]
            radii = []
            for method in ("exact", "paper"):
                model = CertifiedNeighborsRegressor(51, ranges=ends, threat=threat, method=method).fit(
                    X[train], y[train]
                )
                radii.append(model.certify(X[test], lower=0.85 * y[test], upper=1.15 * y[test]).radius)
            certified = radii[1] >= 1
            ratios.append(float((radii[0][certified] / radii[1][certified]).mean()))
        line = {"case": "exact / published radius", "data": "diamonds", "k": 51, "threat": threat, "within": 0.15}
        print(json.dumps(line | {"ratio": [round(value, 3) for value in ratios], "bar": 1.25}), flush=True)


if __name__ == "__main__":
    strength()
    growth()
    scale()
