"""Finished cells on disk, so that a run that was interrupted goes on where it stopped."""

from __future__ import annotations

import json
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from poisonproof.errors import FileError
from poisonproof.store import write_then_rename

if TYPE_CHECKING:
    import os

    from poisonproof.paper.cells import Cell

__all__ = ["Keeper", "key_of"]

_FORMAT: Final = 1  # raised whenever a cell is computed in another way


def key_of(cell: Cell, data: str, settings: str) -> str:
    """What a cell's outcome hangs on: the data, the settings, the version of the package, and the cell itself."""
    words = [cell.to_dict(), data, settings, version("poisonproof"), _FORMAT]
    return blake2b(json.dumps(words).encode(), digest_size=12).hexdigest()


class Keeper:
    """A folder with one file for each finished cell.

    Parameters
    ----------
    folder : path
        Where the files are; it is made with the first one.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def get(self, cell: Cell, key: str) -> dict[str, Any] | None:
        """The outcome of a cell; None where it is not finished, or was computed from something else."""
        try:
            kept = json.loads(self._place(cell, key).read_bytes())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return dict(kept["outcome"]) if kept.get("cell") == cell.to_dict() else None

    def put(self, cell: Cell, key: str, outcome: dict[str, Any]) -> None:
        """Keep an outcome, whole or not at all."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{self.folder} cannot be made: {error.strerror}") from error
        document = {"cell": cell.to_dict(), "outcome": outcome}
        write_then_rename(self._place(cell, key), json.dumps(document, allow_nan=False).encode())

    def _place(self, cell: Cell, key: str) -> Path:
        method = cell.method.replace(" ", "-")
        return self.folder / f"{cell.dataset}-{method}-{cell.n_partitions}-{cell.trial}-{key}.json"
