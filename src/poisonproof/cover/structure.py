"""Which submodels share which blocks, and what is left of an attacker's problem without the settled votes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from poisonproof.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Residual", "Structure", "by_rows", "residual_of", "structure_of", "transposed"]

_KEPT: Final = 8
_seen: OrderedDict[bytes, Structure] = OrderedDict()


@dataclass(frozen=True, eq=False)
class Structure:
    """Which submodels share which blocks, readable both ways.

    Parameters
    ----------
    start, blocks : int32 arrays (n_submodels + 1,), (n_incidences,)
        ``blocks[start[t]:start[t + 1]]`` are the blocks of submodel ``t``.
    block_start, submodels : int32 arrays (n_blocks + 1,), (n_incidences,)
        ``submodels[block_start[j]:block_start[j + 1]]`` are the submodels of block ``j``.
    """

    start: NDArray[np.int32]
    blocks: NDArray[np.int32]
    block_start: NDArray[np.int32]
    submodels: NDArray[np.int32]

    @property
    def n_submodels(self) -> int:
        """How many submodels there are."""
        return len(self.start) - 1

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return len(self.block_start) - 1

    @property
    def spread(self) -> int:
        """In how many submodels the most shared block is."""
        return int(np.diff(self.block_start).max())

    @property
    def users(self) -> sp.csr_array:
        """For every block its submodels, as an integer matrix ``(n_blocks, n_submodels)``."""
        ones = np.ones(len(self.submodels), dtype=np.int64)
        return sp.csr_array((ones, self.submodels, self.block_start), shape=(self.n_blocks, self.n_submodels))

    @classmethod
    def of(cls, incidence: sp.csr_array) -> Structure:
        """The structure of an incidence matrix ``(n_submodels, n_blocks)``."""
        rows = by_rows(incidence)
        start, blocks = rows.indptr.astype(np.int32), rows.indices.astype(np.int32)
        return cls(start, blocks, *transposed(start, blocks, rows.shape[1]))

    def capacity(self, caps: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many units each submodel has where block ``j`` has ``caps[j]``, ``(n_submodels,)``."""
        return np.add.reduceat(caps[self.blocks], self.start[:-1])


def by_rows(incidence: Any) -> sp.csr_array:  # noqa: ANN401  any matrix, dense or sparse
    """An incidence matrix row by row: every block of a submodel once and in order, and nothing that is stored as 0."""
    if isinstance(incidence, sp.csr_array) and incidence.has_canonical_format and incidence.data.all():
        return incidence
    rows = sp.csr_array(incidence, dtype=np.bool_, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def structure_of(incidence: sp.csr_array) -> Structure:
    """The structure of an incidence matrix, from memory where the same one was asked for before."""
    incidence = by_rows(incidence)
    digest = blake2b(incidence.indptr.tobytes(), digest_size=16)
    digest.update(incidence.indices.tobytes())
    digest.update(str(incidence.shape).encode())
    key = digest.digest()
    structure = _seen.pop(key, None) or Structure.of(incidence)
    _seen[key] = structure
    while len(_seen) > _KEPT:
        _seen.popitem(last=False)
    return structure


@njit
def transposed(
    start: NDArray[np.int32], blocks: NDArray[np.int32], n_blocks: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """For each block its submodels, ascending."""
    block_start = np.zeros(n_blocks + 1, np.int32)
    for entry in blocks:
        block_start[entry + 1] += 1
    for j in range(n_blocks):
        block_start[j + 1] += block_start[j]
    place = block_start[:-1].copy()
    submodels = np.empty(len(blocks), np.int32)
    for t in range(len(start) - 1):
        for i in range(start[t], start[t + 1]):
            submodels[place[blocks[i]]] = t
            place[blocks[i]] += 1
    return block_start, submodels


class Residual(NamedTuple):
    """One row's problem without the votes that are out already or cannot be moved.

    Compiled code takes it as it is, so it is flat.

    Parameters
    ----------
    start, blocks, block_start, submodels : int32 arrays
        The structure of the submodels that are left and all blocks, see :class:`Structure`. Blocks that cannot be
        touched have no submodels.
    costs, gains : int64 arrays (n_left,)
        What it takes to push each vote out, and what it counts, both at least 1.
    caps : int64 array (n_blocks,)
        How often each block can be touched, and no more than is of any use.
    quota : int
        What the votes that are pushed out must count together.
    """

    start: NDArray[np.int32]
    blocks: NDArray[np.int32]
    block_start: NDArray[np.int32]
    submodels: NDArray[np.int32]
    costs: NDArray[np.int64]
    gains: NDArray[np.int64]
    caps: NDArray[np.int64]
    quota: int

    def gained(self, touched: NDArray[np.int64]) -> int:
        """What the votes count that are out once block ``j`` is touched ``touched[j]`` times."""
        return int(self.gains[np.add.reduceat(touched[self.blocks], self.start[:-1]) >= self.costs].sum())


def residual_of(
    structure: Structure,
    costs: NDArray[np.integer],
    gains: NDArray[np.integer] | None,
    caps: NDArray[np.int64] | None,
    quota: int,
) -> Residual:
    """One row's problem without the submodels of cost 0; ``costs`` and ``gains`` are ``(n_submodels,)``."""
    left = costs > 0
    limits = np.full(structure.n_blocks, np.iinfo(np.int32).max, dtype=np.int64) if caps is None else caps
    start, blocks = _restricted(structure.start, structure.blocks, left, limits)
    block_start, submodels = transposed(start, blocks, structure.n_blocks)
    amounts = costs[left].astype(np.int64)
    worth = np.ones(len(amounts), dtype=np.int64) if gains is None else gains[left].astype(np.int64)
    limits = np.minimum(limits, _dearest(block_start, submodels, amounts))
    # Sound because a vote that counts for more than the quota fills it by itself.
    return Residual(start, blocks, block_start, submodels, amounts, np.minimum(worth, quota), limits, quota)


@njit
def _restricted(
    start: NDArray[np.int32], blocks: NDArray[np.int32], left: NDArray[np.bool_], limits: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The submodels that are left, without blocks that cannot be touched."""
    new_start = np.zeros(np.count_nonzero(left) + 1, np.int32)
    new_blocks = np.empty(len(blocks), np.int32)
    row = 0
    size = 0
    for t in range(len(left)):
        if left[t]:
            for i in range(start[t], start[t + 1]):
                if limits[blocks[i]] > 0:
                    new_blocks[size] = blocks[i]
                    size += 1
            row += 1
            new_start[row] = size
    return new_start, new_blocks[:size].copy()


@njit
def _dearest(
    block_start: NDArray[np.int32], submodels: NDArray[np.int32], costs: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The largest cost among the submodels of each block: touching it more often is of no use."""
    most = np.zeros(len(block_start) - 1, np.int64)
    for j in range(len(most)):
        for i in range(block_start[j], block_start[j + 1]):
            most[j] = max(most[j], costs[submodels[i]])
    return most
