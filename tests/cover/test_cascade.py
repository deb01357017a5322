"""Whatever path an answer takes, it encloses the optimum, and its witness is a real attack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.cover.small_covers import small_problem, works

from poisonproof.cover import CoverProblem, minimum_cover, solve
from poisonproof.cover import cascade as cascade_module
from poisonproof.cover.brute import least_cost
from poisonproof.errors import DataError, ParameterError
from poisonproof.layout import make_layout

SHARED = sp.csr_array(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=np.bool_))


@pytest.fixture
def ungrouped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every layout is treated as if its groups were too large to enumerate."""
    monkeypatch.setattr(cascade_module, "groups_of", lambda _: ())


def enclose_the_optimum(seed: int, count: int, *, exact: bool, **options: Any) -> int:
    """Compare with enumeration; returns how many answers were settled."""
    rng = np.random.default_rng(seed)
    settled = 0
    for _ in range(count):
        problem = small_problem(rng)
        optimum, bound = least_cost(problem), solve(problem, **options)
        assert bound.unbreakable == (optimum is None)
        if optimum is None:
            assert bound.witness is None
            assert bound.status == "unbreakable"
            continue
        assert bound.lower <= optimum[0] <= bound.upper
        assert works(problem, bound)
        assert (bound.status == "optimal") == (bound.lower == bound.upper)
        if exact:
            assert bound.lower == bound.upper
        settled += bound.lower == bound.upper
    return settled


def test_groups_give_the_optimum() -> None:
    enclose_the_optimum(0, 1500, exact=True)


@pytest.mark.usefixtures("ungrouped")
def test_the_general_search_encloses_the_optimum() -> None:
    assert enclose_the_optimum(1, 1500, exact=False, effort="fast") > 900


@pytest.mark.usefixtures("ungrouped")
def test_exact_effort_closes_what_is_left() -> None:
    enclose_the_optimum(2, 200, exact=True, effort="exact")


@pytest.mark.usefixtures("ungrouped")
def test_a_time_limit_leaves_sound_bounds() -> None:
    enclose_the_optimum(3, 100, exact=False, effort="exact", time_limit=0.0)


def test_a_block_that_two_submodels_share_tips_both_votes_at_once() -> None:
    problem = CoverProblem(SHARED, np.ones(3, dtype=np.int64), quota=2)
    bound = solve(problem)
    assert (bound.lower, bound.upper) == (1, 1)
    assert bound.witness is not None
    assert bound.witness.tolist() == [1, 0, 0]


def batch(rng: np.random.Generator, n_rows: int) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    incidence = make_layout(3, 3, "random", key=1).incidence
    costs = rng.integers(0, 4, (incidence.shape[0], n_rows))
    return incidence, costs, rng.integers(0, incidence.shape[0] + 1, n_rows)


@pytest.mark.usefixtures("ungrouped")
@pytest.mark.parametrize("with_gains", [False, True])
def test_rows_do_not_depend_on_their_batch(with_gains: bool) -> None:
    rng = np.random.default_rng(4)
    incidence, costs, quota = batch(rng, 40)
    gains = rng.integers(1, 3, costs.shape) if with_gains else None
    whole = minimum_cover(incidence, costs, quota, gains=gains, witness=True)
    for row in range(40):
        one = slice(row, row + 1)
        part = minimum_cover(incidence, costs[:, one], quota[one], gains=None if gains is None else gains[:, one])
        assert (part.lower[0], part.upper[0]) == (whole.lower[row], whole.upper[row])
    assert whole.witness is not None
    settled = ~whole.unbreakable
    assert (whole.witness.sum(axis=1)[settled] == whole.upper[settled]).all()


def test_an_identity_and_no_incidence_agree() -> None:
    rng = np.random.default_rng(5)
    costs, quota = rng.integers(0, 4, (7, 200)), rng.integers(-1, 9, 200)
    gains, caps = rng.integers(1, 3, costs.shape), rng.integers(0, 4, 7)
    identity = sp.csr_array(sp.eye_array(7, dtype=np.bool_))
    for options in ({}, {"gains": gains}, {"caps": caps}, {"caps": caps, "movable": costs != 2}):
        plain = minimum_cover(None, costs, quota, **options)
        for other in (
            minimum_cover(identity, costs, quota, **options),
            minimum_cover(None, costs, quota, witness=True, **options),
        ):
            assert (plain.unbreakable == other.unbreakable).all()
            assert (plain.lower == other.lower)[~plain.unbreakable].all()
            assert (plain.upper == other.upper)[~plain.unbreakable].all()


@pytest.mark.usefixtures("ungrouped")
def test_the_search_stops_at_enough_and_stays_sound() -> None:
    rng = np.random.default_rng(6)
    incidence, costs, quota = batch(rng, 60)
    best = minimum_cover(incidence, costs, quota, effort="exact")
    open_rows = ~best.unbreakable
    for enough in range(5):
        wanted = np.full(60, enough)
        for only in (False, True):
            found = minimum_cover(incidence, costs, quota, enough=wanted, only_enough=only)
            assert (found.lower <= best.lower)[open_rows].all()
            assert (found.upper >= best.upper)[open_rows].all()
            assert set(found.status) <= {"optimal", "enough", "effort"}
        decided = (found.lower >= enough) | (found.upper < enough)
        assert decided[open_rows].mean() > 0.9
    assert "enough" in minimum_cover(incidence, costs, quota, enough=np.full(60, 2)).status


@pytest.mark.parametrize("layout", ["random", "triples"])
def test_where_enough_is_known_there_is_still_an_attack_to_show(layout: str) -> None:
    incidence = make_layout(4, 4, layout).incidence
    rng = np.random.default_rng(7)
    costs = rng.integers(0, 3, (incidence.shape[0], 40))
    quota = rng.integers(0, incidence.shape[0] + 1, 40)
    found = minimum_cover(incidence, costs, quota, enough=np.full(40, 2), witness=True)
    assert found.witness is not None
    out = incidence.astype(np.int64) @ found.witness.toarray().T >= costs
    assert (found.witness.sum(axis=1) == found.upper)[~found.unbreakable].all()
    assert (np.count_nonzero(out, axis=0) >= quota)[~found.unbreakable].all()
    unsettled = np.array(found.status) != "optimal"
    assert (found.lower < found.upper)[unsettled].all()


@pytest.mark.usefixtures("ungrouped")
def test_gains_too_large_for_groups_are_searched() -> None:
    problem = CoverProblem(SHARED, np.array([1, 2, 1]), quota=600, gains=np.array([300, 300, 300]))
    bound = solve(problem)
    assert (bound.lower, bound.upper) == (2, 2)


def test_gains_that_do_not_fit_into_a_byte_are_not_cut() -> None:
    problem = CoverProblem(SHARED, np.array([1, 2, 1]), quota=300, gains=np.array([300, 1, 44]))
    bound = solve(problem)
    assert (bound.lower, bound.upper, bound.method) == (1, 1, "dual bound")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"costs": np.array([1, -1, 0])}, "costs has the value -1"),
        ({"costs": np.array([1.0, 1.0, 0.0])}, "must be integers"),
        ({"costs": np.array([1, 1])}, "each of the 3 submodels"),
        ({"gains": np.array([1, 1, -2])}, "gains has the value -2"),
        ({"caps": np.array([1, 1])}, r"caps has shape \(2,\)"),
        ({"movable": np.ones(2, dtype=np.bool_)}, "movable has shape"),
        ({"incidence": sp.csr_array(np.array([[1, 0], [0, 0], [1, 1]]))}, "submodel 1 no block"),
    ],
)
def test_what_cannot_be_a_problem_is_refused(change: dict[str, Any], message: str) -> None:
    parts = {"incidence": SHARED, "costs": np.ones(3, dtype=np.int64), "quota": 2} | change
    with pytest.raises(DataError, match=message):
        solve(CoverProblem(**parts))


def test_quotas_need_an_entry_per_row() -> None:
    with pytest.raises(DataError, match="quota has shape"):
        minimum_cover(SHARED, np.ones((3, 2), dtype=np.int64), np.array([1]))


def test_an_unknown_effort_is_refused() -> None:
    with pytest.raises(ParameterError, match="'fast' or 'exact'"):
        minimum_cover(SHARED, np.ones((3, 1), dtype=np.int64), np.array([1]), effort="most")  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [-1, float("nan"), "1"])
def test_a_time_limit_must_be_a_time(limit: Any) -> None:
    with pytest.raises(ParameterError, match="must be a number of seconds"):
        minimum_cover(SHARED, np.ones((3, 1), dtype=np.int64), np.array([1]), time_limit=limit)


@pytest.mark.usefixtures("ungrouped")
def test_an_incidence_is_read_as_the_matrix_it_is() -> None:
    rng = np.random.default_rng(8)
    for _ in range(40):
        table = rng.random((6, 6)) < 0.4
        table[np.arange(6), rng.integers(0, 6, 6)] = True
        costs, quota = rng.integers(0, 3, 6), int(rng.integers(1, 6))
        optimum = least_cost(CoverProblem(sp.csr_array(table), costs, quota))
        assert optimum is not None
        places = np.nonzero(np.ones_like(table))
        with_zeros = sp.csr_array((table.ravel(), places), shape=table.shape)
        twice = sp.csr_array(table)
        twice = sp.csr_array(
            (np.repeat(twice.data, 2), np.repeat(twice.indices, 2), 2 * twice.indptr), shape=table.shape
        )
        # The columns of the transposed matrix look in memory like the rows of this one.
        solve(CoverProblem(sp.csr_array(table), costs, quota))
        for same in (table, table.astype(int), sp.coo_array(table), sp.csc_array(table), with_zeros, twice):
            bound = solve(CoverProblem(same, costs, quota), effort="fast")
            assert bound.lower <= optimum[0] <= bound.upper
            assert works(CoverProblem(sp.csr_array(table), costs, quota), bound)
        across = CoverProblem(sp.csc_array(table.T), costs, quota)
        if table.any(axis=0).all():
            best = least_cost(CoverProblem(sp.csr_array(table.T), costs, quota))
            assert best is not None
            found = solve(across, effort="fast")
            assert found.lower <= best[0] <= found.upper


def test_no_rows_are_no_trouble() -> None:
    found = minimum_cover(SHARED, np.ones((3, 0), dtype=np.int64), np.zeros(0, dtype=np.int64), witness=True)
    assert len(found.lower) == 0


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_blocks_that_hold_more_than_can_be_counted_are_no_limit(kind: type[np.integer]) -> None:
    most = np.full(3, np.iinfo(kind).max, dtype=kind)
    bound = solve(CoverProblem(SHARED, np.ones(3, dtype=np.int64), 2, caps=most))
    assert (bound.unbreakable, bound.lower, bound.upper) == (False, 1, 1)


def test_what_cannot_be_summed_is_refused() -> None:
    for name in ("costs", "gains"):
        parts = {"costs": np.ones(3, dtype=np.int64)} | {name: np.full(3, 1 << 40)}
        with pytest.raises(DataError, match=f"{name} has the value 1099511627776; it must be at most 65535"):
            solve(CoverProblem(SHARED, quota=2, **parts))


@pytest.mark.parametrize("incidence", [None, SHARED])
def test_costs_are_checked_whether_blocks_are_shared_or_not(incidence: sp.csr_array | None) -> None:
    with pytest.raises(DataError, match="costs has the value -3"):
        minimum_cover(incidence, np.array([[1], [-3], [2]], dtype=np.int8), np.array([2]))
    with pytest.raises(DataError, match="quota has shape"):
        minimum_cover(incidence, np.ones((3, 2), dtype=np.int8), np.array([2]))


def test_votes_that_count_nothing_are_not_bought() -> None:
    costs, gains = np.array([[1], [3], [2]]), np.array([[0], [1], [1]])
    assert minimum_cover(None, costs, np.array([1]), gains=gains).lower.tolist() == [2]
    assert minimum_cover(None, costs, np.array([3]), gains=gains).unbreakable.all()


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint64])
def test_narrow_integers_do_not_overflow(kind: type[np.integer]) -> None:
    incidence = make_layout(60, 5, "random").incidence
    costs = np.full((incidence.shape[0], 1), 100, dtype=kind)
    quota = np.array([incidence.shape[0]])
    wide = minimum_cover(incidence, costs.astype(np.int64), quota, gains=costs.astype(np.int64))
    narrow = minimum_cover(incidence, costs, quota, gains=costs)
    assert (narrow.lower == wide.lower).all()
    assert (narrow.upper == wide.upper).all()
    # Three votes fill the quota; they cost 100 each, and a touch counts for five votes at most.
    assert 100 * 3 / 5 <= narrow.lower[0] <= 100 * 3


def test_a_quota_beyond_all_reach_is_unbreakable() -> None:
    found = minimum_cover(SHARED, np.ones((3, 1), dtype=np.int64), np.array([2**62]), enough=np.array([5]))
    assert found.unbreakable.all()
