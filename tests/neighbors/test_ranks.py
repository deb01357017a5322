"""The formulas on ranks against every attack there is."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from poisonproof.neighbors.ranks import (
    UNDECIDED,
    median_costs,
    median_ends,
    plurality_costs,
    ranks_for_budget,
    ranks_for_costs,
)
from poisonproof.threat import Threat

if TYPE_CHECKING:
    from numpy.typing import NDArray

THREATS = ["insert+delete", "delete", "insert", "relabel"]


@cache
def survivors(n: int, deletes: bool) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Every set of surviving ranks: survivors first (in order), how many survive, and how many were deleted."""
    masks = np.arange(2**n) if deletes else np.array([2**n - 1])
    kept = (masks[:, None] >> np.arange(n)) & 1 == 1
    return np.argsort(~kept, axis=1, kind="stable"), kept.sum(axis=1), n - kept.sum(axis=1)


def highest_by_cost(values: NDArray[np.float64], k: int, threat: Threat) -> NDArray[np.float64]:
    """The highest median that exactly c modifications reach, for every c; inf where fewer than k rows are left."""
    n = len(values)
    reached = np.full(n + k + 2, -np.inf)
    if threat.moves == "relabel":
        for changed in range(k + 1):  # the lowest values of the neighbourhood become infinite
            near = np.sort(values[:k])
            reached[changed] = np.sort(np.append(near[changed:], [np.inf] * changed))[k // 2]
        return reached
    order, left, gone = survivors(n, threat.deletes)
    for inserted in range(k + 1 if threat.inserts else 1):
        near = np.concatenate([np.full((len(order), inserted), np.inf), values[order][:, : k - inserted]], axis=1)
        medians = np.where(left + inserted < k, np.inf, np.sort(near, axis=1)[:, k // 2])
        np.maximum.at(reached, gone + inserted, medians)
    return reached


def cost_by_brute_force(values: Any, k: int, threat: Threat, lower: float, upper: float) -> int:
    values = np.asarray(values, dtype=float)
    broken = (highest_by_cost(values, k, threat) > upper) | (highest_by_cost(-values, k, threat) > -lower)
    if threat.deletes:
        broken[len(values) - k + 1] = True  # too few rows left
    return int(np.argmax(broken)) if broken.any() else len(values) + 1


def drawn_cases(count: int, seed: int, largest: int) -> list[tuple[NDArray[np.float64], int, float, float]]:
    rng = np.random.default_rng(seed)
    cases = []
    for _ in range(count):
        n = int(rng.integers(1, largest + 1))
        k = int(rng.choice([odd for odd in (1, 3, 5, 7, 9, 11) if odd <= n]))
        values = rng.integers(0, rng.choice([2, 3, 6]), n).astype(float)
        lower, upper = np.sort(rng.integers(-1, 6, 2) + rng.choice([0.0, 0.5], 2))
        side = rng.integers(5)
        cases.append((values, k, -np.inf if side == 0 else lower, np.inf if side == 1 else upper))
    return cases


def cost_by_formula(values: NDArray[np.float64], k: int, threat: Threat, lower: float, upper: float) -> int:
    bounds = np.array([lower]), np.array([upper])
    known = ranks_for_costs(k, len(values), threat)
    cost = median_costs(values[None, :known], *bounds, k=k, n_rows=len(values), threat=threat)[0]
    whole = median_costs(values[None], *bounds, k=k, n_rows=len(values), threat=threat)[0]
    if cost == UNDECIDED:
        assert threat.moves == "delete" or (np.isinf(lower) and np.isinf(upper))
    else:
        assert cost == whole
    return int(whole)


@pytest.mark.parametrize("moves", THREATS)
def test_median_costs_equal_brute_force(moves: str) -> None:
    threat = Threat.of(moves)
    for values, k, lower, upper in drawn_cases(1500, seed=1, largest=8) + drawn_cases(60, seed=2, largest=12):
        expected = cost_by_brute_force(values, k, threat, lower, upper)
        assert cost_by_formula(values, k, threat, lower, upper) == expected, (values, k, lower, upper)


@pytest.mark.parametrize("moves", THREATS)
def test_median_costs_equal_brute_force_on_every_binary_neighbourhood(moves: str) -> None:
    threat = Threat.of(moves)
    for n in range(1, 8):
        for values in product([0.0, 1.0], repeat=n):
            for k in range(1, n + 1, 2):
                expected = cost_by_brute_force(values, k, threat, -np.inf, 0.5)
                assert cost_by_formula(np.array(values), k, threat, -np.inf, 0.5) == expected, (values, k)


def test_free_sides_cannot_be_left() -> None:
    values, free = np.arange(5.0)[None], (np.array([-np.inf]), np.array([np.inf]))
    cost = {moves: median_costs(values, *free, k=3, n_rows=5, threat=Threat.of(moves))[0] for moves in THREATS}
    assert cost == {"insert": 6, "relabel": 6, "delete": 3, "insert+delete": 3}
    assert median_costs(values, free[1], free[1], k=3, n_rows=5, threat=Threat())[0] == 0
    assert median_costs(values, free[0], free[0], k=3, n_rows=5, threat=Threat())[0] == 0


@pytest.mark.parametrize("moves", THREATS)
def test_ends_are_the_extremes_that_attacks_reach(moves: str) -> None:
    threat = Threat.of(moves)
    for values, k, *_ in drawn_cases(250, seed=3, largest=8):
        n = len(values)
        highest, lowest = highest_by_cost(values, k, threat), -highest_by_cost(-values, k, threat)
        for budget in range(n + k):
            too_few = threat.deletes and budget > n - k
            known = ranks_for_budget(k, n, threat, budget)
            low, high = median_ends(values[None, :known], k=k, n_rows=n, threat=threat, budget=budget)
            if budget < len(highest):
                assert high[0] == (np.inf if too_few else highest[: budget + 1].max()), (values, k, budget)
                assert low[0] == (-np.inf if too_few else lowest[: budget + 1].min()), (values, k, budget)


def class_cost_by_brute_force(
    codes: NDArray[np.int64], target: int, *, k: int, n_classes: int, newcomer: bool, threat: Threat
) -> int:
    """The same over labels; the newcomer's number is -1, so that it comes first and wins ties."""
    n, letters = len(codes), list(range(-1 if newcomer else 0, n_classes))

    def lost(near: NDArray[np.int64]) -> NDArray[np.bool_]:
        counts = np.stack([np.count_nonzero(near == letter, axis=1) for letter in letters])
        return np.array(letters)[np.argmax(counts, axis=0)] != target

    best = n - k + 1 if threat.deletes else n + 1
    if threat.moves == "relabel":
        near = np.array(list(product(letters, repeat=k)))
        changed = np.count_nonzero(near != codes[:k], axis=1)
        return min(best, int(changed[lost(near)].min(initial=n + 1)))
    order, left, gone = survivors(n, threat.deletes)
    for inserted in range(k + 1 if threat.inserts else 1):
        for labels in combinations_with_replacement(letters, inserted):
            near = np.concatenate([np.tile(labels, (len(order), 1)), codes[order][:, : k - inserted]], axis=1)
            broken = (left + inserted >= k) & lost(near.astype(np.int64))
            best = min(best, int((gone + inserted)[broken].min(initial=n + k)))
    return best


@pytest.mark.parametrize("moves", THREATS)
@pytest.mark.parametrize("newcomer", [False, True])
def test_plurality_costs_equal_brute_force(moves: str, newcomer: bool) -> None:
    threat, rng = Threat.of(moves), np.random.default_rng(5)
    for _ in range(400):
        n, n_classes = int(rng.integers(1, 8)), int(rng.integers(1, 5))
        k = int(rng.choice([odd for odd in (1, 3, 5) if odd <= n]))
        codes = rng.choice(n_classes, n, p=rng.dirichlet(np.ones(n_classes)))
        target = int(codes[0]) if rng.random() < 0.8 else int(rng.integers(n_classes))
        known = ranks_for_costs(k, n, threat)
        same: Any = {"n_classes": n_classes, "newcomer": newcomer, "k": k, "n_rows": n, "threat": threat}
        cost = plurality_costs(codes[None, :known], np.array([target]), **same)[0]
        whole = plurality_costs(codes[None], np.array([target]), **same)[0]
        assert cost in (whole, UNDECIDED)
        same.pop("n_rows")
        assert whole == class_cost_by_brute_force(codes, target, **same), (codes, target, k)


@pytest.mark.parametrize("moves", THREATS)
def test_two_classes_are_a_one_sided_median(moves: str) -> None:
    threat, rng = Threat.of(moves), np.random.default_rng(6)
    codes = rng.integers(0, 2, (300, 40))
    k = 11
    kinds: Any = {"k": k, "n_rows": 40, "threat": threat}
    target = (np.median(codes[:, :k], axis=1) > 0.5).astype(np.int64)
    lower, upper = np.where(target == 1, 0.5, -np.inf), np.where(target == 1, np.inf, 0.5)
    by_median = median_costs(codes.astype(float), lower, upper, **kinds)
    by_class = plurality_costs(codes, target, n_classes=2, newcomer=False, **kinds)
    np.testing.assert_array_equal(by_median, by_class)


@pytest.mark.parametrize("moves", ["insert+delete", "delete", "insert"])
def test_exact_radius_is_at_least_the_published_one(moves: str) -> None:
    rng = np.random.default_rng(7)
    for k in (1, 7, 25, 51):
        values = rng.random((200, 60))
        bounds = np.full(200, 0.2), np.full(200, 0.8)
        exact = median_costs(values, *bounds, k=k, n_rows=60, threat=Threat.of(moves)) - 1
        published = median_costs(values[:, :k], *bounds, k=k, n_rows=60, threat=Threat("relabel")) - 1
        most = 60 - k if Threat.of(moves).deletes else 60
        assert (exact >= np.minimum(published, most)).all()
        assert k == 1 or (exact > published).any()
