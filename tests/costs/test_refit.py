from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.strategies import LEARNERS, random_table

from poisonproof.costs.refit import RefitCosts
from poisonproof.errors import ParameterError
from poisonproof.votes import fit_submodel, make_deterministic


@pytest.mark.parametrize("name", sorted(LEARNERS))
@pytest.mark.parametrize("max_cost", [2, 3])
def test_reach_is_the_extreme_vote_over_all_smaller_subsets(name: str, max_cost: int) -> None:
    rng = np.random.default_rng(len(name))
    learner = make_deterministic(LEARNERS[name])
    fit = lambda X, y: fit_submodel(learner, 5.0, X, y).vote  # noqa: E731  a vote function
    for n_rows in (1, 2, 5, 7):
        X, y = random_table(rng, n_rows)
        queries = rng.normal(size=(4, 2))
        engine = RefitCosts(max_cost)
        reach = engine.reach(engine.prepare(fit, X, y), fit(X, y)(queries), queries)
        for k in range(max_cost):
            votes = np.array(
                [
                    fit(np.delete(X, gone, 0), np.delete(y, gone))(queries)
                    for size in range(min(k, n_rows) + 1)
                    for gone in combinations(range(n_rows), size)
                ]
            )
            assert np.array_equal(reach.low[k], votes.min(axis=0))
            assert np.array_equal(reach.high[k], votes.max(axis=0))


def test_deleting_the_only_row_gives_the_constant() -> None:
    fit = lambda X, y: fit_submodel(LEARNERS["mean"], 5.0, X, y).vote  # noqa: E731  a vote function
    X, y = np.zeros((1, 2)), np.array([1.0])
    engine = RefitCosts(2)
    reach = engine.reach(engine.prepare(fit, X, y), np.array([1.0]), np.zeros((1, 2)))
    assert reach.high[1].tolist() == [5.0]
    assert reach.low[1].tolist() == [1.0]


def test_more_refits_than_are_worth_waiting_for_are_refused_before_the_first() -> None:
    never: Any = lambda *_: pytest.fail("fitted")  # noqa: E731  a vote function
    X, y = random_table(np.random.default_rng(0), 316)
    with pytest.raises(ParameterError, match=r"max_cost=3 takes 50,086 refits of a block of 316 rows.*KernelRidge"):
        RefitCosts(3).prepare(never, X, y)


def test_single_rows_are_left_out_of_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poisonproof.costs.refit._MOST_REFITS", 10)
    fit = lambda X, y: fit_submodel(LEARNERS["mean"], 5.0, X, y).vote  # noqa: E731  a vote function
    X, y = random_table(np.random.default_rng(0), 12)
    assert len(RefitCosts(2).prepare(fit, X, y)[0]) == 12
    with pytest.raises(ParameterError, match="at most 10 are made"):
        RefitCosts(3).prepare(fit, X, y)
