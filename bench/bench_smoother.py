"""Costs of two by formula, against refitting ridge without each row: a whole ensemble and 100 test rows.

Prints one JSON line for each table and number of blocks; CPU times on one thread, medians of five, both sides in turn.
Refitting everything would take hours, so a sample of the replicas is fitted and the time extrapolated to all of them:
``refits_timed`` of ``refits_needed``. The weather rows are synthetic, in the size of the real ones; a few blocks stand
for all of them there. The other tables are read from the folder ``POISONPROOF_DATA`` names.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from poisonproof.costs import engine_for
from poisonproof.threat import Threat

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

DATA = Path(os.environ.get("POISONPROOF_DATA", Path(__file__).parents[2] / "shared" / "data"))
REPEATS, TEST_ROWS, MOST_REFITS, MOST_BLOCKS = 5, 100, 60, 400
RNG = np.random.default_rng(0)


def diamonds() -> tuple[Array, Array]:
    """Numbers as they are and one-hot grades."""
    frame = pd.read_csv(DATA / "diamonds.csv.gz")
    price = frame.pop("price").to_numpy(float)
    return pd.get_dummies(frame, dtype=float).to_numpy(float), price


def spambase() -> tuple[Array, Array]:
    """Frequencies and run lengths, each over its largest value."""
    with gzip.open(DATA / "spambase.data.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    return table[:, :-1] / table[:, :-1].max(axis=0), 2 * table[:, -1] - 1


def weather() -> tuple[Array, Array]:
    """Synthetic: 140 features of very different sizes."""
    X = RNG.normal(size=(26_000, 140)) * np.exp(RNG.normal(size=140))
    return X, X @ RNG.normal(size=140) + RNG.normal(size=len(X))


def case(name: str, X: Array, y: Array, *, n_blocks: int, block_rows: int, alpha: float) -> None:
    """One table cut into ``n_blocks`` blocks of about ``block_rows`` rows, of which as many as there are rows for."""
    order = RNG.permutation(len(y))
    tests, order = X[order[:TEST_ROWS]], order[TEST_ROWS:]
    cut = [order[start : start + block_rows] for start in range(0, len(order) - block_rows + 1, block_rows)]
    blocks = [(X[rows], y[rows]) for rows in cut[: min(n_blocks, MOST_BLOCKS)]]
    engine = engine_for(Ridge(alpha=alpha), Threat("delete"), 2)
    assert engine is not None  # noqa: S101  a benchmark of this engine

    def fit(rows: Array, targets: Array) -> Callable[[Array], Array]:
        return Ridge(alpha=alpha).fit(rows, targets).predict if len(targets) else lambda X: np.zeros(len(X))

    votes = [fit(*block)(tests) for block in blocks]
    sample = RNG.integers(0, block_rows, MOST_REFITS)

    def ours() -> None:
        for block, vote in zip(blocks, votes, strict=True):
            engine.reach(engine.prepare(fit, *block), vote, tests)

    def theirs() -> None:
        for place, row in enumerate(sample):
            rows, targets = blocks[place % len(blocks)]
            fit(np.delete(rows, row, axis=0), np.delete(targets, row))(tests)

    spent: tuple[list[float], list[float]] = ([], [])
    for repeat in range(REPEATS + 1):
        for function, times in zip((ours, theirs), spent, strict=True):
            start = time.process_time()
            function()
            if repeat:  # the first round warms up
                times.append(time.process_time() - start)
    formula = median(spent[0]) * n_blocks / len(blocks)
    refits = n_blocks * block_rows
    naive = median(spent[1]) * refits / MOST_REFITS
    line = {
        "bench": "ridge costs of 2", "data": name, "blocks": n_blocks, "block_rows": block_rows, "alpha": alpha,
        "formula_s": round(formula, 4), "refits_s": round(naive, 2), "times_faster": round(naive / formula),
        "blocks_timed": len(blocks), "refits_timed": MOST_REFITS, "refits_needed": refits,
    }  # fmt: skip
    print(json.dumps(line), flush=True)


def main() -> None:
    """The published numbers of blocks and penalties."""
    tables: list[tuple[str, Callable[[], tuple[Array, Array]], list[tuple[int, int, float]]]] = [
        ("diamonds", diamonds, [(151, 318, 6.01e-2), (501, 96, 1e-8), (1001, 48, 1.38e-8)]),
        ("spambase", spambase, [(25, 165, 3.16e-3), (151, 27, 3.16e-6), (301, 14, 3.16e-3)]),
        ("weather (synthetic)", weather, [(51, 6040, 1e3), (1501, 205, 3.16e2), (3001, 103, 3.16e2)]),
    ]
    for name, load, settings in tables:
        X, y = load()
        for n_blocks, block_rows, alpha in settings:
            case(name, X, y, n_blocks=n_blocks, block_rows=block_rows, alpha=alpha)


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
