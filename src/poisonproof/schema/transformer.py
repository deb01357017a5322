"""The scikit-learn transformer that encodes mixed tables by declaration and learns nothing."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from poisonproof.errors import SchemaError
from poisonproof.schema.columns import Category, Numeric, Ordinal, Target
from poisonproof.schema.tables import columns_of
from poisonproof.schema.toml import read_declaration, write_declaration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from poisonproof.schema.columns import Column
    from poisonproof.schema.tables import Table

__all__ = ["Schema"]


class Schema(TransformerMixin, BaseEstimator):
    """A declared encoding of mixed tables: a row's features depend on that row and the declaration alone.

    Ranges, categories and fills are declared (from domain knowledge, or by :func:`propose_schema` from rows that no
    attacker can touch), so no training row can change how another is encoded, and blocks and certificates stay valid.

    Parameters
    ----------
    columns : sequence of Numeric, Category or Ordinal
        The columns to encode, in the order of the features. Other columns of a table are ignored.
    target : Target, optional
        The column to predict; kept for whoever reads the table, never encoded.

    Notes
    -----
    A table may be a pandas or polars frame, a dict of columns, a structured array, or a 2-D array or list of rows
    with the declared columns in order. Give a reader the types in :attr:`column_types`, so that it does not guess
    them from the rows: a guess hangs on every row.

    Examples
    --------
    >>> schema = Schema([Numeric("carat", 0, 5), Category("cut", ["Fair", "Ideal"])])
    >>> schema.transform({"carat": [1.0, 9.0], "cut": ["Ideal", "unheard of"]}).tolist()
    [[0.2, 0.0, 1.0], [1.0, 0.0, 0.0]]
    >>> schema.get_feature_names_out().tolist()
    ['carat', 'cut=Fair', 'cut=Ideal']
    """

    def __init__(self, columns: Sequence[Column], target: Target | None = None) -> None:
        self.columns = columns
        self.target = target

    def fit(self, X: Table, y: object = None) -> Self:  # noqa: ARG002  scikit-learn's signature
        """Check the declaration and that the table has its columns; nothing is learnt."""
        columns_of(X, self.column_names)
        return self

    def transform(self, X: Table) -> NDArray[np.float64]:
        """The features of each row, ``(n_rows, n_features_out)``."""
        columns = self._checked()
        found = columns_of(X, [column.name for column in columns])
        out = np.empty((len(found[0]), sum(len(column.features) for column in columns)))
        start = 0
        for column, values in zip(columns, found, strict=True):
            stop = start + len(column.features)
            column.encode(values, out[:, start:stop])
            start = stop
        return out

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:  # noqa: ARG002  scikit-learn's signature
        """The names of the features: ``carat``, ``cut=Ideal``, ``depth is missing``."""
        return np.array([feature for column in self._checked() for feature in column.features], dtype=object)

    @property
    def n_features_out(self) -> int:
        """How many features a row becomes."""
        return len(self.get_feature_names_out())

    @property
    def column_names(self) -> list[str]:
        """The names of the declared columns, in order."""
        return [column.name for column in self._checked()]

    @property
    def column_types(self) -> dict[str, type]:
        """How a reader of files should read each column: ``float`` for numbers, ``str`` for categories.

        The target is included where its transform says that it is a number.
        """
        types: dict[str, type] = {
            column.name: float if isinstance(column, Numeric) else str for column in self._checked()
        }
        if self.target is not None and self.target.transform is not None:
            types[self.target.name] = float
        return types

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Self:
        """The schema in this file."""
        try:
            schema = cls(*read_declaration(path))
            schema._checked()
        except SchemaError as error:
            raise SchemaError(f"the schema {os.fspath(path)!r}: {error}") from None
        return schema

    def to_toml(self, path: str | os.PathLike[str]) -> None:
        """Write the schema to this file, whole or not at all."""
        write_declaration(path, self._checked(), self.target)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401  scikit-learn's tags are untyped
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags

    def _checked(self) -> tuple[Column, ...]:
        columns = _as_tuple(self.columns)
        names = [column.name for column in columns]
        if self.target is not None and not isinstance(self.target, Target):
            raise SchemaError(f"target={self.target!r} must be a Target or None")
        if self.target is not None and self.target.name in names:
            raise SchemaError(f"column {self.target.name!r} is the target and cannot be a feature too; declare it once")
        for kind, texts in (("column", names), ("feature", [name for column in columns for name in column.features])):
            twice = [text for text, count in Counter(texts).items() if count > 1]
            if twice:
                raise SchemaError(f"{kind} {twice[0]!r} is declared twice; each {kind} needs a name of its own")
        return columns


def _as_tuple(columns: object) -> tuple[Column, ...]:
    if not isinstance(columns, list | tuple):
        raise SchemaError(f"columns={columns!r} must be a list of Numeric, Category or Ordinal")
    for column in columns:
        if not isinstance(column, Numeric | Category | Ordinal):
            raise SchemaError(f"{column!r} is no column; declare a Numeric, Category or Ordinal")
    if not columns:
        raise SchemaError("the schema declares no columns; declare at least one Numeric, Category or Ordinal")
    return tuple(columns)
