"""Certified accuracy of nearest neighbours with declared constants, against the published figures: JSON lines.

Insertions and deletions. A row counts at radius R where no R modifications move its prediction too far from the truth.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np

from poisonproof.datasets import load_dataset, preset, published_accuracy
from poisonproof.errors import PoisonproofError
from poisonproof.neighbors import CertifiedNeighborsRegressor

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from poisonproof.datasets.recipes import Prepared

# Neighbours to try on each data set, the preset's own number among them.
SIZES: Final[dict[str, tuple[int, ...]]] = {
    "ames": (351, 401),
    "austin": (801, 1201),
    "diamonds": (2501, 4001, 5001),
    "life": (401, 501),
    "spambase": (801, 1001),
}
PUBLISHED: Final = ("ames", "diamonds", "life", "spambase")


def split_of(n_rows: int, seed: int, n_test: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Test rows, and the nine tenths that are trained on."""
    shuffled = np.random.default_rng(1000 + seed).permutation(n_rows)
    return shuffled[:n_test], shuffled[n_rows // 10 :]


def radii_of(model: CertifiedNeighborsRegressor, rows: Prepared, seed: int, n_test: int) -> NDArray[np.int64]:
    """Radii of one split's test rows around their true targets."""
    test, train = split_of(len(rows), seed, n_test)
    model.fit(rows.X[train], rows.y[train])
    return model.certify(rows.X[test], lower=rows.lower[test], upper=rows.upper[test]).radius


def at_best(name: str) -> None:
    """The presets for large radii, at several numbers of neighbours: three splits of 200 rows."""
    rows, chosen = load_dataset(name, "ours"), preset(name, "high")
    wanted = sorted({figure.radius for figure in published_accuracy(name) if figure.radius})
    for size in SIZES[name]:
        model = chosen.build(size=size)
        radii = np.concatenate([radii_of(model, rows, seed, 200) for seed in range(3)])
        shares = {radius: round(100 * float((radii >= radius).mean()), 1) for radius in wanted}
        facts = {"data": name, "k": size, "metric": chosen.metric}
        print(json.dumps({"case": "preset"} | facts | {"certified": shares}), flush=True)


def as_published(name: str, *, scaled: bool = True) -> None:
    """The paper's neighbours: half of all rows, plain features, its own bound; ten splits of 100 rows."""
    rows = load_dataset(name, "plain")
    n_train = len(rows) - len(rows) // 10
    k = n_train // 2 + 1 + (n_train // 2) % 2
    model = CertifiedNeighborsRegressor(k, ranges=rows.ranges if scaled else None, method="paper")
    radii = [radii_of(model, rows, seed, 100) for seed in range(10)]
    figures = {figure.radius: figure for figure in published_accuracy(name, "kNN-CR")}
    for radius, figure in sorted(figures.items()):
        share = float(np.mean([(found >= radius).mean() for found in radii]))
        facts = {"data": name, "scaled": scaled, "k": k, "radius": radius, "ours": round(100 * share, 1)}
        theirs = {"published": round(100 * figure.mean, 1), "sd": round(100 * figure.sd, 1)}
        away = round((share - figure.mean) / figure.sd, 2)
        print(json.dumps({"case": "as published"} | facts | theirs | {"away_in_sd": away}), flush=True)


def main() -> None:
    """Every case whose data are at hand."""
    cases: list[tuple[Callable[..., None], str, dict[str, bool]]] = [(at_best, name, {}) for name in SIZES] + [
        (as_published, name, {}) for name in PUBLISHED
    ]
    # The published figures for life are those of features in their units, where a country's population is all that
    # counts as near.
    for case, name, options in [*cases, (as_published, "life", {"scaled": False})]:
        try:
            case(name, **options)
        except PoisonproofError as absent:
            print(json.dumps({"case": case.__name__, "data": name, "skipped": str(absent)}), flush=True)


if __name__ == "__main__":
    main()
