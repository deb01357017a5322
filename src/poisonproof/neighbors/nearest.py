"""The median, and the plurality, of the k nearest training rows, with exact certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from poisonproof.certificate import Certificate, Interval, bounds_of
from poisonproof.labels import classes_among, codes_of
from poisonproof.neighbors.declared import (
    DECLARE,
    check_budget,
    classes_of_rows,
    offset_in_training,
    offset_of,
    refuse_groups,
)
from poisonproof.neighbors.ranks import median_costs, median_ends, plurality_costs, ranks_for_budget
from poisonproof.neighbors.remembered import RememberedRows
from poisonproof.partition import content_digests, source_digests

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from poisonproof.neighbors.declared import Offset
    from poisonproof.neighbors.metric import MetricName
    from poisonproof.neighbors.remembered import LabelsOf, Method, RowNumbers
    from poisonproof.threat import Moves, Threat

__all__ = ["CertifiedNeighborsClassifier", "CertifiedNeighborsRegressor"]


class _Found(NamedTuple):
    """What was found for one chunk of rows."""

    prediction: NDArray[Any]
    radius: NDArray[np.int64]
    attack: NDArray[np.int64]


class CertifiedNeighborsRegressor(RegressorMixin, RememberedRows):
    """The median target of the k nearest training rows, with the exact number of poisoned rows it withstands.

    Certifies the declared ``threat``.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbours that vote: an odd number, so that the median is a vote.
    metric : {"euclidean", "manhattan", "chebyshev", "cosine", "minkowski"}
        What near means.
    p : float, default=2
        Exponent of "minkowski".
    ranges : array (n_features, 2) or (2,), optional
        Declared ends of each feature; rows are clipped into them and scaled to [0, 1]. None: neither.
    weights : array (n_features,), optional
        What each scaled feature is multiplied by.
    threat : {"insert+delete", "delete", "insert", "relabel"}
        What the attacker may do.
    method : {"exact", "paper"}
        "exact" counts what an attacker really needs; "paper" is the published bound, which supposes that every
        neighbour pushed out was a good one.
    offset : callable, optional
        A function of one block of rows ``(n_rows, n_features) -> (n_rows,)`` whose value for a row depends on that
        row alone; the neighbours vote with what it leaves of their targets.
    key : int, default=0
        Key of the hash of a row's content, which orders rows at the same distance.
    n_jobs : int, optional
        Threads to search in.

    Attributes
    ----------
    metric_ : Metric
        The declared metric.
    n_features_in_ : int
        Features of a row.

    Notes
    -----
    The published bound is that of Hammoudeh and Lowd, "Reducing Certified Regression to Certified Classification for
    General Poisoning Attacks" (2023). Nothing is learned from the rows, so what any insertion, deletion or changed
    label does to the neighbours can be counted; ``ranges``, ``weights`` and ``offset`` must be declared, not computed
    from the training rows. An attack that leaves fewer than k rows counts as a success, and an inserted row may come
    before every row at the same distance. Choose the number of neighbours on rows that the attacker cannot touch, see
    :func:`poisonproof.neighbors.choose_parameter`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(60.0).reshape(-1, 1)
    >>> model = CertifiedNeighborsRegressor(n_neighbors=9).fit(X, 2 * X[:, 0])
    >>> cert = model.certify([[30.0]], lower=50, upper=70)
    >>> print(cert.summary(0))
    any 4 inserted or deleted training rows leave this prediction within [50, 70]
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        metric: MetricName = "euclidean",
        p: float = 2.0,
        ranges: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        threat: Moves = "insert+delete",
        method: Method = "exact",
        offset: Offset | None = None,
        key: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.p = p
        self.ranges = ranges
        self.weights = weights
        self.threat = threat
        self.method = method
        self.offset = offset
        self.key = key
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike, groups: None = None) -> Self:
        """Remember the rows.

        Parameters
        ----------
        X : array or frame (n_rows, n_features)
            Training rows.
        y : array (n_rows,)
            Targets.
        groups : None
            Sources cannot be counted by this model; giving them is an error.
        """
        refuse_groups(groups, self)
        self._check_parameters()
        self._unsettle()
        rows, targets = self._checked_table(X, y, numeric=True)
        order = self._remember(rows, content_digests(targets[:, None], self.key), targets)
        self._targets = (targets - offset_in_training(self.offset, rows))[order]
        self._settle()
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The median target of the nearest rows, ``(n_rows,)``."""
        rows = self._checked_rows(X)
        votes_of, k = self._votes_of(rows), self.n_neighbors
        return np.concatenate(self._each_chunk(lambda window: _medians(votes_of(window, k)), len(rows)))

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
        votes_of, (k, n_rows) = self._votes_of(rows), (self.n_neighbors, len(self._targets))
        low, high = bounds_of(np.zeros(len(rows)), lower, upper, within, relative=relative)

        def costs_of(which: RowNumbers, ranked: NDArray[np.float64], threat: Threat) -> NDArray[np.int64]:
            return median_costs(ranked, low[which], high[which], k=k, n_rows=n_rows, threat=threat)

        def weigh(window: slice) -> _Found:
            ranked = votes_of(window, self._n_ranks())
            prediction = _medians(ranked[:, :k])
            if within is not None:
                low[window], high[window] = bounds_of(prediction, None, None, within, relative=relative)
            return _Found(prediction, *self._radii(window, ranked, votes_of, costs_of))

        found = _Found(*map(np.concatenate, zip(*self._each_chunk(weigh, len(rows)), strict=True)))
        return self._certificate(*found, lower=low, upper=high)

    def interval(self, X: ArrayLike, budget: int) -> Interval:
        """Where ``budget`` modifications of the training data can move each prediction; both ends are reached."""
        spent = check_budget(budget)
        rows = self._checked_rows(X)
        votes_of, k, n_rows = self._votes_of(rows), self.n_neighbors, len(self._targets)
        # As many modifications as there are rows move every median anywhere.
        capped = min(spent, n_rows)
        count = ranks_for_budget(k, n_rows, self.threat_, capped)

        def reach(window: slice) -> tuple[NDArray[np.float64], ...]:
            ranked = votes_of(window, count)
            ends = median_ends(ranked, k=k, n_rows=n_rows, threat=self.threat_, budget=capped)
            return (*ends, _medians(ranked[:, :k]))

        lower, upper, prediction = map(np.concatenate, zip(*self._each_chunk(reach, len(rows)), strict=True))
        return Interval(lower, upper, prediction, spent, self.threat_, f"exact, {k} nearest neighbours")

    def _votes_of(self, rows: NDArray[np.float64]) -> LabelsOf:
        """The function that looks up the votes of some rows' nearest neighbours, nearest first."""
        queries, offset = self.metric_.encode(rows), offset_of(self.offset, rows)

        def votes_of(which: RowNumbers, count: int) -> NDArray[np.float64]:
            # Sound because the offset is added before anything is compared, so prediction and certificate round alike.
            return self._targets[self._search.nearest(queries[which], count)] + offset[which, None]

        return votes_of


class CertifiedNeighborsClassifier(ClassifierMixin, RememberedRows):
    """The most frequent label of the k nearest training rows, with the exact number of poisoned rows it withstands.

    Ties go to the label that comes first in ``classes_``. Certifies the declared ``threat``.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbours that vote: an odd number, so that two classes never tie.
    metric, p, ranges, weights, threat, key, n_jobs
        As for :class:`CertifiedNeighborsRegressor`.
    method : {"exact", "paper"}
        "exact" counts what an attacker really needs; "paper" is the published bound, which supposes that every
        neighbour pushed out voted for the class.
    classes : array (n_classes,), optional
        Every label there can be. None: those of the training rows, and the attacker may bring one more, which wins
        ties.

    Attributes
    ----------
    classes_ : array (n_classes,)
        The labels, sorted.
    metric_ : Metric
        The declared metric.
    n_features_in_ : int
        Features of a row.

    Notes
    -----
    The published bound is that of Jia, Liu, Cao and Gong, "Certified Robustness of Nearest Neighbors against Data
    Poisoning and Backdoor Attacks" (2022), with ties to the first label. Rows identical to each other or to the one
    that is predicted are ordered by the digests of their labels, which the attacker cannot choose: attacks are counted
    as if that order favoured him, so a radius holds in any case, and ``exact`` supposes such a key there.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(60.0).reshape(-1, 1)
    >>> model = CertifiedNeighborsClassifier(n_neighbors=9, classes=["no", "yes"])
    >>> cert = model.fit(X, np.where(X[:, 0] < 20, "no", "yes")).certify([[40.0]])
    >>> print(cert.summary(0))
    any 4 inserted or deleted training rows leave this prediction at class yes
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        metric: MetricName = "euclidean",
        p: float = 2.0,
        ranges: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        threat: Moves = "insert+delete",
        method: Method = "exact",
        classes: ArrayLike | None = None,
        key: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.p = p
        self.ranges = ranges
        self.weights = weights
        self.threat = threat
        self.method = method
        self.classes = classes
        self.key = key
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike, groups: None = None) -> Self:
        """Remember the rows.

        Parameters
        ----------
        X : array or frame (n_rows, n_features)
            Training rows.
        y : array (n_rows,)
            Labels.
        groups : None
            Sources cannot be counted by this model; giving them is an error.
        """
        refuse_groups(groups, self)
        self._check_parameters()
        self._unsettle()
        rows, labels = self._checked_table(X, y, numeric=False)
        check_classification_targets(labels)
        self.classes_ = classes_among(labels, self.classes)
        codes = codes_of(labels, self.classes_, "y", DECLARE)
        # Sound because a label's digest is its name's: its place among the classes changes when classes appear.
        self._codes = codes[self._remember(rows, source_digests(self.classes_[codes], self.key), codes)]
        self._settle()
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most frequent label of the nearest rows, ``(n_rows,)``."""
        rows = self._checked_rows(X)
        labels_of, k = self._labels_of(rows), self.n_neighbors
        return np.concatenate(self._each_chunk(lambda window: self._plurality(labels_of(window, k)), len(rows)))

    def certify(self, X: ArrayLike, y: ArrayLike | None = None) -> Certificate:
        """How many modifications of the training data leave each prediction at its class.

        Parameters
        ----------
        X : array or frame (n_rows, n_features)
            Rows to predict.
        y : array (n_rows,), optional
            Classes to certify; None: the predicted ones. The radius is -1 where another class is predicted.
        """
        rows = self._checked_rows(X)
        labels_of, k, n_rows = self._labels_of(rows), self.n_neighbors, len(self._codes)
        wanted = None if y is None else classes_of_rows(y, self.classes_, len(rows))
        target = np.zeros(len(rows), dtype=np.int64) if wanted is None else wanted

        def costs_of(which: RowNumbers, ranked: NDArray[np.int64], threat: Threat) -> NDArray[np.int64]:
            return plurality_costs(
                ranked,
                target[which],
                n_classes=len(self.classes_),
                newcomer=self.classes is None,
                k=k,
                n_rows=n_rows,
                threat=threat,
            )

        def weigh(window: slice) -> _Found:
            ranked = labels_of(window, self._n_ranks())
            prediction = self._plurality(ranked[:, :k])
            if wanted is None:
                target[window] = codes_of(prediction, self.classes_, "y", DECLARE)
            return _Found(prediction, *self._radii(window, ranked, labels_of, costs_of))

        found = _Found(*map(np.concatenate, zip(*self._each_chunk(weigh, len(rows)), strict=True)))
        return self._certificate(*found, target=self.classes_[target])

    def _labels_of(self, rows: NDArray[np.float64]) -> LabelsOf:
        """The function that looks up the class numbers of some rows' nearest neighbours, nearest first."""
        queries = self.metric_.encode(rows)
        return lambda which, count: self._codes[self._search.nearest(queries[which], count)]

    def _plurality(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        """The most frequent label of each row of class numbers; argmax takes the first of equals."""
        counts = np.stack([np.count_nonzero(codes == label, axis=1) for label in range(len(self.classes_))])
        return self.classes_[np.argmax(counts, axis=0)]


def _medians(votes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median of each row of an odd number of votes: a vote that was cast."""
    middle = votes.shape[1] // 2
    return np.partition(votes, middle, axis=1)[:, middle]
