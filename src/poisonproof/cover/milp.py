"""The attacker's problem as a mixed-integer program, for HiGHS. What it closes trusts a floating-point solver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.cover.structure import Residual

__all__ = ["Solved", "branch_and_bound"]

_MARGIN: Final = 1e-5  # a bound this close above an integer counts as that integer


class Solved(NamedTuple):
    """What the solver says: a lower bound, an attack if it found one, and how it ended."""

    lower: int
    touched: NDArray[np.int64] | None
    status: str


def branch_and_bound(residual: Residual, upper: int, seconds: float) -> Solved:
    """Look for an attack cheaper than ``upper``, for so many seconds; if there is none, ``lower`` is ``upper``.

    Whatever goes wrong, the bound is what the solver last reported, or nothing at all.
    """
    n, m = len(residual.costs), len(residual.caps)
    touches = sp.csr_array((np.ones(len(residual.blocks)), residual.blocks, residual.start), shape=(n, m))
    rows = sp.vstack(
        [
            sp.hstack([touches, -sp.diags_array(residual.costs.astype(np.float64))]),
            sp.csr_array(np.concatenate([np.zeros(m), residual.gains])[None]),
            sp.csr_array(np.concatenate([np.ones(m), np.zeros(n)])[None]),
        ]
    )
    low = np.concatenate([np.zeros(n), [residual.quota, 0.0]])
    high = np.concatenate([np.full(n + 1, np.inf), [upper - 1.0]])
    try:
        result = milp(
            np.concatenate([np.ones(m), np.zeros(n)]),
            integrality=np.ones(m + n),
            bounds=Bounds(np.zeros(m + n), np.concatenate([residual.caps, np.ones(n)])),
            constraints=LinearConstraint(rows, low, high),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
    except Exception as error:  # noqa: BLE001  whatever a solver raises, what was proved without it stands
        return Solved(0, None, f"solver failed: {error}")
    return _read(result.status, getattr(result, "mip_dual_bound", None), result.x, residual, upper)


def _read(
    status: int, bound: float | None, values: NDArray[np.float64] | None, residual: Residual, upper: int
) -> Solved:
    """The solver's answer with a margin against its tolerances; its attack is rounded, and used only if it works."""
    touched = None
    if values is not None and np.isfinite(values).all():
        rounded = np.rint(values[: len(residual.caps)]).astype(np.int64)
        if rounded.min() >= 0 and np.all(rounded <= residual.caps) and residual.gained(rounded) >= residual.quota:
            touched = rounded
    if status == 2:
        return Solved(upper, touched, "no cheaper attack")
    lower = 0
    if bound is not None and np.isfinite(bound):
        # Any attack not covered by this bound costs at least ``upper``, because cheaper ones alone were allowed.
        lower = min(int(np.ceil(bound - _MARGIN * max(1.0, abs(bound)))), upper)
    return Solved(lower, touched, {0: "optimal", 1: "solver time limit"}.get(status, "solver failed"))
