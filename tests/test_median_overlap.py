"""The median of submodels that share blocks: radius and interval against enumeration of all attacks on the costs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from poisonproof.costs import Reach
from poisonproof.median import Ballot, interval, radii


def shared_ballot(rng: np.random.Generator, *, caps: bool) -> Ballot:
    """One row, three or five submodels on up to four blocks, rounded votes, costs of 1 or 2."""
    n_submodels, n_blocks = int(rng.choice([3, 5])), int(rng.integers(2, 5))
    table = rng.random((n_submodels, n_blocks)) < 0.5
    table[np.arange(n_submodels), rng.integers(0, n_blocks, n_submodels)] = True
    votes = rng.integers(-3, 4, (n_submodels, 1)).astype(float)
    steps = rng.integers(0, 3, (2, 1, n_submodels, 1)).astype(float)
    held = rng.integers(0, 4, n_blocks) if caps else None
    n_units = 10**6 if held is None else int(held.sum())
    return Ballot(Reach.around(votes, votes - steps[0], votes + steps[1]), sp.csr_array(table), None, n_units, held)


def medians(ballot: Ballot, budget: int) -> list[float]:
    """Every extreme median that at most ``budget`` touches of blocks can give on the costs."""
    assert ballot.incidence is not None
    table = ballot.incidence.toarray().astype(int)
    held = np.full(table.shape[1], budget) if ballot.caps is None else np.minimum(ballot.caps, budget)
    found = []
    for touched in product(*(range(most + 1) for most in held.tolist())):
        if sum(touched) > budget:
            continue
        reached = table @ np.array(touched)
        for ends, beyond in ((ballot.reach.high, np.inf), (ballot.reach.low, -np.inf)):
            votes = [ends[k, t, 0] if k < len(ends) else beyond for t, k in enumerate(reached.tolist())]
            found.append(float(np.median(votes)))
    return found


@pytest.mark.parametrize("caps", [False, True])
def test_the_two_sided_radius_is_exact_on_small_layouts(caps: bool) -> None:
    rng = np.random.default_rng([7, caps])
    seen = set()
    for _ in range(100):
        ballot = shared_ballot(rng, caps=caps)
        lower, upper = sorted(rng.integers(-4, 5, 2).astype(float))
        found = radii(ballot, np.array([lower]), np.array([upper]))
        radius = int(found.radius[0])
        most = min(ballot.n_units, 8)
        breaking = [b for b in range(most + 1) if not all(lower <= one <= upper for one in medians(ballot, b))]
        if not breaking:
            assert found.unbreakable[0]
            assert radius == ballot.n_units
        else:
            assert radius == breaking[0] - 1
            assert found.attack[0] == breaking[0]
        seen.add(radius)
    assert len(seen) >= 3


def test_the_smaller_side_decides_on_every_row_of_a_batch() -> None:
    rng = np.random.default_rng(8)
    ballot = shared_ballot(rng, caps=False)
    many = Ballot(
        Reach(np.repeat(ballot.reach.low, 30, axis=2), np.repeat(ballot.reach.high, 30, axis=2)),
        ballot.incidence,
        None,
        10**6,
    )
    lower, upper = rng.integers(-6, 0, 30).astype(float), rng.integers(0, 6, 30).astype(float)
    found = radii(many, lower, upper)
    for row in range(30):
        sides = [
            radii(ballot, np.array([low]), np.array([high])).radius[0]
            for low, high in ((lower[row], np.inf), (-np.inf, upper[row]))
        ]
        assert found.radius[row] == min(sides)


@pytest.mark.parametrize("caps", [False, True])
def test_the_interval_encloses_what_the_budget_can_do(caps: bool) -> None:
    rng = np.random.default_rng([9, caps])
    tight = 0
    for _ in range(40):
        ballot = shared_ballot(rng, caps=caps)
        for budget in range(3):
            (low,), (high,) = interval(ballot, budget)
            reached = medians(ballot, budget)
            assert low <= min(reached)
            assert high >= max(reached)
            tight += (low, high) == (min(reached), max(reached))
    assert tight > 100


@pytest.mark.parametrize("incidence", [None, np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=np.bool_)])
def test_many_levels_of_cost_do_not_overflow(incidence: np.ndarray | None) -> None:
    ends = np.zeros((200, 3, 1))
    shared = None if incidence is None else sp.csr_array(incidence)
    found = radii(Ballot(Reach(ends, ends), shared, None, 10**6), np.array([-1.0]), np.array([1.0]))
    assert not found.unbreakable[0]
    assert found.radius[0] == (399 if incidence is None else 199)
