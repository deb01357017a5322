from __future__ import annotations

import numpy as np
import pytest
from tests.strategies import attacked_medians, radius_by_enumeration, random_ballot

from poisonproof.costs import Reach
from poisonproof.median import Ballot, costs_of_leaving, interval, median, radii

SHAPES = [(1, 1), (3, 1), (5, 1), (3, 2), (5, 2), (3, 3), (3, 4)]


def ballot_of(votes: list[float], *, capacity: list[int] | None = None) -> Ballot:
    column = np.array(votes)[None, :, None]
    units = None if capacity is None else np.array(capacity)
    return Ballot(Reach(column, column), None, units, 10**6 if units is None else int(units.sum()))


def one_radius(ballot: Ballot, lower: float, upper: float) -> int:
    return int(radii(ballot, np.array([lower]), np.array([upper])).radius[0])


@pytest.mark.parametrize(("n_submodels", "max_cost"), SHAPES)
@pytest.mark.parametrize("capacity", [False, True])
def test_radius_equals_enumeration(n_submodels: int, max_cost: int, capacity: bool) -> None:
    rng = np.random.default_rng([n_submodels, max_cost, capacity])
    seen = set()
    for _ in range(120):
        ballot = random_ballot(rng, n_submodels, max_cost, capacity=capacity)
        lower, upper = sorted(rng.integers(-4, 5, 2).astype(float))
        if rng.random() < 0.3:
            lower, upper = (-np.inf, upper) if rng.random() < 0.5 else (lower, np.inf)
        found = radii(ballot, np.array([lower]), np.array([upper]))
        limit = min(ballot.n_units, n_submodels * max_cost + 1)
        true = radius_by_enumeration(ballot, lower, upper, limit)
        assert found.radius[0] == true
        assert found.attack[0] == true + 1
        assert found.unbreakable[0] == (capacity and true == ballot.n_units)
        seen.add((int(found.radius[0]) < 0, bool(found.unbreakable[0])))
    assert len(seen) >= 2  # both certified and uncertified rows were drawn


@pytest.mark.parametrize(("n_submodels", "max_cost"), SHAPES)
@pytest.mark.parametrize("capacity", [False, True])
def test_interval_is_reached_and_never_left(n_submodels: int, max_cost: int, capacity: bool) -> None:
    rng = np.random.default_rng([n_submodels, max_cost, capacity, 1])
    for _ in range(40):
        ballot = random_ballot(rng, n_submodels, max_cost, capacity=capacity)
        for budget in range(4):
            (low,), (high,) = interval(ballot, budget)
            middles = [middle for spent in range(budget + 1) for middle in attacked_medians(ballot, spent)]
            assert (low, high) == (min(middles), max(middles))


def test_bounds_are_inclusive_at_exact_ties() -> None:
    ballot = ballot_of([1.0, 1.0, 1.0, 1.0, 1.0])
    assert one_radius(ballot, 1.0, 1.0) == 2
    assert one_radius(ballot, 1.0, np.inf) == 2
    assert one_radius(ballot, -np.inf, 1.0) == 2
    assert one_radius(ballot, np.nextafter(1.0, 2), np.inf) == -1
    assert one_radius(ballot, -np.inf, np.nextafter(1.0, 0)) == -1


def test_radius_is_minus_one_exactly_where_the_median_is_out() -> None:
    rng = np.random.default_rng(5)
    votes = rng.normal(size=(7, 500))
    bound = rng.normal(size=500)
    found = radii(Ballot(Reach(votes[None], votes[None]), None, None, 99), np.full(500, -np.inf), bound)
    assert np.array_equal(found.radius == -1, median(votes) > bound)
    assert found.radius.min() == -1


def test_no_bound_at_all_is_never_left_by_finite_votes() -> None:
    assert one_radius(ballot_of([1.0, 2.0, 3.0]), -np.inf, np.inf) == 1


def test_deletions_cannot_move_what_has_no_rows() -> None:
    ballot = ballot_of([0.0, 0.0, 9.0], capacity=[0, 0, 4])
    found = radii(ballot, np.array([-1.0]), np.array([1.0]))
    assert found.unbreakable[0]
    assert found.radius[0] == 4


def test_costs_count_what_stays_inside() -> None:
    high = np.array([[[1.0], [5.0]], [[2.0], [6.0]], [[4.0], [7.0]]])
    assert costs_of_leaving(Reach(-high, high), np.array([2.0])).tolist() == [[2], [0]]


def test_median_is_a_vote() -> None:
    votes = np.random.default_rng(0).normal(size=(9, 40))
    assert np.array_equal(median(votes), np.median(votes, axis=0))


def test_a_budget_beyond_every_vote_gives_no_ends() -> None:
    (low,), (high,) = interval(ballot_of([1.0, 2.0, 3.0]), 2)
    assert (low, high) == (-np.inf, np.inf)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_rows", [1, 6])
def test_counting_votes_leaves_them_where_they_are(order: str, n_rows: int) -> None:
    votes = np.array(np.random.default_rng(0).normal(size=(9, n_rows)), order=order)  # type: ignore[call-overload]
    before = votes.copy()
    median(votes)
    assert np.array_equal(votes, before)
