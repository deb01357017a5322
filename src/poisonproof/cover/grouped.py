"""Layouts whose blocks fall into small groups: the exact cost of an attack, group by group and then a knapsack."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from poisonproof.compiled import njit
from poisonproof.cover.profiles import largest_cost, profile, touches
from poisonproof.cover.structure import Residual, Structure, transposed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

__all__ = ["GroupedCosts", "grouped_attack", "grouped_costs", "groups_of"]

_KEPT_PROFILES: Final = 100_000
_profiles: OrderedDict[tuple[bytes, bytes], Ints] = OrderedDict()


@dataclass(frozen=True, eq=False)
class Shape:
    """Groups that look the same.

    Parameters
    ----------
    part : Structure
        Which submodels share which blocks within a group.
    key : bytes
        Names the shape.
    blocks, submodels : int64 arrays (n_groups, n_blocks), (n_groups, n_submodels)
        Where the blocks and submodels of each group are in the whole.
    """

    part: Structure
    key: bytes
    blocks: Ints
    submodels: Ints


class GroupedCosts(NamedTuple):
    """The least cost of an attack on each row, ``(n_rows,)``, and whether no cost had to be capped for it."""

    least: Ints
    exact: NDArray[np.bool_]


_groupings: WeakKeyDictionary[Structure, tuple[Shape, ...]] = WeakKeyDictionary()


def groups_of(structure: Structure) -> tuple[Shape, ...]:
    """The groups of blocks that share no submodel, or none at all where one of them is too large to enumerate."""
    if structure not in _groupings:
        _groupings[structure] = _found_groups(structure)
    return _groupings[structure]


def _found_groups(structure: Structure) -> tuple[Shape, ...]:
    sizes = (structure.n_submodels, structure.n_blocks)
    ones = np.ones(len(structure.blocks), dtype=np.int8)
    table = sp.csr_array((ones, structure.blocks, structure.start), shape=sizes)
    joined = sp.block_array([[None, table], [table.T, None]], format="csr")
    count, label = sp.csgraph.connected_components(joined, directed=False)
    n_blocks = np.bincount(label[sizes[0] :], minlength=count)
    if largest_cost(int(n_blocks.max())) == 0:
        return ()
    by_label = np.argsort(label[: sizes[0]], kind="stable")
    bounds = np.searchsorted(label[: sizes[0]][by_label], np.arange(count + 1))
    found: dict[bytes, list[tuple[Ints, Ints]]] = {}
    parts: dict[bytes, Structure] = {}
    for one in range(count):
        submodels = by_label[bounds[one] : bounds[one + 1]]
        if len(submodels) == 0:
            continue
        width = structure.start[submodels + 1] - structure.start[submodels]
        members = [structure.blocks[structure.start[t] : structure.start[t + 1]] for t in submodels]
        blocks, local = np.unique(np.concatenate(members), return_inverse=True)
        start: NDArray[np.int32] = np.cumsum([0, *width]).astype(np.int32)
        numbered: NDArray[np.int32] = local.astype(np.int32)
        part = Structure(start, numbered, *transposed(start, numbered, len(blocks)))
        key = b"%d %d " % (len(submodels), len(blocks)) + part.start.tobytes() + part.blocks.tobytes()
        parts.setdefault(key, part)
        found.setdefault(key, []).append((blocks.astype(np.int64), submodels.astype(np.int64)))
    return tuple(
        Shape(parts[key], key, np.stack([blocks for blocks, _ in groups]), np.stack([own for _, own in groups]))
        for key, groups in found.items()
    )


class _Table(NamedTuple):
    """Profiles ``(n_profiles, width)`` and which of them each group of each row has, ``(n_rows, n_groups)``."""

    profiles: Ints
    which: Ints


def grouped_costs(
    shapes: tuple[Shape, ...],
    costs: NDArray[np.integer],
    gains: NDArray[np.integer] | None,
    caps: Ints | None,
    missing: Ints,
) -> GroupedCosts:
    """The least cost of an attack on every row.

    Parameters
    ----------
    shapes : tuple of Shape
        The groups.
    costs : int array (n_submodels, n_rows)
        What it takes to push each vote out; 0 where it is no part of the problem.
    gains : int array (n_submodels, n_rows), optional
        What each vote counts; 1 each by default.
    caps : int64 array (n_blocks,), optional
        How often each block can be touched.
    missing : int64 array (n_rows,)
        What the votes that are pushed out must count together, at least 1 and within reach.

    Notes
    -----
    Costs above what the size of a group allows to enumerate are capped. Sound because lower costs can only make an
    attack cheaper; the result is then marked as not exact.
    """
    exact = np.ones(len(missing), dtype=np.bool_)
    for shape in shapes:
        exact &= (costs[shape.submodels.ravel()] <= largest_cost(shape.part.n_blocks)).all(axis=0)
    table = _profile_table(shapes, costs, gains, caps)
    return GroupedCosts(_least_budgets(table.profiles, table.which, missing), exact)


def _profile_table(
    shapes: tuple[Shape, ...],
    costs: NDArray[np.integer],
    gains: NDArray[np.integer] | None,
    caps: Ints | None,
) -> _Table:
    rows: list[Ints] = []
    which: list[Ints] = []
    for shape in shapes:
        patterns = _patterns(shape, costs, gains, caps)
        flat = patterns.reshape(-1, patterns.shape[-1])
        packed = np.ascontiguousarray(flat).view(np.dtype((np.void, flat.shape[1] * flat.itemsize))).ravel()
        first = len(rows)
        _, place, inverse = np.unique(packed, return_index=True, return_inverse=True)
        rows.extend(_remembered(shape, flat[one], gains=gains is not None, caps=caps is not None) for one in place)
        which.append(first + inverse.reshape(patterns.shape[:2]))
    width = max(map(len, rows))
    profiles = np.empty((len(rows), width), dtype=np.int64)
    for row, one in zip(profiles, rows, strict=True):
        row[: len(one)] = one
        row[len(one) :] = one[-1]
    return _Table(profiles, np.concatenate(which, axis=1).astype(np.int64))


def _patterns(
    shape: Shape, costs: NDArray[np.integer], gains: NDArray[np.integer] | None, caps: Ints | None
) -> NDArray[np.uint8]:
    """What distinguishes the groups, ``(n_rows, n_groups, …)``: costs, then gains, then caps where there are any."""
    most = largest_cost(shape.part.n_blocks)
    own = np.minimum(costs[shape.submodels], most).transpose(2, 0, 1)
    columns = [own]
    if gains is not None:
        columns.append(np.where(own > 0, gains[shape.submodels].transpose(2, 0, 1), 0))
    if caps is not None:
        limits = np.minimum(caps[shape.blocks], most)
        columns.append(np.broadcast_to(limits, (len(own), *limits.shape)))
    return np.concatenate([column.astype(np.uint8) for column in columns], axis=2)


def _group(shape: Shape, numbers: NDArray[np.uint8], *, gains: bool, caps: bool, quota: int = 0) -> Residual:
    """The problem of one group from the numbers that distinguish it."""
    part, values = shape.part, numbers.astype(np.int64)
    n_submodels, n_blocks = part.n_submodels, part.n_blocks
    return Residual(
        part.start,
        part.blocks,
        part.block_start,
        part.submodels,
        values[:n_submodels],
        values[n_submodels : 2 * n_submodels] if gains else np.ones(n_submodels, dtype=np.int64),
        values[-n_blocks:] if caps else np.full(n_blocks, 255),
        quota,
    )


def _remembered(shape: Shape, numbers: NDArray[np.uint8], *, gains: bool, caps: bool) -> Ints:
    """The profile of a group, from memory where it was asked for before."""
    key = (shape.key + bytes([gains, caps]), numbers.tobytes())
    found = _profiles.get(key)
    if found is None:
        found = profile(_group(shape, numbers, gains=gains, caps=caps))
        _profiles[key] = found
        if len(_profiles) > _KEPT_PROFILES:
            _profiles.popitem(last=False)
    return found


def grouped_attack(
    shapes: tuple[Shape, ...],
    costs: NDArray[np.integer],
    gains: NDArray[np.integer] | None,
    caps: Ints | None,
    missing: int,
) -> dict[int, int]:
    """How often an attack of least cost on one row touches which blocks; no cost may be too large for its group."""
    amounts, worth = costs[:, None], None if gains is None else gains[:, None]
    table = _profile_table(shapes, amounts, worth, caps)
    budgets = _budgets(table.profiles[table.which[0]], missing)
    touched: dict[int, int] = {}
    first = 0
    for shape in shapes:
        patterns = _patterns(shape, amounts, worth, caps)[0]
        for group, numbers in enumerate(patterns):
            budget = int(budgets[first + group])
            if budget:
                value = int(table.profiles[table.which[0, first + group], budget])
                one = _group(shape, numbers, gains=gains is not None, caps=caps is not None, quota=value)
                touched.update(zip(shape.blocks[group].tolist(), touches(one, budget).tolist(), strict=True))
        first += len(patterns)
    return touched


def _budgets(profiles: Ints, missing: int) -> Ints:
    """How much each group is given in an attack of least cost: the knapsack again, with its choices kept."""
    least = int(_least_budgets(profiles, np.arange(len(profiles))[None], np.array([missing]))[0])
    best = [np.zeros(least + 1, dtype=np.int64)]
    for one in profiles:
        longer = best[-1] + one[0]
        for spent in range(1, min(len(one), least + 1)):
            np.maximum(longer[spent:], best[-1][: least + 1 - spent] + one[spent], out=longer[spent:])
        best.append(longer)
    budgets = np.zeros(len(profiles), dtype=np.int64)
    left = least
    for group in range(len(profiles) - 1, -1, -1):
        options = np.arange(min(profiles.shape[1], left + 1))
        ways = best[group][left - options] + profiles[group, options]
        budgets[group] = int(np.argmax(ways == best[group + 1][left]))
        left -= int(budgets[group])
    return budgets


@njit
def _least_budgets(profiles: Ints, which: Ints, missing: Ints) -> Ints:
    """For every row the least budget whose best division among the groups gains what is missing."""
    least = np.empty(len(missing), np.int64)
    slopes = _slopes(profiles)
    for row in range(len(missing)):
        low, high = _enclosed(profiles, slopes, which[row], missing[row])
        least[row] = high if low >= high else _knapsack(profiles, which[row], missing[row], high)
    return least


@njit
def _slopes(profiles: Ints) -> NDArray[np.float64]:
    """The slope of each profile's concave envelope at every budget."""
    n_profiles, width = profiles.shape
    slopes = np.zeros((n_profiles, width - 1))
    for one in range(n_profiles):
        at = 0
        while at < width - 1:
            best, end = -1.0, at + 1
            for to in range(at + 1, width):
                slope = (profiles[one, to] - profiles[one, at]) / (to - at)
                if slope >= best:
                    best, end = slope, to
            slopes[one, at:end] = best
            at = end
    return slopes


@njit
def _enclosed(profiles: Ints, slopes: NDArray[np.float64], which: Ints, missing: int) -> tuple[int, int]:
    """Bounds on the least budget from the concave envelopes of the profiles, followed from the steepest part down.

    The envelopes touch the profiles at the ends of their segments, so whole segments are an attack; and no division of
    a budget gains more than the envelopes do.
    """
    width = profiles.shape[1]
    segments = 0
    for group in range(len(which)):
        for at in range(width - 1):
            if slopes[which[group], at] > 0.0 and (at == 0 or slopes[which[group], at] != slopes[which[group], at - 1]):
                segments += 1
    # Slopes settle the order alone. Equal ratios of small integers are equal as floats, and different ones differ.
    steep, size, gain = np.empty(segments), np.empty(segments, np.int64), np.empty(segments, np.int64)
    place = 0
    for group in range(len(which)):
        one = which[group]
        at = 0
        while at < width - 1 and slopes[one, at] > 0.0:
            end = at + 1
            while end < width - 1 and slopes[one, end] == slopes[one, at]:
                end += 1
            steep[place], size[place], gain[place] = slopes[one, at], end - at, profiles[one, end] - profiles[one, at]
            place += 1
            at = end
    gained = spent = low = 0
    for one in np.argsort(-steep):
        if gained + gain[one] >= missing:
            # Sound because rounding up an integer quotient is exact.
            low = spent - (gained - missing) * size[one] // gain[one]
        gained += gain[one]
        spent += size[one]
        if gained >= missing:
            break
    return low, spent


@njit
def _knapsack(profiles: Ints, which: Ints, missing: int, high: int) -> int:
    """The least budget of at most ``high`` that gains what is missing."""
    width = profiles.shape[1]
    best, longer = np.zeros(high + 1, np.int64), np.zeros(high + 1, np.int64)
    top = 0
    for group in range(len(which)):
        one = profiles[which[group]]
        longest = min(high, top + width - 1)
        for budget in range(top + 1, longest + 1):
            best[budget] = best[top]
        longer[: longest + 1] = best[: longest + 1]
        for spent in range(1, min(width, longest + 1)):
            if one[spent] == one[spent - 1]:
                continue
            gain = one[spent]
            for budget in range(spent, longest + 1):
                longer[budget] = max(longer[budget], best[budget - spent] + gain)
        best, longer = longer, best
        top = longest
    for budget in range(top + 1):
        if best[budget] >= missing:
            return budget
    return high
