"""Trusted rows kept aside: how much of a wanted radius a model's settings reach on them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from sklearn.base import clone, is_classifier

from poisonproof.certificate import bounds_of
from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.partition import blocks_of, canonical, content_digests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from poisonproof.votes import Submodel

__all__ = ["HoldOut", "scaled_radius"]

_GROW: Final = ("n_neighbors", "n_partitions")  # what is counted in rows, so that it grows with their number
_KNOWN: Final = -1  # the fold of rows that are only trained on


@dataclass(frozen=True, eq=False)
class HoldOut:
    """Rows that the attacker cannot touch, cut into folds; each fold is certified by a model of all other rows.

    Parameters
    ----------
    X : float array (n_rows, n_features)
        The rows.
    y : array (n_rows,)
        Their targets or labels.
    folds : int array (n_rows,)
        The fold of each row; -1 for rows that are trained on and never certified.
    radius : int
        The radius that predictions should withstand.
    low, high : float arrays (n_rows,) or None
        Between what a prediction is right; None for labels.
    n_rows : int or None
        How many training rows the final model will have; None: as many as each fold leaves.
    fewest : int, default=1
        No model is scaled down to fewer partitions or neighbours, unless it has fewer.

    Notes
    -----
    What grows with the number of rows is scaled down with it where ``n_rows`` is given: the number of partitions, so
    that blocks have as many rows as they will have, or the number of neighbours, and the wanted radius, so that the
    same share of votes must hold. Shares of very few votes are too coarse to tell models apart, and favour whatever
    rounding favours; with ``fewest``, blocks have fewer rows than they will have instead, which is cautious.
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    folds: NDArray[np.int64]
    radius: int
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    n_rows: int | None = None
    fewest: int = 1

    def __post_init__(self) -> None:
        if _whole("radius", self.radius) < 0:
            raise ParameterError(f"radius={self.radius} must be at least 0")
        if _whole("fewest", self.fewest) < 1:
            raise ParameterError(f"fewest={self.fewest} must be at least 1")
        _check_rows("X", self.X)
        for name, column in (("y", self.y), ("folds", self.folds), ("low", self.low), ("high", self.high)):
            if column is not None:
                _check_column(name, column, len(self.X))
        if any(known.sum() == 0 or held.sum() == 0 for known, held in self._parts()) or not len(self.X):
            raise DataError(f"{len(self.X)} trusted rows fill fewer than two folds; give more rows")
        if self.n_rows is not None and _whole("n_rows", self.n_rows) < len(self.X):
            raise ParameterError(f"n_rows={self.n_rows} must be at least the {len(self.X)} trusted rows")

    @classmethod
    def folded(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        radius: int,
        n_rows: int | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        within: float | None = None,
        relative: bool = True,
        n_folds: int = 5,
        fewest: int = 1,
    ) -> Self:
        """Trusted rows, each certified by a model of the other folds.

        Parameters
        ----------
        X, y, radius, n_rows, fewest
            As for the class.
        lower, upper : array (n_rows,), optional
            Between what each row's prediction is right.
        within, relative
            The same as a distance from the true target, as for ``certify``.
        n_folds : int, default=5
            How many folds.
        """
        if _whole("n_folds", n_folds) < 2:
            raise ParameterError(f"n_folds={n_folds} must be at least 2, so that some rows are left to train on")
        rows, targets = canonical(X), np.asarray(y)
        _check_rows("X", rows)
        _check_column("y", targets, len(rows))
        if len(rows) < n_folds:
            raise DataError(f"{len(rows)} trusted rows cannot be cut into {n_folds} folds; give more rows")
        # The second word of the digest: the first decides blocks, and a fold must not empty a share of them.
        folds = blocks_of(content_digests(rows)[:, 1:], n_folds)
        low, high = _bounds(targets, lower, upper, within, relative=relative)
        return cls(rows, targets, folds, radius, low, high, n_rows, fewest)

    @classmethod
    def split(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        X_held: ArrayLike,
        y_held: ArrayLike,
        *,
        radius: int,
        n_rows: int | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        within: float | None = None,
        relative: bool = True,
    ) -> Self:
        """Trusted rows to train on, and others to certify; bounds are those of the latter."""
        known, held = canonical(X), canonical(X_held)
        parts = [np.asarray(y), np.asarray(y_held)]
        for suffix, rows, part in zip(("", "_held"), (known, held), parts, strict=True):
            _check_rows(f"X{suffix}", rows)
            _check_column(f"y{suffix}", part, len(rows))
        if known.shape[1] != held.shape[1]:
            raise DataError(f"X has {known.shape[1]} features and X_held {held.shape[1]}; give both the same columns")
        targets = np.concatenate(parts)
        folds = np.repeat([_KNOWN, 0], [len(known), len(held)])
        low, high = _bounds(targets[len(known) :], lower, upper, within, relative=relative)
        if low is not None and high is not None:
            unbounded = np.full(len(known), np.inf)
            low, high = np.concatenate([-unbounded, low]), np.concatenate([unbounded, high])
        return cls(np.concatenate([known, held]), targets, folds, radius, low, high, n_rows)

    @property
    def n_certified(self) -> int:
        """How many rows are certified."""
        return int(np.count_nonzero(self.folds != _KNOWN))

    @property
    def n_known(self) -> int:
        """How many rows the smallest model is trained on."""
        return min(int(known.sum()) for known, _ in self._parts())

    def withstood(self, model: Any, *, refuse: bool = False) -> NDArray[np.float64]:  # noqa: ANN401  a certified estimator
        """The share of the wanted radius that each certified row's prediction withstands, ``(n_certified,)``.

        0 where the prediction itself is wrong, 1 where the wanted radius is reached.

        Parameters
        ----------
        model : estimator
            A certified model with the parameters it will have in the end; it is neither fitted nor changed.
        refuse : bool, default=False
            Whether it is an error that an estimator refuses the rows of every submodel; otherwise they vote constants.
        """
        if not is_classifier(model) and self.low is None:
            raise ParameterError("within is missing; say how far from its target a prediction may be")
        reached = np.zeros(len(self.X))
        for known, held in self._parts():
            sample, needed = self.scaled(model, int(known.sum()))
            fitted = sample.fit(self.X[known], self.y[known])
            if refuse:
                _check_submodels(getattr(fitted, "submodels_", []))
            asked = (self.y[held],) if is_classifier(model) else (self._of(self.low, held), self._of(self.high, held))
            radius = fitted.certify(self.X[held], *asked).radius
            reached[held] = np.minimum(1, (radius + 1) / (needed + 1))
        return reached[self.folds != _KNOWN]

    def scaled(self, model: Any, n_known: int) -> tuple[Any, int]:  # noqa: ANN401  any certified estimator
        """A copy of the model for so few rows, and the radius to want of it."""
        copy = clone(model)
        if self.n_rows is None:
            return copy, self.radius
        ratio = n_known / self.n_rows
        own = copy.get_params(deep=False)
        if not isinstance(own.get("layout", ""), str):
            raise ParameterError("layout is a matrix, which cannot be made for fewer rows; leave n_rows out")
        for name in set(_GROW) & set(own):
            if not _is_whole(own[name]) or own[name] < 1:
                # As it is, so that the model refuses it: scaled down, any number below 1 would pass for 1.
                return copy, self.radius
            fewer = max(_odd(own[name] * ratio), min(own[name], self.fewest))
            # An even number stays even, so that models that take none still refuse it.
            fewer = min(fewer, n_known - 1 + n_known % 2) + 1 - own[name] % 2
            ratio = fewer / own[name]
            copy.set_params(**{name: fewer})
        return copy, scaled_radius(self.radius, ratio)

    def _parts(self) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
        """Which rows are trained on, and which are certified, for each fold."""
        for fold in np.unique(self.folds[self.folds != _KNOWN]):
            held = self.folds == fold
            yield ~held, held

    @staticmethod
    def _of(bounds: Any, held: NDArray[np.bool_]) -> Any:  # noqa: ANN401  an array, which withstood() has made sure of
        return bounds[held]


def scaled_radius(radius: int, ratio: float) -> int:
    """The radius that asks the same share of votes to hold when there are only ``ratio`` times as many.

    A radius takes twice as many votes and one more: with all votes inside, ``2 * radius + 1`` reach it.

    Examples
    --------
    >>> scaled_radius(25, 5 / 51), scaled_radius(10, 1.0), scaled_radius(1, 0.1)
    (2, 10, 0)
    """
    return max(0, ceil(((2 * radius + 1) * ratio - 1) / 2 - 1e-9))


def _bounds(
    targets: NDArray[Any],
    lower: ArrayLike | None,
    upper: ArrayLike | None,
    within: float | None,
    *,
    relative: bool,
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Between what the prediction of each row is right, where anything was said about it."""
    if lower is None and upper is None and within is None:
        return None, None
    return bounds_of(targets.astype(np.float64), lower, upper, within, relative=relative)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _whole(name: str, value: int) -> int:
    if not _is_whole(value):
        raise ParameterTypeError(f"{name}={value!r} must be an integer")
    return int(value)


def _check_rows(name: str, rows: NDArray[Any]) -> None:
    if rows.ndim != 2:
        raise DataError(
            f"{name} has shape {rows.shape}; it must be (n_rows, n_features), so give a single feature as a column"
        )


def _check_column(name: str, column: NDArray[Any], n_rows: int) -> None:
    if column.shape != (n_rows,):
        raise DataError(f"{name} has shape {column.shape}; it must be ({n_rows},), one entry for each of the rows")


def _check_submodels(submodels: Sequence[Submodel]) -> None:
    refused = [submodel.message for submodel in submodels if submodel.reason == "refused"]
    if refused and all(submodel.estimator is None for submodel in submodels):
        why = (refused[0].splitlines() or ["no message"])[0]
        raise DataError(f"all {len(submodels)} submodels were refused by the estimator ({why})")


def _odd(count: float) -> int:
    """The odd number nearest to a count, at least 1."""
    return max(1, 2 * round((count - 1) / 2) + 1)
