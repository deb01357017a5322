"""Certified ensembles: thin scikit-learn faces over blocks, votes, costs and bounds. No mathematics here."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted, validate_data

from poisonproof.certificate import Certificate, Interval, bounds_of
from poisonproof.costs import Reach, engine_for
from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.layout import disjoint
from poisonproof.median import Ballot, interval, median, radii
from poisonproof.partition import blocks_of, canonical, check_key, content_digests, content_order, source_digests
from poisonproof.threat import Threat
from poisonproof.votes import each, fit_submodel, in_fixed_shape, make_deterministic, report_constants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from poisonproof.costs import CostEngine
    from poisonproof.costs.protocol import Vote
    from poisonproof.cover import Effort
    from poisonproof.layout import Layout
    from poisonproof.median import Radii
    from poisonproof.partition import PartitionBy
    from poisonproof.threat import Moves
    from poisonproof.votes import Submodel

    _Rows = tuple[NDArray[np.float64], NDArray[np.float64]]

__all__ = ["CertifiedRegressor"]

_CHUNK_ROWS: Final = 512  # test rows whose votes are weighed at a time, so that memory stays bounded


class CertifiedRegressor(RegressorMixin, BaseEstimator):
    """The median of submodels on disjoint blocks, with a proof of how many poisoned rows each prediction withstands.

    Certifies the declared ``threat``.

    Parameters
    ----------
    estimator : scikit-learn regressor, optional
        Trained on every block. None: ``Ridge()``.
    n_partitions : int, default=5
        Blocks, and with ``spread=1`` submodels: an odd number, so that the median is a vote.
    spread : int, default=1
        How many submodels train on each block; 1 is a disjoint ensemble.
    max_cost : int, default=1
        1 counts every touched submodel as lost. Larger values ask what it really takes to move each vote, up to
        this many modifications, where the estimator and the threat have a way to find out.
    threat : {"insert+delete", "delete", "insert", "relabel"}
        What the attacker may do.
    partition_by : {"features", "row", "source"}
        What decides a row's block: its features, its features and label, or its source (then give ``groups``).
    key : int, default=0
        Key of the hash that assigns blocks.
    offset : callable, optional
        A function of one block of rows ``(n_rows, n_features) -> (n_rows,)`` whose values for a row depend on that
        row alone; submodels learn what it leaves of the target.
    empty_value : float, default=0.0
        Declared vote of a block that cannot be fitted (of what the offset leaves).
    n_jobs : int, optional
        Processes to fit and vote in.

    Attributes
    ----------
    n_blocks_, n_submodels_ : int
        Effective numbers of blocks and submodels.
    incidence_ : sparse bool array (n_submodels, n_blocks)
        Which blocks each submodel trains on.
    submodels_ : list
        The fitted submodels.

    Notes
    -----
    Unit cost: THEORY §3; larger costs: §1.3 and §5. Tune on rows that are neither trained on nor certified: settings
    chosen by looking at poisoned rows void the certificate.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(60.0).reshape(-1, 1)
    >>> model = CertifiedRegressor(n_partitions=9).fit(X, 2 * X[:, 0])
    >>> cert = model.certify([[30.0]], lower=50, upper=70)
    >>> print(cert.summary(0))
    any 4 inserted or deleted training rows leave this prediction within [50, 70]
    """

    def __init__(
        self,
        estimator: Any = None,  # noqa: ANN401  any scikit-learn regressor
        n_partitions: int = 5,
        *,
        spread: int = 1,
        max_cost: int = 1,
        threat: Moves = "insert+delete",
        partition_by: PartitionBy = "features",
        key: int = 0,
        offset: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None,
        empty_value: float = 0.0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_partitions = n_partitions
        self.spread = spread
        self.max_cost = max_cost
        self.threat = threat
        self.partition_by = partition_by
        self.key = key
        self.offset = offset
        self.empty_value = empty_value
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Cut the rows into blocks and train the submodels.

        Parameters
        ----------
        X : array or frame (n_rows, n_features)
            Training rows; encode mixed tables with a declared :class:`poisonproof.Schema` first.
        y : array (n_rows,)
            Targets.
        groups : array (n_rows,), optional
            The source of each row, with ``partition_by="source"``.
        """
        layout, threat, engine = self._checked_parameters()
        rows, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        rows, targets = canonical(rows), canonical(targets)
        digests = content_digests(rows, self.key)
        blocks = self._blocks(rows, targets, groups, layout.n_blocks, digests)
        order = content_order(digests, targets, blocks)
        starts = np.searchsorted(blocks[order], np.arange(layout.n_blocks + 1))
        rows, targets = rows[order], (targets - self._offset(rows))[order]
        members = list(_members(layout, starts))

        self.layout_, self.threat_, self.incidence_ = layout, threat, layout.incidence
        self.n_blocks_, self.n_submodels_ = layout.n_blocks, layout.n_submodels
        template = make_deterministic(Ridge() if self.estimator is None else self.estimator)
        train = partial(_train, template, float(self.empty_value), engine)
        fitted = each(train, [(rows[chosen], targets[chosen]) for chosen in members], self.n_jobs, "fitting submodels")
        self.submodels_: list[Submodel] = [submodel for submodel, _ in fitted]
        self.prepared_: list[object] = [prepared for _, prepared in fitted]
        self.n_units_, self.capacity_ = self._units(order, groups, members)
        report_constants(self.submodels_, len(targets), float(self.empty_value))
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The median vote on each row, ``(n_rows,)``."""
        rows = self._checked_rows(X)
        return np.concatenate([median(self._votes(chunk)) for chunk in _chunks(rows)])

    def votes(self, X: ArrayLike) -> NDArray[np.float64]:
        """Every submodel's vote on each row, ``(n_submodels, n_rows)``."""
        return self._votes(self._checked_rows(X))

    def blocks(self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> NDArray[np.int64]:
        """The block of each row, ``(n_rows,)``: a function of the row and the key alone."""
        rows = self._checked_rows(X)
        targets = None if y is None else canonical(y)
        return self._blocks(rows, targets, groups, self.n_blocks_, content_digests(rows, self.key))

    def certify(
        self,
        X: ArrayLike,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        *,
        within: float | None = None,
        relative: bool = True,
        effort: Effort = "fast",
        time_limit: float | None = None,
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
        effort, time_limit
            How hard to look for the exact radius where blocks overlap, and for how many seconds at most.
        """
        rows = self._checked_rows(X)
        declared = None if within is not None else bounds_of(np.empty(len(rows)), lower, upper, None, relative=relative)
        parts: list[_Part] = []
        for window, ballot in self._ballots(rows):
            prediction = median(ballot.votes)
            if declared is None:
                low, high = bounds_of(prediction, lower, upper, within, relative=relative)
            else:
                low, high = declared[0][window], declared[1][window]
            parts.append(_Part(prediction, low, high, radii(ballot, low, high, effort=effort, time_limit=time_limit)))
        return self._certificate(parts)

    def interval(self, X: ArrayLike, budget: int) -> Interval:
        """Where ``budget`` modifications of the training data can move each prediction."""
        if isinstance(budget, bool) or not isinstance(budget, int | np.integer):
            raise ParameterTypeError(f"budget={budget!r} must be an integer")
        if budget < 0:
            raise ParameterError(f"budget={budget} must be at least 0")
        rows = self._checked_rows(X)
        touched = int(budget) * self._blocks_per_unit()
        ends = [(*interval(ballot, touched), median(ballot.votes)) for _, ballot in self._ballots(rows)]
        lower, upper, prediction = (np.concatenate(part) for part in zip(*ends, strict=True))
        return Interval(lower, upper, prediction, int(budget), self.threat_, self._method("order statistics"))

    def _checked_parameters(self) -> tuple[Layout, Threat, CostEngine | None]:
        layout = disjoint(self.n_partitions)
        if layout.n_submodels % 2 == 0:
            near = f"{layout.n_submodels - 1} or {layout.n_submodels + 1}"
            raise ParameterError(
                f"n_partitions={layout.n_submodels} must be odd so that the median is a vote; use {near}"
            )
        if self.spread != 1:
            raise ParameterError(f"spread={self.spread!r} is not available; use spread=1")
        if self.partition_by not in ("features", "row", "source"):
            raise ParameterError(f"partition_by={self.partition_by!r} is unknown; use 'features', 'row' or 'source'")
        if isinstance(self.max_cost, bool) or not isinstance(self.max_cost, int | np.integer):
            raise ParameterTypeError(f"max_cost={self.max_cost!r} must be an integer")
        if not 1 <= self.max_cost <= 100:
            raise ParameterError(f"max_cost={self.max_cost} must be from 1 to 100")
        if not np.isscalar(self.empty_value) or not np.isfinite(self.empty_value):
            raise ParameterError(f"empty_value={self.empty_value!r} must be a finite number")
        check_key(self.key)
        threat = Threat.of(self.threat, "source" if self.partition_by == "source" else "row")
        return layout, threat, engine_for(self.estimator, threat, int(self.max_cost))

    def _checked_rows(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        return canonical(validate_data(self, X, dtype=np.float64, reset=False))

    def _blocks(
        self,
        rows: NDArray[np.float64],
        targets: NDArray[np.float64] | None,
        groups: ArrayLike | None,
        n_blocks: int,
        digests: NDArray[np.uint64],
    ) -> NDArray[np.int64]:
        if (groups is None) == (self.partition_by == "source"):
            need = (
                "needs groups, the source of each row"
                if groups is None
                else "does not use groups; use partition_by='source'"
            )
            raise DataError(f"partition_by={self.partition_by!r} {need}")
        if self.partition_by == "features":
            return blocks_of(digests, n_blocks)
        if groups is not None:
            return blocks_of(source_digests(_as_long(groups, rows, "groups"), self.key), n_blocks)
        if targets is None:
            raise DataError("partition_by='row' needs y, because a row's block depends on its label too")
        labelled = np.column_stack([rows, _as_long(targets, rows, "y")])
        return blocks_of(content_digests(labelled, self.key), n_blocks)

    def _offset(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.offset is None:
            return np.zeros(len(rows))
        values = in_fixed_shape(self.offset, rows)
        if not np.isfinite(values).all():
            raise DataError(
                f"offset is not finite in row {int(np.argmin(np.isfinite(values)))}; it must be finite for every row"
            )
        return values

    def _units(
        self, order: NDArray[np.int64], groups: ArrayLike | None, members: list[NDArray[np.int64]]
    ) -> tuple[int, NDArray[np.int64] | None]:
        """How many units there are, and how many each submodel has where the attacker can only touch those."""
        units = np.arange(len(order)) if groups is None else source_digests(groups)[order][:, 0]
        count = len(np.unique(units))
        if self.threat_.inserts or self._blocks_per_unit() > 1:
            return count, None
        return count, np.array([len(np.unique(units[chosen])) for chosen in members], dtype=np.int64)

    def _votes(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        votes = each(partial(_vote, rows), self.submodels_, self.n_jobs, "voting")
        return np.array(votes) + self._offset(rows)

    def _ballots(self, rows: NDArray[np.float64]) -> Iterator[tuple[slice, Ballot]]:
        """The ballots on the rows, a chunk of rows at a time, each with the places of its rows."""
        incidence = None if self.layout_.is_disjoint else self.incidence_
        for start, chunk in enumerate(_chunks(rows)):
            first = start * _CHUNK_ROWS
            yield slice(first, first + len(chunk)), Ballot(self._reach(chunk), incidence, self.capacity_, self.n_units_)

    def _reach(self, rows: NDArray[np.float64]) -> Reach:
        engine = engine_for(self.estimator, self.threat_, int(self.max_cost))
        if engine is None:
            votes = self._votes(rows)[None]
            return Reach(votes, votes)
        pairs = list(zip(self.submodels_, self.prepared_, strict=True))
        reaches = each(partial(_reach, engine, rows), pairs, self.n_jobs, "weighing votes")
        offset = self._offset(rows)
        # Sound because adding the offset is monotone even after rounding: it keeps every vote between its ends.
        low = np.stack([reach.low for reach in reaches], axis=1) + offset
        return Reach(low, np.stack([reach.high for reach in reaches], axis=1) + offset)

    def _certificate(self, parts: list[_Part]) -> Certificate:
        prediction, lower, upper, found = (tuple(part) for part in zip(*parts, strict=True))
        unbreakable = np.concatenate([one.unbreakable for one in found])
        radius = np.concatenate([one.radius for one in found])
        attack = np.concatenate([one.attack for one in found])
        touched = self._blocks_per_unit()
        return Certificate(
            prediction=np.concatenate(prediction),
            radius=np.where(unbreakable, self.n_units_, radius // touched),
            attack=np.where(unbreakable, self.n_units_ + 1, -(-attack // touched)),
            unbreakable=unbreakable,
            threat=self.threat_,
            method=self._method(found[0].method),
            lower=np.concatenate(lower),
            upper=np.concatenate(upper),
            trusted_solver=np.concatenate([one.trusted_solver for one in found]),
        )

    def _blocks_per_unit(self) -> int:
        """How many blocks one modification can touch."""
        # Sound because a label that is part of what is hashed moves its row from one block to another.
        return 2 if self.threat_.moves == "relabel" and self.partition_by == "row" else 1

    def _method(self, solver: str) -> str:
        engine = engine_for(self.estimator, self.threat_, int(self.max_cost))
        costs = "unit cost" if engine is None else f"costs ≤ {self.max_cost} by {engine.method}"
        return f"{costs}, {solver}"


class _Part(NamedTuple):
    """What was found for one chunk of rows."""

    prediction: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    radii: Radii


def _train(template: Any, constant: float, engine: CostEngine | None, rows: _Rows) -> tuple[Submodel, object]:  # noqa: ANN401
    """A submodel, and what the engine keeps of its rows."""
    X, y = rows
    prepared = None if engine is None else engine.prepare(partial(_vote_function, template, constant), X, y)
    return fit_submodel(template, constant, X, y), prepared


def _vote_function(template: Any, constant: float, X: NDArray[np.float64], y: NDArray[np.float64]) -> Vote:  # noqa: ANN401
    return fit_submodel(template, constant, X, y).vote


def _vote(rows: NDArray[np.float64], submodel: Submodel) -> NDArray[np.float64]:
    return submodel.vote(rows)


def _reach(engine: CostEngine, rows: NDArray[np.float64], pair: tuple[Submodel, object]) -> Reach:
    submodel, prepared = pair
    return engine.reach(prepared, submodel.vote(rows), rows)


def _members(layout: Layout, starts: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The places of each submodel's rows, block after block."""
    for submodel in range(layout.n_submodels):
        blocks = layout.blocks_of(submodel)
        yield np.concatenate([np.arange(starts[block], starts[block + 1]) for block in blocks])


def _chunks(rows: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    return (rows[start : start + _CHUNK_ROWS] for start in range(0, len(rows), _CHUNK_ROWS))


def _as_long(values: ArrayLike, rows: NDArray[np.float64], name: str) -> NDArray[Any]:
    column = np.asarray(values)
    if column.shape != (len(rows),):
        raise DataError(f"{name} has shape {column.shape}; it must have one entry for each of the {len(rows)} rows")
    return column
