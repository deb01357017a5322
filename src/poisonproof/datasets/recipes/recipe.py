"""What a recipe is: columns to features by declaration, with targets and bounds on the scale that is certified."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from poisonproof.datasets.recipes.cells import columns_in, numbers_in, taken_rows
from poisonproof.datasets.registry import source
from poisonproof.errors import DataError, ParameterError
from poisonproof.schema import Numeric, Schema, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO

    from numpy.typing import NDArray

    from poisonproof.datasets.registry import Source
    from poisonproof.schema import Column

    Columns = dict[str, NDArray[Any]]

__all__ = ["Encoding", "EncodingName", "LinearOffset", "Prepared", "Recipe"]

EncodingName = Literal["plain", "ours"]

_BELOW_ZERO: Final = -float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class LinearOffset:
    """A declared offset: ``level + slope * feature``, of one feature of the encoded rows.

    Examples
    --------
    >>> LinearOffset(feature=0, slope=2.0, level=1.0)(np.array([[0.5], [1.0]])).tolist()
    [2.0, 3.0]
    """

    feature: int
    slope: float
    level: float

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The offset of each row, ``(n_rows,)``."""
        return np.asarray(self.level + self.slope * rows[:, self.feature])


@dataclass(frozen=True)
class Encoding:
    """How columns become features.

    Parameters
    ----------
    columns : sequence of Numeric, Category or Ordinal
        The declared columns; they are not weighted, so that every weight stands in ``weights``.
    weights : mapping of str to float
        Declared importance of the features of a column; 1 where none is given.
    offset : (column, slope, origin), optional
        The declared offset: ``slope`` times what the column, as it is transformed, is above ``origin``.
    """

    columns: Sequence[Column]
    weights: Mapping[str, float] = field(default_factory=dict)
    offset: tuple[str, float, float] | None = None

    @cached_property
    def schema(self) -> Schema:
        """The columns as a transformer."""
        return Schema(list(self.columns))

    @property
    def owners(self) -> tuple[str, ...]:
        """The column each feature comes from."""
        return tuple(column.name for column in self.columns for _ in column.features)

    @property
    def ranges(self) -> NDArray[np.float64]:
        """Between which ends each feature lies, ``(n_features, 2)``."""
        return np.array([ends for column in self.columns for ends in _ends(column)])

    def factors(self, factors: Mapping[str, float] | None = None) -> NDArray[np.float64]:
        """The weight of each feature ``(n_features,)``, times further factors of some columns."""
        more = factors or {}
        return np.array([self.weights.get(owner, 1.0) * more.get(owner, 1.0) for owner in self.owners])

    def offset_function(self) -> LinearOffset | None:
        """The declared offset as a function of encoded rows."""
        if self.offset is None:
            return None
        name, slope, origin = self.offset
        column = next(column for column in self.columns if column.name == name)
        low, high = _transformed_ends(column)
        feature = self.owners.index(name)
        if not (isinstance(column, Numeric) and column.scale):
            return LinearOffset(feature, slope, -slope * origin)
        return LinearOffset(feature, slope * (high - low), slope * (low - origin))


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows as numbers, and what is asked of predictions for them; all of it declared, none of it learnt.

    Parameters
    ----------
    name : str
        The data set; it says so where rows are synthetic.
    encoding : {"plain", "ours"}
        Which declared features these are.
    X : float array (n_rows, n_features)
        The features, not weighted.
    y : float array (n_rows,)
        The targets on the scale that is certified.
    lower, upper : float array (n_rows,)
        Between which a prediction counts as right, on that scale.
    feature_names : tuple of str
        Names of the features.
    ranges : float array (n_features, 2)
        Declared ends of each feature.
    weights : float array (n_features,)
        Declared importance of each feature.
    offset : callable, optional
        A declared function of a block of rows of X, for the models' parameter of this name.
    groups : mapping of str to array (n_rows,)
        What rows belong together, where that is known.
    source : Source
        The data set's entry in the registry.
    target : float array (n_rows,)
        The targets as they stand in the file.
    synthetic : bool
        Whether the rows were made up.
    """

    name: str
    encoding: EncodingName
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    feature_names: tuple[str, ...]
    ranges: NDArray[np.float64]
    weights: NDArray[np.float64]
    offset: LinearOffset | None
    groups: Mapping[str, NDArray[Any]]
    source: Source
    target: NDArray[np.float64]
    synthetic: bool = False

    def bounds(self, within: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bounds for predictions that may be off by another amount than the usual."""
        return _bounds(self.source, self.target, within)

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        rows, features = self.X.shape
        made_up = ", SYNTHETIC rows" if self.synthetic else ""
        return f"<Prepared {self.name!r}, {self.encoding} encoding: {rows:,} rows, {features} features{made_up}>"


@dataclass(frozen=True)
class Recipe:
    """From the columns of a file to prepared rows.

    Parameters
    ----------
    name : str
        The data set.
    numbers : sequence of str
        Columns that are read as numbers, besides the target; all others are text.
    plain, ours : Encoding
        The encoding of the literature, and the declared features that certify more.
    derive : callable
        New columns from old ones, each cell from cells of its own row.
    keep : callable, optional
        Which rows are used, each decided by its own cells.
    header : sequence of str, optional
        Names of the columns, for a file that may lack them.
    groups : sequence of str
        Columns that say which rows belong together.
    """

    name: str
    numbers: Sequence[str]
    plain: Encoding
    ours: Encoding
    derive: Callable[[Columns], Columns] = dict
    keep: Callable[[Columns], NDArray[np.bool_]] | None = None
    header: Sequence[str] | None = None
    groups: Sequence[str] = ()

    @property
    def source(self) -> Source:
        """The data set's entry in the registry."""
        return source(self.name)

    def read(self, file: IO[bytes]) -> Columns:
        """The columns of a file, numbers as numbers, the rows that are used."""
        columns = columns_in(file, self.name, self.header)
        return self.checked(columns)

    def checked(self, columns: Columns) -> Columns:
        """Columns of text with numbers where numbers are declared, and the rows that are used."""
        wanted = {column.name for encoding in (self.plain, self.ours) for column in encoding.columns}
        absent = [name for name in (*self.groups, *self.numbers) if name not in columns]
        if absent:
            raise DataError(f"{self.name} has no column {absent[0]!r}; it has {', '.join(map(repr, columns))}")
        typed = numbers_in(columns, [*self.numbers, self.source.target], self.name)
        if self.keep is not None:
            typed = taken_rows(typed, self.keep(typed))
        return {name: values for name, values in typed.items() if name in wanted | {*self.numbers, *self.groups}} | {
            self.source.target: typed[self.source.target]
        }

    def encoding(self, name: EncodingName) -> Encoding:
        """One of the two encodings."""
        if name not in get_args(EncodingName):
            raise ParameterError(f"encoding={name!r} is unknown; use 'plain' or 'ours'")
        return self.plain if name == "plain" else self.ours

    def features(self, columns: Columns, encoding: EncodingName = "plain") -> NDArray[np.float64]:
        """The features of each row ``(n_rows, n_features)``, each from its own cells alone."""
        return self.encoding(encoding).schema.transform(self.derive(columns))

    def prepared(self, columns: Columns, encoding: EncodingName = "plain", *, synthetic: bool = False) -> Prepared:
        """The rows as numbers, with targets and bounds on the scale that is certified."""
        declared = self.encoding(encoding)
        wanted, target = self.source, columns[self.source.target]
        lower, upper = _bounds(wanted, target, wanted.within)
        return Prepared(
            name=f"synthetic {self.name}" if synthetic else self.name,
            encoding=encoding,
            X=self.features(columns, encoding),
            y=_learned(wanted, target),
            lower=lower,
            upper=upper,
            feature_names=tuple(map(str, declared.schema.get_feature_names_out())),
            ranges=declared.ranges,
            weights=declared.factors(),
            offset=declared.offset_function(),
            groups={name: columns[name] for name in self.groups},
            source=wanted,
            target=target,
            synthetic=synthetic,
        )


def _learned(wanted: Source, target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Targets on the scale that is certified; labels 0 and 1 become -1 and 1."""
    if wanted.within == 0:
        return np.where(target > 0, 1.0, -1.0)
    return Target(wanted.target, wanted.transform).encode(target)


def _bounds(
    wanted: Source, target: NDArray[np.float64], within: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The bounds of each row on the scale that is certified."""
    if wanted.within == 0:  # a prediction's sign must be right, and 0 counts as 1
        return np.where(target > 0, 0.0, -np.inf), np.where(target > 0, np.inf, _BELOW_ZERO)
    share = within * target if wanted.relative else within
    scale = Target(wanted.target, wanted.transform)
    return scale.encode(target - share), scale.encode(target + share)


def _ends(column: Column) -> list[tuple[float, float]]:
    first = (0.0, 1.0)
    if isinstance(column, Numeric) and not column.scale:
        first = _transformed_ends(column)
    return [first, *([(0.0, 1.0)] * (len(column.features) - 1))]


def _transformed_ends(column: Column) -> tuple[float, float]:
    if not isinstance(column, Numeric):
        raise ParameterError(f"column {column.name!r} is no number, so it cannot be an offset")
    low, high = Schema([Numeric(column.name, column.low, column.high, column.transform, scale=False)]).transform(
        {column.name: np.array([column.low, column.high])}
    )[:, 0]
    return float(low), float(high)
