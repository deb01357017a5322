from __future__ import annotations

from functools import cache
from itertools import combinations, combinations_with_replacement, pairwise, product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from poisonproof.neighborhood import (
    MOVES,
    NEVER,
    Neighborhoods,
    end_of_sorted,
    intervals,
    medians,
    midpoint,
    radii,
    withstood_by_count,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from poisonproof.threat import Moves

Member = tuple[float, int]

FAR = 1e9  # stands for infinity where an attacker chooses a value
BOUNDS = np.arange(-3.5, 4.0, 0.5)
THREATS: list[Moves] = ["insert+delete", "insert", "delete", "relabel"]


@cache
def reference_median(members: tuple[Member, ...], empty: float) -> float:
    """The weighted median, halfway between the middle values in a tie, in whole numbers."""
    present = sorted(member for member in members if member[1])
    total = sum(weight for _, weight in present)
    if total == 0:
        return empty
    low = high = None
    below = 0
    for value, weight in present:
        below += weight
        low = value if low is None and 2 * below >= total else low
        high = value if high is None and 2 * below > total else high
    assert low is not None
    assert high is not None
    return (low + high) / 2


def attacked(members: tuple[Member, ...], spent: int, moves: Moves, heaviest: int) -> Iterator[tuple[Member, ...]]:
    """Every set that exactly ``spent`` modifications can make, up to values that no attack needs."""
    if moves == "relabel":
        for chosen in combinations(range(len(members)), spent):
            for labels in product((-FAR, FAR, 0.0), repeat=spent):
                changed = list(members)
                for place, label in zip(chosen, labels, strict=True):
                    changed[place] = (label, members[place][1])
                yield tuple(changed)
        return
    inserted_counts = {"insert": [spent], "delete": [0], "insert+delete": range(spent + 1)}[moves]
    options = list(product((-FAR, FAR, 0.0), range(1, heaviest + 1)))
    for inserted in inserted_counts:
        for kept in (
            combinations(members, len(members) - (spent - inserted)) if spent - inserted <= len(members) else ()
        ):
            for new in combinations_with_replacement(options, inserted):
                yield (*kept, *new)


def reachable_ends(
    members: tuple[Member, ...], moves: Moves, heaviest: int, empty: float, limit: int
) -> list[tuple[float, float]]:
    """The lowest and highest median within every budget up to ``limit``."""
    ends: list[tuple[float, float]] = []
    low, high = np.inf, -np.inf
    for spent in range(limit + 1):
        found = [reference_median(tuple(sorted(made)), empty) for made in attacked(members, spent, moves, heaviest)]
        low, high = min([low, *found]), max([high, *found])
        ends.append((-np.inf if low < -FAR / 4 else low, np.inf if high > FAR / 4 else high))
    return ends


def sets_of(members: tuple[Member, ...], heaviest: int, empty: float, offset: float = 0.0) -> Neighborhoods:
    ordered = sorted(members)
    values = np.array([value for value, _ in ordered], dtype=np.float64)
    weights = np.array([[weight for _, weight in ordered]], dtype=np.int32).reshape(1, -1)
    return Neighborhoods(values, weights, np.array([offset]), heaviest, empty)


def many(sets: Neighborhoods, count: int) -> Neighborhoods:
    return sets._replace(weights=np.repeat(sets.weights, count, axis=0), offsets=np.repeat(sets.offsets, count))


def drawn(rng: np.random.Generator, size: int, heaviest: int) -> tuple[Member, ...]:
    spread = rng.choice([1, 3])
    weights = rng.integers(0 if heaviest > 1 else 1, heaviest + 1, size)
    return tuple(zip(rng.integers(-spread, spread + 1, size).astype(float).tolist(), weights.tolist(), strict=True))


SHAPES: list[tuple[Moves, int, int, int, int]] = [  # threat, heaviest weight, largest size, budgets tried, cases
    ("insert+delete", 1, 7, 4, 120),
    ("insert+delete", 3, 5, 3, 90),
    ("insert", 1, 12, 6, 150),
    ("insert", 3, 8, 3, 120),
    ("delete", 1, 10, 10, 90),
    ("delete", 4, 8, 8, 200),
    ("relabel", 1, 6, 6, 90),
    ("relabel", 4, 6, 6, 120),
]


@pytest.mark.parametrize(("moves", "heaviest", "largest", "limit", "cases"), SHAPES)
def test_radius_and_interval_equal_enumeration(
    moves: Moves, heaviest: int, largest: int, limit: int, cases: int
) -> None:
    rng = np.random.default_rng([heaviest, largest, limit])
    seen = set()
    for case in range(cases):
        members = drawn(rng, case % (largest + 1), heaviest)
        empty = float(rng.integers(-4, 5))
        budgets = min(limit, len(members)) if moves in ("delete", "relabel") else limit
        ends = reachable_ends(members, moves, heaviest, empty, budgets)
        sets = sets_of(members, heaviest, empty)
        assert medians(sets)[0] == ends[0][0] == ends[0][1]
        for budget, (low, high) in enumerate(ends):
            (found_low,), (found_high,) = intervals(sets, budget, moves)
            assert (found_low, found_high) == (low, high), (members, empty, budget)
        found = radii(many(sets, len(BOUNDS)), BOUNDS, BOUNDS, moves)
        # Within its limit the enumeration sees every attack there is only if it may touch every value.
        complete = budgets == len(members) and moves in ("delete", "relabel")
        for column, side in ((1, found.above), (0, found.below)):
            for bound, radius in zip(BOUNDS, side, strict=True):
                sign = 1 if column else -1
                held = sum(sign * end[column] <= sign * bound for end in ends) - 1
                true = NEVER if complete and held == budgets else held
                assert (min(radius, budgets) if true != NEVER and true == budgets else radius) == true, (members, bound)
                seen.add(int(np.sign(radius)) if radius != NEVER else 9)
    assert {-1, 0, 1} <= seen
    assert (9 in seen) == (moves in ("delete", "relabel"))


@pytest.mark.parametrize("moves", THREATS)
def test_counting_equals_weighing_with_unit_weights(moves: Moves) -> None:
    rng = np.random.default_rng(3)
    for case in range(300):
        members = drawn(rng, case % 9, 1)
        empty, upper = float(rng.integers(-3, 4)), float(rng.choice(BOUNDS))
        sets = sets_of(members, 1, empty)
        inside = int(np.sum(sets.values <= upper))
        tie = 0 < inside < len(members) and (sets.values[inside - 1] + sets.values[inside]) / 2 <= upper
        counted = withstood_by_count(len(members), inside, tie, empty <= upper, MOVES[moves])
        weighed = radii(sets, np.array([-np.inf]), np.array([upper]), moves).above[0]
        assert counted == weighed
        budget = int(rng.integers(0, 12))
        (low,), (high,) = intervals(sets, budget, moves)
        ends = [end_of_sorted(sets.values, budget, MOVES[moves], empty, upward) for upward in (False, True)]
        assert ends == [low, high]


@pytest.mark.parametrize("moves", THREATS)
def test_radius_and_interval_say_the_same(moves: Moves) -> None:
    rng = np.random.default_rng(4)
    for _ in range(150):
        heaviest = int(rng.choice([1, 1 << 30]))
        size = int(rng.integers(0, 30))
        weights = rng.integers(0, heaviest + 1, size)
        members = tuple(zip(rng.normal(size=size).round(1).tolist(), weights.tolist(), strict=True))
        sets = sets_of(members, heaviest, 0.3, offset=float(rng.normal()))
        bounds = np.sort(rng.normal(size=40) + sets.offsets)
        found = radii(many(sets, 40), bounds, bounds, moves)
        for budget in range(12):
            (low,), (high,) = intervals(sets, budget, moves)
            assert np.array_equal(found.above >= budget, bounds >= high)
            assert np.array_equal(found.below >= budget, bounds <= low)


def test_two_sides_are_the_smaller_one_and_no_bound_is_no_side() -> None:
    sets = many(sets_of(tuple((float(value), 1) for value in range(7)), 1, 0.0), 4)
    lower, upper = np.array([-np.inf, -np.inf, 1.0, 3.0]), np.array([np.inf, 5.0, 5.0, 5.0])
    radius, unbreakable = radii(sets, lower, upper, "insert").radius(7)
    assert radius.tolist() == [7, 4, 4, 0]
    assert unbreakable.tolist() == [True, False, False, False]


def test_the_offset_counts_in_the_arithmetic_of_the_prediction() -> None:
    # 0.1 + 0.2 is above 0.3: whatever the prediction rounds to is what the bound is compared with.
    sets = sets_of(((0.1, 1),) * 3, 1, 0.0, offset=0.2)
    assert medians(sets)[0] == 0.1 + 0.2
    assert radii(sets, np.array([-np.inf]), np.array([0.3]), "insert").above[0] == -1
    assert radii(sets, np.array([-np.inf]), np.array([0.1 + 0.2]), "insert").above[0] == 2


def test_a_prediction_is_within_bounds_at_itself() -> None:
    rng = np.random.default_rng(12)
    values = np.sort(rng.normal(size=25))
    sets = Neighborhoods(values, rng.integers(1, 4, (500, 25), dtype=np.int32), rng.normal(size=500) * 10, 3, 0.0)
    middle = medians(sets)
    found = radii(sets, middle, middle, "insert")
    assert (found.above >= 0).all()
    assert (found.below >= 0).all()
    nearer = radii(sets, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf), "insert")
    assert (nearer.above == -1).all()
    assert (nearer.below == -1).all()


def test_a_midpoint_stays_between_its_ends() -> None:
    tiny, huge = 5e-324, 1.7976931348623157e308
    assert midpoint(tiny, tiny) == tiny
    assert midpoint(huge, huge) == huge
    assert midpoint(-huge, -huge) == -huge
    assert midpoint(-huge, huge) == 0.0
    assert midpoint(1.0, np.inf) == np.inf


@pytest.mark.parametrize("moves", THREATS)
def test_growing_bounds_grow_radii_and_growing_budgets_grow_intervals(moves: Moves) -> None:
    rng = np.random.default_rng(6)
    values = np.sort(rng.normal(size=200))
    sets = Neighborhoods(values, rng.integers(0, 1 << 30, (5, 200), dtype=np.int32), rng.normal(size=5), 1 << 30, 0.0)
    middle = medians(sets)
    narrow = radii(sets, middle - 0.2, middle + 0.2, moves)
    wide = radii(sets, middle - 0.5, middle + 0.5, moves)
    assert (narrow.above <= wide.above).all()
    assert (narrow.below <= wide.below).all()
    assert (narrow.above >= 0).all()
    ends = [intervals(sets, budget, moves) for budget in (0, 1, 5, 20, 300)]
    for (low, high), (lower, higher) in pairwise(ends):
        assert (lower <= low).all()
        assert (higher >= high).all()
    assert np.array_equal(ends[0][0], middle)
    assert np.array_equal(ends[0][1], middle)
