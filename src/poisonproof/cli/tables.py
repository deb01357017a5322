"""Tables from CSV and Parquet files."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from poisonproof.errors import DataError, FileError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from numpy.typing import NDArray

__all__ = ["column_of", "labels_in", "numbers_in", "read_table"]

_PARQUET_SUFFIXES = (".parquet", ".pq")


def read_table(path: Path, types: Mapping[str, type] | None = None) -> Any:  # noqa: ANN401  a polars frame
    """The table in a CSV or Parquet file, with at least one row.

    Parameters
    ----------
    path : Path
        A Parquet file if its name ends in ``.parquet`` or ``.pq``, otherwise a CSV file with a header line.
    types : mapping of str to type, optional
        ``float`` or ``str`` for columns of a CSV file whose type is declared, so that it does not hang on its cells.
    """
    polars = _polars()
    try:
        if path.suffix.lower() in _PARQUET_SUFFIXES:
            path.open("rb").close()  # says what is wrong with a path more plainly than polars does
            with _quiet():
                frame = polars.read_parquet(path)
        else:
            content = path.read_bytes() if path.is_file() or path.is_dir() else _drained(path)
            frame = _read_csv(polars, path, content, types or {})
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:
        kind = (
            "a complete Parquet file" if path.suffix.lower() in _PARQUET_SUFFIXES else "CSV, with commas and in UTF-8"
        )
        raise FileError(f"{path} cannot be read as {kind}: {_first_line(error)}") from None
    if len(frame) == 0:
        raise DataError(f"{path} has no rows; at least one is needed")
    return frame


def column_of(frame: Any, name: str) -> NDArray[Any]:  # noqa: ANN401  a polars frame
    """The cells of one column, or an error that names those that are spelled alike."""
    from poisonproof.schema.tables import columns_of  # noqa: PLC0415  scikit-learn only where rows are read

    return columns_of(frame, [name])[0]


def numbers_in(frame: Any, name: str, *, finite: bool = False) -> NDArray[np.float64]:  # noqa: ANN401  a polars frame
    """The numbers of one column ``(n_rows,)``; infinite ones are an error where they must be ``finite``."""
    from poisonproof.schema.cells import numbers_of, row_phrase  # noqa: PLC0415

    numbers = numbers_of(name, column_of(frame, name))
    missing = np.isnan(numbers)
    if missing.any():
        raise DataError(f"column {name!r}, {row_phrase(missing)}: the value is missing; every row needs a number here")
    endless = np.isinf(numbers)
    if finite and endless.any():
        raise DataError(f"column {name!r}, {row_phrase(endless)}: {numbers[endless][0]} must be a finite number")
    return numbers


def labels_in(frame: Any, name: str) -> NDArray[Any]:  # noqa: ANN401  a polars frame
    """The labels of one column ``(n_rows,)``, as text.

    Read the column of a CSV file as ``str``: then a label is what stands in the file, whatever the other cells are.
    """
    from poisonproof.schema.cells import row_phrase  # noqa: PLC0415  scikit-learn only where rows are read

    cells = column_of(frame, name).tolist()
    missing = np.array([cell is None or cell != cell for cell in cells])  # noqa: PLR0124  NaN differs from itself
    if missing.any():
        raise DataError(f"column {name!r}, {row_phrase(missing)}: the label is missing; every row needs one here")
    return np.array([str(cell).lower() if isinstance(cell, bool) else str(cell) for cell in cells])


@cache
def _drained(pipe: Path) -> bytes:
    """What came out of a pipe, which can be read only once, and is asked for again with other types."""
    return pipe.read_bytes()


def _read_csv(polars: ModuleType, path: Path, content: bytes, types: Mapping[str, type]) -> Any:  # noqa: ANN401
    # Read as a row, because polars gives a name that stands twice another name without a word.
    header = polars.read_csv(content, has_header=False, n_rows=1, infer_schema=False).row(0)
    _check_header(path, header)
    readers = {float: polars.Float64, str: polars.String}
    overrides = {name: readers[kind] for name, kind in types.items() if name in header}
    try:
        frame = polars.read_csv(content, schema_overrides=overrides, infer_schema_length=None)
    except polars.exceptions.ComputeError:
        texts = polars.read_csv(content, infer_schema=False)
        _check_numbers(polars, path, texts, [name for name, reader in overrides.items() if reader == polars.Float64])
        raise
    return _without_blank_end(frame)


def _check_header(path: Path, header: Sequence[str | None]) -> None:
    if twice := [name for name in header if name is not None and header.count(name) > 1]:
        raise DataError(f"{path} has the column {twice[0]!r} {header.count(twice[0])} times; rename all but one")
    for mark, said in ((";", "';'"), ("\t", "tabs")):
        if len(header) == 1 and mark in (header[0] or ""):
            raise FileError(f"{path} seems to be separated by {said}; write it with commas")


def _without_blank_end(frame: Any) -> Any:  # noqa: ANN401  a polars frame
    """The rows up to the last that holds anything; in a single column a blank line is a missing value."""
    count = len(frame)
    while frame.width > 1 and count and all(cell is None for cell in frame.row(count - 1)):
        count -= 1
    return frame.head(count)


def _check_numbers(polars: ModuleType, path: Path, texts: Any, names: Sequence[str]) -> None:  # noqa: ANN401
    """Name the first cell that is no number in a column of numbers, if there is one."""
    from poisonproof.schema.cells import row_phrase, shown  # noqa: PLC0415  scikit-learn only where rows are read

    for name in names:
        stray = (texts[name].is_not_null() & texts[name].cast(polars.Float64, strict=False).is_null()).to_numpy()
        if stray.any():
            cell = texts[name][int(stray.argmax())]
            raise DataError(f"{path}, column {name!r}, {row_phrase(stray)}: {shown(cell)} is no number, but must be")


@contextmanager
def _quiet() -> Iterator[None]:
    """Nothing on standard error: where polars panics over a damaged file it prints pages, and raises as well."""
    sys.stderr.flush()
    kept, sink = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(sink)


def _polars() -> ModuleType:
    try:
        return import_module("polars")
    except ImportError:
        raise MissingExtraError("reading tables needs polars; run: pip install 'poisonproof[io]'") from None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
