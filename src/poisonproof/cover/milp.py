"""The attacker's problem as a mixed-integer program, for HiGHS. What it closes trusts a floating-point solver.

HiGHS comes with scipy. Where highspy is installed that is asked instead: it is newer, and at its time limit it still
tells its bound, which scipy passes on only if an attack was found as well.
"""

from __future__ import annotations

from importlib.util import find_spec
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


class _Program(NamedTuple):
    """Minimise ``price @ x`` where ``low <= rows @ x <= high`` and ``0 <= x <= most``, in integers."""

    price: NDArray[np.float64]
    rows: sp.csr_array
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    most: NDArray[np.float64]


class _Answer(NamedTuple):
    """How a solver ended, its bound, and its best values."""

    status: str
    bound: float | None
    values: NDArray[np.float64] | None


def branch_and_bound(residual: Residual, upper: int, seconds: float) -> Solved:
    """Look for an attack cheaper than ``upper``, for so many seconds; if there is none, ``lower`` is ``upper``.

    Whatever goes wrong, the bound is what the solver last reported, or nothing at all.
    """
    try:
        ask = _ask_highspy if find_spec("highspy") else _ask_scipy
        return _read(ask(_program(residual, upper), seconds), residual, upper)
    except Exception as error:  # noqa: BLE001  whatever a solver raises, what was proved without it stands
        return Solved(0, None, f"solver failed: {error}")


def _program(residual: Residual, upper: int) -> _Program:
    n, m = len(residual.costs), len(residual.caps)
    touches = sp.csr_array((np.ones(len(residual.blocks)), residual.blocks, residual.start), shape=(n, m))
    rows = sp.vstack(
        [
            sp.hstack([touches, -sp.diags_array(residual.costs.astype(np.float64))]),
            sp.csr_array(np.concatenate([np.zeros(m), residual.gains])[None]),
            sp.csr_array(np.concatenate([np.ones(m), np.zeros(n)])[None]),
        ]
    )
    return _Program(
        np.concatenate([np.ones(m), np.zeros(n)]),
        sp.csr_array(rows),
        np.concatenate([np.zeros(n), [residual.quota, 0.0]]),
        np.concatenate([np.full(n + 1, np.inf), [upper - 1.0]]),
        np.concatenate([residual.caps, np.ones(n)]),
    )


def _ask_scipy(program: _Program, seconds: float) -> _Answer:
    result = milp(
        program.price,
        integrality=np.ones(len(program.price)),
        bounds=Bounds(np.zeros(len(program.price)), program.most),
        constraints=LinearConstraint(program.rows, program.low, program.high),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    status = {0: "optimal", 1: "solver time limit", 2: "no cheaper attack"}.get(result.status, "solver failed")
    return _Answer(status, getattr(result, "mip_dual_bound", None), result.x)


def _ask_highspy(program: _Program, seconds: float) -> _Answer:
    import highspy  # noqa: PLC0415  optional

    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = program.rows.shape
    model.col_cost_, model.col_lower_, model.col_upper_ = program.price, np.zeros_like(program.price), program.most
    model.row_lower_, model.row_upper_ = program.low, program.high
    model.integrality_ = [highspy.HighsVarType.kInteger] * model.num_col_
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_ = program.rows.indptr, program.rows.indices
    model.a_matrix_.value_ = program.rows.data
    solver = highspy.Highs()
    options = {"output_flag": False, "threads": 1, "time_limit": float(seconds), "mip_rel_gap": 0.0}
    for option, value in options.items():
        solver.setOptionValue(option, value)
    solver.passModel(model)
    solver.run()
    ends = highspy.HighsModelStatus
    status = {
        ends.kOptimal: "optimal",
        ends.kTimeLimit: "solver time limit",
        ends.kInfeasible: "no cheaper attack",
    }.get(solver.getModelStatus(), "solver failed")
    found = solver.getSolution()
    values = np.array(found.col_value) if found.value_valid else None
    return _Answer(status, solver.getInfo().mip_dual_bound, values)


def _read(answer: _Answer, residual: Residual, upper: int) -> Solved:
    """The solver's answer with a margin against its tolerances; its attack is rounded, and used only if it works."""
    touched = None
    if answer.values is not None and np.isfinite(answer.values).all():
        rounded = np.rint(answer.values[: len(residual.caps)]).astype(np.int64)
        if rounded.min() >= 0 and np.all(rounded <= residual.caps) and residual.gained(rounded) >= residual.quota:
            touched = rounded
    if answer.status == "no cheaper attack":
        return Solved(upper, touched, answer.status)
    lower = 0
    if answer.bound is not None and np.isfinite(answer.bound):
        # Any attack not covered by this bound costs at least ``upper``, because cheaper ones alone were allowed.
        lower = min(int(np.ceil(answer.bound - _MARGIN * max(1.0, abs(answer.bound)))), upper)
    return Solved(lower, touched, answer.status)
