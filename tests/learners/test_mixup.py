"""Mixtures: of two rows each, and without a row those of the others to the bit."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from poisonproof.learners import BoostedTreesRegressor
from poisonproof.learners.mixup import mix

RNG = np.random.default_rng(0)
X, Y = RNG.integers(0, 3, (14, 4)).astype(float), RNG.normal(size=14)


@pytest.mark.parametrize("per_pair", [0.0, 0.05, 1.0, 2.3])
@pytest.mark.parametrize("size", [1, 2])
def test_without_rows_the_mixtures_of_the_others_stay_to_the_bit(per_pair: float, size: int) -> None:
    mixed = mix(X, Y, per_pair)
    gone = np.array(list(combinations(range(len(Y)), size)))
    for rows, missing in zip(gone, mixed.without(gone), strict=True):
        left = mix(np.delete(X, rows, axis=0), np.delete(Y, rows), per_pair)
        assert np.array_equal(left.X, np.delete(mixed.X, missing, axis=0))
        assert np.array_equal(left.y, np.delete(mixed.y, missing))


def test_mixtures_lie_between_their_rows_and_share_rows_and_target_alike() -> None:
    mixed = mix(np.column_stack([X, 3 * Y]), Y, 1.5)
    first, second = mixed.parents.T
    ours, targets = mixed.X[len(Y) :], mixed.y[len(Y) :]
    low, high = np.minimum(mixed.X[first], mixed.X[second]), np.maximum(mixed.X[first], mixed.X[second])
    assert np.all((low <= ours) & (ours <= high))
    assert ours[:, -1] == pytest.approx(3 * targets)
    share = (targets - Y[second]) / (Y[first] - Y[second])
    assert np.quantile(share, [0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.12)


@pytest.mark.parametrize("per_pair", [0.1, 0.75, 3.25])
def test_so_many_mixtures_of_each_pair(per_pair: float) -> None:
    rows = RNG.normal(size=(80, 2))
    counts = np.unique(mix(rows, rows[:, 0], per_pair).parents, axis=0, return_counts=True)[1]
    assert set(counts) <= {int(per_pair), int(per_pair) + 1}
    assert counts.sum() / (80 * 79 / 2) == pytest.approx(per_pair, abs=0.03)


def test_the_order_of_the_rows_is_of_no_account() -> None:
    order = RNG.permutation(len(Y))
    one, other = mix(X, Y, 0.7), mix(X[order], Y[order], 0.7)
    assert np.allclose(np.unique(one.X.round(9), axis=0), np.unique(other.X.round(9), axis=0))
    assert np.sort(one.y) == pytest.approx(np.sort(other.y))


def test_a_model_learns_from_the_mixtures() -> None:
    rows = np.linspace(0, 1, 8)[:, None]
    plain = BoostedTreesRegressor(300, min_split_loss=0.0, reg_lambda=0.0).fit(rows, rows[:, 0])
    rich = BoostedTreesRegressor(300, min_split_loss=0.0, reg_lambda=0.0, mixup=4.0).fit(rows, rows[:, 0])
    queries = np.linspace(0, 1, 100)[:, None]
    off = [np.abs(model.predict(queries) - queries[:, 0]).mean() for model in (plain, rich)]
    assert off[1] < 0.5 * off[0]
    with pytest.raises(ValueError, match="mixup=-1 must be from 0 to 1000"):
        BoostedTreesRegressor(mixup=-1).fit(rows, rows[:, 0])
