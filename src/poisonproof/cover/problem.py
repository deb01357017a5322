"""The attacker's problem: which blocks to touch, and how often, to push enough votes out as cheaply as possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from poisonproof.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp
    from numpy.typing import NDArray

__all__ = ["LARGEST", "Bound", "CoverBounds", "CoverProblem", "check_table"]

LARGEST: Final = (1 << 16) - 1  # cost or gain, so that no sum of their products leaves 64 bits


@dataclass(frozen=True, eq=False)
class CoverProblem:
    """The attacker's problem for one test row.

    Minimise the sum of ``touched`` over the blocks, so that the votes that are pushed out count ``quota`` or more
    together. The vote of submodel ``t`` is out once its blocks are touched ``costs[t]`` times, in any mixture.

    Parameters
    ----------
    incidence : bool matrix (n_submodels, n_blocks), dense or sparse
        Which submodel trains on which blocks.
    costs : int array (n_submodels,)
        What it takes to push each vote out, at least; 0 where it is out already.
    quota : int
        What the votes that are out must count together, those that are out already included.
    gains : int array (n_submodels,), optional
        What each vote counts; 1 each by default.
    caps : int array (n_blocks,), optional
        How often each block can be touched; without limit by default.
    movable : bool array (n_submodels,), optional
        False where nothing the attacker may do moves the vote; it then counts only if it is out already.
    """

    incidence: sp.csr_array
    costs: NDArray[np.integer]
    quota: int
    gains: NDArray[np.integer] | None = None
    caps: NDArray[np.integer] | None = None
    movable: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Bound:
    """What is known of the least cost of one attack.

    Parameters
    ----------
    lower : int
        No attack is cheaper.
    upper : int
        The cost of an attack that works on the given costs.
    witness : int64 array (n_blocks,), or None
        How often that attack touches each block; None where no attack works.
    unbreakable : bool
        Whether no attack works at all; ``lower`` and ``upper`` then mean nothing.
    trusted_solver : bool
        Whether ``lower`` rests on a floating-point solver's word.
    method : str
        How the bound was found.
    status : str
        "optimal" where ``lower == upper``, otherwise why the search stopped.
    seconds : float
        How long the search took.
    """

    lower: int
    upper: int
    witness: NDArray[np.int64] | None
    unbreakable: bool
    trusted_solver: bool
    method: str
    status: str
    seconds: float


@dataclass(frozen=True, eq=False)
class CoverBounds:
    """What is known of the least cost of an attack, one entry per test row.

    Parameters
    ----------
    lower : int64 array (n_rows,)
        Proved: no attack is cheaper.
    upper : int64 array (n_rows,)
        The cost of an attack that works on the given costs.
    unbreakable : bool array (n_rows,)
        Where no attack works at all; ``lower`` and ``upper`` mean nothing there.
    trusted_solver : bool array (n_rows,)
        Where ``lower`` rests on a floating-point solver's word.
    method : str
        How the bounds were found.
    witness : sparse int64 array (n_rows, n_blocks), or None
        How often the attack of cost ``upper`` touches each block, where that was asked for.
    status : tuple of str
        For each row "optimal" where ``lower == upper``, otherwise why the search stopped; empty where all is optimal.
    """

    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    unbreakable: NDArray[np.bool_]
    trusted_solver: NDArray[np.bool_]
    method: str
    witness: sp.csr_array | None = None
    status: tuple[str, ...] = ()


def check_table(
    name: str, values: NDArray[np.integer] | None, shape: tuple[int, ...], most: int | None = LARGEST
) -> None:
    """Refuse costs, gains or caps that are not whole numbers from 0 to ``most`` in this shape."""
    if values is None:
        return
    if values.shape != shape:
        raise DataError(f"{name} has shape {values.shape}; it must have shape {shape}")
    if values.dtype.kind not in "iub":
        raise DataError(f"{name} has type {values.dtype}; it must be integers")
    if values.size and values.min() < 0:
        raise DataError(f"{name} has the value {values.min()}; it must be at least 0")
    if most is not None and values.size and values.max() > most:
        raise DataError(f"{name} has the value {values.max()}; it must be at most {most}")
