from __future__ import annotations

from functools import cache
from itertools import permutations, product
from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.sparse as sp

from poisonproof.contest import NEVER
from poisonproof.errors import DataError
from poisonproof.layout import make_layout
from poisonproof.plurality import Poll, plurality
from poisonproof.plurality import radii as plurality_radii
from poisonproof.runoff import _turns_to_oust, first_choices, radii, rankings, winners

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.median import Radii

FAR = 10**6
SHAPES = [(2, 5), (3, 3), (3, 4), (3, 5), (4, 3)]


def places_of(orders: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ranks ``(n_classes, n_submodels, n_rows)`` of orders ``(n_rows, n_submodels, n_classes)``, best first."""
    return np.argsort(orders, axis=2).transpose(2, 1, 0)


def one_winner(orders: tuple[tuple[int, ...], ...]) -> int:
    """The run-off as it is told: count first places, keep two, count who is placed higher."""
    classes = sorted(orders[0])
    first = sorted(classes, key=lambda one: (-sum(order[0] == one for order in orders), one))[:2]
    if len(first) == 1:
        return first[0]
    low, high = sorted(first)
    above = sum(order.index(low) < order.index(high) for order in orders)
    return low if 2 * above >= len(orders) else high


@cache
def all_orders(n_classes: int, n_submodels: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every state ``(n_states, n_submodels, n_classes)`` and who wins it."""
    states = list(product(permutations(range(n_classes)), repeat=n_submodels))
    return np.array(states).reshape(len(states), n_submodels, n_classes), np.array(
        [one_winner(state) for state in states]
    )


def random_orders(rng: np.random.Generator, n_classes: int, n_submodels: int) -> NDArray[np.int64]:
    """One row's orders, of which many agree."""
    favourite = rng.permutation(n_classes)
    noise = rng.normal(scale=rng.choice([0.3, 1.0, 3.0]), size=(n_submodels, n_classes))
    return np.argsort(np.argsort(favourite)[None] + noise, axis=1)[None]


def least_attack(orders: NDArray[np.int64], poll: Poll, target: int) -> int:
    """The cost of the cheapest attack by trying every state and every way to touch the blocks, or FAR."""
    states, winner = all_orders(poll.n_classes, poll.n_submodels)
    costs = np.ones(poll.n_submodels, dtype=np.int64) if poll.costs is None else poll.costs[:, 0]
    needs = np.where((states != orders).any(axis=2), costs, 0)[winner != target]
    needs = needs if poll.capacity is None else np.where(needs > poll.capacity, FAR, needs)
    needs = np.unique(needs, axis=0)
    if poll.incidence is None:
        return min(FAR, int(needs.sum(axis=1).min(initial=FAR)))
    table = poll.incidence.toarray().astype(np.int64)
    limits = [int(costs.max())] * table.shape[1] if poll.caps is None else np.minimum(poll.caps, costs.max()).tolist()
    touches = np.array(list(product(*(range(limit + 1) for limit in limits))))
    touches = touches[np.argsort(touches.sum(axis=1), kind="stable")]
    works = ((touches @ table.T)[:, None] >= needs[None]).all(axis=2).any(axis=1)
    return int(touches[works.argmax()].sum()) if works.any() else FAR


def poll_of(orders: NDArray[np.int64], **settings: object) -> tuple[Poll, NDArray[np.int64]]:
    ranks = places_of(orders)
    given = {"incidence": None, "capacity": None, "n_units": 99} | settings
    return Poll(first_choices(ranks), len(ranks), **given), ranks  # type: ignore[arg-type]


def check(found: Radii, poll: Poll, true: int, *, exact: bool) -> None:
    radius, attack, unbreakable = int(found.radius[0]), int(found.attack[0]), bool(found.unbreakable[0])
    if unbreakable:
        assert (true, radius, attack) == (FAR, poll.n_units, poll.n_units + 1)
    elif exact:
        assert (radius, attack) == (true - 1, true)
    else:
        assert radius < true <= attack
        assert attack <= poll.n_units + 1


@pytest.mark.parametrize(("n_classes", "n_submodels"), SHAPES)
def test_winner_of_every_state(n_classes: int, n_submodels: int) -> None:
    states, winner = all_orders(n_classes, n_submodels)
    assert np.array_equal(winners(places_of(states)), winner)


@pytest.mark.parametrize(("n_classes", "n_submodels"), [(2, 4), (2, 5), (3, 3)])
def test_every_state_at_unit_cost(n_classes: int, n_submodels: int) -> None:
    states, winner = all_orders(n_classes, n_submodels)
    distance = (states[:, None] != states[None]).any(axis=3).sum(axis=2)
    poll, ranks = poll_of(states)
    for target in range(n_classes):
        found = radii(poll, ranks, np.full(len(states), target))
        assert np.array_equal(found.attack, np.where(winner[None] != target, distance, FAR).min(axis=1))
        assert np.array_equal(found.radius, found.attack - 1)


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize(("n_classes", "n_submodels"), [(3, 4), (3, 5), (4, 3), (5, 2)])
def test_disjoint_radius_equals_enumeration(n_classes: int, n_submodels: int, limited: bool) -> None:
    rng = np.random.default_rng([n_classes, n_submodels, limited])
    for _ in range(120):
        orders = random_orders(rng, n_classes, n_submodels)
        capacity = rng.integers(0, 3, n_submodels) if limited else None
        poll, ranks = poll_of(orders, capacity=capacity, n_units=99 if capacity is None else int(capacity.sum()))
        target = int(winners(ranks)[0])
        check(radii(poll, ranks, np.array([target])), poll, least_attack(orders, poll, target), exact=True)


def by_types(orders: NDArray[np.int64], target: int) -> int:
    """The exact cost on larger polls, from first principles: every split of turned submodels among their types."""
    n_submodels, n_classes = orders.shape[1:]
    place = np.argsort(orders[0], axis=1)
    best = FAR
    for turned in range(n_submodels + 1):
        for rival in set(range(n_classes)) - {target}:
            types: dict[tuple[int, bool], list[int]] = {}
            for t in range(n_submodels):
                types.setdefault((int(orders[0, t, 0]), bool(place[t, target] < place[t, rival])), []).append(t)
            for split in product(*(range(len(members) + 1) for members in types.values())):
                if sum(split) == turned:
                    changed = orders[0].copy()
                    for count, members in zip(split, types.values(), strict=True):
                        for t in members[:count]:
                            changed[t] = [rival, *(one for one in changed[t] if one != rival)]
                    if one_winner(tuple(map(tuple, changed.tolist()))) != target:
                        best = min(best, turned)
        if best < FAR:
            break
    return best


def test_turning_by_type_is_no_better_than_the_radius_says() -> None:
    rng = np.random.default_rng(11)
    equal = 0
    for _ in range(40):
        orders = random_orders(rng, 4, 7)
        poll, ranks = poll_of(orders)
        target = int(winners(ranks)[0])
        attack, found = by_types(orders, target), radii(poll, ranks, np.array([target]))
        assert found.attack[0] <= attack
        equal += int(found.attack[0] == attack)
    assert equal >= 30  # the others split what they turn between two rivals


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize(("max_cost", "n_blocks"), [(1, 5), (3, 4)])
def test_shared_blocks_never_promise_too_much(max_cost: int, n_blocks: int, limited: bool) -> None:
    rng = np.random.default_rng([max_cost, limited])
    exact = 0
    for n_classes, n_submodels in [(2, 5), (3, 4), (3, 5), (4, 3)] * 15:
        orders = random_orders(rng, n_classes, n_submodels)
        table = rng.random((n_submodels, n_blocks)) < 0.4
        table[np.arange(n_submodels), rng.integers(0, n_blocks, n_submodels)] = True
        caps = rng.integers(0, 3, n_blocks) if limited else None
        poll, ranks = poll_of(
            orders,
            incidence=sp.csr_array(table),
            capacity=None if caps is None else table.astype(np.int64) @ caps,
            n_units=99 if caps is None else int(caps.sum()),
            costs=None if max_cost == 1 else rng.integers(1, max_cost + 1, (n_submodels, 1)),
            caps=caps,
        )
        target = int(winners(ranks)[0])
        found = radii(poll, ranks, np.array([target]))
        check(found, poll, least_attack(orders, poll, target), exact=False)
        exact += int(found.attack[0] == found.radius[0] + 1)
    assert exact > 30


@pytest.mark.parametrize("limited", [False, True])
def test_costs_on_disjoint_blocks_never_promise_too_much(limited: bool) -> None:
    rng = np.random.default_rng([5, limited])
    for n_classes, n_submodels in [(2, 5), (3, 5), (4, 3)] * 25:
        orders = random_orders(rng, n_classes, n_submodels)
        capacity = rng.integers(0, 4, n_submodels) if limited else None
        n_units = 99 if capacity is None else int(capacity.sum())
        costs = rng.integers(1, 4, (n_submodels, 1))
        poll, ranks = poll_of(orders, costs=costs, capacity=capacity, n_units=n_units)
        target = np.array([int(winners(ranks)[0])])
        found = radii(poll, ranks, target)
        check(found, poll, least_attack(orders, poll, int(target[0])), exact=False)
        unit, _ = poll_of(orders, capacity=capacity, n_units=n_units)
        covers, _ = poll_of(orders, costs=np.ones_like(costs), capacity=capacity, n_units=n_units)
        assert radii(covers, ranks, target).radius[0] <= radii(unit, ranks, target).radius[0]


def test_two_classes_are_a_plurality() -> None:
    rng = np.random.default_rng(2)
    for layout in (None, make_layout(5, 4, "paired", odd=False)):
        n_submodels = 11 if layout is None else layout.n_submodels
        ranks = rankings(rng.random((n_submodels * 60, 2))).reshape(2, n_submodels, 60)
        votes = first_choices(ranks)
        poll = Poll(votes, 2, None if layout is None else layout.incidence, None, 99)
        target = plurality(votes, 2)
        assert np.array_equal(winners(ranks), target)
        assert np.array_equal(radii(poll, ranks, target).radius, plurality_radii(poll, target).radius)


def test_a_class_that_nobody_declared_takes_part() -> None:
    rng = np.random.default_rng(6)
    for _ in range(60):
        orders = random_orders(rng, 3, 4)
        # Class 0 is one that nobody declared: behind all that a submodel knows, and first of equals.
        orders = np.stack([[*(one for one in order if one), 0] for order in orders[0]])[None]
        poll, ranks = poll_of(orders)
        target = int(winners(ranks)[0])
        assert target > 0
        check(radii(poll, ranks, np.array([target])), poll, least_attack(orders, poll, target), exact=True)


def test_one_class_alone_is_never_beaten() -> None:
    poll, ranks = poll_of(np.zeros((2, 3, 1), dtype=np.int64))
    assert winners(ranks).tolist() == [0, 0]
    assert radii(poll, ranks, np.array([0, 0])).unbreakable.all()


@pytest.mark.parametrize(("n_classes", "n_submodels"), [(3, 1), (3, 2), (3, 6), (4, 5)])
def test_ousting_equals_enumeration(n_classes: int, n_submodels: int) -> None:
    rng = np.random.default_rng([n_classes, n_submodels])
    finals = np.array(list(product(range(n_classes), repeat=n_submodels)))
    score = (finals[:, :, None] == np.arange(n_classes)).sum(axis=1) * n_classes - np.arange(n_classes)
    beyond = 0
    for _ in range(300):
        votes, movable = rng.integers(0, n_classes, n_submodels), rng.random(n_submodels) < rng.random()
        aim, one, two = (int(pick) for pick in rng.permutation(n_classes)[:3])
        works = (score[:, one] > score[:, aim]) & (score[:, two] > score[:, aim])
        works &= ~((finals != votes) & ~movable).any(axis=1)
        true = np.where(works, (finals != votes).sum(axis=1), NEVER).min()
        have, turnable = (np.bincount(votes[some], minlength=n_classes) for some in (movable | True, movable))
        assert _turns_to_oust(have, turnable, aim, one, two) == true
        beyond += int(turnable[aim] < true < NEVER)
    assert beyond > 0 or n_submodels == 1


def test_a_target_that_does_not_win_has_no_radius() -> None:
    orders = random_orders(np.random.default_rng(0), 3, 5)
    layout = make_layout(5, 1)
    for incidence in (None, layout.incidence):
        poll, ranks = poll_of(np.repeat(orders, 3, axis=0), incidence=incidence)
        winner = int(winners(ranks)[0])
        found = radii(poll, ranks, np.arange(3))
        assert np.array_equal(found.radius == -1, np.arange(3) != winner)
        assert np.array_equal(found.attack > 0, np.arange(3) == winner)


def test_rankings_put_equals_in_order_and_the_unseen_last() -> None:
    scores = np.array([[0.5, -np.inf, 0.5, 0.1], [0.0, 0.0, 1.0, -np.inf]])
    assert rankings(scores).tolist() == [[0, 1], [3, 2], [1, 0], [2, 3]]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="scores contain NaN"):
        rankings(np.array([[0.5, np.nan]]))
    poll, ranks = poll_of(random_orders(np.random.default_rng(0), 3, 5))
    with pytest.raises(DataError, match=r"ranks have shape \(2, 5, 1\); they must have shape \(3, 5, 1\)"):
        radii(poll, ranks[:2], np.array([0]))
    with pytest.raises(DataError, match="not the class it ranks first"):
        radii(poll, 2 - ranks, np.array([0]))
    with pytest.raises(DataError, match="must have two axes"):
        radii(Poll(poll.votes, 3, None, None, 9, np.ones((3, 5, 1), dtype=np.int8)), ranks, np.array([0]))
