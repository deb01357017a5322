"""Forest, radius and kernel models at scale: what certifying costs beyond the work that predicting takes anyway."""

from __future__ import annotations

import json
import time
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from bench.measure import ratio
from scipy.spatial.distance import cdist
from sklearn.neighbors import RadiusNeighborsRegressor
from threadpoolctl import threadpool_limits

from poisonproof.forest import CertifiedForestRegressor
from poisonproof.neighbors.kernel import CertifiedKernelRegressor
from poisonproof.neighbors.within_radius import CertifiedRadiusRegressor

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(0)


def spent(case: str, work: Callable[[], object], bar: float, **facts: object) -> None:
    """Print one JSON line: median CPU seconds of three runs, and the bar."""
    work()
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    print(json.dumps({"case": case, "seconds": round(median(times), 3), "bar": bar} | facts), flush=True)


def forest() -> None:
    """31 trees on 50,000 rows of 26 features."""
    X = RNG.random((50_000, 26))
    y = X[:, :5].sum(axis=1) + RNG.normal(scale=0.1, size=len(X))
    for depth in (8, 16):
        model = CertifiedForestRegressor(31, depth)
        spent("forest fit 31 x 50,000", lambda model=model: model.fit(X, y), 2.0, depth=depth)  # type: ignore[misc]
        spent("forest certify 10,000", lambda model=model: model.certify(X[:10_000], within=0.2), 1.0, depth=depth)  # type: ignore[misc]


def neighborhoods() -> None:
    """50,000 rows of 26 features, 200 test rows."""
    X, rows = RNG.random((50_000, 26)), RNG.random((200, 26))
    y = X[:, :5].sum(axis=1) + RNG.normal(scale=0.1, size=len(X))
    ball, theirs = CertifiedRadiusRegressor(1.6).fit(X, y), RadiusNeighborsRegressor(1.6, algorithm="brute").fit(X, y)
    ratio("radius certify / scikit-learn predict", lambda: ball.certify(rows, within=0.1), lambda: theirs.predict(rows))
    for similarity in ("tricube", "gaussian"):
        kernel = CertifiedKernelRegressor(similarity, 1.6).fit(X, y)
        for moves in ("insert+delete", "delete", "relabel"):
            kernel.set_params(threat=moves).fit(X, y)
            ratio(
                "kernel certify / distances alone",
                lambda kernel=kernel: kernel.certify(rows, within=0.1),  # type: ignore[misc]
                lambda: cdist(rows, X),
                repeats=3,
                similarity=similarity,
                threat=moves,
            )
    ratio("kernel interval / certify", lambda: kernel.interval(rows, 20), lambda: kernel.certify(rows, within=0.1))


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        forest()
        neighborhoods()
