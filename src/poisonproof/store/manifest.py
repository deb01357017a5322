"""What stands around a model in its file.

A model file is three lines and a payload::

    poisonproof model 1
    <sha256 of everything below>
    <the manifest, one line of JSON>
    <the model, as skops writes it>

The digest finds damage and careless edits; it is no signature, for whoever edits the file can compute it again.
So nothing in the file is believed blindly: types that are not known to be harmless are named, and built only when
the caller trusts them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from poisonproof.errors import DataError, FileError
from poisonproof.partition import canonical, content_digests, content_order
from poisonproof.store.files import bytes_of, first_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

__all__ = ["DataDigest", "Manifest", "data_digest", "sealed", "unsealed"]

FORMAT_VERSION: Final = 1
_MAGIC: Final = b"poisonproof model "
_PARTS: Final = 4  # magic, digest, manifest, payload


@dataclass(frozen=True)
class DataDigest:
    """Which rows a model was trained on, without the rows.

    Parameters
    ----------
    sha256 : str
        Digest of the rows and targets in an order that depends on their content alone.
    n_rows, n_features : int
        Their shape.
    """

    sha256: str
    n_rows: int
    n_features: int


@dataclass(frozen=True)
class Manifest:
    """What a model file says about its model, readable without building it.

    Parameters
    ----------
    model : str
        The class.
    threat, unit : str
        What the attacker may do, and what one modification counts.
    key : int
        Key of the hash that assigns blocks.
    versions : mapping
        Of Python and the packages the model was built with.
    payload_sha256 : str
        Digest of the model's bytes.
    data : DataDigest or None
        Which rows it was trained on, where the writer said so.
    notes : mapping
        Whatever else the writer wants to find again: JSON values under names of its choice.
    """

    model: str
    threat: str
    unit: str
    key: int
    versions: Mapping[str, str]
    payload_sha256: str
    data: DataDigest | None = None
    notes: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def data_digest(X: ArrayLike, y: ArrayLike) -> DataDigest:
    """The digest of training rows and their targets or labels, whatever their order.

    Examples
    --------
    >>> data_digest([[1.0], [2.0]], [3.0, 4.0]) == data_digest([[2.0], [1.0]], [4.0, 3.0])
    True
    """
    rows, given = canonical(X), np.asarray(y)
    if rows.ndim != 2 or given.shape != (len(rows),):
        raise DataError(f"X has shape {rows.shape} and y {given.shape}; y must have one entry for each row of X")
    targets = _numbers_for(given) if _holds_text(given) else canonical(given)
    order = content_order(content_digests(rows), targets)
    digest = hashlib.sha256(np.array(rows.shape, dtype="<i8").tobytes())
    digest.update(rows[order].astype("<f8", copy=False).tobytes())
    digest.update(targets[order].astype("<f8", copy=False).tobytes())
    return DataDigest(digest.hexdigest(), *rows.shape)


def _holds_text(labels: NDArray[Any]) -> bool:
    kind = labels.dtype.kind
    return kind in "UST" or (kind == "O" and any(isinstance(label, str) for label in labels))


def _numbers_for(labels: NDArray[Any]) -> NDArray[np.float64]:
    """A number for each label, the same wherever the label occurs, so that rows with labels have a digest too."""
    cells = labels.tolist()
    if any(cell is None or cell != cell for cell in cells):  # noqa: PLR0124  NaN differs from itself
        raise DataError("y contains a label that is missing; give every row a text or a number")
    numbers = {
        cell: int.from_bytes(hashlib.sha256(str(cell).encode(errors="surrogatepass")).digest()[:6])
        for cell in set(cells)
    }
    return np.array([numbers[cell] for cell in cells], dtype=np.float64)  # 48 bits, which a float holds exactly


def sealed(manifest: Manifest, payload: bytes) -> bytes:
    """The content of a model file."""
    body = json.dumps(asdict(manifest), allow_nan=False, sort_keys=True).encode() + b"\n" + payload
    digest = hashlib.sha256(body).hexdigest().encode()
    return b"\n".join([_MAGIC + str(FORMAT_VERSION).encode(), digest, body])


def unsealed(path: Path) -> tuple[Manifest, bytes]:
    """The manifest and the payload of an unchanged file."""
    parts = bytes_of(path).split(b"\n", _PARTS - 1)
    if len(parts) != _PARTS or not parts[0].startswith(_MAGIC):
        raise FileError(f"{path} is not a poisonproof model file; make one with save() or 'poisonproof fit'")
    if parts[0] != _MAGIC + str(FORMAT_VERSION).encode():
        raise FileError(
            f"{path} has format {parts[0].removeprefix(_MAGIC).decode(errors='replace')}; "
            f"this release reads format {FORMAT_VERSION}: install the release that wrote it, or fit again"
        )
    _, digest, head, payload = parts
    if hashlib.sha256(head + b"\n" + payload).hexdigest().encode() != digest:
        raise FileError(f"{path} was changed or damaged since it was written; get the original, or fit again")
    try:
        return _manifest(json.loads(head)), payload
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileError(f"{path} has a manifest that cannot be read: {first_line(error)}") from error


def _manifest(record: dict[str, Any]) -> Manifest:
    data = record.pop("data")
    manifest = Manifest(**record, data=None if data is None else DataDigest(**data))
    if not all(isinstance(name, str) for name in manifest.versions.values()):
        raise TypeError("versions must be texts")
    return manifest
