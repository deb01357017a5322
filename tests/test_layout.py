"""Layouts: every design is the design it claims to be, for every size."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.layout import Layout, disjoint, make_layout

STEINER = [("triples", 4, 9, 3), ("triples", 6, 13, 3), ("triples", 7, 15, 3), ("fano", 3, 7, 3), ("plane", 4, 13, 4)]


def dense(layout: Layout) -> NDArray[np.int64]:
    table: NDArray[np.int64] = layout.incidence.toarray().astype(np.int64)
    return table


@pytest.mark.parametrize(("name", "spread", "size", "each"), STEINER)
def test_a_design_puts_every_two_blocks_together_exactly_once(name: str, spread: int, size: int, each: int) -> None:
    layout = make_layout(2 * size // each, spread, name, odd=False)
    table = dense(layout)
    per_group = size * spread // each
    assert layout.n_blocks == size * layout.n_groups
    assert layout.n_submodels == per_group * layout.n_groups
    group = table[:per_group, :size]
    assert (group.sum(axis=1) == each).all()
    assert (group.sum(axis=0) == spread).all()
    assert (group.T @ group == 1 + (spread - 1) * np.eye(size, dtype=int)).all()
    assert not table[:per_group, size:].any()
    assert layout.spread == spread
    assert layout.effective_q == pytest.approx(layout.n_blocks / each)


@given(st.integers(1, 60), st.integers(2, 12))
def test_pairs_are_complete_graphs_on_nearly_equal_groups(q: int, spread: int) -> None:
    if 2 * q < spread:
        with pytest.raises(ParameterError, match="blocks there are"):
            make_layout(q, spread, "paired")
        return
    layout = make_layout(q, spread, "paired", odd=False)
    table = dense(layout)
    assert (table.sum(axis=1) == 2).all()
    count, label = sp.csgraph.connected_components(sp.csr_array(table.T @ table), directed=False)
    sizes = np.bincount(label)
    assert count == layout.n_groups
    assert abs(sizes - (spread + 1)).max() <= 1
    assert layout.n_submodels == (sizes * (sizes - 1) // 2).sum()
    assert len({tuple(row) for row in table}) == layout.n_submodels
    assert layout.effective_q == pytest.approx(layout.n_blocks / 2)
    if layout.n_groups > spread + 2 > 4:
        assert layout.n_blocks == 2 * q


@pytest.mark.parametrize("q", [1, 2, 3, 7, 25, 51])
@pytest.mark.parametrize("spread", [2, 3, 5, 9])
def test_random_gives_each_block_to_spread_submodels_and_none_twice(q: int, spread: int) -> None:
    layout = make_layout(q, spread, "random", key=4, odd=False)
    table = dense(layout)
    assert table.shape == (q * spread, q * spread)
    assert (table.sum(axis=0) == spread).all()
    assert (table.sum(axis=1) == spread).all()
    assert layout.effective_q == pytest.approx(q)


@given(st.integers(1, 40), st.sampled_from([("triples", 4), ("paired", 5), ("random", 4), ("random", 2), ("fano", 3)]))
def test_the_number_of_submodels_is_odd_and_at_most_one_is_dropped(q: int, case: tuple[str, int]) -> None:
    name, spread = case
    if name != "random" and q * 3 < spread + 3:
        return
    whole = make_layout(q, spread, name, odd=False)
    layout = make_layout(q, spread, name)
    assert layout.n_submodels % 2 == 1
    assert layout.n_submodels == whole.n_submodels - (whole.n_submodels % 2 == 0)
    assert (dense(layout) == dense(whole)[: layout.n_submodels]).all()
    assert dense(layout).any(axis=0).all()


def test_a_layout_is_a_function_of_its_parameters() -> None:
    one, same, other = (dense(make_layout(7, 3, "random", key)) for key in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()
    assert (dense(make_layout(7, 4, "triples", 1)) == dense(make_layout(7, 4, "triples", 2))).all()


def test_the_random_layout_never_changes() -> None:
    members = [make_layout(2, 2, "random", key=0, odd=False).blocks_of(t).tolist() for t in range(4)]
    assert members == [[2, 3], [0, 1], [0, 2], [1, 3]]


def test_spread_one_is_disjoint_whatever_the_layout() -> None:
    for name in ("triples", "random", "paired"):
        layout = make_layout(5, 1, name)
        assert layout.is_disjoint
        assert layout.name == "disjoint"
    assert disjoint(5).n_groups == 5
    assert not make_layout(5, 4).is_disjoint
    assert disjoint(3).blocks_of(2).tolist() == [2]


FORMS = [
    np.array,
    lambda rows: rows,
    sp.csr_array,
    sp.csc_matrix,
    sp.coo_array,
    sp.bsr_array,
    sp.dia_array,
    sp.lil_array,
    sp.dok_array,
    lambda rows: sp.lil_matrix(np.array(rows, dtype=bool)),
    lambda rows: sp.dok_matrix(np.array(rows, dtype=float)),
]


@pytest.mark.parametrize("form", FORMS)
def test_a_custom_incidence_is_taken_as_it_is(form: object) -> None:
    rows = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    layout = make_layout(3, incidence=form(rows))  # type: ignore[operator]
    assert dense(layout).tolist() == rows
    assert (layout.name, layout.n_groups, layout.spread) == ("custom", 2, 2)
    assert layout.effective_q == pytest.approx(4 / (5 / 3))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1, 0], [0, 0], [1, 1]], "submodel 1 no block"),
        ([[1, 2]], "False or 0 elsewhere"),
        ([[0.5, 1]], "False or 0 elsewhere"),
        ([["a"]], "False or 0 elsewhere"),
        ([[1, 0], [0, 1]], "odd number"),
        ([1, 0], r"shape \(2,\)"),
        (np.zeros((0, 3)), "at least 1"),
        ([[1], [1, 0], [1]], "rows of different lengths"),
        (sp.coo_array(([1, 1], ([0, 0], [0, 0])), shape=(1, 2)), "twice"),
        (sp.coo_array(([True, True], ([0, 0], [0, 0])), shape=(1, 2)), "twice"),
        (sp.csr_array(([True, True], [0, 0], [0, 2]), shape=(1, 2)), "twice"),
        (sp.lil_array(np.array([[1, 2]])), "False or 0 elsewhere"),
        (sp.dok_array(np.array([[1, 0], [0, 0], [1, 1]])), "submodel 1 no block"),
    ],
)
def test_a_custom_incidence_that_cannot_be_used_says_why(rows: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        make_layout(3, incidence=rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((9, 5, "triples"), "use spread=4 or 6 or 7"),
        ((9, 4, "fano"), "use spread=3"),
        ((9, 3, "plane"), "use spread=4"),
        ((9, 3, "circles"), "'triples', 'paired'"),
        ((1, 4, "triples"), "more than the 3 blocks"),
        ((0, 4, "triples"), "n_partitions=0 must be from 1 to 10,000,000"),
        ((10**20 - 1, 1, "triples"), "n_partitions=99999999999999999999 must be from 1 to 10,000,000"),
        ((9, 0, "triples"), "spread=0 must be from 1 to 1,000"),
        ((9, 10**20, "paired"), "spread=100000000000000000000 must be from 1 to 1,000"),
    ],
)
def test_an_impossible_layout_says_what_is_possible(arguments: tuple[int, int, str], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make_layout(*arguments)


@pytest.mark.parametrize("bad", [True, 2.0, "3"])
def test_counts_must_be_integers(bad: object) -> None:
    with pytest.raises(ParameterTypeError):
        make_layout(bad)  # type: ignore[arg-type]
    with pytest.raises(ParameterTypeError):
        make_layout(3, bad)  # type: ignore[arg-type]


def test_any_two_triples_share_at_most_one_block() -> None:
    table = dense(make_layout(15, 7, "triples"))
    assert max(first @ second for first, second in combinations(table, 2)) == 1
