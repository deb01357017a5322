"""The certified regressor: a median of submodels."""

from __future__ import annotations

from collections import Counter
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin, clone

from poisonproof.certificate import Certificate, Interval, bounds_of
from poisonproof.costs import Reach, engine_for
from poisonproof.ensemble.base import BlockEnsemble
from poisonproof.ensemble.cut import blocks_per_modification
from poisonproof.errors import ParameterError, ParameterTypeError
from poisonproof.learners import KernelRidge
from poisonproof.median import Ballot, interval, median, radii
from poisonproof.neighbors.declared import offset_in_training, offset_of
from poisonproof.votes import each, report_silence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from poisonproof.costs import CostEngine
    from poisonproof.cover import Effort
    from poisonproof.median import Radii
    from poisonproof.partition import PartitionBy
    from poisonproof.threat import Moves
    from poisonproof.votes import Submodel

__all__ = ["CertifiedRegressor"]

_LARGEST: Final = float(np.finfo(np.float64).max)
_CHUNK_ROWS: Final = 512  # test rows whose votes are weighed at a time, so that memory stays bounded


class CertifiedRegressor(RegressorMixin, BlockEnsemble):
    """The median of submodels on blocks of rows, with a proof of how many poisoned rows each prediction withstands.

    Certifies the declared ``threat``.

    Parameters
    ----------
    estimator : scikit-learn regressor, optional
        Trained on every block. None: :class:`poisonproof.KernelRidge`, for features scaled to about 0 … 1.
    n_partitions : int, default=5
        Each submodel sees about ``1 / n_partitions`` of the rows. With ``spread=1`` the number of blocks and of
        submodels: odd, so that the median is a vote.
    spread : int, default=1
        How many submodels train on each block: 1 is a disjoint ensemble; more trains ``n_partitions * spread``
        submodels (made odd) on overlapping blocks.
    layout : {"triples", "paired", "fano", "plane", "random"} or bool matrix (n_submodels, n_blocks)
        How overlapping blocks are shared; grouped designs have exact radii, "random" is for comparison with the
        literature. A matrix is a layout of your own; ``n_partitions`` and ``spread`` are then not used.
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
    layout_ : Layout
        How blocks are shared, with its ``spread`` and its ``effective_q``, which grouped designs round.
    incidence_ : sparse bool array (n_submodels, n_blocks)
        Which blocks each submodel trains on.
    submodels_ : list
        The fitted submodels.

    Notes
    -----
    See docs/theory.md, sections 3 and 5. Tune on rows that are neither trained on nor certified: settings
    chosen by looking at poisoned rows void the certificate.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 90).reshape(-1, 1)
    >>> model = CertifiedRegressor(n_partitions=9).fit(X, 120 * X[:, 0])
    >>> cert = model.certify([[0.5]], lower=50, upper=70)
    >>> print(cert.summary(0))
    any 4 inserted or deleted training rows leave this prediction within [50, 70]
    """

    def __init__(
        self,
        estimator: Any = None,  # noqa: ANN401  any scikit-learn regressor
        n_partitions: int = 5,
        *,
        spread: int = 1,
        layout: Any = "triples",  # noqa: ANN401  a name or a matrix
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
        self.layout = layout
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
        layout, threat = self._checked_layout(odd=True), self._checked_threat()
        if not isinstance(self.empty_value, Real) or not np.isfinite(self.empty_value):
            raise ParameterError(f"empty_value={self.empty_value!r} must be a finite number")
        template = clone(self._template())
        engine = engine_for(template, threat, int(self.max_cost))
        self._unsettle()
        rows, labels = self._checked_table(X, y, numeric=True)
        # Sound because a model is read with what it was fitted with, whatever its parameters are set to later: costs
        # found with one declared range are not those of another.
        self.threat_ = threat
        self._fitted_template: Any = template
        self._fitted_offset: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = self.offset
        # Sound because no label overflows: a target that is not finite would be refused with its whole block, although
        # costs above one know what any label does to a learner that clips its targets.
        with np.errstate(over="ignore"):
            targets = np.clip(labels - offset_in_training(self.offset, rows), -_LARGEST, _LARGEST)
        self._train(template, rows, targets, labels, groups, layout, engine, float(self.empty_value))
        self._settle()
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The median vote on each row, ``(n_rows,)``."""
        rows = self._checked_rows(X)
        silent = Counter[str]()
        predictions = np.concatenate([median(self._votes(chunk, silent)) for chunk in _chunks(rows)])
        self._report_silence(silent)
        return predictions

    def votes(self, X: ArrayLike) -> NDArray[np.float64]:
        """Every submodel's vote on each row, ``(n_submodels, n_rows)``."""
        silent = Counter[str]()
        votes = self._votes(self._checked_rows(X), silent)
        self._report_silence(silent)
        return votes

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
        witness: bool = False,
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
            How hard to look for the exact radius where blocks overlap, and for how many seconds at most on each row.
        witness : bool, default=False
            Whether the certificate tells which blocks its attacks touch, and how often.
        """
        rows = self._checked_rows(X)
        declared = None if within is not None else bounds_of(np.empty(len(rows)), lower, upper, None, relative=relative)
        parts: list[_Part] = []
        for window, ballot in self._ballots(rows, by_block=witness):
            prediction = median(ballot.votes)
            if declared is None:
                low, high = bounds_of(prediction, lower, upper, within, relative=relative)
            else:
                low, high = declared[0][window], declared[1][window]
            found = radii(ballot, low, high, effort=effort, time_limit=time_limit, witness=witness)
            parts.append(_Part(prediction, low, high, found))
        return self._certificate(parts)

    def interval(self, X: ArrayLike, budget: int) -> Interval:
        """Where ``budget`` modifications of the training data can move each prediction."""
        if isinstance(budget, bool) or not isinstance(budget, int | np.integer):
            raise ParameterTypeError(f"budget={budget!r} must be an integer")
        if budget < 0:
            raise ParameterError(f"budget={budget} must be at least 0")
        rows = self._checked_rows(X)
        touched = int(budget) * blocks_per_modification(self.threat_, self.partition_by)
        ends = [(*interval(ballot, touched), median(ballot.votes)) for _, ballot in self._ballots(rows)]
        lower, upper, prediction = (np.concatenate(part) for part in zip(*ends, strict=True))
        return Interval(lower, upper, prediction, int(budget), self.threat_, self._method("order statistics"))

    def _template(self) -> Any:  # noqa: ANN401  any scikit-learn regressor
        return KernelRidge() if self.estimator is None else self.estimator

    def _engine(self) -> CostEngine | None:
        return engine_for(self._fitted_template, self.threat_, int(self.max_cost))

    def _votes(self, rows: NDArray[np.float64], silent: Counter[str]) -> NDArray[np.float64]:
        """The votes on the rows; those that submodels did not have are counted in ``silent``."""
        votes, missing = zip(*each(partial(_vote, rows), self.submodels_, self.n_jobs, "voting"), strict=True)
        _count(silent, missing, len(rows))
        return np.array(votes) + offset_of(self._fitted_offset, rows)

    def _report_silence(self, silent: Counter[str]) -> None:
        report_silence(silent["missing"], silent["votes"], self._instead(self.submodels_[0].constant))

    def _ballots(self, rows: NDArray[np.float64], *, by_block: bool = False) -> Iterator[tuple[slice, Ballot]]:
        """The ballots on the rows, a chunk of rows at a time, each with the places of its rows.

        Where no block is shared, submodels stand for their blocks, unless attacks are to be told ``by_block``.
        """
        named = by_block and (self.incidence_ != sp.eye_array(*self.incidence_.shape, dtype=np.bool_)).nnz > 0
        incidence = None if self.layout_.is_disjoint and not named else self.incidence_
        silent = Counter[str]()
        for start, chunk in enumerate(_chunks(rows)):
            first = start * _CHUNK_ROWS
            ballot = Ballot(self._reach(chunk, silent), incidence, self.capacity_, self.n_units_, self.caps_)
            yield slice(first, first + len(chunk)), ballot
        self._report_silence(silent)

    def _reach(self, rows: NDArray[np.float64], silent: Counter[str]) -> Reach:
        engine = self._engine()
        if engine is None:
            votes = self._votes(rows, silent)[None]
            return Reach(votes, votes)
        pairs = list(zip(self.submodels_, self.prepared_, strict=True))
        weighed = each(partial(_reach, engine, rows), pairs, self.n_jobs, "weighing votes")
        reaches, missing = zip(*weighed, strict=True)
        _count(silent, missing, len(rows))
        offset = offset_of(self._fitted_offset, rows)
        # Sound because adding the offset is monotone even after rounding: it keeps every vote between its ends.
        low = np.stack([reach.low for reach in reaches], axis=1) + offset
        return Reach(low, np.stack([reach.high for reach in reaches], axis=1) + offset)

    def _certificate(self, parts: list[_Part]) -> Certificate:
        prediction, lower, upper, found = (tuple(part) for part in zip(*parts, strict=True))
        unbreakable = np.concatenate([one.unbreakable for one in found])
        radius = np.concatenate([one.radius for one in found])
        attack = np.concatenate([one.attack for one in found])
        touched = blocks_per_modification(self.threat_, self.partition_by)
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
            witness=None if found[0].witness is None else sp.vstack([one.witness for one in found], format="csr"),
        )

    def _method(self, solver: str) -> str:
        engine = self._engine()
        costs = "unit cost" if engine is None else f"costs ≤ {self.max_cost} by {engine.method}"
        return f"{costs}, {solver}"


class _Part(NamedTuple):
    """What was found for one chunk of rows."""

    prediction: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    radii: Radii


def _vote(rows: NDArray[np.float64], submodel: Submodel) -> tuple[NDArray[np.float64], int]:
    return submodel.counted_vote(rows)


def _reach(engine: CostEngine, rows: NDArray[np.float64], pair: tuple[Submodel, object]) -> tuple[Reach, int]:
    submodel, prepared = pair
    votes, missing = submodel.counted_vote(rows)
    return engine.reach(prepared, votes, rows), missing


def _count(silent: Counter[str], missing: Sequence[int], n_rows: int) -> None:
    silent.update(missing=sum(missing), votes=len(missing) * n_rows)


def _chunks(rows: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    return (rows[start : start + _CHUNK_ROWS] for start in range(0, len(rows), _CHUNK_ROWS))
