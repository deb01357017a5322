"""Declared columns: a range or a list of categories, and how a cell becomes features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np

from poisonproof.errors import SchemaError
from poisonproof.schema.cells import EXACT, MISSING, UNKNOWN, Label, codes_of, label_text, numbers_of, row_phrase, shown
from poisonproof.schema.tables import column_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["Category", "Column", "Numeric", "Ordinal", "Target", "Transform"]

Transform = Literal["log", "log1p"]
Unknown = Literal["zero", "error", "missing"]

_FORWARD: Final[dict[Transform, Callable[[float], float]]] = {"log": math.log, "log1p": math.log1p}
_POLE: Final[dict[Transform, float]] = {"log": 0.0, "log1p": -1.0}


@dataclass(frozen=True)
class Numeric:
    """A number, clipped into a declared range.

    Parameters
    ----------
    name : str
        The column's name.
    low, high : float
        The range; values outside, infinite ones included, count as its ends.
    transform : {"log", "log1p"}, optional
        Applied after clipping.
    scale : bool, default=True
        Whether the range becomes 0 … 1.
    weight : float, default=1.0
        Factor of the features, for models that measure distances.
    fill : float, optional
        Stands for a missing value. None: a missing value is an error.
    indicator : bool, default=False
        Whether a second feature says that the value was missing.
    """

    name: str
    low: float
    high: float
    transform: Transform | None = None
    scale: bool = True
    weight: float = 1.0
    fill: float | None = None
    indicator: bool = False

    def __post_init__(self) -> None:
        _check_common(self)
        for end in ("low", "high"):
            object.__setattr__(self, end, _finite(self, end))
        if self.low >= self.high:
            raise SchemaError(f"column {self.name!r}: low={self.low!r} must be below high={self.high!r}")
        _check_transform(self.name, self.transform)
        if self.transform is not None and self.low <= _POLE[self.transform]:
            above = f"{_POLE[self.transform]:g}"
            raise SchemaError(
                f"column {self.name!r}: low={self.low!r} must be above {above} for transform={self.transform!r}"
            )
        _check_flag(self, "scale")
        low, high = self._ends
        if not 0 < high - low < math.inf:
            raise SchemaError(
                f"column {self.name!r}: the range {self.low!r} … {self.high!r} is too narrow or too wide for floats"
            )
        if self.fill is not None:
            object.__setattr__(self, "fill", _finite(self, "fill"))
            if not self.low <= self.fill <= self.high:
                raise SchemaError(
                    f"column {self.name!r}: fill={self.fill!r} must be from low={self.low!r} to high={self.high!r}"
                )
        elif self.indicator:
            raise SchemaError(f"column {self.name!r}: indicator=True needs a fill from {self.low!r} to {self.high!r}")

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features it becomes."""
        return (self.name, *_indicator_name(self))

    def encode(self, values: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Write the features of each cell into ``out (n_rows, n_features)``."""
        numbers = numbers_of(self.name, values)
        missing = np.isnan(numbers)
        _check_missing(self, missing)
        if self.fill is not None:
            numbers[missing] = self.fill
        numbers = _apply(self.transform, np.clip(numbers, self.low, self.high))
        if self.scale:
            low, high = self._ends
            numbers = (numbers - low) / (high - low)
        out[:, 0] = numbers * self.weight + 0.0
        if self.indicator:
            out[:, 1] = missing * self.weight

    @property
    def _ends(self) -> list[float]:
        return _apply(self.transform, np.array([self.low, self.high])).tolist()


@dataclass(frozen=True)
class Category:
    """A category, as one feature for each declared one.

    Parameters
    ----------
    name : str
        The column's name.
    categories : sequence of str, int, float or bool
        What may stand in the column. Text is compared as it is: case and spaces count. 1, 1.0 and "1" are one
        category, and a declared True also stands for the text "True", "true" and "TRUE".
    unknown : {"zero", "error", "missing"}
        What any other value does: all features zero, an error, or the same as a missing value.
    weight : float, default=1.0
        Value of the feature that is not zero, for models that measure distances.
    fill : category, optional
        Stands for a missing value. None: all features are zero with an indicator, otherwise it is an error.
    indicator : bool, default=False
        Whether a further feature says that the value was missing.
    """

    name: str
    categories: Sequence[Label]
    unknown: Unknown = "zero"
    weight: float = 1.0
    fill: Label | None = None
    indicator: bool = False

    def __post_init__(self) -> None:
        _check_common(self)
        _check_categories(self, ("zero", "error", "missing"), at_least=1)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features it becomes."""
        return (*(f"{self.name}={_shown_label(category)}" for category in self.categories), *_indicator_name(self))

    def undeclared(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Where a cell is none of the categories, and not missing either, ``(n_rows,)``."""
        return codes_of(self.name, values, _lookup(self)) == UNKNOWN

    def encode(self, values: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Write the features of each cell into ``out (n_rows, n_features)``."""
        codes, missing = _codes(self, values)
        known = np.flatnonzero(codes >= 0)
        out[:] = 0.0
        out[known, codes[known]] = self.weight
        if self.indicator:
            out[:, -1] = missing * self.weight


@dataclass(frozen=True)
class Ordinal:
    """A category whose order means something, as a number from 0 (the first) to 1 (the last).

    Parameters
    ----------
    name : str
        The column's name.
    categories : sequence of str, int, float or bool
        What may stand in the column, in order; compared as by :class:`Category`.
    unknown : {"error", "missing"}
        What any other value does: an error, or the same as a missing value.
    weight : float, default=1.0
        Factor of the features, for models that measure distances.
    fill : category, optional
        Stands for a missing value. None: a missing value is an error.
    indicator : bool, default=False
        Whether a second feature says that the value was missing.
    """

    name: str
    categories: Sequence[Label]
    unknown: Literal["error", "missing"] = "error"
    weight: float = 1.0
    fill: Label | None = None
    indicator: bool = False

    def __post_init__(self) -> None:
        _check_common(self)
        _check_categories(self, ("error", "missing"), at_least=2)
        if self.indicator and self.fill is None:
            raise SchemaError(f"column {self.name!r}: indicator=True needs a fill, one of the categories")

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features it becomes."""
        return (self.name, *_indicator_name(self))

    def encode(self, values: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Write the features of each cell into ``out (n_rows, n_features)``."""
        codes, missing = _codes(self, values)
        out[:, 0] = codes / (len(self.categories) - 1) * self.weight
        if self.indicator:
            out[:, 1] = missing * self.weight


Column: TypeAlias = Numeric | Category | Ordinal


@dataclass(frozen=True)
class Target:
    """The column to predict, and the increasing function through which it is learnt.

    Parameters
    ----------
    name : str
        The column's name.
    transform : {"log", "log1p"}, optional
        Applied before learning. A median passes through it unchanged, and so do bounds.

    Examples
    --------
    >>> price = Target("price", transform="log")
    >>> price.decode(price.encode([500.0])).round(9).tolist()
    [500.0]
    """

    name: str
    transform: Transform | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_transform(self.name, self.transform)

    def encode(self, values: ArrayLike) -> NDArray[np.float64]:
        """Targets as they are learnt, ``(n_rows,)``."""
        numbers = numbers_of(self.name, column_values(self.name, values))
        pole = -math.inf if self.transform is None else _POLE[self.transform]
        wrong = ~(np.isfinite(numbers) & (numbers > pole))
        if wrong.any():
            above = "" if self.transform is None else f" above {pole:g}, for transform={self.transform!r}"
            given = "the value is missing; it" if np.isnan(numbers[wrong][0]) else f"{numbers[wrong][0]}"
            raise SchemaError(f"target {self.name!r}, {row_phrase(wrong)}: {given} must be a finite number{above}")
        return _apply(self.transform, numbers)

    def decode(self, values: ArrayLike) -> NDArray[np.float64]:
        """What was learnt, predictions and bounds alike, in the units of the column."""
        learnt = np.asarray(values, dtype=np.float64)
        if self.transform is None:
            return learnt
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(learnt) if self.transform == "log" else np.expm1(learnt))


def _apply(transform: Transform | None, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    if transform is None:
        return numbers
    # Sound because a scalar function cannot round differently by a number's place in the array, as vector units may.
    return np.fromiter(map(_FORWARD[transform], numbers.tolist()), dtype=np.float64, count=len(numbers))


def _codes(column: Category | Ordinal, values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    lookup = _lookup(column)
    codes = codes_of(column.name, values, lookup)
    unknown = codes == UNKNOWN
    if column.unknown == "error" and unknown.any():
        (value,) = values[unknown][:1].tolist()
        raise SchemaError(
            f"column {column.name!r}, {row_phrase(unknown)}: {shown(value)} is none of the categories {_some(column)}"
        )
    if column.unknown == "missing":
        codes[unknown] = MISSING
    missing = codes == MISSING
    if column.fill is not None:
        codes[missing] = lookup[label_text(column.fill)]
    elif not (isinstance(column, Category) and column.indicator):
        _check_missing(column, missing)
    return codes, missing


def _lookup(column: Category | Ordinal) -> dict[str, int]:
    lookup: dict[str, int] = {}
    for code, category in enumerate(column.categories):
        text = label_text(category)
        words = (str(category).lower(), str(category).upper()) if isinstance(category, bool) else ()
        for spelling in (text, *words):
            if spelling in lookup:
                raise SchemaError(
                    f"column {column.name!r}: category {category!r} stands twice in {_some(column)}; True, 1, 1.0 and "
                    "their texts are one category, since columns are read with one type or another"
                )
            lookup[spelling] = code
    return lookup


def _shown_label(category: Label) -> str:
    return str(category) if isinstance(category, bool | str) else label_text(category)


def _some(column: Category | Ordinal) -> str:
    return ", ".join(map(repr, column.categories[:10])) + ", …" * (len(column.categories) > 10)


def _indicator_name(column: Column) -> tuple[str, ...]:
    return (f"{column.name} is missing",) if column.indicator else ()


def _check_missing(column: Column, missing: NDArray[np.bool_]) -> None:
    if column.fill is None and missing.any():
        raise SchemaError(
            f"column {column.name!r}, {row_phrase(missing)}: the value is missing; declare a fill to allow it"
        )


def _check_common(column: Column) -> None:
    _check_name(column.name)
    object.__setattr__(column, "weight", _finite(column, "weight"))
    if column.weight <= 0:
        raise SchemaError(
            f"column {column.name!r}: weight={column.weight!r} must be above 0; leave the column out to ignore it"
        )
    _check_flag(column, "indicator")


def _check_categories(column: Category | Ordinal, unknown: tuple[Unknown, ...], at_least: int) -> None:
    given = column.categories
    if isinstance(given, str | bytes) or not hasattr(given, "__len__") or not hasattr(given, "__getitem__"):
        raise SchemaError(f"column {column.name!r}: categories={given!r} must be a list of text, numbers or booleans")
    labels = tuple(label.item() if isinstance(label, np.generic) else label for label in given)
    for label in labels:
        if not isinstance(label, str | bool | int | float) or (isinstance(label, float) and not math.isfinite(label)):
            raise SchemaError(f"column {column.name!r}: category {label!r} must be text, a finite number or a boolean")
        if not isinstance(label, str) and abs(label) >= EXACT:
            raise SchemaError(
                f"column {column.name!r}: category {label!r} is no number that floats hold exactly; write it as text"
            )
    if len(labels) < at_least:
        noun = "category" if at_least == 1 else "categories"
        raise SchemaError(
            f"column {column.name!r} declares {len(labels)} categories; at least {at_least} {noun} must be given"
        )
    object.__setattr__(column, "categories", labels)
    texts = _lookup(column)
    if column.unknown not in unknown:
        raise SchemaError(
            f"column {column.name!r}: unknown={column.unknown!r} must be one of {', '.join(map(repr, unknown))}"
        )
    fill = column.fill
    if fill is not None and (not isinstance(fill, str | bool | int | float) or label_text(fill) not in texts):
        raise SchemaError(f"column {column.name!r}: fill={fill!r} must be one of the categories {_some(column)}")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise SchemaError(f"name={name!r} must be the name of a column: text that is not empty")


def _check_transform(name: str, transform: object) -> None:
    if transform is not None and transform not in get_args(Transform):
        allowed = ", ".join(map(repr, get_args(Transform)))
        raise SchemaError(f"column {name!r}: transform={transform!r} is unknown; use {allowed} or leave it out")


def _check_flag(column: Column, field: str) -> None:
    flag = getattr(column, field)
    if not isinstance(flag, bool):
        raise SchemaError(f"column {column.name!r}: {field}={flag!r} must be true or false")


def _finite(column: Column, field: str) -> float:
    number = getattr(column, field)
    if isinstance(number, bool) or not isinstance(number, int | float | np.integer | np.floating):
        raise SchemaError(f"column {column.name!r}: {field}={number!r} must be a number")
    try:
        exact = float(number)
    except OverflowError:
        exact = math.inf
    if not math.isfinite(exact):
        raise SchemaError(f"column {column.name!r}: {field}={number!r} must be a finite number")
    return exact
