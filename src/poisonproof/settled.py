"""Models that are read with the settings they were fitted with, and tables they accept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from poisonproof.errors import DataError, ParameterError
from poisonproof.labels import check_labels, check_numbers
from poisonproof.partition import canonical

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Settled"]


class Settled(BaseEstimator):
    """A model that is read with the settings it was fitted with, or not at all.

    Its ``fit`` calls ``_unsettle`` before it changes anything and ``_settle`` when all is done.
    """

    # What a fitted model is read with; changed in between, a certificate would be that of a model nobody has trained.
    _read_with: ClassVar[tuple[str, ...]]
    _settled: dict[str, Any]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_settled")

    def _unsettle(self) -> None:
        # Sound because a fit that fails halfway then leaves no model, rather than one of two tables or threats.
        self.__dict__.pop("_settled", None)

    def _settle(self) -> None:
        self._settled = {name: _kept(getattr(self, name)) for name in self._read_with if hasattr(self, name)}

    def _checked_rows(self, X: ArrayLike) -> NDArray[np.float64]:
        """The rows to predict, as the package hashes and trains on them."""
        check_is_fitted(self)
        for name, then in self._settled.items():
            now = getattr(self, name)
            if now is not then and _words(now) != _words(then):
                said = f"{name} was {_words(then)} when the model was fitted and is {_words(now)} now"
                raise ParameterError(f"{said}; fit it again")
        rows = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, reset=False)
        return canonical(_finite(rows))

    def _checked_table(self, X: ArrayLike, y: ArrayLike, *, numeric: bool) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """The rows to train on, as the package hashes and trains on them, and their targets or labels."""
        if numeric:
            check_numbers(y, "y")
        else:
            check_labels(y, "y")
        rows, targets = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False, y_numeric=numeric)
        return canonical(_finite(rows)), canonical(targets) if numeric else targets


def _finite(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows, if all their cells are finite."""
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        found = "NaN" if np.isnan(rows[row, column]) else "infinity (inf)"
        raise DataError(
            f"X contains {found} in row {row}, column {column}; every cell must be a finite number: declare what "
            "stands for missing ones with Schema; an imputer that learns it from all rows would void the certificate"
        )
    return rows


def _kept(value: Any) -> Any:  # noqa: ANN401  a parameter of any type
    """The value itself, or a copy of what could be changed in place."""
    return list(value) if isinstance(value, list) else value.copy() if isinstance(value, np.ndarray) else value


def _words(value: Any) -> str:  # noqa: ANN401  as above
    return repr(np.asarray(value).tolist())
