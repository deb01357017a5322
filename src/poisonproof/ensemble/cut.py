"""The training rows cut into blocks, in an order that does not depend on the order they came in."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from poisonproof.errors import DataError
from poisonproof.labels import one_by_one
from poisonproof.partition import blocks_of, canonical, content_digests, content_order, source_digests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from poisonproof.layout import Layout
    from poisonproof.partition import PartitionBy
    from poisonproof.threat import Threat

__all__ = ["Cut", "blocks_of_rows", "blocks_per_modification", "cut"]


class Cut(NamedTuple):
    """Rows by block and content, and what the attacker's budget counts in them.

    Attributes
    ----------
    order : int array (n_rows,)
        The rows' places in the table they came in.
    members : list of int arrays, one a submodel
        Each submodel's rows, as places in ``order``.
    n_units : int
        Units in all.
    capacity : int64 array (n_submodels,) or None
        Units of each submodel, where the attacker can only touch units that are there.
    caps : int64 array (n_blocks,) or None
        Units of each block, likewise.
    """

    order: NDArray[np.int64]
    members: list[NDArray[np.int64]]
    n_units: int
    capacity: NDArray[np.int64] | None
    caps: NDArray[np.int64] | None


def cut(  # noqa: PLR0917  a table, and how it is cut
    rows: NDArray[np.float64],
    targets: NDArray[np.float64],
    ties: NDArray[np.float64],
    groups: ArrayLike | None,
    layout: Layout,
    threat: Threat,
    *,
    partition_by: PartitionBy,
    key: int,
) -> Cut:
    """Cut the rows ``(n_rows, n_features)`` into the blocks of the layout.

    Labels may hash alike, as ``1`` and ``01`` do; ``ties`` tells them apart.
    """
    digests = content_digests(rows, key)
    blocks = blocks_of_rows(rows, targets, groups, layout.n_blocks, partition_by=partition_by, key=key, digests=digests)
    order = content_order(digests, targets, blocks, ties)
    starts = np.searchsorted(blocks[order], np.arange(layout.n_blocks + 1))
    members = list(_members(layout, starts))
    units = order if groups is None else source_digests(_sources(groups, rows))[order, 0]
    if threat.inserts or blocks_per_modification(threat, partition_by) > 1:
        return Cut(order, members, len(np.unique(units)), None, None)
    spans = [units[start:stop] for start, stop in pairwise(starts)]
    caps = np.array([len(np.unique(span)) for span in spans], dtype=np.int64)
    # No unit is in two blocks, so what a submodel has is what its blocks have.
    return Cut(order, members, int(caps.sum()), layout.incidence @ caps, caps)


def blocks_of_rows(
    rows: NDArray[np.float64],
    targets: ArrayLike | None,
    groups: ArrayLike | None,
    n_blocks: int,
    *,
    partition_by: PartitionBy,
    key: int,
    digests: NDArray[np.uint64] | None = None,
) -> NDArray[np.int64]:
    """The block of each row: a function of the row (or its source) and the key alone."""
    if partition_by == "source":
        if groups is None:
            raise DataError("partition_by='source' needs groups, the source of each row")
        return blocks_of(source_digests(_sources(groups, rows), key), n_blocks)
    if groups is not None:
        raise DataError(f"partition_by={partition_by!r} does not use groups; use partition_by='source'")
    if partition_by == "features":
        return blocks_of(content_digests(rows, key) if digests is None else digests, n_blocks)
    if targets is None:
        raise DataError("partition_by='row' needs y, because a row's block depends on its label too")
    labelled = np.column_stack([rows, canonical(_column(targets, rows, "y"))])
    return blocks_of(content_digests(labelled, key), n_blocks)


def blocks_per_modification(threat: Threat, partition_by: PartitionBy) -> int:
    """How many blocks one modification can touch."""
    # Sound because a label that is part of what is hashed moves its row from one block to another.
    return 2 if threat.moves == "relabel" and partition_by == "row" else 1


def _members(layout: Layout, starts: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The places of each submodel's rows, block after block."""
    for submodel in range(layout.n_submodels):
        blocks = layout.blocks_of(submodel)
        yield np.concatenate([np.arange(starts[block], starts[block + 1]) for block in blocks])


def _sources(groups: ArrayLike, rows: NDArray[np.float64]) -> NDArray[np.object_]:
    """The source of each row, as it was given."""
    return _column(one_by_one(groups), rows, "groups")


def _column(values: ArrayLike, rows: NDArray[np.float64], name: str) -> NDArray[Any]:
    column = np.asarray(values)
    if column.shape != (len(rows),):
        raise DataError(f"{name} has shape {column.shape}; it must have one entry for each of the {len(rows)} rows")
    return column
