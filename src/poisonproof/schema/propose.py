"""A first schema from rows that can be trusted."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from poisonproof.errors import ParameterError, ParameterTypeError, SchemaError
from poisonproof.schema.cells import is_missing, label_text, numbers_of, row_phrase, shown, strays_among_numbers
from poisonproof.schema.columns import Category, Numeric, Target
from poisonproof.schema.tables import columns_of, names_in, near_phrase
from poisonproof.schema.transformer import Schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.schema.columns import Column, Transform
    from poisonproof.schema.tables import Table

__all__ = ["propose_schema"]

_NUMBERS: Final = (int, float, np.integer, np.floating)
_BOOLEANS: Final = (bool, np.bool_)


_NAMES: Final = 0.9  # a column with more distinct texts per row names the rows


class _LeftOutError(Exception):
    """A column has no place in a schema; the text says why."""


def propose_schema(
    table: Table,
    target: str | None = None,
    *,
    target_transform: Transform | None = None,
    max_categories: int = 50,
    too_many: Literal["frequent", "error"] = "frequent",
) -> Schema:
    """A schema that fits a trusted table, to be read and corrected by whoever knows the data.

    Propose it from rows that the attacker cannot touch: a public sample, an old release, a hold-out that was collected
    by hand. A schema proposed from poisoned rows was chosen by the attacker, and certificates on top of it are void.

    Parameters
    ----------
    table : frame or mapping of columns
        Trusted rows, with named columns.
    target : str, optional
        The column to predict, which is kept out of the features.
    target_transform : {"log", "log1p"}, optional
        The function through which the target is learnt.
    max_categories : int, default=50
        How many categories a column of text may have.
    too_many : {"frequent", "error"}
        What happens to a column with more: its most frequent ones are kept and all others encode as zero (with a
        warning), or an error.

    Returns
    -------
    Schema
        Numbers get a round range a little wider than what was seen; text and booleans get sorted categories. Columns
        with missing values get an indicator, and numbers a fill near the median. Columns that are constant, that name
        or count the rows, that hold neither numbers nor text, or numbers with a few texts among them, are left out,
        with a warning.

    Examples
    --------
    >>> schema = propose_schema({"carat": [0.23, 5.01, 1.1], "cut": ["Ideal", "Fair", "Ideal"]})
    >>> schema.columns[0].low, schema.columns[0].high, schema.columns[1].categories
    (0.0, 5.4, ('Fair', 'Ideal'))
    """
    _check_limit(max_categories, too_many)
    names = names_in(table)
    if not names:
        raise SchemaError(
            f"a {type(table).__name__} has no named columns; give a pandas or polars frame, or a dict of columns"
        )
    goal = None if target is None else Target(target, target_transform)
    if target is not None and target not in names:
        raise SchemaError(f"target {target!r} is not in the table{near_phrase(target, names)}")
    if goal is not None:
        _check_goal(goal, table)
    columns: list[Column] = []
    left_out: list[str] = []
    for name in names:
        if name == target:
            continue
        try:
            columns.append(_proposed(name, _values(table, name), max_categories, too_many))
        except _LeftOutError as reason:
            left_out.append(f"{name!r} ({reason})")
    if not columns:
        raise SchemaError(f"no column can be declared: {', '.join(left_out) or 'the target is the only one'}")
    if left_out:
        warnings.warn(f"left out of the schema: {', '.join(left_out)}", UserWarning, stacklevel=2)
    return Schema(tuple(columns), goal)


def _check_limit(max_categories: int, too_many: str) -> None:
    if isinstance(max_categories, bool) or not isinstance(max_categories, int | np.integer):
        raise ParameterTypeError(f"max_categories={max_categories!r} must be an integer")
    if max_categories < 1:
        raise ParameterError(f"max_categories={max_categories} must be at least 1")
    if too_many not in ("frequent", "error"):
        raise ParameterError(f"too_many={too_many!r} is unknown; use 'frequent' or 'error'")


def _values(table: Table, name: object) -> NDArray[Any]:
    if not isinstance(name, str) or not name.strip():
        raise _LeftOutError("it has no name")
    try:
        return columns_of(table, [name])[0]
    except SchemaError as error:
        # A second column of this name is a mistake; a column of dates is none.
        if (names_in(table) or []).count(name) > 1:
            raise
        raise _LeftOutError("neither numbers nor text") from error


def _proposed(name: str, values: NDArray[Any], max_categories: int, too_many: str) -> Column:
    cells = [cell for cell in values.tolist() if not is_missing(cell)]
    kinds = set(map(type, cells))
    if not cells:
        raise _LeftOutError("empty")
    if _all_of(kinds, (*_NUMBERS, Decimal)) and not any(issubclass(kind, _BOOLEANS) for kind in kinds):
        return _numeric(name, numbers_of(name, values))
    has_missing = len(cells) < len(values)
    if not _all_of(kinds, (str, *_NUMBERS, *_BOOLEANS)):
        raise _LeftOutError("neither numbers nor text")
    if stray := _stray(values):
        raise _LeftOutError(f"numbers, but for {stray}; blank such cells or correct them")
    counts = Counter(map(label_text, cells))
    if len(counts) < 2:
        raise _LeftOutError("constant")
    if kinds == {str} and (len(counts) == len(cells) or len(counts) > max(max_categories, _NAMES * len(cells))):
        raise _LeftOutError("almost every row has its own text")
    if _all_of(kinds, _BOOLEANS):
        return Category(name, [False, True], indicator=has_missing)
    return Category(name, _chosen(name, counts, max_categories, too_many), indicator=has_missing)


def _stray(values: NDArray[Any]) -> str | None:
    """The texts among a column's numbers, if there are any: ``'NA' in row 2 and 1 more row``."""
    cells = values.tolist()
    strays = strays_among_numbers(cells)
    return f"{shown(cells[int(strays.argmax())])} in {row_phrase(strays)}" if strays.any() else None


def _check_goal(goal: Target, table: Table) -> None:
    """An error now, and not when a model is trained, where a transform meets what is no number."""
    if goal.transform is None:
        return
    (values,) = columns_of(table, [goal.name])
    if stray := _stray(values):
        raise SchemaError(
            f"target {goal.name!r} holds numbers, but for {stray}, so it has no {goal.transform}; correct such cells"
        )
    numbers_of(goal.name, values)


def _all_of(kinds: set[type], allowed: tuple[type, ...]) -> bool:
    return all(issubclass(kind, allowed) for kind in kinds)


def _numeric(name: str, cells: NDArray[np.float64]) -> Numeric:
    numbers = cells[~np.isnan(cells)]
    if not np.isfinite(numbers).all():
        raise SchemaError(f"column {name!r} holds an infinite number; a range needs finite ones")
    if (numbers == numbers[:1]).all():
        raise _LeftOutError("constant")
    if len(numbers) > 2 and (np.diff(numbers) == 1).all() and numbers[0] in (0, 1):
        raise _LeftOutError("it counts the rows")
    low, high = _round_range(numbers)
    if len(numbers) == len(cells):
        return Numeric(name, low, high)
    fill = min(max(float(f"{np.median(numbers):.3g}"), low), high)
    return Numeric(name, low, high, fill=fill, indicator=True)


def _round_range(numbers: NDArray[np.float64]) -> tuple[float, float]:
    smallest, largest = float(numbers.min()), float(numbers.max())
    margin = (largest - smallest) / 20
    if not 1e-300 < margin < 1e300:
        return smallest, largest
    is_whole = bool((numbers == np.floor(numbers)).all())
    step = max(_round_step(margin), 1.0 if is_whole else 0.0)
    low = _multiple(math.floor((smallest - margin) / step), step)
    high = _multiple(math.ceil((largest + margin) / step), step)
    # What was never negative, or never positive, is likely unable to be.
    low = 0.0 if smallest >= 0 > low else min(low, smallest)
    high = 0.0 if largest <= 0 < high else max(high, largest)
    return low, high


def _round_step(size: float) -> float:
    power = 10.0 ** math.floor(math.log10(size))
    return next(factor * power for factor in (5, 2, 1) if factor * power <= size or factor == 1)


def _multiple(count: int, step: float) -> float:
    return float(f"{count * step:.12g}")


def _chosen(name: str, counts: Counter[str], limit: int, too_many: str) -> list[str]:
    if len(counts) <= limit:
        return sorted(counts)
    said = f"column {name!r} has {len(counts)} categories, more than max_categories={limit}"
    if too_many == "error":
        raise SchemaError(f"{said}; raise the limit, use too_many='frequent', or leave the column out")
    warnings.warn(f"{said}; the most frequent ones are kept, all others encode as zero", UserWarning, stacklevel=4)
    return sorted(sorted(counts, key=lambda text: (-counts[text], text))[:limit])
