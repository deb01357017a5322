"""A stronger relaxation for costs of 1 and 2, with a proof that is checked in integers.

Split the touches of block ``j`` into a first one, ``x_j``, and a second one, ``y_j <= x_j``. A vote of cost 2 is out
only if ``y_j + sum of x over its other blocks >= 1`` for each of its blocks ``j``: two touches of one block, or touches
of two. These cuts are added where the relaxation violates them.

What is proved needs no solver. Give a vote of cost 1 a load ``a_t`` on the first touch of each of its blocks. Give a
vote of cost 2 a load ``a_t`` on both touches of each, and further loads ``c_tj``, on the second touch of ``j`` and the
first touches of its other blocks. If no first touch carries more than 1, and no first and second touch of one block
carry more than 2 together, then an attack costs at least what the votes that are out are worth together: ``a_t`` at
cost 1, ``2 a_t + sum_j c_tj`` at cost 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from poisonproof.cover.ordered import least_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.cover.structure import Residual

__all__ = ["SplitLoads", "extended_bound", "proved_split_bound"]

_ROUNDS: Final = 4
_VIOLATED: Final = 1e-4
_BITS: Final = 40


class SplitLoads(NamedTuple):
    """Loads of every vote, and further ones for every place where a vote meets a block.

    ``both`` is ``(n_left,)``; ``cut`` is like ``Residual.blocks`` and counts for votes of cost 2 only.
    """

    both: NDArray[Any]
    cut: NDArray[Any]


def extended_bound(residual: Residual, seconds: float) -> int:
    """The lower bound that the relaxation with cuts proves, where all costs are at most 2; 0 where it fails."""
    loads = _solved(residual, seconds)
    if loads is None:
        return 0
    unit = int(1 << min(_BITS, 60 - int(4 * len(residual.blocks)).bit_length()))
    return proved_split_bound(residual, _repaired(residual, loads, unit), unit)


def proved_split_bound(residual: Residual, loads: SplitLoads, unit: int) -> int:
    """What integer loads over ``unit`` prove, checked and computed in integers; 0 if they break the rule."""
    if min(loads.both.min(), loads.cut.min()) < 0 or max(loads.both.max(), loads.cut.max()) > unit:
        return 0
    # Sound because unit times four times the number of incidences stays below 2**62: the sums do not overflow.
    first, together = _carried(residual, loads)
    if first.max() > unit or np.any(together[residual.caps >= 2] > 2 * unit):
        return 0
    return -(-least_value(_worth(residual, loads), residual.gains, residual.quota) // unit)


def _owners(residual: Residual) -> NDArray[np.int64]:
    """The vote of every incidence."""
    return np.repeat(np.arange(len(residual.costs)), np.diff(residual.start))


def _worth(residual: Residual, loads: SplitLoads) -> NDArray[Any]:
    cuts = np.add.reduceat(loads.cut, residual.start[:-1])
    return np.where(residual.costs == 1, loads.both, 2 * loads.both + cuts)


def _carried(residual: Residual, loads: SplitLoads) -> tuple[NDArray[Any], NDArray[Any]]:
    """What the first touch of each block carries, and both together."""
    owner = _owners(residual)
    worth = _worth(residual, loads)
    share = np.where(residual.costs[owner] == 1, loads.both[owner], worth[owner] - loads.both[owner] - loads.cut)
    first, together = np.zeros((2, len(residual.caps)), dtype=loads.both.dtype)
    np.add.at(first, residual.blocks, share)
    np.add.at(together, residual.blocks, worth[owner])
    return first, together


def _repaired(residual: Residual, loads: SplitLoads, unit: int) -> SplitLoads:
    """Integer loads that obey the rule, near the proposed ones scaled down to it vote by vote."""
    both, cut = (np.clip(np.nan_to_num(one, posinf=0.0), 0.0, 1e6) for one in loads)
    cut = np.where(residual.costs[_owners(residual)] == 2, cut, 0.0)
    first, together = _carried(residual, SplitLoads(both, cut))
    heavy = np.maximum(first, np.where(residual.caps >= 2, together / 2, 0.0))
    heaviest = np.maximum.reduceat(heavy[residual.blocks], residual.start[:-1])
    scale = unit * (1.0 - 1e-9) / np.maximum(heaviest, 1e-30)
    scaled = [both * scale, cut * scale[_owners(residual)]]
    whole = [np.floor(np.minimum(one, float(unit))).astype(np.int64) for one in scaled]
    return SplitLoads(*whole)


def _solved(residual: Residual, seconds: float) -> SplitLoads | None:
    """The dual solution of the relaxation after some rounds of cuts."""
    n, m = len(residual.costs), len(residual.caps)
    owner, heavy = _owners(residual), residual.costs == 2
    touched = sp.csr_array((np.ones(len(owner)), residual.blocks, residual.start), shape=(n, m))
    twice = sp.csr_array(sp.diags_array(heavy.astype(float)) @ touched)
    rows = [
        sp.hstack([-touched, -twice, sp.diags_array(residual.costs.astype(float))]),
        sp.hstack([-sp.eye_array(m), sp.eye_array(m), sp.csr_array((m, n))]),
        sp.csr_array(np.concatenate([np.zeros(2 * m), -residual.gains])[None]),
    ]
    limits = np.concatenate([np.zeros(n + m), [-float(residual.quota)]])
    upper = np.concatenate([np.minimum(residual.caps, 1), np.minimum(residual.caps - 1, 1).clip(0), np.ones(n)])
    price = np.concatenate([np.ones(2 * m), np.zeros(n)])
    cut_places, loads = np.zeros(0, dtype=np.int64), None
    for _ in range(_ROUNDS):
        bounds = np.column_stack([np.zeros(len(upper)), upper])
        right = np.concatenate([limits, np.zeros(len(cut_places))])
        try:
            found = linprog(
                price, sp.vstack(rows), right, bounds=bounds, method="highs", options={"time_limit": seconds}
            )
        except Exception:  # noqa: BLE001  whatever a solver raises, what was proved without it stands
            return loads
        if found.status != 0:
            return loads
        weights = -found.ineqlin.marginals
        cut = np.zeros(len(owner))
        cut[cut_places] = weights[len(limits) :]
        loads = SplitLoads(weights[:n], cut)
        new = np.setdiff1d(_violated(residual, found.x), cut_places)
        if len(new) == 0:
            break
        rows.append(_cut_rows(residual, new))
        cut_places = np.concatenate([cut_places, new])
    return loads


def _violated(residual: Residual, values: NDArray[np.float64]) -> NDArray[np.int64]:
    """For every vote of cost 2 the place of its most violated cut, if any is."""
    m = len(residual.caps)
    first, second, out = values[:m], values[m : 2 * m], values[2 * m :]
    excess = (first - second)[residual.blocks]
    most = np.maximum.reduceat(excess, residual.start[:-1])
    slack = np.add.reduceat(first[residual.blocks], residual.start[:-1]) - most
    wanted = (residual.costs == 2) & (out > slack + _VIOLATED)
    owner = _owners(residual)
    places = np.flatnonzero(wanted[owner] & (excess >= most[owner]))
    return places[np.unique(owner[places], return_index=True)[1]]


def _cut_rows(residual: Residual, places: NDArray[np.int64]) -> sp.csr_array:
    m, n = len(residual.caps), len(residual.costs)
    owner = _owners(residual)[places]
    width = np.diff(residual.start)[owner]
    row = np.repeat(np.arange(len(places)), width)
    inside = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width) + residual.start[owner][row]
    column = residual.blocks[inside] + m * (inside == places[row])
    entries = np.concatenate([-np.ones(len(column)), np.ones(len(places))])
    at = (np.concatenate([row, np.arange(len(places))]), np.concatenate([column, 2 * m + owner]))
    return sp.csr_array((entries, at), shape=(len(places), 2 * m + n))
