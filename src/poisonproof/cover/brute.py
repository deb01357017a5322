"""The attacker's problem by trying everything: what the tests compare with."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.cover.problem import CoverProblem

__all__ = ["least_cost"]


def least_cost(problem: CoverProblem) -> tuple[int, NDArray[np.int64]] | None:
    """The cost of the cheapest attack and one that has it, or None where no attack works.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from poisonproof.cover.problem import CoverProblem
    >>> shared = sp.csr_array(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=bool))
    >>> cost, touched = least_cost(CoverProblem(shared, np.array([1, 1, 1]), quota=2))
    >>> cost, touched.tolist()
    (1, [1, 0, 0])
    """
    table = problem.incidence.toarray().astype(np.int64)
    most = max(int(problem.costs.max(initial=0)), 0)
    limits = np.full(table.shape[1], most) if problem.caps is None else np.minimum(problem.caps, most)
    gains = np.ones(len(table), dtype=np.int64) if problem.gains is None else problem.gains
    movable = np.ones(len(table), dtype=np.bool_) if problem.movable is None else problem.movable
    touched = np.array(list(product(*(range(int(limit) + 1) for limit in limits))), dtype=np.int64)
    out = (touched @ table.T >= problem.costs) & (movable | (problem.costs == 0))
    works = out @ gains >= problem.quota
    if not works.any():
        return None
    spent = np.where(works, touched.sum(axis=1), np.iinfo(np.int64).max)
    best = int(np.argmin(spent))
    return int(spent[best]), touched[best]
