"""The certified classifier: submodels vote for classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, cast

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.linear_model import RidgeClassifier
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from poisonproof import plurality, runoff
from poisonproof.certificate import Certificate
from poisonproof.costs.choices import class_costs_for
from poisonproof.cover import check_effort
from poisonproof.ensemble.base import BlockEnsemble
from poisonproof.ensemble.cut import blocks_per_modification
from poisonproof.ensemble.speaker import CodeSpeaker, check_classifier, check_scores, class_weights_in
from poisonproof.errors import DataError, ParameterError, ThreatError
from poisonproof.labels import classes_among, code_of_empty, codes_of
from poisonproof.partition import source_digests
from poisonproof.plurality import Poll
from poisonproof.votes import each, in_fixed_shape, where_possible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from poisonproof.costs.choices import ClassCosts
    from poisonproof.cover import Effort
    from poisonproof.median import Radii
    from poisonproof.partition import PartitionBy
    from poisonproof.threat import Moves, Threat
    from poisonproof.votes import Submodel

__all__ = ["CertifiedClassifier"]

Rule = Literal["plurality", "runoff"]

_CHUNK_ROWS: Final = 512
_ABSTAIN: Final = -1.0


class CertifiedClassifier(ClassifierMixin, BlockEnsemble):
    """The class most submodels vote for, with a proof of how many poisoned rows it withstands.

    Certifies the declared ``threat``.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Trained on every block. None: ``RidgeClassifier()``.
    n_partitions : int, default=5
        Each submodel sees about ``1 / n_partitions`` of the rows; any number.
    spread : int, default=1
        How many submodels train on each block; 1 is a disjoint ensemble.
    layout : {"triples", "paired", "fano", "plane", "random"} or bool matrix (n_submodels, n_blocks)
        How overlapping blocks are shared.
    rule : {"plurality", "runoff"}
        The class with the most votes; or, between the two classes with the most votes, the one that more submodels
        score higher. Ties go to the smaller label.
    classes : sequence of labels, optional
        All classes there may be, also those without rows. None: the labels of the rows; certificates then also hold
        against a class that nobody has seen, which is taken to win all ties, and blocks that cannot be fitted abstain.
    max_cost : int, default=1
        1 counts every touched submodel as lost. Larger values ask what it really takes to change each vote, up to
        this many deletions: by formula for ``RidgeClassifier`` without class weights, alone or behind steps that
        learn nothing from rows; by leaving rows out and refitting for all others.
    threat : {"insert+delete", "delete", "insert", "relabel"}
        What the attacker may do.
    partition_by : {"features", "row", "source"}
        What decides a row's block: its features, its features and label, or its source (then give ``groups``).
    key : int, default=0
        Key of the hash that assigns blocks.
    empty_value : label, optional
        Declared vote of a block that cannot be fitted, one of ``classes``. None: the first of the declared classes.
    n_jobs : int, optional
        Processes to fit and vote in.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    n_blocks_, n_submodels_ : int
        Effective numbers of blocks and submodels.

    Notes
    -----
    See docs/theory.md, section 7.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(60.0).reshape(-1, 1)
    >>> y = np.where(X[:, 0] > 30, "high", "low")
    >>> model = CertifiedClassifier(n_partitions=9, classes=["high", "low"]).fit(X, y)
    >>> print(model.certify([[50.0]]).summary(0))
    any 4 inserted or deleted training rows leave this prediction at class high
    """

    def __init__(
        self,
        estimator: Any = None,  # noqa: ANN401  any scikit-learn classifier
        n_partitions: int = 5,
        *,
        spread: int = 1,
        layout: Any = "triples",  # noqa: ANN401  a name or a matrix
        rule: Rule = "plurality",
        classes: Sequence[Any] | None = None,
        max_cost: int = 1,
        threat: Moves = "insert+delete",
        partition_by: PartitionBy = "features",
        key: int = 0,
        empty_value: Any = None,  # noqa: ANN401  a label
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_partitions = n_partitions
        self.spread = spread
        self.layout = layout
        self.rule = rule
        self.classes = classes
        self.max_cost = max_cost
        self.threat = threat
        self.partition_by = partition_by
        self.key = key
        self.empty_value = empty_value
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Cut the rows into blocks and train the submodels.

        Parameters
        ----------
        X : array or frame (n_rows, n_features)
            Training rows.
        y : array (n_rows,)
            Labels.
        groups : array (n_rows,), optional
            The source of each row, with ``partition_by="source"``.
        """
        layout, threat = self._checked_layout(odd=False), self._checked_threat()
        template = self._template()
        self._check_election(threat, template)
        self._unsettle()
        self.threat_ = threat
        # Sound because a model is read with what it was fitted with, whatever its estimator is set to later.
        self._fitted_template: Any = clone(template)
        rows, labels = self._checked_table(X, y, numeric=False)
        labels = _checked_labels(labels)
        self.classes_ = self._checked_classes(labels)
        codes = codes_of(labels, self.classes_, "y", "add it to classes=")
        declared = None if self.classes is None else self.classes_
        speaker, constant = CodeSpeaker(template, len(self.classes_), declared), self._constant()
        targets, hashed = codes.astype(np.float64), self._hashed_labels(labels)
        # An engine of choices is prepared as any other is; what it is asked for later is not a reach.
        engine = cast("Any", self._engine())
        self._train(speaker, rows, targets, hashed, groups, layout, engine, constant, self._choice())
        self._settle()
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The elected class of each row, ``(n_rows,)``."""
        winners = [self._winner(ballots) for ballots in self._ballots(self._checked_rows(X))]
        return self.classes_[np.concatenate(winners)]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The share of the votes that each class has, ``(n_rows, n_classes)``; abstentions left out."""
        shares = []
        for ballots in self._ballots(self._checked_rows(X)):
            counts = self._counts(ballots).T.astype(np.float64)
            counts[counts.sum(axis=1) == 0] = 1.0
            shares.append(counts / counts.sum(axis=1, keepdims=True))
        return np.concatenate(shares)

    def votes(self, X: ArrayLike) -> NDArray[Any]:
        """Every submodel's vote on each row, ``(n_submodels, n_rows)``; None where it abstains."""
        names = np.concatenate([np.array([None] * self._strangers, dtype=object), self.classes_.astype(object)])
        parts = [names[ballots.votes] for ballots in self._ballots(self._checked_rows(X))]
        return np.concatenate(parts, axis=1)

    def certify(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        effort: Effort = "fast",
        time_limit: float | None = None,
    ) -> Certificate:
        """How many modifications of the training data leave each row's class as it is.

        Parameters
        ----------
        X : array or frame (n_rows, n_features)
            Rows to predict.
        y : array (n_rows,), optional
            The classes to certify; the radius is -1 where another is predicted. None: the predicted ones.
        effort, time_limit
            How hard to look where blocks overlap, and for how many seconds at most.
        """
        check_effort(effort, time_limit)
        rows = self._checked_rows(X)
        wanted = None if y is None else self._wanted(y, len(rows))
        winners, found, start = [], [], 0
        for ballots in self._ballots(rows, costs=True):
            winner = self._winner(ballots)
            target = winner if wanted is None else wanted[start : start + len(winner)]
            found.append(self._radii(ballots, target + self._strangers, effort, time_limit))
            winners.append(winner)
            start += len(winner)
        return self._certificate(np.concatenate(winners), wanted, found)

    def _wanted(self, y: ArrayLike, n_rows: int) -> NDArray[np.int64]:
        labels = np.asarray(y)
        if labels.shape != (n_rows,):
            raise DataError(f"y has shape {labels.shape}; it must have one entry for each of the {n_rows} rows")
        return codes_of(labels, self.classes_, "y", "certify classes the model knows")

    def _certificate(
        self, winner: NDArray[np.int64], wanted: NDArray[np.int64] | None, found: list[Radii]
    ) -> Certificate:
        unbreakable = np.concatenate([one.unbreakable for one in found])
        radius = np.concatenate([one.radius for one in found])
        attack = np.concatenate([one.attack for one in found])
        touched = blocks_per_modification(self.threat_, self.partition_by)
        engine = self._engine()
        costs = "unit cost" if engine is None else f"costs ≤ {self.max_cost} by {engine.method}"
        return Certificate(
            prediction=self.classes_[winner],
            radius=np.where(unbreakable, self.n_units_, radius // touched),
            attack=np.where(unbreakable, self.n_units_ + 1, -(-attack // touched)),
            unbreakable=unbreakable,
            threat=self.threat_,
            method=f"{self.rule}, {costs}, {found[0].method}",
            target=self.classes_[winner if wanted is None else wanted],
            trusted_solver=np.concatenate([one.trusted_solver for one in found]),
        )

    def _template(self) -> Any:  # noqa: ANN401  any scikit-learn classifier
        return RidgeClassifier() if self.estimator is None else self.estimator

    def _engine(self) -> ClassCosts | None:
        if self.max_cost == 1:
            return None
        return class_costs_for(self._fitted_template, int(self.max_cost), self._n_codes, self._strangers)

    def _check_election(self, threat: Threat, template: Any) -> None:  # noqa: ANN401  as above
        if self.rule not in ("plurality", "runoff"):
            raise ParameterError(f"rule={self.rule!r} is unknown; use 'plurality' or 'runoff'")
        check_classifier(template)
        if self.classes is None and (weighed := class_weights_in(template)) is not None:
            raise ParameterError(f"{weighed} names classes; then declare all of them with classes=")
        if self.rule == "runoff":
            check_scores(template)
        if self.max_cost > 1 and (threat.unit == "source" or threat.moves != "delete"):
            raise ThreatError(
                f"max_cost={self.max_cost} with {threat}: what it takes to change a class is known for deletions of "
                "rows only; use threat='delete' without sources, or max_cost=1"
            )

    def _checked_classes(self, labels: NDArray[Any]) -> NDArray[Any]:
        classes = classes_among(labels, self.classes)
        if len(classes) < 2:
            where = "y has" if self.classes is None else "classes= declares"
            what = f"one class, {classes.tolist()[0]!r}" if len(classes) else "no class"
            raise DataError(f"{where} {what}; classification needs at least 2, declared or present")
        return classes

    def _constant(self) -> float:
        if self.classes is None:
            if self.empty_value is not None:
                raise ParameterError(f"empty_value={self.empty_value!r} needs declared classes; give classes=")
            return _ABSTAIN
        if self.empty_value is None:
            return 0.0
        return float(code_of_empty(self.empty_value, self.classes_))

    def _instead(self, constant: float) -> str:
        return "abstain" if constant == _ABSTAIN else f"vote the declared class {self.classes_[int(constant)]}"

    def _hashed_labels(self, y: NDArray[Any]) -> NDArray[np.float64]:
        # A label's own hash, not its place: places shift when another class appears.
        return (source_digests(y)[:, 0] >> np.uint64(11)).astype(np.float64)

    @property
    def _strangers(self) -> int:
        """1 where classes are not declared: the class before all others stands for any other, and for abstentions."""
        return int(self.classes is None)

    @property
    def _n_codes(self) -> int:
        return len(self.classes_) + self._strangers

    def _choice(self) -> partial[_Choice]:
        """How a submodel chooses: a code ``(n_rows,)``, or for a run-off a ranking ``(n_codes, n_rows)``."""
        return partial(_Choice, self._n_codes, self._strangers, self.rule == "runoff")

    def _ballots(self, rows: NDArray[np.float64], *, costs: bool = False) -> Iterator[_Ballots]:
        """What the submodels choose on the rows, a chunk of rows at a time."""
        engine = self._engine() if costs else None
        pairs = list(zip(self.submodels_, self.prepared_, strict=True))
        for start in range(0, len(rows), _CHUNK_ROWS):
            cast_one = partial(_cast, self._choice(), engine, rows[start : start + _CHUNK_ROWS])
            choices, price = zip(*each(cast_one, pairs, self.n_jobs, "voting"), strict=True)
            stacked = np.stack(choices, axis=-2)
            ranks = None if self.rule == "plurality" else stacked
            votes = stacked if ranks is None else runoff.first_choices(ranks)
            yield _Ballots(votes, ranks, None if engine is None else np.stack(price, axis=-2))

    def _poll(self, ballots: _Ballots) -> Poll:
        incidence = None if self.layout_.is_disjoint else self.incidence_
        return Poll(ballots.votes, self._n_codes, incidence, self.capacity_, self.n_units_, ballots.costs, self.caps_)

    def _counts(self, ballots: _Ballots) -> NDArray[np.int64]:
        """How many votes each class has, ``(n_classes, n_rows)``."""
        return plurality.class_counts(ballots.votes, self._n_codes)[self._strangers :]

    def _winner(self, ballots: _Ballots) -> NDArray[np.int64]:
        """The place of the elected class on each row."""
        # Sound because a class that wins against the strangers too, as certificates demand, is elected either way.
        by_votes = self._counts(ballots).argmax(axis=0)
        if ballots.ranks is None:
            return by_votes
        winners = runoff.winners(ballots.ranks) - self._strangers
        return np.where(winners < 0, by_votes, winners)

    def _radii(self, ballots: _Ballots, target: NDArray[np.int64], effort: Effort, time_limit: float | None) -> Radii:
        poll = self._poll(ballots)
        if ballots.ranks is None:
            return plurality.radii(poll, target, effort=effort, time_limit=time_limit)
        return runoff.radii(poll, ballots.ranks, target, effort=effort, time_limit=time_limit)


class _Ballots(NamedTuple):
    """What the submodels chose on some rows."""

    votes: NDArray[np.integer]
    ranks: NDArray[np.integer] | None
    costs: NDArray[np.int64] | None


@dataclass(frozen=True, eq=False)
class _Choice:
    """What one submodel chooses, in codes: whole numbers, ``shift`` of which stand before that of the first class."""

    n_codes: int
    shift: int
    ranks: bool
    submodel: Submodel

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.integer]:
        """The code of each row's vote ``(n_rows,)``, or the place of every code ``(n_codes, n_rows)``."""
        if self.ranks:
            scores = self.scores(rows)
            # Not where nobody declared the classes: one that no row has would then be second everywhere.
            return runoff.rankings(scores if self.shift else runoff.behind_first(scores))
        return (self.submodel.vote(rows) + self.shift).astype(np.min_scalar_type(self.n_codes))

    def scores(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The score of every code, ``(n_rows, n_codes)``; of those without one the smaller code is first."""
        constant = np.where(np.arange(self.n_codes) == self.submodel.constant + self.shift, 0.0, -np.inf)
        scores = np.tile(constant, (len(rows), 1))
        if self.submodel.estimator is not None:
            given = np.full_like(scores, -np.inf)
            given[:, self.shift :] = in_fixed_shape(self._given_scores, rows)
            usable = ~np.isnan(given).any(axis=1)
            scores[usable] = given[usable]
        return scores

    def _given_scores(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the classifier says, not a number for rows that it refuses: those vote the constant."""
        return where_possible(self.submodel.estimator.scores, rows, np.full(self.n_codes - self.shift, np.nan))


def _cast(
    make: partial[_Choice], engine: ClassCosts | None, rows: NDArray[np.float64], pair: tuple[Submodel, object]
) -> tuple[NDArray[np.integer], NDArray[np.int64] | None]:
    """One submodel's choice on each row, and what it takes to change it."""
    submodel, prepared = pair
    choice = make(submodel)
    chosen = choice(rows)
    if engine is None:
        return chosen, None
    price = engine.reordering if choice.ranks else engine.joining
    return chosen, price(prepared, rows, chosen, choice.scores)


def _checked_labels(y: ArrayLike) -> NDArray[Any]:
    """One label for each row."""
    try:
        check_classification_targets(y)
    except ValueError as error:
        kind = type_of_target(y)
        raise DataError(
            f"Unknown label type: {kind}; y must hold one class for each row, whole numbers or text; "
            "for numbers in between there is CertifiedRegressor"
        ) from error
    return column_or_1d(y, warn=True)
