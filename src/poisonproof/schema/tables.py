"""Tables to columns: pandas, polars, mappings of columns, and numpy arrays, all read the same way."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from poisonproof.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = ["Table", "column_values", "columns_of", "names_in", "near_phrase"]

Table: TypeAlias = Any  # a pandas or polars frame, a mapping of columns, or an array; neither library need be installed

_WAYS: Final = "give a pandas or polars frame, a dict of columns, or an array with the declared columns in order"


def names_in(table: Table) -> list[str] | None:
    """The names of a table's columns, or None where columns have no names."""
    if isinstance(table, Mapping):
        return list(table)
    if isinstance(table, np.ndarray):
        return None if table.dtype.names is None else list(table.dtype.names)
    return list(table.columns) if _is_pandas(table) or _is_polars(table) else None


def columns_of(table: Table, names: Sequence[str]) -> list[NDArray[Any]]:
    """The columns of these names, each ``(n_rows,)``, of a plain number type or of objects.

    Other columns of the table are ignored. A table without names must have these columns and no more, in this order.
    """
    if isinstance(table, np.ma.MaskedArray):
        raise SchemaError("masked arrays cannot be read; fill the masked cells with None or nan first")
    present = names_in(table)
    if present is None:
        return _by_position(table, names)
    for name in names:
        if name not in present:
            raise SchemaError(f"column {name!r} is missing from the table{near_phrase(name, present)}")
        if present.count(name) > 1:
            raise SchemaError(f"column {name!r} appears {present.count(name)} times in the table; rename all but one")
    columns = [column_values(name, table[name]) for name in names]
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(columns[0]):
            raise SchemaError(
                f"column {name!r} has {len(column)} rows but {names[0]!r} has {len(columns[0])}; they must agree"
            )
    return columns


def near_phrase(name: str, known: Iterable[object], there_are: str = "it has") -> str:
    """How to go on after an unknown name: ``; did you mean 'carat'?``, or what names there are."""
    texts = [str(other) for other in known]
    near = get_close_matches(name, texts, n=2)
    if near:
        return f"; did you mean {' or '.join(map(repr, near))}?"
    return (
        f"; {there_are} {', '.join(map(repr, texts[:10]))}{', …' * (len(texts) > 10)}"
        if texts
        else f"; {there_are} none"
    )


def _by_position(table: Table, names: Sequence[str]) -> list[NDArray[Any]]:
    if not isinstance(table, np.ndarray | list | tuple):
        raise SchemaError(f"a {type(table).__name__} cannot be read; {_WAYS}")
    # Sound because cells stay what they are: otherwise one text would turn every number into text.
    rows = np.asarray(table) if isinstance(table, np.ndarray) else np.array(table, dtype=object)
    if rows.ndim == 1 and len(rows) == 0 and not isinstance(table, np.ndarray):
        rows = rows.reshape(0, len(names))
    if rows.ndim != 2:
        raise SchemaError(f"an array with {rows.ndim} dimension{'s' * (rows.ndim != 1)} is no table; {_WAYS}")
    if rows.shape[1] != len(names):
        raise SchemaError(
            f"the array has {rows.shape[1]} columns but the schema declares {len(names)}: {', '.join(names)}"
        )
    return [column_values(name, rows[:, place]) for place, name in enumerate(names)]


def column_values(name: str, column: Any) -> NDArray[Any]:  # noqa: ANN401  a column of any table
    """The cells of one column ``(n_rows,)``, of a plain number type or of objects."""
    if isinstance(column, np.ma.MaskedArray):
        raise SchemaError(f"column {name!r} is a masked array; fill the masked cells with None or nan first")
    values = _as_array(name, column)
    if values.ndim != 1:
        raise SchemaError(f"column {name!r} has {values.ndim} dimensions; a column has one cell per row")
    if values.dtype.kind in "biufO":
        return values
    if values.dtype.kind in "UT":
        return values.astype(object)
    raise SchemaError(f"column {name!r} is of type {values.dtype}; numbers, text or booleans are expected")


def _as_array(name: str, column: Any) -> NDArray[Any]:  # noqa: ANN401  a column of any table
    if isinstance(column, np.ndarray):
        return column
    if _is_pandas(column):
        plain = isinstance(column.dtype, np.dtype)
        return np.asarray(column.to_numpy() if plain else column.to_numpy(dtype=object))
    if _is_polars(column) and (column.dtype.is_integer() or column.dtype.is_float()) and "128" not in str(column.dtype):
        return np.asarray(column.to_numpy())
    if _is_polars(column):
        column = column.to_list()
    if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
        raise SchemaError(f"column {name!r} is {column!r}; a list or array with one cell per row is expected")
    return np.fromiter(column, dtype=object, count=len(column))


def _is_pandas(table: Table) -> bool:
    return hasattr(table, "iloc") and hasattr(table, "to_numpy")


def _is_polars(table: Table) -> bool:
    return type(table).__module__.split(".")[0] == "polars" and hasattr(table, "to_numpy")
