"""Small attacker's problems with everything that can be odd about them, for comparison with enumeration."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from poisonproof.cover import Bound, CoverProblem
from poisonproof.cover.structure import Residual, Structure, residual_of


def small_problem(rng: np.random.Generator, *, plain: bool = False) -> CoverProblem:
    """A problem of up to 5 blocks and 8 submodels: ties, gains, caps, votes that are out or cannot move, any quota."""
    n_blocks, n_submodels = int(rng.integers(1, 6)), int(rng.integers(1, 9))
    table = rng.random((n_submodels, n_blocks)) < rng.choice([0.3, 0.5, 0.7])
    table[np.arange(n_submodels), rng.integers(0, n_blocks, n_submodels)] = True
    dearest = int(rng.choice([1, 2, 2, 3, 4] if n_blocks < 5 else [1, 2, 2, 3]))
    if n_blocks <= 3 and rng.random() < 0.3:
        dearest = 8
    costs = rng.integers(1 if plain else 0, dearest + 1, n_submodels)
    gains = rng.integers(0, 4, n_submodels) if rng.random() < 0.15 else rng.integers(1, 3, n_submodels)
    worth = None if plain or rng.random() < 0.6 else gains
    total = n_submodels if worth is None else int(worth.sum())
    return CoverProblem(
        sp.csr_array(table),
        costs,
        int(rng.integers(1 if plain else -1, total + (1 if plain else 2))),
        worth,
        None if plain or rng.random() < 0.6 else rng.integers(0, dearest + 2, n_blocks),
        None if plain or rng.random() < 0.7 else rng.random(n_submodels) < 0.8,
    )


def gained(problem: CoverProblem, touched: np.ndarray) -> int:
    """What the votes count that an attack pushes out."""
    costs = np.asarray(problem.costs)
    out = problem.incidence.astype(np.int64) @ touched >= costs
    if problem.movable is not None:
        out &= problem.movable | (costs == 0)
    return int(out.sum() if problem.gains is None else np.asarray(problem.gains)[out].sum())


def works(problem: CoverProblem, bound: Bound) -> bool:
    """Whether the witness is an attack of the cost it claims."""
    touched = bound.witness
    assert touched is not None
    within = problem.caps is None or bool(np.all(touched <= problem.caps))
    return within and touched.min() >= 0 and touched.sum() == bound.upper and gained(problem, touched) >= problem.quota


def plain_residual(problem: CoverProblem) -> Residual:
    """The residual of a problem without votes that are out, caps or gains."""
    costs = np.asarray(problem.costs)
    return residual_of(Structure.of(problem.incidence), costs, None, None, problem.quota)
