"""What the models share in which every training row has a weight for every test row: no metric, no mathematics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from poisonproof.certificate import Certificate, Interval, bounds_of
from poisonproof.errors import ParameterError
from poisonproof.labels import classes_among, code_of_empty, codes_of
from poisonproof.neighborhood import NEVER, Neighborhoods, intervals, medians, radii
from poisonproof.neighbors.declared import (
    DECLARE,
    check_budget,
    classes_of_rows,
    offset_in_training,
    offset_of,
    refuse_groups,
)
from poisonproof.neighbors.rivals import UNDECLARED, Ballots, pluralities, withstood
from poisonproof.settled import Settled
from poisonproof.threat import Threat
from poisonproof.votes import check_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from poisonproof.neighbors.declared import Offset
    from poisonproof.threat import Moves

__all__ = ["WeighedRowsClassifier", "WeighedRowsRegressor", "Weighing"]

_CHUNK_PAIRS: Final = 1 << 22  # pairs of a test row and a training row at a time, so that memory stays bounded


class Weighing(Protocol):
    """How much each training row weighs for each test row: a function of the pair alone."""

    @property
    def heaviest(self) -> int:
        """The largest weight that an inserted row can have."""
        ...

    def encode(self, rows: NDArray[np.float64]) -> Any:  # noqa: ANN401  each has its own encoding
        """The rows as they are compared."""
        ...

    def remember(self, rows: NDArray[np.float64]) -> Any:  # noqa: ANN401  as above
        """The training rows as they are compared, or an error where a weight is seen to hang on other rows too."""
        ...

    def weigh(self, queries: Any, rows: Any) -> NDArray[np.int32]:  # noqa: ANN401  as above
        """The weights, ``(n_queries, n_rows)``."""
        ...

    def weigh_inserted(self, queries: Any) -> NDArray[np.int64]:  # noqa: ANN401  as above
        """The weight of a row inserted at each query, ``(n_queries,)``."""
        ...


class _Part(NamedTuple):
    """What was found for one chunk of rows."""

    prediction: NDArray[Any]
    radius: NDArray[np.int64]
    attack: NDArray[np.int64]
    unbreakable: NDArray[np.bool_]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class _WeighedRows(Settled, ABC):
    """The remembered training rows, and what they weigh."""

    _read_with: ClassVar[tuple[str, ...]] = ("radius", "similarity", "offset", "empty_value", "classes", "threat")
    threat: Moves
    n_jobs: int | None

    @abstractmethod
    def _weighing(self) -> Weighing:
        """The weights that the parameters declare, or an error that says what is wrong with them."""
        ...

    @abstractmethod
    def _method(self) -> str:
        """How the radius was computed."""
        ...

    def _remember(self, weighing: Weighing, rows: NDArray[np.float64]) -> None:
        self.threat_ = Threat.of(self.threat)
        self.weighing_, self.encoded_, self.n_units_ = weighing, weighing.remember(rows), len(rows)

    def _weights(self, rows: NDArray[np.float64]) -> NDArray[np.int32]:
        return self.weighing_.weigh(self.weighing_.encode(rows), self.encoded_)

    def _attack(
        self, rows: NDArray[np.float64], radius: NDArray[np.int64], unbreakable: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """What an attack on each row costs that is sure to work; one more than all rows where none is known."""
        if not self.threat_.inserts:
            return radius + 1
        weight = self.weighing_.weigh_inserted(self.weighing_.encode(rows))
        known = (weight == self.weighing_.heaviest) | (radius < 0) | unbreakable
        return np.where(known, radius + 1, np.maximum(radius, self.n_units_) + 1)

    def _each_chunk(self, work: Callable[[slice], Any], n_rows: int) -> list[Any]:
        """``work`` on every window of test rows, in order."""
        size = max(1, _CHUNK_PAIRS // self.n_units_)
        windows = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
        if len(windows) < 2 or self.n_jobs in (None, 1):
            return [work(window) for window in windows]
        # Threads suffice: the compiled loops let go of the interpreter.
        return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(work)(window) for window in windows))


class WeighedRowsRegressor(RegressorMixin, _WeighedRows):
    """The weighted median of the training targets."""

    offset: Offset | None
    empty_value: float

    def fit(self, X: ArrayLike, y: ArrayLike, groups: None = None) -> Self:
        """Remember the rows.

        Parameters
        ----------
        X : array or frame (n_rows, n_features)
            Training rows; encode mixed tables with a declared :class:`poisonproof.Schema` first.
        y : array (n_rows,)
            Targets.
        groups : None
            Sources cannot be counted here; giving them is an error that says who can.
        """
        refuse_groups(groups, self)
        check_jobs(self.n_jobs)
        self._unsettle()
        weighing = self._weighing()
        check_finite(self.empty_value, "empty_value")
        rows, targets = self._checked_table(X, y, numeric=True)
        values = targets - offset_in_training(self.offset, rows)
        # Equal values may come in any order: no sum and no median can tell them apart.
        order = np.argsort(values)
        self._remember(weighing, rows[order])
        self.values_ = values[order]
        self._settle()
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The weighted median of each row, ``(n_rows,)``."""
        rows = self._checked_rows(X)
        parts = self._each_chunk(lambda window: medians(self._sets(rows[window])), len(rows))
        return np.concatenate(parts)

    def certify(
        self,
        X: ArrayLike,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        *,
        within: float | None = None,
        relative: bool = True,
    ) -> Certificate:
        """How many modifications of the training data each prediction withstands.

        Parameters
        ----------
        X : array or frame (n_rows, n_features)
            Rows to predict.
        lower, upper : float or array (n_rows,), optional
            Bounds, both inclusive; leave one out for a one-sided certificate.
        within : float, optional
            Bounds around the prediction instead, at this distance.
        relative : bool, default=True
            Whether ``within`` is a share of the prediction's absolute value.
        """
        rows = self._checked_rows(X)
        bounds = bounds_by_window(len(rows), lower, upper, within, relative=relative)

        def work(window: slice) -> _Part:
            sets = self._sets(rows[window])
            prediction = medians(sets)
            low, high = bounds(prediction, window)
            radius, unbreakable = radii(sets, low, high, self.threat_.moves).radius(self.n_units_)
            return _Part(prediction, radius, self._attack(rows[window], radius, unbreakable), unbreakable, low, high)

        parts = self._each_chunk(work, len(rows))
        prediction, radius, attack, unbreakable, low, high = map(np.concatenate, zip(*parts, strict=True))
        return Certificate(
            prediction=prediction,
            radius=radius,
            attack=attack,
            unbreakable=unbreakable,
            threat=self.threat_,
            method=self._method(),
            lower=low,
            upper=high,
        )

    def interval(self, X: ArrayLike, budget: int) -> Interval:
        """Where ``budget`` modifications of the training data can move each prediction.

        Both ends are reached wherever the radius is exact.
        """
        spent = check_budget(budget)
        rows = self._checked_rows(X)

        def work(window: slice) -> tuple[NDArray[np.float64], ...]:
            sets = self._sets(rows[window])
            return (*intervals(sets, spent, self.threat_.moves), medians(sets))

        lower, upper, prediction = map(np.concatenate, zip(*self._each_chunk(work, len(rows)), strict=True))
        return Interval(lower, upper, prediction, spent, self.threat_, self._method())

    def _sets(self, rows: NDArray[np.float64]) -> Neighborhoods:
        offsets = offset_of(self.offset, rows)
        return Neighborhoods(
            self.values_, self._weights(rows), offsets, self.weighing_.heaviest, float(self.empty_value)
        )


class WeighedRowsClassifier(ClassifierMixin, _WeighedRows):
    """The class with the largest weight."""

    classes: ArrayLike | None
    empty_value: Any

    def fit(self, X: ArrayLike, y: ArrayLike, groups: None = None) -> Self:
        """Remember the rows.

        Parameters
        ----------
        X : array or frame (n_rows, n_features)
            Training rows; encode mixed tables with a declared :class:`poisonproof.Schema` first.
        y : array (n_rows,)
            Labels.
        groups : None
            Sources cannot be counted here; giving them is an error that says who can.
        """
        refuse_groups(groups, self)
        check_jobs(self.n_jobs)
        self._unsettle()
        weighing = self._weighing()
        rows, labels = self._checked_table(X, y, numeric=False)
        check_classification_targets(labels)
        self.classes_ = self._all_classes(labels)
        self.labels_ = codes_of(labels, self.classes_, "y", DECLARE)
        self._remember(weighing, rows)
        self.empty_class_ = self._empty_class()
        self._settle()
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each row, ``(n_rows,)``; of equally heavy classes the smaller label."""
        rows = self._checked_rows(X)
        parts = self._each_chunk(lambda window: pluralities(self._ballots(rows[window])), len(rows))
        return np.asarray(self.classes_[np.concatenate(parts)])

    def certify(self, X: ArrayLike, y: ArrayLike | None = None) -> Certificate:
        """How many modifications of the training data leave each prediction at its class.

        Parameters
        ----------
        X : array or frame (n_rows, n_features)
            Rows to predict.
        y : array (n_rows,), optional
            The classes to certify; the radius is -1 where another one is predicted. None: the predicted classes.
        """
        rows = self._checked_rows(X)
        given = None if y is None else classes_of_rows(y, self.classes_, len(rows))

        def work(window: slice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            ballots = self._ballots(rows[window])
            predicted = pluralities(ballots)
            targets = predicted if given is None else given[window]
            return predicted, withstood(ballots, targets, self.threat_.moves)

        predicted, held = map(np.concatenate, zip(*self._each_chunk(work, len(rows)), strict=True))
        unbreakable = held == NEVER
        radius = np.where(unbreakable, self.n_units_, held)
        prediction = self.classes_[predicted]
        return Certificate(
            prediction=prediction,
            radius=radius,
            attack=self._attack(rows, radius, unbreakable),
            unbreakable=unbreakable,
            threat=self.threat_,
            method=self._method(),
            target=prediction if y is None else np.asarray(y),
        )

    def _ballots(self, rows: NDArray[np.float64]) -> Ballots:
        weights, n_classes = self._weights(rows), len(self.classes_)
        open_ended = self.classes is None
        return Ballots(self.labels_, weights, n_classes, self.weighing_.heaviest, self.empty_class_, open_ended)

    def _all_classes(self, labels: NDArray[Any]) -> NDArray[Any]:
        """All classes there are, in order: the declared ones, or those seen and that of an empty set."""
        if self.classes is None and self.empty_value is not None:
            return classes_among(np.append(labels, _like(self.empty_value, labels)), None)
        return classes_among(labels, self.classes)

    def _empty_class(self) -> int:
        if self.empty_value is None:
            return UNDECLARED if self.classes is None else 0
        return code_of_empty(self.empty_value, self.classes_)


def _like(label: Any, seen: NDArray[Any]) -> NDArray[Any]:  # noqa: ANN401  a label of any type
    """The label, if it can stand beside those seen: words among numbers would turn them into words."""
    given = np.asarray(label)
    if given.ndim or ((given.dtype.kind in "US") is not (seen.dtype.kind in "US") and seen.dtype.kind != "O"):
        raise ParameterError(f"empty_value={label!r} must be a label like those in y, such as {seen.tolist()[0]!r}")
    return given


def bounds_by_window(
    n_rows: int, lower: ArrayLike | None, upper: ArrayLike | None, within: float | None, *, relative: bool
) -> Callable[[NDArray[np.float64], slice], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """The bounds of a window of rows from its predictions: given ones are checked once and cut, others drawn around."""
    if within is not None and lower is None and upper is None:
        return lambda prediction, _: bounds_of(prediction, None, None, within, relative=relative)
    low, high = bounds_of(np.empty(n_rows), lower, upper, within, relative=relative)
    return lambda _, window: (low[window], high[window])


def check_finite(value: float, name: str) -> None:
    """An error unless the parameter is a finite number."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not np.isfinite(value):
        raise ParameterError(f"{name}={value!r} must be a finite number")
