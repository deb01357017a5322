"""Blocks to submodels: which submodel trains on which blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.sparse as sp

from poisonproof.errors import DataError, ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["LAYOUTS", "Layout", "disjoint", "make_layout"]

# Far more than anyone can train, and few enough to lay out.
_MOST_PARTITIONS: Final = 10_000_000
_MOST_SPREAD: Final = 1_000
_SWEEPS: Final = 200  # of swaps that part the repeated blocks of a random layout; a handful does, where swaps can do it


@dataclass(frozen=True, eq=False)
class Layout:
    """Which submodel trains on which blocks.

    Parameters
    ----------
    name : str
        "disjoint", the name of the design, "random" or "custom".
    incidence : sparse bool array (n_submodels, n_blocks)
        True where the submodel trains on the block.
    n_groups : int
        Into how many groups the blocks fall that share no submodel.
    """

    name: str
    incidence: sp.csr_array
    n_groups: int = 1

    @property
    def n_submodels(self) -> int:
        """How many submodels vote."""
        return int(self.incidence.shape[0])

    @property
    def n_blocks(self) -> int:
        """How many blocks the rows fall into."""
        return int(self.incidence.shape[1])

    @property
    def spread(self) -> int:
        """How many submodels train on the most used block: as many votes one modification can touch."""
        return int(np.bincount(self.incidence.indices).max())

    @property
    def effective_q(self) -> float:
        """All blocks over the average number of blocks of a submodel: each submodel sees about 1/q of the rows."""
        return self.n_blocks * self.n_submodels / int(self.incidence.nnz)

    @property
    def is_disjoint(self) -> bool:
        """Whether no block is shared, so that one modification touches one submodel."""
        return self.spread == 1

    def blocks_of(self, submodel: int) -> NDArray[np.intp]:
        """The blocks a submodel trains on, ascending."""
        start, stop = self.incidence.indptr[submodel : submodel + 2]
        return np.sort(self.incidence.indices[start:stop]).astype(np.intp)


def disjoint(n_partitions: int) -> Layout:
    """One submodel for each block.

    Examples
    --------
    >>> disjoint(3).incidence.toarray().astype(int).tolist()
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """
    count = _counted("n_partitions", n_partitions, _MOST_PARTITIONS)
    return Layout("disjoint", sp.csr_array(sp.eye_array(count, dtype=np.bool_)), count)


def make_layout(
    n_partitions: int,
    spread: int = 1,
    layout: str = "triples",
    key: int = 0,
    *,
    incidence: Any = None,  # noqa: ANN401  any matrix, dense or sparse
    odd: bool = True,
) -> Layout:
    """The layout of an ensemble whose submodels each see about ``1 / n_partitions`` of the rows.

    Parameters
    ----------
    n_partitions : int
        Over which share of the rows each submodel sees; grouped designs round it, see :attr:`Layout.effective_q`.
    spread : int, default=1
        How many submodels train on each block; 1 is a disjoint ensemble, whatever the layout.
    layout : {"triples", "paired", "fano", "plane", "random"}
        The design. "triples": Steiner triple systems on 9, 13 or 15 blocks (spread 4, 6, 7); "paired": all pairs of
        ``spread + 1`` blocks; "fano": the plane of order 2 (spread 3); "plane": the plane of order 3 (spread 4);
        "random": every block to ``spread`` random submodels.
    key : int, default=0
        Seeds the random layout; the others do not depend on it.
    incidence : bool matrix (n_submodels, n_blocks), optional
        The user's own layout; the other parameters are then not used.
    odd : bool, default=True
        Drop the last submodel where that makes their number odd, so that the median is a vote.

    Notes
    -----
    The random layout is the one of Hammoudeh and Lowd (2023): as many submodels as blocks, ``n_partitions * spread``,
    and no block twice in a submodel. Grouped designs cut the blocks into groups that share no submodel, which is what
    lets their radii be computed exactly.

    Examples
    --------
    >>> nine = make_layout(9, 4, "triples")
    >>> nine.n_blocks, nine.n_submodels, nine.n_groups, nine.spread
    (27, 35, 3, 4)
    """
    if incidence is not None:
        return _custom(incidence, odd=odd)
    q, d = _counted("n_partitions", n_partitions, _MOST_PARTITIONS), _counted("spread", spread, _MOST_SPREAD)
    if layout not in LAYOUTS:
        raise ParameterError(f"layout={layout!r} is unknown; use one of {', '.join(map(repr, LAYOUTS))}")
    if d == 1:
        return disjoint(q)
    if layout == "random":
        return _random(q, d, key, odd=odd)
    return _grouped(q, d, layout, odd=odd)


def _counted(name: str, value: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ParameterTypeError(f"{name}={value!r} must be an integer")
    if not 1 <= value <= most:
        raise ParameterError(f"{name}={value} must be from 1 to {most:,}")
    return int(value)


def _cyclic(order: int, *base: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All shifts of the base sets modulo ``order``, each set once."""
    shifted = (tuple(sorted((point + shift) % order for point in one)) for one in base for shift in range(order))
    return list(dict.fromkeys(shifted))


def _affine_plane(order: int) -> list[tuple[int, ...]]:
    """The lines of the affine plane of prime order: every two points are on exactly one."""
    upright = [tuple(order * x + y for y in range(order)) for x in range(order)]
    others = [
        tuple(order * x + (slope * x + start) % order for x in range(order))
        for slope in range(order)
        for start in range(order)
    ]
    return upright + others


def _pairs(size: int) -> list[tuple[int, ...]]:
    return list(combinations(range(size), 2))


# Designs by name and spread. Every two blocks of a group meet in exactly one submodel.
_DESIGNS: Final[dict[str, dict[int, Callable[[], list[tuple[int, ...]]]]]] = {
    "triples": {
        4: partial(_affine_plane, 3),
        6: partial(_cyclic, 13, (0, 1, 4), (0, 2, 7)),
        7: partial(_cyclic, 15, (0, 1, 4), (0, 2, 8), (0, 5, 10)),
    },
    "fano": {3: partial(_cyclic, 7, (0, 1, 3))},
    "plane": {4: partial(_cyclic, 13, (0, 1, 3, 9))},
}
LAYOUTS: Final = ("triples", "paired", "fano", "plane", "random")


def _grouped(q: int, d: int, name: str, *, odd: bool) -> Layout:
    if name == "paired":
        sizes = _pair_groups(q, d)
        groups = [_pairs(size) for size in sizes]
    else:
        if d not in _DESIGNS[name]:
            has = " or ".join(map(str, _DESIGNS[name]))
            raise ParameterError(
                f"spread={d} is not one that layout={name!r} has; use spread={has}, or layout='paired'"
            )
        design = _DESIGNS[name][d]()
        size = 1 + max(map(max, design))
        sizes = [size] * _group_count(q * len(design[0]), size, d)
        groups = [design] * len(sizes)
    first = np.cumsum([0, *sizes])
    members = [np.array(one) + start for start, group in zip(first, groups, strict=False) for one in group]
    if odd and len(members) % 2 == 0:
        del members[-1]
    return Layout(name, _incidence(members, int(first[-1])), len(sizes))


def _group_count(n_blocks: int, size: int, d: int) -> int:
    """How many groups of ``size`` blocks come nearest to ``n_blocks``, at least one."""
    if n_blocks < d:
        raise ParameterError(
            f"spread={d} is more than the {n_blocks} blocks there are; use a smaller spread or more partitions"
        )
    return max(1, round(n_blocks / size))


def _pair_groups(q: int, d: int) -> list[int]:
    """Sizes of groups for two blocks a submodel, ``d + 1`` or one off, the largest last."""
    count = _group_count(2 * q, d + 1, d)
    total = min(max(2 * q, count * d), count * (d + 2))
    if d == 2:
        # A group of two blocks would have a single submodel; its blocks would be shared by nobody.
        total = max(total, 3 * count)
    small, larger = divmod(total, count)
    return [small] * (count - larger) + [small + 1] * larger


def _random(q: int, d: int, key: int, *, odd: bool) -> Layout:
    size = q * d
    stream = _Stream(f"{q} {d} {int(key)}")
    members = np.stack([stream.permutation(size) for _ in range(d)], axis=1)
    if not _part_repeats(members, stream):
        # Shifts by distinct steps never meet; only tiny layouts, where swaps can fail, get here.
        steps, start, names = (stream.permutation(size) for _ in range(3))
        members = names[(start[:, None] + steps[:d]) % size]
    if odd and size % 2 == 0:
        members = members[:-1]
    return Layout("random", _incidence(list(members), size))


class _Stream:
    """Random numbers that depend on the seed alone, not on the version of a library."""

    def __init__(self, seed: str) -> None:
        # numpy guarantees the raw output of a bit generator across versions, not the permutations it makes of it.
        digest = blake2b(seed.encode(), digest_size=16, person=b"poisonproof lay").digest()
        self._raw = np.random.Philox(key=int.from_bytes(digest, "little")).random_raw

    def permutation(self, size: int) -> NDArray[np.int64]:
        return np.argsort(self._raw(size), kind="stable").astype(np.int64)

    def below(self, size: int) -> int:
        return int(self._raw()) % size


def _part_repeats(members: NDArray[np.int64], stream: _Stream) -> bool:
    """Swap blocks within a column until no submodel has one twice; whether that worked."""
    for column in range(1, members.shape[1]):
        for _ in range(_SWEEPS):
            repeated = np.flatnonzero((members[:, :column] == members[:, column : column + 1]).any(axis=1))
            if len(repeated) == 0:
                break
            for one in repeated.tolist():
                other = stream.below(len(members))
                members[[one, other], column] = members[[other, one], column]
        else:
            return False
    return True


def _incidence(members: list[NDArray[np.int64]], n_blocks: int) -> sp.csr_array:
    starts = np.cumsum([0, *map(len, members)])
    columns = np.concatenate([np.sort(one) for one in members])
    values = np.ones(len(columns), dtype=np.bool_)
    return sp.csr_array((values, columns, starts), shape=(len(members), n_blocks))


def _custom(incidence: Any, *, odd: bool) -> Layout:  # noqa: ANN401  any matrix, dense or sparse
    try:
        # Of the sparse formats some keep their entries in lists or a dictionary; this one has them all in an array.
        matrix: Any = sp.coo_array(incidence) if sp.issparse(incidence) else np.asarray(incidence)
    except ValueError:
        raise DataError("incidence has rows of different lengths; give a matrix (n_submodels, n_blocks)") from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise DataError(f"incidence has shape {matrix.shape}; it must be (n_submodels, n_blocks), both at least 1")
    values = matrix.data if sp.issparse(matrix) else matrix
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        raise DataError("incidence must be True or 1 where a submodel trains on a block, and False or 0 elsewhere")
    table = sp.csr_array(matrix.astype(np.int64))
    table.sum_duplicates()
    if np.any(table.data > 1):
        raise DataError("incidence has an entry twice; give each block of a submodel once")
    table.eliminate_zeros()
    empty = np.flatnonzero(np.diff(table.indptr) == 0)
    if len(empty):
        raise DataError(f"incidence gives submodel {empty[0]} no block; every submodel must train on at least one")
    if odd and table.shape[0] % 2 == 0:
        raise DataError(f"incidence has {table.shape[0]} submodels; give an odd number, so that the median is a vote")
    table.sort_indices()
    return Layout("custom", table.astype(np.bool_), _components(table))


def _components(table: sp.csr_array) -> int:
    """How many groups of blocks share no submodel; a block no submodel trains on is a group of its own."""
    return int(sp.csgraph.connected_components(table.T @ table, directed=False)[0])
