from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from poisonproof.costs import Reach
from poisonproof.errors import DataError
from poisonproof.layout import make_layout
from poisonproof.median import Ballot
from poisonproof.median import radii as median_radii
from poisonproof.plurality import Poll, class_counts, finite_aggregation, plurality, radii, vote_shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

FAR = 10**6


def one_winner(votes: tuple[int, ...], n_classes: int) -> int:
    return max(range(n_classes), key=lambda one: (votes.count(one), -one))


@cache
def all_votes(n_classes: int, n_submodels: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every way to vote, and who wins it."""
    every = list(product(range(n_classes), repeat=n_submodels))
    return np.array(every), np.array([one_winner(votes, n_classes) for votes in every])


def needs_of(poll: Poll, finals: NDArray[np.int64], row: int) -> NDArray[np.int64]:
    """What each submodel must be touched for each of its final votes, ``(n_finals, n_submodels)``."""
    votes, n_submodels = poll.votes[:, row], poll.n_submodels
    costs = np.ones(n_submodels, dtype=np.int64) if poll.costs is None else poll.costs[..., row]
    chosen = np.broadcast_to(costs, finals.shape) if costs.ndim == 1 else costs[finals, np.arange(n_submodels)]
    needs: NDArray[np.int64] = np.where(finals == votes, 0, chosen)
    return needs if poll.capacity is None else np.where(needs > poll.capacity, FAR, needs)


def least_attack(poll: Poll, target: int, row: int = 0) -> int:
    """The cost of the cheapest attack by trying all final votes and all touches, or FAR."""
    finals, winner = all_votes(poll.n_classes, poll.n_submodels)
    needs = needs_of(poll, finals, row)[winner != target]
    if poll.incidence is None:
        return min(FAR, int(needs.sum(axis=1).min(initial=FAR)))
    table = poll.incidence.toarray().astype(np.int64)
    most = 1 if poll.costs is None else int(poll.costs.max())
    limits = [most] * table.shape[1] if poll.caps is None else np.minimum(poll.caps, most).tolist()
    touches = np.array(list(product(*(range(limit + 1) for limit in limits))))
    touches = touches[np.argsort(touches.sum(axis=1), kind="stable")]
    works = ((touches @ table.T)[:, None] >= needs[None]).all(axis=2).any(axis=1)
    return int(touches[works.argmax()].sum()) if works.any() else FAR


def compare(poll: Poll, target: int, *, exact: bool) -> tuple[bool, bool, int]:
    """Check one row's record against the true cost of the cheapest attack."""
    found = radii(poll, np.array([target]))
    radius, attack = int(found.radius[0]), int(found.attack[0])
    true = least_attack(poll, target)
    if plurality(poll.votes, poll.n_classes)[0] != target:
        assert (true, radius, attack, bool(found.unbreakable[0])) == (0, -1, 0, False)
    elif found.unbreakable[0]:
        assert (true, radius, attack) == (FAR, poll.n_units, poll.n_units + 1)
    elif exact:
        assert (radius, attack) == (true - 1, true)
    else:
        assert radius < true <= attack
    return radius < 0, bool(found.unbreakable[0]), true - radius


def random_poll(
    rng: np.random.Generator, n_classes: int, n_submodels: int, costs: str = "unit", *, limited: bool = False
) -> Poll:
    start = int(rng.random() < 0.3)  # a class that wins ties and has no votes
    votes = rng.integers(start, rng.integers(start + 1, n_classes + 1), (n_submodels, 1))
    shape = {"unit": None, "leave": votes.shape, "join": (n_classes, *votes.shape)}[costs]
    table = None if shape is None else rng.integers(1, rng.integers(2, 6), shape)
    if costs == "join" and table is not None:
        np.put_along_axis(table, votes[None], 0, axis=0)  # not read
    capacity = rng.integers(0, 4, n_submodels) if limited else None
    n_units = 99 if capacity is None else int(capacity.sum())
    return Poll(votes, n_classes, None, capacity, n_units, table)


def with_blocks(rng: np.random.Generator, poll: Poll, n_blocks: int, *, limited: bool) -> Poll:
    """The same poll, its submodels on random blocks."""
    table = rng.random((poll.n_submodels, n_blocks)) < 0.4
    table[np.arange(poll.n_submodels), rng.integers(0, n_blocks, poll.n_submodels)] = True
    caps = rng.integers(0, 3, n_blocks) if limited else None
    capacity = None if caps is None else table.astype(np.int64) @ caps
    n_units = 99 if caps is None else int(caps.sum())
    return Poll(poll.votes, poll.n_classes, sp.csr_array(table), capacity, n_units, poll.costs, caps)


@pytest.mark.parametrize(("n_classes", "n_submodels"), [(1, 2), (2, 5), (3, 4), (3, 5), (4, 4), (5, 3)])
def test_every_way_to_vote_at_unit_cost(n_classes: int, n_submodels: int) -> None:
    every, winner = all_votes(n_classes, n_submodels)
    distance = (every[:, None] != every[None]).sum(axis=2)
    poll = Poll(every.T, n_classes, None, None, 77)
    for target in range(n_classes):
        found = radii(poll, np.full(len(every), target))
        true = np.where(winner[None] != target, distance, FAR).min(axis=1)
        assert np.array_equal(found.attack, np.where(true == FAR, 78, true))
        assert np.array_equal(found.radius, found.attack - 1)
        assert np.array_equal(found.unbreakable, true == FAR)


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("costs", ["unit", "leave", "join"])
@pytest.mark.parametrize(("n_classes", "n_submodels"), [(2, 6), (3, 5), (4, 4), (6, 3)])
def test_disjoint_radius_equals_enumeration(n_classes: int, n_submodels: int, costs: str, limited: bool) -> None:
    rng = np.random.default_rng([n_classes, n_submodels, len(costs), limited])
    seen = set()
    for _ in range(150):
        poll = random_poll(rng, n_classes, n_submodels, costs, limited=limited)
        seen.add(compare(poll, int(rng.integers(n_classes)), exact=True)[:2])
        seen.add(compare(poll, int(plurality(poll.votes, n_classes)[0]), exact=True)[:2])
    assert {(True, False), (False, False)} <= seen
    assert ((False, True) in seen) == limited


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize(("costs", "n_blocks"), [("unit", 6), ("leave", 4), ("join", 4)])
def test_shared_blocks_never_promise_too_much(costs: str, n_blocks: int, limited: bool) -> None:
    rng = np.random.default_rng([n_blocks, len(costs), limited])
    gaps = []
    for n_classes, n_submodels in [(2, 5), (3, 5), (4, 4)] * 30:
        poll = with_blocks(rng, random_poll(rng, n_classes, n_submodels, costs), n_blocks, limited=limited)
        gaps.append(compare(poll, int(plurality(poll.votes, n_classes)[0]), exact=False)[2])
    assert np.mean(np.array(gaps) == 1) > 0.6  # mostly nothing is given away


@pytest.mark.parametrize("costs", ["unit", "leave", "join"])
def test_a_grouped_layout_on_few_blocks_is_exact(costs: str) -> None:
    rng = np.random.default_rng(len(costs))
    layout = make_layout(2, 2, "paired", odd=False)
    for _ in range(60):
        poll = random_poll(rng, 3, layout.n_submodels, costs)
        shared = Poll(poll.votes, 3, layout.incidence, None, 99, poll.costs)
        compare(shared, int(plurality(poll.votes, 3)[0]), exact=True)


@pytest.mark.parametrize("costs", ["unit", "leave", "join"])
@pytest.mark.parametrize("spread", [2, 4])
def test_search_is_at_least_finite_aggregation(costs: str, spread: int) -> None:
    rng = np.random.default_rng([spread, len(costs)])
    layout = make_layout(25, spread, "random", odd=False)
    votes = rng.choice(5, p=[0.8, 0.05, 0.05, 0.05, 0.05], size=(layout.n_submodels, 12))
    target = plurality(votes, 5)
    shape = {"unit": None, "leave": votes.shape, "join": (5, *votes.shape)}[costs]
    table = None if shape is None else rng.integers(1, 4, shape)
    poll = Poll(votes, 5, layout.incidence, None, 500, table)
    found, closed = radii(poll, target), finite_aggregation(poll, target)
    assert np.all(found.radius >= closed)
    assert np.all(found.attack > found.radius)
    assert costs == "unit" or found.radius.sum() > closed.sum()


def test_finite_aggregation_is_the_published_formula() -> None:
    rng = np.random.default_rng(3)
    layout = make_layout(7, 3, "random", odd=False)
    table = layout.incidence.toarray()
    votes = rng.integers(0, 3, (layout.n_submodels, 40))
    target = rng.integers(0, 3, 40)
    found = finite_aggregation(Poll(votes, 3, layout.incidence, None, 200), target)
    for row in range(40):
        ours, count = target[row], np.bincount(votes[:, row], minlength=3)
        radius = []
        for rival in {0, 1, 2} - {int(ours)}:
            lead = count[ours] - count[rival] - (rival < ours)
            power = np.sort(table.T @ (1 + (votes[:, row] == ours) - (votes[:, row] == rival)))[::-1]
            radius.append(-1 if lead < 0 else int(np.count_nonzero(np.cumsum(power) <= lead)))
        assert found[row] == min(radius)


@pytest.mark.parametrize("layout", ["disjoint", "paired"])
def test_two_classes_are_a_median_of_signs(layout: str) -> None:
    rng = np.random.default_rng(8)
    design = make_layout(15, 1) if layout == "disjoint" else make_layout(9, 4, layout)
    incidence = None if layout == "disjoint" else design.incidence
    votes = (rng.random((design.n_submodels, 80)) < rng.random(80)).astype(np.int8)
    signs = (2 * votes - 1).astype(np.float64)[None]
    ballot = Ballot(Reach(signs, signs), incidence, None, 300)
    for target in (0, 1):
        low, high = (np.zeros(80), np.full(80, np.inf)) if target else (np.full(80, -np.inf), np.zeros(80))
        ours = radii(Poll(votes, 2, incidence, None, 300), np.full(80, target))
        theirs = median_radii(ballot, low, high)
        assert np.array_equal(ours.radius, theirs.radius)


@settings(deadline=None)  # the first case compiles
@given(st.integers(0, 10**9))
def test_costs_never_lower_a_radius_and_order_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    votes = rng.integers(0, 4, (int(rng.integers(1, 30)), 6))
    costs = rng.integers(1, 5, (4, *votes.shape))
    target = plurality(votes, 4)
    unit = radii(Poll(votes, 4, None, None, 99), target)
    both = radii(Poll(votes, 4, None, None, 99, costs), target)
    least = radii(Poll(votes, 4, None, None, 99, costs.min(axis=0)), target)
    order = rng.permutation(len(votes))
    shuffled = radii(Poll(votes[order], 4, None, None, 99, costs[:, order]), target)
    assert np.all(both.radius >= least.radius)
    assert np.all(least.radius >= unit.radius)
    assert np.array_equal(shuffled.radius, both.radius)


def test_the_knapsack_takes_one_half_where_that_is_cheapest() -> None:
    # A lead of 3 over class 1: a whole switch and the first half of the dearer one cost 3 + 3, all else more.
    votes = np.array([[0], [0], [0], [1]])
    costs = np.full((4, 4, 1), 9)
    costs[1, :2, 0], costs[2, 0], costs[3, 1] = [3, 5], 2, 3
    assert radii(Poll(votes, 4, None, None, 99, costs), np.array([0])).attack.tolist() == [6]


def test_a_class_without_votes_is_a_rival_and_may_win_ties() -> None:
    votes = np.ones((4, 1), dtype=np.uint8)
    assert radii(Poll(votes - 1, 1, None, None, 40), np.array([0])).unbreakable[0]
    assert radii(Poll(votes, 2, None, None, 40), np.array([1])).attack.tolist() == [2]
    assert radii(Poll(votes - 1, 2, None, None, 40), np.array([0])).attack.tolist() == [3]


def test_deletions_cannot_turn_what_has_no_rows() -> None:
    votes = np.array([[0], [0], [0], [1]])
    stuck = radii(Poll(votes, 2, None, np.array([0, 0, 0, 5]), 5), np.array([0]))
    assert (stuck.radius[0], stuck.attack[0], bool(stuck.unbreakable[0])) == (5, 6, True)
    loose = radii(Poll(votes, 2, None, np.array([0, 2, 2, 0]), 4), np.array([0]))
    assert (loose.radius[0], bool(loose.unbreakable[0])) == (1, False)


def test_shares_agree_with_the_plurality() -> None:
    votes = np.random.default_rng(1).integers(0, 3, (6, 50))
    shares = vote_shares(votes, 4)
    assert shares.shape == (50, 4)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.array_equal(shares.argmax(axis=1), plurality(votes, 4))
    assert np.array_equal(class_counts(votes, 4).sum(axis=0), np.full(50, 6))


def test_no_rows_at_all() -> None:
    empty = np.zeros((3, 0), dtype=np.int8)
    none = np.zeros(0, dtype=np.int64)
    for incidence in (None, make_layout(2, 2, "paired", odd=False).incidence):
        for costs in (None, empty, np.stack([empty] * 3)):
            assert radii(Poll(empty, 3, incidence, None, 9, costs), none).radius.tolist() == []


def test_votes_and_costs_that_do_not_fit_are_refused() -> None:
    votes = np.array([[0, 3]])
    with pytest.raises(DataError, match=r"votes are from 0 to 3; with n_classes=3 they must be 0 to 2"):
        Poll(votes, 3, None, None, 9)
    with pytest.raises(DataError, match=r"costs have shape \(2, 1\); they must have shape \(1, 2\) or \(4, 1, 2\)"):
        Poll(votes, 4, None, None, 9, np.ones((2, 1), dtype=np.int8))
