"""Attacks that work: greedy, then a local search. Their cost bounds the least cost from above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from poisonproof.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.cover.structure import Residual

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["greedy_attack", "improved_attack"]

_HOT: Final = 0.8  # temperature of the local search at its start and end, in votes
_COLD: Final = 0.12
_TRIES: Final = 20  # to draw a vote that is not out yet
_CHUNK: Final = 64  # blocks whose best rate is remembered together


def greedy_attack(residual: Residual) -> Ints:
    """An attack built by taking, time and again, the touches of one block that gain most per touch.

    Returns how often each block is touched, ``(n_blocks,)``. Touches that prove superfluous are taken back.
    """
    left = residual.costs.copy()
    touched = np.zeros_like(residual.caps)
    spare = _greedy(residual, touched, left) - residual.quota
    _drop_superfluous(residual, touched, left, spare)
    return touched


def improved_attack(residual: Residual, touched: Ints, lower: int, moves: int) -> Ints:
    """An attack that costs no more, looked for with fewer and fewer touches by simulated annealing.

    Parameters
    ----------
    residual : Residual
        The problem.
    touched : int64 array (n_blocks,)
        An attack that works.
    lower : int
        A bound at which there is nothing left to look for.
    moves : int
        How many moves to try in all.
    """
    shares = (0.0,) if residual.costs.max() == 1 else (0.0, 0.25, 0.5)
    best, patience, failures, seed = touched, max(1000, moves // 8), 0, 0
    while best.sum() > lower and moves > 0:
        above = int(best.sum()) - lower
        goal = lower + above - (1 if failures else max(1, above // 3))
        found = _Tour(np.zeros_like(best), np.zeros_like(residual.costs), np.empty(goal, dtype=np.int64))
        _begin(residual, best, found)
        used, works = _anneal(residual, found, min(patience, moves), shares[seed % len(shares)], seed)
        moves -= used + 1
        seed += 1
        if works:
            best = found.touched
        else:
            failures += 1
            patience *= 2 if failures % len(shares) == 0 else 1
    return best


@njit
def _rate(waiting: Ints, cap: int) -> tuple[float, int]:
    """The best gain per touch of one block, and for how many touches; partial progress breaks ties.

    ``waiting[k]`` is what the votes count that ``k`` more touches of the block push out.
    """
    best, best_touches, gained, progress = 0.0, 1, 0.0, 0.0
    for k in range(1, len(waiting)):
        progress += waiting[k] / k
        gained += waiting[k]
        if k <= cap and gained / k > best:
            best, best_touches = gained / k, k
    return best + 1e-4 * progress, best_touches


@njit
def _waiting(residual: Residual) -> Ints:
    """What the votes of each block count, by what it takes to push them out, ``(n_blocks, max_cost + 1)``."""
    waiting = np.zeros((len(residual.caps), residual.costs.max() + 1), np.int64)
    for t in range(len(residual.costs)):
        for i in range(residual.start[t], residual.start[t + 1]):
            waiting[residual.blocks[i], residual.costs[t]] += residual.gains[t]
    return waiting


@njit
def _best(rate: Floats, tops: Floats) -> int:
    """The first block of the highest rate, where ``tops`` are no lower than the rates of their chunks."""
    while True:
        chunk = np.argmax(tops)
        start = chunk * _CHUNK
        place = start + np.argmax(rate[start : start + _CHUNK])
        if rate[place] == tops[chunk]:
            return int(place)
        tops[chunk] = rate[place]


@njit
def _greedy(residual: Residual, touched: Ints, left: Ints) -> int:
    """Touch blocks until the quota is reached; ``left`` follows what each vote still takes. Returns what was gained."""
    caps, gains, start, blocks = residual.caps, residual.gains, residual.start, residual.blocks
    waiting = _waiting(residual)
    rate, touches = np.empty(len(caps)), np.ones(len(caps), np.int64)
    for j in range(len(caps)):
        rate[j], touches[j] = _rate(waiting[j], caps[j]) if caps[j] > 0 else (-1.0, 1)
    tops = np.array([rate[first : first + _CHUNK].max() for first in range(0, len(rate), _CHUNK)])
    gained = 0
    while gained < residual.quota:
        best = _best(rate, tops)
        amount = touches[best]
        touched[best] += amount
        for i in range(residual.block_start[best], residual.block_start[best + 1]):
            t = residual.submodels[i]
            before = left[t]
            left[t] = before - amount
            if before <= 0:
                continue
            if left[t] <= 0:
                gained += gains[t]
            for k in range(start[t], start[t + 1]):
                j = blocks[k]
                waiting[j, before] -= gains[t]
                if left[t] > 0:
                    waiting[j, left[t]] += gains[t]
                rate[j], touches[j] = _rate(waiting[j], caps[j] - touched[j])
                if touched[j] >= caps[j]:
                    rate[j] = -1.0
                tops[j // _CHUNK] = max(tops[j // _CHUNK], rate[j])
        if touched[best] >= caps[best]:
            rate[best] = -1.0
    return gained


@njit
def _drop_superfluous(residual: Residual, touched: Ints, left: Ints, spare: int) -> None:
    """Take back single touches as long as the quota is still reached."""
    for j in range(len(touched)):
        while touched[j] > 0:
            lost = 0
            for i in range(residual.block_start[j], residual.block_start[j + 1]):
                if left[residual.submodels[i]] == 0:
                    lost += residual.gains[residual.submodels[i]]
            if lost > spare:
                break
            spare -= lost
            touched[j] -= 1
            for i in range(residual.block_start[j], residual.block_start[j + 1]):
                left[residual.submodels[i]] += 1


class _Tour(NamedTuple):
    """Where the local search is: touches of each block and of each submodel's blocks, and the block of every touch."""

    touched: Ints
    reached: Ints
    units: Ints


@njit
def _drawn(state: np.uint64, size: int) -> tuple[np.uint64, int]:
    """The next state of a xorshift generator and a number below ``size``: no global random state is used."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state, int((state >> np.uint64(16)) % np.uint64(size))


@njit
def _touch(residual: Residual, tour: _Tour, block: int, amount: int, share: float) -> tuple[float, int]:
    """Touch a block ``amount`` more times; returns how much better that looks, and what it really gains.

    A vote that is touched ``i`` times of ``cost`` looks worth ``share * i / cost`` of its gain.
    """
    looks, gained = 0.0, 0
    tour.touched[block] += amount
    for i in range(residual.block_start[block], residual.block_start[block + 1]):
        t = residual.submodels[i]
        cost, gain = residual.costs[t], residual.gains[t]
        before = tour.reached[t]
        now = before + amount
        tour.reached[t] = now
        if before >= cost:
            if now < cost:
                gained -= gain
                looks -= gain * (1.0 - share * now / cost)
        elif now >= cost:
            gained += gain
            looks += gain * (1.0 - share * before / cost)
        else:
            looks += gain * share * amount / cost
    return looks, gained


@njit
def _begin(residual: Residual, first: Ints, tour: _Tour) -> None:
    """Start with as much of a known attack as there are units."""
    count = 0
    for j in range(len(first)):
        for _ in range(min(first[j], len(tour.units) - count)):
            tour.units[count] = j
            count += 1
            _touch(residual, tour, j, 1, 0.0)


@njit
def _proposed(residual: Residual, tour: _Tour, kind: int, state: np.uint64) -> tuple[np.uint64, int]:
    """A block to touch more: one that is touched already (``kind`` 2), or one of a vote that is not out yet."""
    if kind == 2:
        state, unit = _drawn(state, len(tour.units))
        return state, int(tour.units[unit])
    state, t = _drawn(state, len(residual.costs))
    for _ in range(_TRIES):
        if tour.reached[t] < residual.costs[t]:
            break
        state, t = _drawn(state, len(residual.costs))
    state, place = _drawn(state, residual.start[t + 1] - residual.start[t])
    return state, int(residual.blocks[residual.start[t] + place])


@njit
def _anneal(residual: Residual, tour: _Tour, moves: int, share: float, seed: int) -> tuple[int, bool]:
    """Move touches between blocks until the quota is reached; returns the moves it took and whether it was."""
    gained = residual.gains[tour.reached >= residual.costs].sum()
    if gained >= residual.quota:
        return 0, True
    kinds = 3 if residual.costs.max() > 1 else 1
    state = np.uint64(seed + 1) * np.uint64(0x9E3779B97F4A7C15)
    cooling = np.log(_COLD / _HOT) / moves
    for move in range(moves):
        state, one = _drawn(state, len(tour.units))
        state, two = _drawn(state, len(tour.units))
        state, kind = _drawn(state, kinds)
        state, to = _proposed(residual, tour, kind, state)
        away, other = tour.units[one], tour.units[two]
        both = kind == 1
        amount = 2 if both else 1
        if to == away or tour.touched[to] + amount > residual.caps[to] or (both and (two == one or other == to)):
            continue
        looks, gain = _touch(residual, tour, away, -1, share)
        if both:
            more = _touch(residual, tour, other, -1, share)
            looks, gain = looks + more[0], gain + more[1]
        more = _touch(residual, tour, to, amount, share)
        looks, gain = looks + more[0], gain + more[1]
        state, chance = _drawn(state, 1 << 32)
        if looks >= 0.0 or chance < np.exp(looks / (_HOT * np.exp(cooling * move))) * (1 << 32):
            tour.units[one] = to
            if both:
                tour.units[two] = to
            gained += gain
            if gained >= residual.quota:
                return move + 1, True
        else:
            _touch(residual, tour, to, -amount, share)
            _touch(residual, tour, away, 1, share)
            if both:
                _touch(residual, tour, other, 1, share)
    return moves, False
