"""Class labels and source names: how they are spelled and ordered, whatever array they stand in.

An array, and a column of a file, has one type, so that a single odd label turns booleans into integers, integers into
floats, and all of them into text. A certificate must not hang on how that spells everybody else's label.
"""

from __future__ import annotations

from datetime import date, time, timedelta
from numbers import Real
from reprlib import repr as shown
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from poisonproof.errors import DataError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "ABSENT_TYPES",
    "check_labels",
    "check_numbers",
    "classes_among",
    "code_of_empty",
    "codes_of",
    "is_missing",
    "one_by_one",
    "spelling",
]

_EXACT: Final = 2.0**53  # floats hold every integer below
_SHOWN: Final = 10
_TRUTH: Final = {"false": 0, "true": 1}
_DATES: Final = (date, time, timedelta, np.datetime64, np.timedelta64)
ABSENT_TYPES: Final = ("NoneType", "NAType", "NaTType")  # None, and what pandas writes for it
_DATED: Final = ("date", "time", "duration", "period")


def spelling(label: Any) -> str:  # noqa: ANN401  a label of any type
    """The name of a label, the same in every type that an array or a reader of files may give it.

    Examples
    --------
    >>> [spelling(label) for label in (True, 1, 1.0, "1", "1.0", "01", "TRUE")]
    ['1', '1', '1', '1', '1', '1', '1']
    >>> [spelling(label) for label in (1.5, "1.50", "spam")]
    ['1.5', '1.5', 'spam']
    """
    if isinstance(label, _DATES):
        raise _dated()
    number = _number(label)
    if number is None:
        return str(label)
    if isinstance(number, float) and abs(number) >= _EXACT:
        raise DataError(f"{number!r} may stand for several integers: floats of 2**53 and more are rounded; use text")
    return str(int(number)) if isinstance(number, int) or number.is_integer() else repr(number)


def one_by_one(labels: ArrayLike) -> NDArray[np.object_]:
    """The labels as they were given, each of a type of its own."""
    if any(word in str(getattr(labels, "dtype", "")).lower() for word in _DATED):
        raise _dated()
    # Sound because no array of one type turns everybody's integers into floats for the sake of one.
    return np.asarray(labels, dtype=object)


def check_labels(labels: ArrayLike, name: str) -> None:
    """An error where a label is missing: None, NaN, or what pandas writes for it."""
    # As they were given, because an array of text would have a name for what is missing.
    for row, label in enumerate(_cells(labels, but="biuUSTmM")):
        if is_missing(label):
            raise DataError(f"{name}, row {row}: the label is missing; give every row one, or leave the row out")


def check_numbers(targets: ArrayLike, name: str) -> None:
    """An error where a target is text that spells no number."""
    for row, target in enumerate(_cells(targets, but="biufmM")):
        if isinstance(target, str) and not _is_float(target):
            word = shown(str(target))
            raise DataError(f"{name}, row {row}: {word} is no number; give numbers, or use a classifier for labels")


def is_missing(cell: Any) -> bool:  # noqa: ANN401  as above
    """Whether a cell is None, NaN, or pandas' NA or NaT."""
    return type(cell).__name__ in ABSENT_TYPES or (isinstance(cell, float | np.floating) and bool(np.isnan(cell)))


def classes_among(labels: NDArray[Any], declared: ArrayLike | None) -> NDArray[Any]:
    """The distinct labels, or those declared, ``(n_classes,)``: numbers by size, however spelled, then text."""
    name = "y" if declared is None else "classes="
    given = labels if declared is None else np.asarray(_listed(declared))
    try:
        distinct = np.unique(given)
    except TypeError:
        raise DataError(f"{name} mixes labels that cannot be compared; use text for all of them, or numbers") from None
    # Sound because a class keeps its place among the others when labels of another type appear or go.
    keys = [(_rank(label), str(label)) for label in distinct.tolist()]
    return np.asarray(distinct[sorted(range(len(keys)), key=keys.__getitem__)])


def codes_of(labels: NDArray[Any], classes: NDArray[Any], name: str, fix: str) -> NDArray[np.int64]:
    """The place of each label among the classes; an error that ends in ``fix`` where one is none of them."""
    check_labels(labels, name)
    order = np.argsort(classes)
    unknown = ~np.isin(labels, classes)
    if not unknown.any():
        places = order[np.minimum(np.searchsorted(classes, labels, sorter=order), len(classes) - 1)]
        unknown = classes[places] != labels  # a number is not the word it is spelled like
    if unknown.any():
        row = int(np.argmax(unknown))
        known = ", ".join(map(repr, classes[:_SHOWN].tolist())) + ", …" * (len(classes) > _SHOWN)
        raise DataError(
            f"{name} contains {labels.tolist()[row]!r} in row {row}, which is not one of the classes ({known}); {fix}"
        )
    return np.asarray(places, dtype=np.int64)


def code_of_empty(empty_value: Any, classes: NDArray[Any]) -> int:  # noqa: ANN401  as above
    """The place among the classes of the one that is declared for where there is nothing to predict from."""
    label = np.asarray(empty_value)
    if label.ndim or not (classes == label).any():
        allowed = classes.tolist()
        raise ParameterError(f"empty_value={empty_value!r} is not a class; use one of the classes={allowed}")
    return int(np.argmax(classes == label))


def _cells(given: ArrayLike, but: str) -> list[Any]:
    """The cells of a column, each of a type of its own; none where the kind of its array is one of these."""
    if getattr(getattr(given, "dtype", None), "kind", "O") in but:
        return []
    cells = np.asarray(given, dtype=object)
    return list(cells.ravel().tolist()) if cells.ndim else []


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _dated() -> DataError:
    # Sound because a date is spelled by its array's unit, and a single finer one would rename all the others.
    return DataError("dates and times are no names: how one is spelled depends on the others; turn each into text")


def _number(label: Any) -> int | float | None:  # noqa: ANN401  as above
    """The number that a label is, or that its text says."""
    if isinstance(label, bool | np.bool_ | int | np.integer):
        return int(label)
    if isinstance(label, Real):
        return float(label)
    text = str(label).strip()
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    for number in (int, float):
        try:
            value = number(text)
        except ValueError:
            continue
        # What no float array could hold without being refused stays text.
        return value if isinstance(value, int) or abs(value) < _EXACT else None
    return None


def _listed(declared: ArrayLike) -> Any:  # noqa: ANN401  an array, or a list of what a set holds
    return declared if hasattr(declared, "__array__") else list(cast("Any", declared))


def _rank(label: Any) -> tuple[bool, int | float, str]:  # noqa: ANN401  as above
    number = _number(label)
    return number is None, number or 0, spelling(label)
