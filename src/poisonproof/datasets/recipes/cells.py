"""Columns of CSV files: each cell read by itself, as text or as a number, whatever stands in the other rows."""

from __future__ import annotations

import csv
import io
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from poisonproof.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Columns = dict[str, NDArray[Any]]

__all__ = ["columns_in", "numbers_in", "taken_rows"]

_ABSENT = ("", "NA")


def columns_in(file: IO[bytes], name: str, header: Sequence[str] | None = None) -> Columns:
    """The cells of each column as text without blanks around it, ``(n_rows,)``.

    Parameters
    ----------
    file : binary file
        A CSV file with the names of its columns in the first line.
    name : str
        Whose file it is, for errors.
    header : sequence of str, optional
        The names where the first line does not begin with the first of them.
    """
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        lines = csv.reader(text)
        first = [cell.strip() for cell in next(lines, [])]
        if header is not None and first[:1] != [header[0]]:
            rows = [first, *lines]
            names = list(header)
        else:
            rows, names = list(lines), first
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"the file of {name} is no CSV file: {error}") from None
    rows = [row for row in rows if row]
    for place, row in enumerate(rows):
        if len(row) != len(names):
            raise DataError(
                f"row {place} of {name} has {len(row)} cells, but there are {len(names)} columns; get the file again"
            )
    if not rows:
        raise DataError(f"the file of {name} has no rows; get it again")
    return {
        column: np.array([cell.strip() for cell in cells], dtype=object)
        for column, cells in zip(names, zip(*rows, strict=True), strict=True)
    }


def numbers_in(columns: Columns, names: Iterable[str], name: str) -> Columns:
    """The columns with these ones as float64, NaN where a cell is blank or NA; others as they are."""
    typed = dict(columns)
    for column in names:
        if column not in columns:
            raise DataError(f"{name} has no column {column!r}; it has {', '.join(map(repr, columns))}")
        if columns[column].dtype.kind == "f":
            continue
        typed[column] = np.array([_number(cell, column, name) for cell in columns[column].tolist()], dtype=np.float64)
    return typed


def taken_rows(columns: Columns, taken: NDArray[np.bool_]) -> Columns:
    """The rows that are wanted, of every column."""
    return {column: values[taken] for column, values in columns.items()}


def _number(cell: str, column: str, name: str) -> float:
    try:
        return float("nan") if cell in _ABSENT else float(cell)
    except ValueError:
        raise DataError(f"column {column!r} of {name} holds {cell!r}, which is no number") from None
