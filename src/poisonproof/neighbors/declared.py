"""What instance-based models are told rather than learn: offsets, budgets, and the sources they cannot use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from poisonproof.errors import DataError, ParameterError, ParameterTypeError, ThreatError
from poisonproof.labels import codes_of
from poisonproof.votes import in_fixed_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Offset = Callable[[NDArray[np.float64]], NDArray[np.float64]]

__all__ = [
    "DECLARE",
    "check_budget",
    "classes_of_rows",
    "offset_in_training",
    "offset_of",
    "refuse_groups",
]

DECLARE: Final = "declare it in classes="


def offset_of(offset: Offset | None, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The declared offset of each row, ``(n_rows,)``; zeros where none is declared."""
    if offset is None:
        return np.zeros(len(rows))
    if not callable(offset):
        raise ParameterTypeError(f"offset={offset!r} must be a function of one block of rows, or None")
    values = in_fixed_shape(_one_number_each(offset), rows)
    if not np.isfinite(values).all():
        worst = int(np.argmin(np.isfinite(values)))
        raise DataError(f"offset is {values[worst]} in row {worst}; it must be finite for every row")
    return values


def offset_in_training(offset: Offset | None, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The declared offset of each training row, or an error where it is seen to hang on other rows too."""
    values = offset_of(offset, rows)
    # Sound only because no row has a say in the target of another; half of the rows must have the offsets they had.
    changed = offset_of(offset, rows[::2]) != values[::2]
    if changed.any():
        raise DataError(
            f"offset of row {2 * int(np.argmax(changed))} depends on the rows beside it; each row's offset must be a "
            "function of that row alone, so declare constants instead of taking means or ranks of the rows"
        )
    return values


def _one_number_each(offset: Offset) -> Offset:
    """The offset, or an error where it gives anything but one number for each row."""

    def numbers(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        values = np.asarray(offset(rows), dtype=np.float64)
        if values.shape != (len(rows),):
            raise DataError(f"offset of {len(rows)} rows has shape {values.shape}; it must be {(len(rows),)}")
        return values

    return numbers


def check_budget(budget: int) -> int:
    """The budget, if it is a whole number of modifications."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer):
        raise ParameterTypeError(f"budget={budget!r} must be an integer")
    if budget < 0:
        raise ParameterError(f"budget={budget} must be at least 0")
    return int(budget)


def classes_of_rows(y: ArrayLike, classes: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
    """The place of each row's class among the classes of a model."""
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise DataError(f"y has shape {labels.shape}; it must have one class for each of the {n_rows} rows")
    return codes_of(labels, classes, "y", DECLARE)


def refuse_groups(groups: object, model: object) -> None:
    """An error where sources are given to a model that cannot count them."""
    if groups is not None:
        raise ThreatError(
            f"groups were given, but {type(model).__name__} counts rows: one source can insert any number of "
            "neighbours, so against insertions no certificate exists; use CertifiedRegressor or CertifiedClassifier "
            "with partition_by='source'"
        )
