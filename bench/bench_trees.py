"""Every leave-one-out model of boosted trees, against fitting each with xgboost's exact method, on one thread.

Blocks of house-sale-like rows: numbers, counts and one-hot columns (synthetic). Both sides grow all models and predict
fifty rows with each.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from bench.measure import ratio

from poisonproof.costs.trees import TreeCosts
from poisonproof.learners import BoostedTreesRegressor
from poisonproof.votes import fit_submodel

CASES = [
    # rows, trees, depth, lambda, learning rate, bar
    (10, 250, 1, 0.1, 1.0, 1 / 50),
    (20, 500, 3, 0.01, 1.0, 1 / 50),
    (40, 250, 1, 1.0, 1.0, 1 / 50),
    (100, 500, 2, 1e-3, 0.3, 1 / 30),
    (100, 250, 4, 1e-6, 0.3, 1 / 15),
]


def rows_like_house_sales(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """30 numbers, of which 12 are mostly zero, and 40 categories of skewed frequency as 280 one-hot columns."""
    areas = rng.lognormal(7, 0.4, (n_rows, 10)).round()
    counts = rng.integers(0, 10, (n_rows, 8)).astype(float)
    extras = np.where(rng.random((n_rows, 12)) < 0.15, rng.lognormal(5, 1, (n_rows, 12)).round(), 0.0)
    levels = np.minimum(rng.geometric(0.45, (n_rows, 40)) - 1, 6)
    one_hot = (levels[:, :, None] == np.arange(7)).reshape(n_rows, -1).astype(float)
    return np.concatenate([areas, counts, extras, one_hot], axis=1)


def leave_one_out(n_rows: int, trees: int, depth: int, *, penalty: float, rate: float, bar: float) -> None:
    """All models without one row: vote ranges on fifty rows."""
    import xgboost  # noqa: PLC0415  optional

    rng = np.random.default_rng(n_rows)
    # Rounded to single precision, which is all that xgboost reads.
    X, queries = (rows_like_house_sales(rng, count).astype(np.float32).astype(float) for count in (n_rows, 50))
    y = np.log(X[:, :10].sum(axis=1) + 900 * X[:, 10:18].sum(axis=1)) + 0.1 * rng.normal(size=n_rows)
    learner = BoostedTreesRegressor(trees, max_depth=depth, reg_lambda=penalty, learning_rate=rate)
    votes = learner.fit(X, y).predict(queries)
    settings = {
        "tree_method": "exact",
        "max_depth": depth,
        "eta": rate,
        "lambda": penalty,
        "nthread": 1,
        "verbosity": 0,
    }
    settings["base_score"] = float(y.mean())
    asked = xgboost.DMatrix(queries, nthread=1)

    def ours() -> object:
        engine = TreeCosts(learner, 2, keep_bytes=0)
        prepared = engine.prepare(lambda X, y: fit_submodel(learner, 0.0, X, y).vote, X, y)
        return engine.reach(prepared, votes, queries)

    def theirs() -> object:
        refits = []
        for row in range(n_rows):
            rest = xgboost.DMatrix(np.delete(X, row, axis=0), np.delete(y, row), nthread=1)
            refits.append(xgboost.train(settings, rest, trees).predict(asked))
        return np.min(refits, axis=0), np.max(refits, axis=0)

    ratio(f"leave-one-out trees, n={n_rows}, depth {depth} / xgboost exact", ours, theirs, bar=round(bar, 4))


def kept_replicas() -> None:
    """What keeping replicas saves: predicting fifty rows with kept replicas, against growing them again."""
    rng = np.random.default_rng(0)
    X, queries = rows_like_house_sales(rng, 100), rows_like_house_sales(rng, 50)
    learner = BoostedTreesRegressor()
    y = np.log(X[:, :10].sum(axis=1))
    votes = learner.fit(X, y).predict(queries)
    fit = lambda X, y: fit_submodel(learner, 0.0, X, y).vote  # noqa: E731  a vote function
    kept, grown = TreeCosts(learner, 2, keep_bytes=1 << 30), TreeCosts(learner, 2, keep_bytes=0)
    prepared = kept.prepare(fit, X, y), grown.prepare(fit, X, y)
    ratio(
        "reach of kept replicas / of replicas grown again, n=100, defaults",
        lambda: kept.reach(prepared[0], votes, queries),
        lambda: grown.reach(prepared[1], votes, queries),
    )


def main() -> None:
    """All cases, a JSON line each."""
    started = time.process_time()
    kept_replicas()
    try:
        for n_rows, trees, depth, penalty, rate, bar in CASES:
            leave_one_out(n_rows, trees, depth, penalty=penalty, rate=rate, bar=bar)
    except ImportError:
        sys.stderr.write("xgboost is not installed (pip install xgboost-cpu), so there is nothing to compare with\n")
    sys.stderr.write(f"{time.process_time() - started:.0f} s of CPU time\n")


if __name__ == "__main__":
    main()
