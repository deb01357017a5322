"""A model together with the encoding of its tables: certificates in the units of the column that is predicted."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sklearn.base import is_classifier

from poisonproof.certificate import Certificate, Interval, bounds_of
from poisonproof.errors import FileError
from poisonproof.schema import Category
from poisonproof.schema.cells import row_phrase, shown
from poisonproof.schema.tables import columns_of
from poisonproof.store import open_model

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from poisonproof.schema import Schema, Target

__all__ = ["Deployed", "around_truth"]

# Transforming there and back is off by a few units in the last place, far less than this.
_MARGIN: Final = 1e-12


@dataclass(frozen=True, eq=False)
class Deployed:
    """A fitted model that reads tables.

    Parameters
    ----------
    model : fitted estimator
        Trained on the schema's features and on the target as the schema transforms it.
    schema : Schema
        The declared encoding, its target included.
    """

    model: Any
    schema: Schema

    @classmethod
    def open(cls, path: Path, trusted: Iterable[str] = ()) -> Deployed:
        """The model in a file that ``poisonproof fit`` wrote."""
        stored = open_model(path, trusted)
        if stored.schema is None or stored.schema.target is None:
            raise FileError(f"{path} holds a model without the schema of its tables; make one with 'poisonproof fit'")
        return cls(stored.model, stored.schema)

    @property
    def target(self) -> Target:
        """The declared target."""
        if self.schema.target is None:
            raise TypeError("a deployed model's schema declares its target")
        return self.schema.target

    @property
    def classifies(self) -> bool:
        """Whether the model predicts classes."""
        return bool(is_classifier(self.model))

    def encode(self, frame: Any) -> NDArray[np.float64]:  # noqa: ANN401  a polars frame
        """The features ``(n_rows, n_features)`` of a table's rows; what the encoding passes over is said."""
        X = self.schema.transform(frame)
        for column in self.schema.columns:
            if isinstance(column, Category) and column.unknown == "zero":
                _warn_of_undeclared(column, *columns_of(frame, [column.name]))
        return X

    def certify_classes(self, X: NDArray[np.float64], classes: NDArray[Any] | None) -> Certificate:
        """How many modifications leave each prediction at these classes; None: at the predicted ones."""
        proof: Certificate = self.model.certify(X, classes)
        return proof

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The predictions ``(n_rows,)`` for encoded rows."""
        return self.target.decode(self.model.predict(X))

    def certify(
        self, X: NDArray[np.float64], lower: NDArray[np.float64] | None, upper: NDArray[np.float64] | None
    ) -> Certificate:
        """How many modifications leave each prediction within these bounds, both inclusive."""
        low, high = bounds_of(np.empty(len(X)), lower, upper, None, relative=False)
        proof = self.model.certify(X, _learnt(self.target, low, inward=1), _learnt(self.target, high, inward=-1))
        return self._in_units(proof, low, high)

    def certify_within(self, X: NDArray[np.float64], within: float, *, relative: bool) -> Certificate:
        """How many modifications leave each prediction this near to where it is now."""
        if self.target.transform is None:
            proof: Certificate = self.model.certify(X, within=within, relative=relative)
            return proof
        return self.certify(X, *bounds_of(self.predict(X), None, None, within, relative=relative))

    def interval(self, X: NDArray[np.float64], budget: int) -> Interval:
        """Where so many modifications can move each prediction."""
        found: Interval = self.model.interval(X, budget)
        if self.target.transform is None:
            return found
        lower, upper = self.target.decode(found.lower), self.target.decode(found.upper)
        return replace(
            found,
            lower=np.where(np.isfinite(lower), lower - _MARGIN * np.abs(lower), lower),
            upper=np.where(np.isfinite(upper), upper + _MARGIN * np.abs(upper), upper),
            prediction=self.target.decode(found.prediction),
        )

    def _in_units(self, proof: Certificate, low: NDArray[np.float64], high: NDArray[np.float64]) -> Certificate:
        return replace(proof, prediction=self.target.decode(proof.prediction), lower=low, upper=high)


def _warn_of_undeclared(column: Category, values: NDArray[Any]) -> None:
    unknown = column.undeclared(values)
    if unknown.any():
        cell = f"{shown(values.tolist()[int(unknown.argmax())])} in {row_phrase(unknown)}"
        text = f"column {column.name!r}: {cell} is no declared category, and is read as none of them."
        warnings.warn(text, UserWarning, stacklevel=2)


def around_truth(
    truth: NDArray[np.float64], within: float, *, relative: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The bounds at this distance, or share, around known targets."""
    return bounds_of(truth, None, None, within, relative=relative)


def _learnt(target: Target, bounds: NDArray[np.float64], *, inward: int) -> NDArray[np.float64]:
    """The bounds on the scale on which the target is learnt; ``inward`` is 1 for a lower bound, -1 for an upper one."""
    if target.transform is None:
        return bounds
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.log(bounds) if target.transform == "log" else np.log1p(bounds)
    # Whatever the transform does not reach lies below everything it does.
    scaled[np.isnan(scaled)] = -np.inf
    # Sound because the margin exceeds what rounding can move a prediction on its way back to the units of the target:
    # bounds that are a little too narrow can only lower a radius.
    finite = np.isfinite(scaled)
    scaled[finite] += inward * _MARGIN * (1 + np.abs(scaled[finite]))
    return scaled
