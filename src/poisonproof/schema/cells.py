"""What single cells hold: a number, a category, or nothing.

A table's reader may give a column another type because of one odd row: booleans become integers beside a number, whole
numbers become floats beside a missing value, and text beside text. So a cell's meaning never depends on the type of its
column: True, 1, 1.0, "1" and "1.0" are one category, and text is never a number.
"""

from __future__ import annotations

import math
from decimal import Decimal
from reprlib import repr as shown
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from poisonproof.errors import SchemaError
from poisonproof.labels import ABSENT_TYPES, is_missing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = [
    "EXACT",
    "MISSING",
    "UNKNOWN",
    "Label",
    "codes_of",
    "is_missing",
    "label_text",
    "numbers_of",
    "row_phrase",
    "shown",
    "strays_among_numbers",
]

Label = str | bool | int | float

UNKNOWN: Final = -1
MISSING: Final = -2
_UNSEEN: Final = -3

EXACT: Final = 2**53  # floats hold every integer below
_TRUTH: Final = {"False": "0", "True": "1"}
_NUMBERS: Final = (int, float, np.bool_, np.integer, np.floating)


def numbers_of(column: str, values: NDArray[Any]) -> NDArray[np.float64]:
    """The numbers of a column ``(n_rows,)``, NaN where a cell is missing; always a new array."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    cells = values.tolist()
    types = _checked_types(column, cells, (*_NUMBERS, Decimal), "numbers are expected")
    if types & {"NAType", "NaTType"}:
        cells = [None if is_missing(cell) else cell for cell in cells]
    try:
        return np.array(cells, dtype=np.float64)
    except (OverflowError, ValueError):
        raise SchemaError(
            f"column {column!r} holds a number that floats cannot hold; numbers up to 1e308 are read"
        ) from None


def codes_of(column: str, values: NDArray[Any], lookup: Mapping[str, int]) -> NDArray[np.int64]:
    """The place of each cell's text in ``lookup``, ``(n_rows,)``; UNKNOWN and MISSING are negative."""
    if values.dtype.kind in "biuf":
        distinct, which = np.unique(values, return_inverse=True)
        return np.array([_code(column, cell, lookup) for cell in distinct.tolist()], dtype=np.int64)[which]
    cells = values.tolist()
    _checked_types(column, cells, (str, *_NUMBERS), "text, numbers or booleans are expected")
    codes = np.array([lookup.get(cell, _UNSEEN) for cell in cells], dtype=np.int64)
    seen: dict[tuple[type, object], int] = {}
    for row in np.flatnonzero(codes == _UNSEEN).tolist():
        cell = cells[row]
        key = (type(cell), cell)
        if key not in seen:
            seen[key] = _code(column, cell, lookup)
        codes[row] = seen[key]
    return codes


def label_text(label: Label) -> str:
    """The text by which a category is compared, the same in every type that a column of an array may have.

    Examples
    --------
    >>> [label_text(label) for label in (True, 1, 1.0, "1", "1.0", "True")]
    ['1', '1', '1', '1', '1', '1']
    >>> [label_text(label) for label in (1.5, "01", "Ideal")]
    ['1.5', '01', 'Ideal']
    """
    if isinstance(label, str):
        return _TRUTH.get(label) or _number_text(label)
    if isinstance(label, float | np.floating) and not float(label).is_integer():
        return repr(float(label))
    return str(int(label))


def _number_text(text: str) -> str:
    """The text, or where it is how an array spells a float, how it spells the integer."""
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if repr(number) == text and number.is_integer() else text


def strays_among_numbers(cells: list[Any]) -> NDArray[np.bool_]:
    """Where a cell is text that spells no number, ``(n_rows,)``; nowhere unless more than half of the cells do."""
    texts = [isinstance(cell, str) and not _spells_number(cell) for cell in cells]
    numbers = [not stray and not is_missing(cell) for stray, cell in zip(texts, cells, strict=True)]
    booleans = any(isinstance(cell, bool | np.bool_) for cell in cells)
    return np.array(texts, dtype=np.bool_) & (sum(texts) < sum(numbers)) & (not booleans)


def _spells_number(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def row_phrase(rows: NDArray[np.bool_]) -> str:
    """Which rows are meant: ``row 3 and 2 more rows``, counted from 0."""
    more = int(rows.sum()) - 1
    return f"row {int(np.argmax(rows))}" + (f" and {more} more row{'s' * (more > 1)}" if more else "")


def _code(column: str, cell: Any, lookup: Mapping[str, int]) -> int:  # noqa: ANN401  a cell of any table
    if is_missing(cell):
        return MISSING
    if not isinstance(cell, str) and abs(cell) >= EXACT:
        # Sound because one fraction, or one missing cell, makes rounded floats of a column's integers.
        if isinstance(cell, int) and str(cell) in lookup:
            raise SchemaError(f"column {column!r} holds the number {cell}, which floats cannot hold; read it as text")
        return UNKNOWN
    return lookup.get(label_text(cell), UNKNOWN)


def _checked_types(column: str, cells: list[Any], allowed: tuple[type, ...], expected: str) -> set[str]:
    types = set(map(type, cells))
    strange = {kind for kind in types if not issubclass(kind, allowed) and kind.__name__ not in ABSENT_TYPES}
    if strange:
        row = next(row for row, cell in enumerate(cells) if type(cell) in strange)
        raise SchemaError(
            f"column {column!r}, row {row}: {shown(cells[row])} is of type {type(cells[row]).__name__}; {expected}"
        )
    return {kind.__name__ for kind in types}
