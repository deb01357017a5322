"""The median, and the plurality, of the training rows within a radius of the test row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from poisonproof.neighbors.metric import Metric
from poisonproof.neighbors.similarity import check_positive
from poisonproof.neighbors.weighing import WeighedRowsClassifier, WeighedRowsRegressor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from poisonproof.neighbors.declared import Offset
    from poisonproof.neighbors.metric import MetricName
    from poisonproof.threat import Moves

__all__ = ["CertifiedRadiusClassifier", "CertifiedRadiusRegressor"]


@dataclass(frozen=True, eq=False)
class _Ball:
    """Weight 1 within the radius, its edge included, and 0 beyond."""

    metric: Metric
    radius: float

    @property
    def heaviest(self) -> Literal[1]:
        return 1

    def encode(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.metric.encode(rows)

    def remember(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.encode(rows)

    def weigh(self, queries: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.int32]:
        return (self.metric.distances(queries, rows) <= self.radius).astype(np.int32)

    def weigh_inserted(self, queries: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.ones(len(queries), dtype=np.int64)


def _ball(model: CertifiedRadiusRegressor | CertifiedRadiusClassifier) -> _Ball:
    check_positive(model.radius, "radius")
    return _Ball(Metric(model.metric, model.p, model.ranges, model.weights), float(model.radius))


class CertifiedRadiusRegressor(WeighedRowsRegressor):
    """The median of the training rows within a radius, with a proof of how many poisoned rows it withstands.

    Certifies the declared ``threat``, exactly.

    Parameters
    ----------
    radius : float, default=1
        Rows at this distance or nearer are neighbours.
    metric : {"euclidean", "manhattan", "chebyshev", "cosine", "minkowski"}
        The distance.
    p : float, default=2
        Exponent of "minkowski".
    ranges : array (n_features, 2) or (2,), optional
        Declared ends of each feature: rows are clipped into them and scaled to [0, 1]. None: neither.
    weights : array (n_features,), optional
        What each feature is multiplied by.
    offset : callable, optional
        A function of one block of rows ``(n_rows, n_features) -> (n_rows,)`` whose values for a row depend on that
        row alone; the median is taken of what it leaves of the target.
    empty_value : float, default=0
        Declared prediction where there are no neighbours (of what the offset leaves).
    threat : {"insert+delete", "delete", "insert", "relabel"}
        What the attacker may do.
    n_jobs : int, optional
        Threads to compare rows in.

    Attributes
    ----------
    values_ : array (n_rows,)
        What the offset leaves of the training targets, ascending.
    threat_ : Threat
        What is certified.

    Notes
    -----
    The median of an even number of neighbours is the midpoint of the two middle values. The exact radius counts a set
    that grows with each insertion and shrinks with each deletion; an attacker's row can be anywhere, also at the test
    row.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(60.0).reshape(-1, 1)
    >>> model = CertifiedRadiusRegressor(radius=6.0).fit(X, 2 * X[:, 0])
    >>> cert = model.certify([[30.0]], lower=50, upper=70)
    >>> print(cert.summary(0))
    any 10 inserted or deleted training rows leave this prediction within [50, 70]
    """

    def __init__(
        self,
        radius: float = 1.0,
        *,
        metric: MetricName = "euclidean",
        p: float = 2.0,
        ranges: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        offset: Offset | None = None,
        empty_value: float = 0.0,
        threat: Moves = "insert+delete",
        n_jobs: int | None = None,
    ) -> None:
        self.radius = radius
        self.metric = metric
        self.p = p
        self.ranges = ranges
        self.weights = weights
        self.offset = offset
        self.empty_value = empty_value
        self.threat = threat
        self.n_jobs = n_jobs

    def _weighing(self) -> _Ball:
        return _ball(self)

    def _method(self) -> str:
        return f"exact bound of neighbours within {self.radius:g}"


class CertifiedRadiusClassifier(WeighedRowsClassifier):
    """The most frequent class within a radius, with a proof of how many poisoned rows it withstands.

    Certifies the declared ``threat``, exactly. Ties go to the smaller label.

    Parameters
    ----------
    radius : float, default=1
        Rows at this distance or nearer are neighbours.
    metric, p, ranges, weights
        The distance, as in :class:`CertifiedRadiusRegressor`.
    classes : array, optional
        All labels there can be. None: an attacker's rows may have any label, so a rival nobody has seen is reckoned
        with, which wins ties.
    empty_value : label, optional
        Declared class where there are no neighbours. None: the smallest declared class; where classes are undeclared
        too, the smallest label seen, of which nothing is certified.
    threat : {"insert+delete", "delete", "insert", "relabel"}
        What the attacker may do.
    n_jobs : int, optional
        Threads to compare rows in.

    Attributes
    ----------
    classes_ : array (n_classes,)
        The labels, ascending.
    threat_ : Threat
        What is certified.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> y = np.where(X[:, 0] < 10, "low", "high")
    >>> model = CertifiedRadiusClassifier(radius=4.0, classes=["high", "low"]).fit(X, y)
    >>> print(model.certify([[3.0], [9.0]]).radius)
    [7 0]
    """

    def __init__(
        self,
        radius: float = 1.0,
        *,
        metric: MetricName = "euclidean",
        p: float = 2.0,
        ranges: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        empty_value: Any = None,  # noqa: ANN401  a label of any type
        threat: Moves = "insert+delete",
        n_jobs: int | None = None,
    ) -> None:
        self.radius = radius
        self.metric = metric
        self.p = p
        self.ranges = ranges
        self.weights = weights
        self.classes = classes
        self.empty_value = empty_value
        self.threat = threat
        self.n_jobs = n_jobs

    def _weighing(self) -> _Ball:
        return _ball(self)

    def _method(self) -> str:
        return f"exact bound of neighbours within {self.radius:g}"
