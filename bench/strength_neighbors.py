"""Certified accuracy of nearest neighbours with declared constants, against the published figures: JSON lines.

Insertions and deletions. A row counts at radius R where no R modifications move its prediction too far from the truth.
"""

from __future__ import annotations

import json
from typing import Final

import numpy as np
from bench.declared_tables import HOME, PLAIN, PREPARED, Declared

from poisonproof.datasets import published_accuracy
from poisonproof.neighbors import CertifiedNeighborsRegressor, MetricName

# Neighbours, metric, and how much of the first feature is taken off the target.
PRESETS: Final[list[tuple[str, int, MetricName, float]]] = [
    ("ames", 351, "manhattan", 0.75),
    ("ames", 401, "manhattan", 0.75),
    ("diamonds", 2501, "manhattan", 5 / 3),
    ("diamonds", 4001, "manhattan", 5 / 3),
    ("diamonds", 5001, "manhattan", 5 / 3),
    ("life", 401, "manhattan", 0.0),
    ("life", 501, "manhattan", 0.0),
    ("spambase", 801, "euclidean", 0.0),
    ("spambase", 1001, "euclidean", 0.0),
]


def split_of(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """200 test rows, and the nine tenths that are trained on."""
    shuffled = np.random.default_rng(1000 + seed).permutation(n_rows)
    return shuffled[:200], shuffled[n_rows // 10 :]


def radii_of(model: CertifiedNeighborsRegressor, table: Declared, seed: int) -> np.ndarray:
    """Radii of one split's test rows around their true targets."""
    test, train = split_of(len(table.y), seed)
    model.fit(table.X[train], table.y[train])
    return model.certify(table.X[test], lower=table.lower[test], upper=table.upper[test]).radius


def presets() -> None:
    """Prepared features and a free number of neighbours: three splits."""
    for name, k, metric, slope in PRESETS:
        table = PREPARED[name]()
        offset = (lambda rows, slope=slope: slope * rows[:, 0]) if slope else None
        model = CertifiedNeighborsRegressor(
            k,
            metric=metric,
            ranges=table.ranges,
            weights=table.weights,
            offset=offset,
        )
        radii = np.concatenate([radii_of(model, table, seed) for seed in range(3)])
        wanted = sorted({figure.radius for figure in published_accuracy(name) if figure.radius})
        shares = {radius: round(100 * float((radii >= radius).mean()), 1) for radius in wanted}
        print(json.dumps({"case": "preset", "data": name, "k": k, "metric": metric, "certified": shares}), flush=True)


def as_published() -> None:
    """The paper's neighbours: half of all rows, plain features, its own bound; ten splits."""
    for name, make in PLAIN.items():
        table = make()
        n_train = len(table.y) - len(table.y) // 10
        k = n_train // 2 + 1 + (n_train // 2) % 2
        model = CertifiedNeighborsRegressor(k, ranges=table.ranges, weights=table.weights, method="paper")
        radii = [radii_of(model, table, seed) for seed in range(10)]
        for figure in {figure.radius: figure for figure in published_accuracy(name, "kNN-CR")}.values():
            shares = [float((radius >= figure.radius).mean()) for radius in radii]
            facts = {"data": name, "k": k, "radius": figure.radius, "ours": round(100 * float(np.mean(shares)), 1)}
            theirs = {"published": round(100 * figure.mean, 1), "sd": round(100 * figure.sd, 1)}
            away = round(float((np.mean(shares) - figure.mean) / figure.sd), 2)
            print(json.dumps({"case": "as published"} | facts | theirs | {"away_in_sd": away}), flush=True)


if __name__ == "__main__":
    if not HOME.is_dir():
        raise SystemExit(f"{HOME} is absent; point POISONPROOF_DATA at a folder with the published tables")
    presets()
    as_published()
