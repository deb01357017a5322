"""The most that every budget can gain inside one small group of blocks. Exact, by enumeration.

Let the costs be at most ``c`` and ``h = ceil(c / 2)``. Each block has a level below ``h`` or is *high*, touched ``h``
times or more. Two high blocks push out any submodel that has both, and with a single high block what it must be
touched more is fixed by the other levels. So, once it is settled which blocks are high and how low the others are,
the further touches of the high blocks are independent of each other, and what they gain is a knapsack with a choice
for each block. States are visited in the order of a reflected Gray code, in which one level changes at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from poisonproof.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.cover.structure import Residual

    Ints = NDArray[np.int64]

__all__ = ["largest_cost", "profile", "touches"]

_MOST_STATES: Final = 80_000


def largest_cost(n_blocks: int) -> int:
    """Up to which cost a group of so many blocks is enumerated; 0 where it is too large for any."""
    for half in (4, 3, 2, 1):
        if (half + 1) ** n_blocks <= _MOST_STATES:
            return 2 * half
    return 0


def profile(group: Residual) -> Ints:
    """The most that 0, 1, 2, … touches of the group's blocks can gain, up to where more touches gain nothing.

    Votes of cost 0 are no part of it. The group's quota is not used.
    """
    return _visit(group, -1)[0]


def touches(group: Residual, budget: int) -> Ints:
    """A way to gain the group's quota with ``budget`` touches, which its profile says there is, ``(n_blocks,)``."""
    levels = _visit(group, budget)[1]
    return levels + _further_touches(group, levels, budget - int(levels.sum()))


def _visit(group: Residual, budget: int) -> tuple[Ints, Ints]:
    if group.costs.max(initial=0) <= 2:
        return _visit_sets(group, budget)
    return _visit_levels(group, budget)


def _further_touches(group: Residual, levels: Ints, budget: int) -> Ints:
    """Touches of the high blocks that together with ``levels`` gain the quota: the knapsack again, with its choices."""
    half = (int(group.costs.max(initial=0)) + 1) // 2
    room = np.minimum(group.caps, group.costs.max(initial=0)) - half
    options: dict[int, Ints] = {}
    gained = 0
    for t in np.flatnonzero(group.costs):
        blocks = group.blocks[group.start[t] : group.start[t + 1]]
        missing = int(group.costs[t] - levels[blocks].sum())
        if missing <= 0:
            gained += int(group.gains[t])
            continue
        for j in blocks[(levels[blocks] == half) & (missing <= room[blocks])].tolist():
            options.setdefault(j, np.zeros(room[j] + 1, dtype=np.int64))[missing:] += group.gains[t]
    best = {0: (gained, np.zeros_like(levels))}
    for j, gains in options.items():
        longer = dict(best)
        for spent, (sofar, more) in best.items():
            for extra in range(1, min(len(gains), budget - spent + 1)):
                total = sofar + int(gains[extra])
                if total > longer.get(spent + extra, (-1, more))[0]:
                    added = more.copy()
                    added[j] = extra
                    longer[spent + extra] = (total, added)
        best = longer
    return next(more for total, more in best.values() if total >= group.quota)


@njit
def _raise(most: Ints, spent: int, gained: int) -> None:
    """Note that ``spent`` touches gain this much."""
    for budget in range(spent, len(most)):
        if most[budget] >= gained:
            break
        most[budget] = gained


@njit
def _spend(levels: Ints, limits: Ints, half: int, wanted: Ints, table: Ints) -> int:
    """What further touches of the high blocks gain at most on top of ``table[0]``; returns how many are of use."""
    top = 0
    for j in range(len(levels)):
        extra = limits[j] - half
        if levels[j] != half or extra <= 0:
            continue
        useful = 0
        for k in range(1, extra + 1):
            useful += wanted[j, k]
        if useful == 0:
            continue
        for budget in range(top + 1, top + extra + 1):
            table[budget] = table[top]
        for budget in range(top + extra, 0, -1):
            ladder = 0
            for k in range(1, min(extra, budget) + 1):
                ladder += wanted[j, k]
                table[budget] = max(table[budget], table[budget - k] + ladder)
        top += extra
    return top


@njit
def _spend_singly(doubled: NDArray[np.bool_], worth: Ints, table: Ints) -> int:
    """The same where a block can be touched once more at most: the most gainful blocks first."""
    top = 0
    for j in range(len(worth)):
        if doubled[j] and worth[j] > 0:
            place = top
            while place > 0 and table[place] < worth[j]:
                table[place + 1] = table[place]
                place -= 1
            table[place + 1] = worth[j]
            top += 1
    for budget in range(1, top + 1):
        table[budget] += table[budget - 1]
    return top


class _Live(NamedTuple):
    """What is worth following: blocks by how few votes they have, and for each block its votes that cost anything."""

    active: Ints
    limits: Ints
    block_start: Ints
    submodels: Ints


@njit
def _live(group: Residual) -> _Live:
    """The votes that cost anything, and how often it is of use to touch each block."""
    n_blocks = len(group.caps)
    limits, block_start = np.zeros(n_blocks, np.int64), np.zeros(n_blocks + 1, np.int64)
    submodels = np.empty(len(group.submodels), np.int64)
    size = 0
    for j in range(n_blocks):
        for i in range(group.block_start[j], group.block_start[j + 1]):
            t = group.submodels[i]
            if group.costs[t] > 0:
                limits[j] = max(limits[j], min(group.caps[j], group.costs[t]))
                submodels[size] = t
                size += 1
        block_start[j + 1] = size
    # The blocks that change most often come first, so they should have the fewest votes to follow.
    active = np.flatnonzero(limits)
    active = active[np.argsort(np.diff(block_start)[active])]
    return _Live(active, limits, block_start, submodels)


@njit
def _best_worth(doubled: NDArray[np.bool_], worth: Ints) -> int:
    """What one further touch gains at most."""
    best = 0
    for j in range(len(worth)):
        best = max(best, worth[j] * doubled[j])
    return best


@njit
def _best_ladder(wanted: Ints) -> int:
    """What one further touch gains at most, where ``wanted[j, k]`` is what ``k`` touches of block ``j`` do."""
    best = 0
    for j in range(len(wanted)):
        total = 0
        for k in range(1, wanted.shape[1]):
            total += wanted[j, k]
        best = max(best, total)
    return best


@njit
def _promises(most: Ints, spent: int, gained: int, possible: int, best: int) -> bool:
    """Whether further touches that gain at most ``best`` each, and ``possible`` in all, might improve the profile."""
    at_most = gained
    for budget in range(spent, len(most)):
        if at_most > most[budget]:
            return True
        # Sound because the profile never falls: what does not improve it here does not later.
        if best == 0 or at_most == gained + possible:
            break
        at_most = min(at_most + best, gained + possible)
    return False


@njit
def _visit_sets(group: Residual, budget: int) -> tuple[Ints, Ints]:
    """Costs up to 2: every set of touched blocks, each then touched once more or not."""
    costs, gains = group.costs, group.gains
    active, limits, block_start, submodels = _live(group)
    inside, worth, twice = np.zeros_like(limits), np.zeros_like(limits), limits == 2
    doubled = np.zeros_like(twice)
    n_hit, hit_sum = np.zeros_like(costs), np.zeros_like(costs)
    most = np.zeros(limits.sum() + 1, np.int64)
    table = np.zeros(len(limits) + 2, np.int64)
    spent, gained, possible = 0, 0, 0
    for state in range(1 << len(active)):
        if state:
            place = 0
            while not (state >> place) & 1:
                place += 1
            j = active[place]
            inside[j] = 1 - inside[j]
            doubled[j] = inside[j] == 1 and twice[j]
            change = 2 * inside[j] - 1
            spent += change
            for i in range(block_start[j], block_start[j + 1]):
                t = submodels[i]
                cost, gain = costs[t], gains[t]
                before = n_hit[t] - (1 - inside[j])
                # Without branches, which would be mispredicted: a vote of cost 2 waits for more touches of the one
                # block of it that is touched, until a second block is.
                step = change * gain
                waits, second = step * (cost == 2) * (before == 0), (cost == 2) * (before == 1)
                only = second * (hit_sum[t] - j * (1 - inside[j]))
                gained += step * (before == cost - 1)
                worth[j] += waits
                worth[only] -= step * second
                possible += waits - step * second
                n_hit[t] += change
                hit_sum[t] += change * j
        if budget >= 0 or (
            gained + possible > most[spent] and _promises(most, spent, gained, possible, _best_worth(doubled, worth))
        ):
            table[0] = gained
            top = _spend_singly(doubled, worth, table)
            for extra in range(min(top + 1, len(most) - spent)):
                _raise(most, spent + extra, table[extra])
            if spent <= budget and table[min(top, budget - spent)] >= group.quota:
                break
    return most, inside


@njit
def _visit_levels(group: Residual, budget: int) -> tuple[Ints, Ints]:  # noqa: C901, PLR0915  one compiled loop over shared work arrays
    """Any costs: every combination of low levels and high blocks, the high ones then touched more or not."""
    costs, gains = group.costs, group.gains
    half = (costs.max() + 1) // 2
    active, limits, block_start, submodels = _live(group)
    levels, step = np.zeros_like(limits), np.ones_like(limits)
    missing, n_high, high_sum = costs.copy(), np.zeros_like(costs), np.zeros_like(costs)
    wanted = np.zeros((len(limits), costs.max() + 2), np.int64)
    most = np.zeros(limits.sum() + 1, np.int64)
    table = np.zeros(len(most) + costs.max() + 2, np.int64)
    focus = np.arange(len(active) + 1)
    spent, gained, possible = 0, 0, 0
    while True:
        if budget >= 0 or (
            gained + possible > most[spent] and _promises(most, spent, gained, possible, _best_ladder(wanted))
        ):
            table[0] = gained
            top = _spend(levels, limits, half, wanted, table)
            for extra in range(min(top + 1, len(most) - spent)):
                _raise(most, spent + extra, table[extra])
            if spent <= budget and table[min(top, budget - spent)] >= group.quota:
                break
        place = focus[0]
        focus[0] = 0
        if place == len(active):
            break
        j = active[place]
        old, new = levels[j], levels[j] + step[j]
        low_change = (0 if new == half else new) - (0 if old == half else old)
        high_change = (1 if new == half else 0) - (1 if old == half else 0)
        for i in range(block_start[j], block_start[j + 1]):
            t = submodels[i]
            gain, high = gains[t], n_high[t]
            if high >= 2 and high_change == 0:
                missing[t] -= low_change
                continue
            short = missing[t] - (half if high == 1 else 0)
            if high >= 2 or short <= 0:
                gained -= gain
            elif high == 1 and short <= limits[high_sum[t]] - half:
                wanted[high_sum[t], short] -= gain
                possible -= gain
            missing[t] -= low_change
            high += high_change
            high_sum[t] += high_change * j
            n_high[t] = high
            short = missing[t] - (half if high == 1 else 0)
            if high >= 2 or short <= 0:
                gained += gain
            elif high == 1 and short <= limits[high_sum[t]] - half:
                wanted[high_sum[t], short] += gain
                possible += gain
        levels[j] = new
        spent += new - old
        if new == 0 or new == min(half, limits[j]):
            step[j] = -step[j]
            focus[place] = focus[place + 1]
            focus[place + 1] = place + 1
    return most, levels
