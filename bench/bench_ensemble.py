"""Disjoint ensembles: partition, fit and certify, each against the least that anybody must do (synthetic rows)."""

from __future__ import annotations

import hashlib

import numpy as np
from bench.measure import ratio
from sklearn.base import clone
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from poisonproof import CertifiedRegressor
from poisonproof.costs import Reach
from poisonproof.median import Ballot, median, radii
from poisonproof.partition import blocks_of, canonical, content_digests

RNG = np.random.default_rng(0)


def partition() -> None:
    """One million rows of fifty features to blocks, against hashing the same bytes in one go."""
    rows = RNG.normal(size=(1_000_000, 50))
    ratio(
        "partition 1M x 50 / one blake2b",
        lambda: blocks_of(content_digests(canonical(rows)), 1001),
        lambda: hashlib.blake2b(rows).digest(),  # type: ignore[arg-type]
        repeats=3,
        bar=4.0,
    )


def certify() -> None:
    """Ten thousand rows of 1,001 votes, against one sort of them."""
    votes = RNG.normal(size=(1001, 10_000))
    low, high = np.full(10_000, -0.5), np.full(10_000, 0.5)

    def ours() -> object:
        ballot = Ballot(Reach(votes[None], votes[None]), None, None, 50_000)
        return median(votes), radii(ballot, low, high)

    ratio("certify 10,000 x 1,001 / numpy.sort", ours, lambda: np.sort(votes, axis=0), bar=3.0)
    by_row = np.ascontiguousarray(votes.T)
    ratio("certify 10,000 x 1,001 / numpy.sort along memory", ours, lambda: np.sort(by_row, axis=1), bar=3.0)


def fit() -> None:
    """1,001 ridge submodels, against a bare loop over the same blocks."""
    X = RNG.normal(size=(48_000, 26))
    y = X.sum(axis=1)
    model = CertifiedRegressor(Ridge(alpha=0.06), 1001)
    home = model.fit(X, y).blocks(X)
    blocks = [(X[home == block], y[home == block]) for block in range(1001)]

    def bare() -> object:
        with threadpool_limits(limits=1):
            return [clone(Ridge(alpha=0.06)).fit(*block) for block in blocks]

    ratio("fit 1,001 ridge / bare loop", lambda: clone(model).fit(X, y), bare, bar=1.3)


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        partition()
        certify()
        fit()
