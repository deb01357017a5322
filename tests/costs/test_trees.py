from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from poisonproof import CertifiedRegressor
from poisonproof.costs.refit import RefitCosts
from poisonproof.costs.trees import TreeCosts
from poisonproof.errors import ParameterError
from poisonproof.learners import BoostedTreesRegressor
from poisonproof.learners.tree_replicas import MOST_ROWS
from poisonproof.median import costs_of_leaving
from poisonproof.votes import fit_submodel

if TYPE_CHECKING:
    from poisonproof.costs import Reach
    from poisonproof.costs.protocol import FitVote

CONSTANT = 9.0
LEARNERS = [
    BoostedTreesRegressor(20, max_depth=1, learning_rate=1.0, reg_lambda=0.1),
    BoostedTreesRegressor(10, max_depth=3, reg_lambda=0.0, min_split_loss=0.1),
    BoostedTreesRegressor(20, max_depth=2, learning_rate=1.0, reg_lambda=0.1, mixup=0.8),
]


def fit_of(learner: BoostedTreesRegressor) -> FitVote:
    return lambda X, y: fit_submodel(learner, CONSTANT, X, y).vote


def reach_of(engine: Any, fit: FitVote, X: np.ndarray, y: np.ndarray, queries: np.ndarray) -> Reach:
    return engine.reach(engine.prepare(fit, X, y), fit(X, y)(queries), queries)


def table(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with many ties and duplicates, and positive targets."""
    return rng.integers(0, 3, (n_rows, 4)).astype(float), rng.integers(1, 6, n_rows).astype(float)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("keep_bytes", [0, 1 << 20])
def test_reach_is_that_of_refits_to_the_bit(learner: BoostedTreesRegressor, keep_bytes: int) -> None:
    rng = np.random.default_rng(keep_bytes)
    fit = fit_of(learner)
    for n_rows, max_cost in ((1, 2), (1, 4), (2, 4), (3, 5), (6, 4), (12, 3), (30, 2)):
        (X, y), (queries, _) = table(rng, n_rows), table(rng, 5)
        found = reach_of(TreeCosts(learner, max_cost, keep_bytes=keep_bytes), fit, X, y, queries)
        true = reach_of(RefitCosts(max_cost), fit, X, y, queries)
        assert found.low.shape == (max_cost, 5)
        assert np.array_equal(found.low, true.low)
        assert np.array_equal(found.high, true.high)


@pytest.mark.parametrize("learner", LEARNERS)
def test_no_smaller_set_of_rows_moves_a_vote_out(learner: BoostedTreesRegressor) -> None:
    rng = np.random.default_rng(7)
    fit = fit_of(learner)
    seen = set()
    for _ in range(12):
        (X, y), (queries, _) = table(rng, int(rng.integers(1, 9))), table(rng, 3)
        upper = fit(X, y)(queries) + rng.choice([-0.1, 0.0, 0.3, 1.0, 9.0], 3)
        reach = reach_of(TreeCosts(learner, 4), fit, X, y, queries)
        costs = costs_of_leaving(reach, upper)
        for size in range(min(4, len(y) + 1)):
            for gone in combinations(range(len(y)), size):
                out = fit(np.delete(X, gone, 0), np.delete(y, gone))(queries) > upper
                assert np.all(costs[out] <= size)
        seen.update(costs.tolist())
    assert seen >= {0, 1, 2, 4}


@pytest.mark.parametrize("keep_bytes", [0, 1 << 20])
def test_a_transformed_target_is_enclosed_within_rounding(keep_bytes: int) -> None:
    learner = BoostedTreesRegressor(15, target_transform="log")
    fit = fit_of(learner)
    rng = np.random.default_rng(1)
    for n_rows in (1, 2, 10):
        (X, y), (queries, _) = table(rng, n_rows), table(rng, 6)
        found = reach_of(TreeCosts(learner, 3, keep_bytes=keep_bytes), fit, X, y, queries)
        true = reach_of(RefitCosts(3), fit, X, y, queries)
        assert np.all(found.low <= true.low)
        assert np.all(found.high >= true.high)
        assert found.low == pytest.approx(true.low, rel=1e-14)
        assert found.high == pytest.approx(true.high, rel=1e-14)


@pytest.mark.parametrize("n_unusable", [1, 2, 4])
def test_rows_that_no_fit_accepts_keep_the_constant_until_they_may_be_gone(n_unusable: int) -> None:
    learner = BoostedTreesRegressor(15, target_transform="log")
    fit = fit_of(learner)
    (X, y), (queries, _) = table(np.random.default_rng(2), 4), table(np.random.default_rng(3), 2)
    y[:n_unusable] = -1.0
    found = reach_of(TreeCosts(learner, 6), fit, X, y, queries)
    true = reach_of(RefitCosts(6), fit, X, y, queries)
    assert np.all(found.low <= true.low)
    assert np.all(found.high >= true.high)
    assert np.all(found.high[:n_unusable] == CONSTANT)
    assert np.all(np.isinf(found.high[n_unusable:]) == (n_unusable < 4))


def test_predictions_that_overflow_count_as_the_constant() -> None:
    learner = BoostedTreesRegressor(5, target_transform="log", reg_lambda=0.0, learning_rate=1.0)
    X = np.arange(4.0)[:, None]
    y = np.full(4, 1.7e308)
    found = reach_of(TreeCosts(learner, 2), fit_of(learner), X, y, X)
    true = reach_of(RefitCosts(2), fit_of(learner), X, y, X)
    assert np.all(found.low <= true.low)
    assert np.all(found.high >= true.high)


@pytest.mark.parametrize(("n_rows", "n_known"), [(40, 2), (41, 1)])
def test_sets_that_are_too_many_to_look_at_count_as_movable(n_rows: int, n_known: int) -> None:
    learner = BoostedTreesRegressor(3)
    (X, y), (queries, _) = table(np.random.default_rng(4), n_rows), table(np.random.default_rng(5), 2)
    reach = reach_of(TreeCosts(learner, 4), fit_of(learner), X, y, queries)
    assert np.all(np.isfinite(reach.high[: n_known + 1]))
    assert np.all(reach.high[n_known + 1 :] == np.inf)
    assert np.all(reach.low[n_known + 1 :] == -np.inf)


def test_blocks_of_more_rows_than_are_counted_claim_nothing() -> None:
    engine = TreeCosts(LEARNERS[0], 2)
    rows = np.zeros((MOST_ROWS + 1, 1))
    prepared = engine.prepare(fit_of(LEARNERS[0]), rows, rows[:, 0])
    reach = engine.reach(prepared, np.zeros(2), rows[:2])
    assert np.isneginf(reach.low[1]).all()
    assert np.isposinf(reach.high[1]).all()


def test_replicas_are_kept_within_the_given_memory_only() -> None:
    learner = BoostedTreesRegressor(10, max_depth=1)
    X, y = table(np.random.default_rng(6), 8)
    needed = 8 * 10 * (12 + 16)
    for keep_bytes in (needed - 1, needed):
        block: Any = TreeCosts(learner, 2, keep_bytes=keep_bytes).prepare(fit_of(learner), X, y)
        held = sum(array.nbytes for kept in block.kept.values() for replicas in kept for array in replicas[2:])
        assert bool(held) == (keep_bytes == needed)
        assert held <= keep_bytes


def test_votes_keep_their_place_when_memory_limits_how_many_grow_together(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = LEARNERS[1]
    (X, y), (queries, _) = table(np.random.default_rng(8), 9), table(np.random.default_rng(9), 4)
    whole = reach_of(TreeCosts(learner, 3), fit_of(learner), X, y, queries)
    monkeypatch.setattr("poisonproof.costs.trees._WORKING_BYTES", 1)
    apart = reach_of(TreeCosts(learner, 3, keep_bytes=0), fit_of(learner), X, y, queries)
    assert np.array_equal(whole.low, apart.low)
    assert np.array_equal(whole.high, apart.high)


def test_parameters_are_checked_before_any_block_is_fitted() -> None:
    with pytest.raises(ParameterError, match="max_depth"):
        TreeCosts(BoostedTreesRegressor(max_depth=12), 2)


# The attack empties blocks, which then vote the constant.
@pytest.mark.filterwarnings("ignore:.*vote the declared empty_value")
def test_deleting_as_many_rows_as_certified_moves_no_median_out() -> None:
    rng = np.random.default_rng(10)
    X = rng.normal(size=(70, 2)).round(1)
    y = 3.0 * (X[:, 0] > 0) + 0.1 * rng.normal(size=70)
    queries = rng.normal(size=(8, 2)).round(1)
    model = CertifiedRegressor(LEARNERS[0], 7, max_cost=3, threat="delete").fit(X, y)
    cert = model.certify(queries, within=1.0, relative=False)
    assert "boosted-tree replicas" in cert.method
    assert cert.radius.max() > 3  # unit costs alone would reach 3
    blocks = model.blocks(X)
    for radius in range(int(cert.radius.max()) + 1):
        for _ in range(6):
            # Rows of few blocks hurt most: deletions are spent where they add up.
            order = np.argsort(rng.permutation(7)[blocks] + rng.random(70))
            rest = np.delete(np.arange(70), order[:radius])
            poisoned = CertifiedRegressor(LEARNERS[0], 7, threat="delete").fit(X[rest], y[rest]).predict(queries)
            held = cert.radius >= radius
            assert np.all(np.abs(poisoned - cert.prediction)[held] <= 1.0 + 1e-12)
