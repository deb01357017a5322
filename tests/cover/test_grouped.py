"""Grouped layouts: profiles against enumeration, whole layouts against a mixed-integer solver."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from poisonproof.cover import CoverProblem, minimum_cover, solve
from poisonproof.cover import grouped as grouped_module
from poisonproof.cover.grouped import groups_of
from poisonproof.cover.profiles import largest_cost, profile, touches
from poisonproof.cover.structure import Residual, Structure, structure_of
from poisonproof.layout import make_layout

DESIGNS = [("paired", 2), ("paired", 3), ("paired", 4), ("fano", 3)]


def group_of(rng: np.random.Generator, case: int) -> Residual:
    """One group: a design, or any small structure; costs up to 5, gains, and in every other case caps."""
    if case % 5 < 4:
        name, spread = DESIGNS[case % 5]
        part = Structure.of(make_layout((spread + 1) // 2 + (name == "fano"), spread, name, odd=False).incidence)
    else:
        table = rng.random((int(rng.integers(1, 7)), int(rng.integers(1, 6)))) < 0.5
        table[np.arange(len(table)), rng.integers(0, table.shape[1], len(table))] = True
        part = Structure.of(sp.csr_array(table))
    dearest = int(rng.integers(1, 6 if part.n_blocks <= 4 else 3))
    costs = rng.integers(0, dearest + 1, part.n_submodels)
    costs[0] = dearest
    return Residual(
        part.start,
        part.blocks,
        part.block_start,
        part.submodels,
        costs,
        rng.integers(1, 3, part.n_submodels),
        rng.integers(0, dearest + 2, part.n_blocks) if case % 2 else np.full(part.n_blocks, 99),
        0,
    )


def gained(group: Residual, touched: np.ndarray) -> np.ndarray:
    """What each row of ``touched (n, n_blocks)`` gains."""
    table = np.zeros((len(group.costs), len(group.caps)), dtype=np.int64)
    for t in range(len(group.costs)):
        table[t, group.blocks[group.start[t] : group.start[t + 1]]] = 1
    return np.asarray(((touched @ table.T >= group.costs) & (group.costs > 0)) @ group.gains)


@pytest.mark.parametrize("seed", range(4))
def test_profiles_equal_enumeration_and_are_reached(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for case in range(60):
        group = group_of(rng, case)
        limits = np.minimum(group.caps, group.costs.max())
        every = np.array(list(product(*(range(limit + 1) for limit in limits.tolist()))))
        spent, worth = every.sum(axis=1), gained(group, every)
        most = profile(group)
        assert [most[min(budget, len(most) - 1)] for budget in range(limits.sum() + 1)] == [
            worth[spent <= budget].max() for budget in range(limits.sum() + 1)
        ]
        for budget, value in enumerate(most.tolist()):
            found = touches(group._replace(quota=value), budget)
            assert found.sum() <= budget
            assert (found <= group.caps).all()
            assert gained(group, found[None])[0] >= value


def integer_optimum(problem: CoverProblem) -> int:
    """The least cost according to HiGHS."""
    table = problem.incidence.astype(float)
    (n, m), costs = table.shape, np.asarray(problem.costs)
    gains = np.ones(n) if problem.gains is None else np.asarray(problem.gains)
    rows = sp.vstack([sp.hstack([table, -sp.diags_array(costs.astype(float))]), np.append(np.zeros(m), gains)[None]])
    result = milp(
        np.append(np.ones(m), np.zeros(n)),
        integrality=np.ones(m + n),
        bounds=Bounds(0, np.append(np.full(m, float(costs.max())), np.ones(n))),
        constraints=LinearConstraint(rows, np.append(np.zeros(n), problem.quota), np.inf),
        options={"mip_rel_gap": 0.0},
    )
    assert result.success
    return round(result.fun)


@pytest.mark.parametrize(
    ("name", "spread", "q", "dearest"),
    [
        ("triples", 4, 6, 2),
        ("triples", 4, 3, 4),
        ("triples", 6, 5, 2),
        ("triples", 7, 5, 2),
        ("paired", 5, 9, 2),
        ("paired", 3, 5, 4),
        ("paired", 4, 5, 8),
        ("fano", 3, 5, 2),
        ("fano", 3, 5, 4),
        ("plane", 4, 4, 2),
    ],
)
def test_whole_layouts_are_solved_exactly(name: str, spread: int, q: int, dearest: int) -> None:
    rng = np.random.default_rng([spread, q, dearest])
    incidence = make_layout(q, spread, name).incidence
    for case in range(6):
        costs = rng.integers(0, dearest + 1, incidence.shape[0])
        gains = rng.integers(1, 3, len(costs)) if case % 2 else None
        total = len(costs) if gains is None else int(gains.sum())
        problem = CoverProblem(incidence, costs, int(rng.uniform(0.2, 0.95) * total), gains)
        bound = solve(problem)
        assert bound.lower == bound.upper == integer_optimum(problem)
        assert bound.method == "exact by groups"
        assert bound.witness is not None
        assert bound.witness.sum() == bound.upper


def test_costs_too_large_to_enumerate_are_capped_soundly() -> None:
    incidence = make_layout(3, 4, "triples").incidence
    rng = np.random.default_rng(1)
    loose = 0
    for _ in range(15):
        costs = rng.integers(1, 9, incidence.shape[0])
        problem = CoverProblem(incidence, costs, int(rng.integers(2, len(costs))))
        bound = solve(problem, effort="fast")
        assert bound.method == "exact by groups, dual bound where costs are too large for that"
        assert bound.lower <= integer_optimum(problem) <= bound.upper
        loose += bound.lower < bound.upper
    assert loose


def test_groups_are_found_whatever_the_order_of_blocks_and_submodels() -> None:
    rng = np.random.default_rng(2)
    incidence = make_layout(9, 4, "triples", odd=False).incidence
    costs, quota = rng.integers(0, 3, (36, 20)), rng.integers(1, 30, 20)
    submodels, blocks = rng.permutation(36), rng.permutation(27)
    mixed = sp.csr_array(incidence[submodels][:, blocks])
    one, other = minimum_cover(incidence, costs, quota), minimum_cover(mixed, costs[submodels], quota)
    assert (one.lower == other.lower)[~one.unbreakable].all()
    assert (one.unbreakable == other.unbreakable).all()


def test_groups_too_large_to_enumerate_are_left_to_the_general_search() -> None:
    assert largest_cost(16) == 2
    assert largest_cost(17) == 0
    assert groups_of(structure_of(make_layout(5, 5, "random").incidence)) == ()
    bound = solve(CoverProblem(make_layout(5, 5, "random").incidence, np.ones(25, dtype=np.int64), 13))
    assert bound.method.startswith("dual bound")


def test_memory_of_profiles_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped_module, "_KEPT_PROFILES", 5)
    grouped_module._profiles.clear()
    incidence = make_layout(9, 4, "triples").incidence
    costs = np.random.default_rng(3).integers(1, 3, (incidence.shape[0], 10))
    minimum_cover(incidence, costs, np.full(10, 9))
    assert len(grouped_module._profiles) == 5


def test_structures_are_remembered_and_forgotten() -> None:
    layouts = [make_layout(q, 4, "triples").incidence for q in range(2, 30, 3)]
    first = structure_of(layouts[0])
    assert structure_of(layouts[0].copy()) is first
    for incidence in layouts[1:]:
        structure_of(incidence)
    again = structure_of(layouts[0])
    assert again is not first
    assert (again.blocks == first.blocks).all()
