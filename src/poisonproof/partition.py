"""Rows to blocks: canonical bytes, a keyed hash, and the order of rows inside a block.

Which block a row belongs to is a function of the row and the key alone: not of other rows, of their number or order,
of a random stream or of any statistic. So inserting or deleting a row changes one block and no other.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.labels import is_missing, one_by_one, spelling

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["PartitionBy", "blocks_of", "canonical", "check_key", "content_digests", "content_order", "source_digests"]

PartitionBy = Literal["features", "row", "source"]

_DIGEST_BYTES: Final = 16
_CHUNK_ROWS: Final = 4096  # keeps the bytes being hashed in the cache


def canonical(values: ArrayLike) -> NDArray[np.float64]:
    """The values as the package trains on and hashes them: float64, row-major, -0.0 as 0.0.

    Examples
    --------
    >>> canonical([[-0.0, 1]]).tolist()
    [[0.0, 1.0]]
    """
    return np.ascontiguousarray(np.asarray(values, dtype=np.float64) + 0.0)


def content_digests(rows: NDArray[np.float64], key: int = 0) -> NDArray[np.uint64]:
    """A 128-bit keyed hash of each row's canonical bytes, as two words ``(n_rows, 2)``."""
    if rows.shape[1] == 0:
        raise DataError("rows have no features, so they cannot be told apart; give at least one column")
    width = rows.shape[1] * rows.itemsize
    keyed = _keyed(key)
    digests = []
    for start in range(0, len(rows), _CHUNK_ROWS):
        chunk = rows[start : start + _CHUNK_ROWS].astype("<f8", copy=False).tobytes()
        for offset in range(0, len(chunk), width):
            row = keyed.copy()
            row.update(chunk[offset : offset + width])
            digests.append(row.digest())
    return _words(digests)


def source_digests(groups: ArrayLike, key: int = 0) -> NDArray[np.uint64]:
    """A 128-bit keyed hash of each row's source name, as two words ``(n_rows, 2)``; 7, 7.0 and "7" are one name."""
    names = np.asarray([_source_name(group) for group in one_by_one(groups)], dtype=object)
    distinct, which = np.unique(names.astype(str), return_inverse=True)
    keyed = _keyed(key)
    digests = []
    for name in distinct:
        source = keyed.copy()
        source.update(name.encode(errors="surrogatepass"))  # a file name may hold what is no character
        digests.append(source.digest())
    return _words(digests)[which]


def blocks_of(digests: NDArray[np.uint64], n_blocks: int) -> NDArray[np.int64]:
    """The block of each digest, ``(n_rows,)`` in ``0 … n_blocks - 1``."""
    return (digests[:, 0] % np.uint64(n_blocks)).astype(np.int64)


def content_order(
    digests: NDArray[np.uint64],
    targets: NDArray[Any],
    blocks: NDArray[np.int64] | None = None,
    ties: NDArray[Any] | None = None,
) -> NDArray[np.int64]:
    """The order of rows by block, then by content, so that the order they came in never matters.

    Rows that tie on digest, target and ``ties`` are identical, so their mutual order changes nothing.
    """
    keys = (targets if ties is None else ties, targets, digests[:, 1], digests[:, 0])
    return np.lexsort(keys if blocks is None else (*keys, blocks))


def check_key(key: int) -> int:
    """The key, if it is an integer that fits into 16 bytes."""
    if isinstance(key, bool) or not isinstance(key, int | np.integer):
        raise ParameterTypeError(f"key={key!r} must be an integer")
    if not 0 <= key < 1 << 128:
        raise ParameterError(f"key={key!r} must be at least 0 and below 2**128")
    return int(key)


def _keyed(key: int) -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=_DIGEST_BYTES, key=check_key(key).to_bytes(_DIGEST_BYTES, "little"))


def _words(digests: list[bytes]) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).reshape(-1, 2)


def _source_name(group: object) -> str:
    if is_missing(group):
        raise DataError("groups contains a missing source; every row needs the name of its source")
    # Sound because whoever reads the names from a file may get numbers, or text once some other row has a name: the
    # source of a row must not hang on that.
    return spelling(group)
