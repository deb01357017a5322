"""Certified classes: ten thousand rows of 1,001 votes for ten classes, against the least that anybody must do."""

from __future__ import annotations

import numpy as np
from bench.measure import ratio
from threadpoolctl import threadpool_limits

from poisonproof.layout import make_layout
from poisonproof.plurality import Poll, class_counts, finite_aggregation, plurality, radii
from poisonproof.runoff import first_choices, winners
from poisonproof.runoff import radii as runoff_radii

RNG = np.random.default_rng(0)
CLASSES = 10


def _votes(n_submodels: int, n_rows: int) -> np.ndarray:
    """Votes of which about half agree on each row."""
    agreed = RNG.integers(0, CLASSES, n_rows)
    noise = RNG.integers(0, CLASSES, (n_submodels, n_rows))
    return np.where(RNG.random(noise.shape) < 0.5, agreed, noise).astype(np.int8)


def unit() -> None:
    """Plurality at unit cost and at costs up to 3, against counting the votes by adding up one comparison per class."""
    votes = _votes(1001, 10_000)
    target = plurality(votes, CLASSES)
    costs = RNG.integers(1, 4, votes.shape).astype(np.int8)

    def count() -> object:
        return [np.count_nonzero(votes == one, axis=0) for one in range(CLASSES)]

    alone, weighed = Poll(votes, CLASSES, None, None, 50_000), Poll(votes, CLASSES, None, None, 50_000, costs)
    ratio("plurality 10,000 x 1,001 x 10 / ten comparisons", lambda: radii(alone, target), count, bar_s=1.0)
    ratio("plurality, costs <= 3 / unit cost", lambda: radii(weighed, target), lambda: radii(alone, target), repeats=3)


def runoff() -> None:
    """The run-off on a thousand rows, against its winners alone."""
    scores = RNG.random((CLASSES, 1001, 1_000), dtype=np.float32)
    scores[RNG.integers(0, CLASSES, 1_000), :, np.arange(1_000)] += 0.5
    ranks = (-scores).argsort(axis=0).argsort(axis=0).astype(np.int8)
    target, poll = winners(ranks), Poll(first_choices(ranks), CLASSES, None, None, 50_000)
    ratio("run-off 1,000 x 1,001 x 10 / winners", lambda: runoff_radii(poll, ranks, target), lambda: winners(ranks))


def shared() -> None:
    """Plurality where blocks are shared, against the closed form."""
    layout = make_layout(25, 4, "random", odd=False)
    votes = _votes(layout.n_submodels, 500)
    target, poll = plurality(votes, CLASSES), Poll(votes, CLASSES, layout.incidence, None, 50_000)
    mine, closed = radii(poll, target).radius.mean(), finite_aggregation(poll, target).mean()
    ratio(
        "plurality 500 x 100 x 10, spread 4 / Finite Aggregation",
        lambda: radii(poll, target),
        lambda: finite_aggregation(poll, target),
        repeats=3,
        mean_radius=round(float(mine), 4),
        closed_mean_radius=round(float(closed), 4),
    )


def counting() -> None:
    """Counting votes alone."""
    votes = _votes(1001, 10_000)
    counts = lambda: class_counts(votes, CLASSES)  # noqa: E731
    ratio("class_counts / one comparison", counts, lambda: np.count_nonzero(votes == 0, axis=0))


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        counting()
        unit()
        runoff()
        shared()
