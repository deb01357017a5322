"""The weighted median, and the weighted plurality, of all training rows under a declared similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poisonproof.neighbors.similarity import LargestSimilarity, Similarity
from poisonproof.neighbors.weighing import WeighedRowsClassifier, WeighedRowsRegressor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from poisonproof.neighbors.declared import Offset
    from poisonproof.neighbors.metric import MetricName
    from poisonproof.neighbors.similarity import AnySimilarity
    from poisonproof.threat import Moves

__all__ = ["CertifiedKernelClassifier", "CertifiedKernelRegressor"]


def _largest(model: CertifiedKernelRegressor | CertifiedKernelClassifier) -> LargestSimilarity:
    template = Similarity("tricube", model.bandwidth, model.metric, model.p, model.ranges, model.weights)
    return LargestSimilarity(model.similarity, template)


def _described(similarity: AnySimilarity) -> str:
    if isinstance(similarity, str):
        return f"{similarity} similarity"
    return "declared similarity" if callable(similarity) else f"largest of {len(similarity)} similarities"


class CertifiedKernelRegressor(WeighedRowsRegressor):
    """The similarity-weighted median of all training rows, with a proof of how many poisoned rows it withstands.

    Certifies the declared ``threat``, exactly where a row inserted at the test row is as similar as rows can be, as it
    is with every named similarity; safely in any case. Where it is not, no attack by insertion is known.

    Parameters
    ----------
    similarity : str, callable, or sequence of (scale, str or callable)
        "tricube", "box", "gaussian" or "laplacian" of the distance; or a function of two blocks of rows
        ``(n_queries, n_features), (n_rows, n_features) -> (n_queries, n_rows)`` with values in [0, 1], each of which
        depends on its two rows alone; or pairs of a scale in (0, 1] and one of these: the largest scaled similarity
        counts. :class:`poisonproof.neighbors.Similarity` gives a named one a bandwidth and metric of its own.
    bandwidth : float, default=1
        The distance that counts as one, for similarities given by their name.
    metric, p, ranges, weights
        The distance, as in :class:`CertifiedRadiusRegressor`, for similarities given by their name.
    offset : callable, optional
        A function of one block of rows ``(n_rows, n_features) -> (n_rows,)`` whose values for a row depend on that
        row alone; the median is taken of what it leaves of the target.
    empty_value : float, default=0
        Declared prediction where no row is similar at all (of what the offset leaves).
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
    Weights are similarities in steps of 2**-30, so that sums and margins of them are exact whatever the order. An
    inserted row takes at most 1 off the margin between the weight inside the bounds and the weight outside.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(60.0).reshape(-1, 1)
    >>> model = CertifiedKernelRegressor(bandwidth=12.0).fit(X, 2 * X[:, 0])
    >>> cert = model.certify([[30.0]], lower=50, upper=70)
    >>> print(cert.summary(0))
    any 10 inserted or deleted training rows leave this prediction within [50, 70]
    """

    def __init__(
        self,
        similarity: AnySimilarity = "tricube",
        bandwidth: float = 1.0,
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
        self.similarity = similarity
        self.bandwidth = bandwidth
        self.metric = metric
        self.p = p
        self.ranges = ranges
        self.weights = weights
        self.offset = offset
        self.empty_value = empty_value
        self.threat = threat
        self.n_jobs = n_jobs

    def _weighing(self) -> LargestSimilarity:
        return _largest(self)

    def _method(self) -> str:
        return f"exact margin, {_described(self.similarity)}"


class CertifiedKernelClassifier(WeighedRowsClassifier):
    """The class of the largest total similarity, with a proof of how many poisoned rows it withstands.

    Certifies the declared ``threat``, exactly where a row inserted at the test row is as similar as rows can be; safely
    in any case. Where it is not, no attack by insertion is known. Ties go to the smaller label.

    Parameters
    ----------
    similarity, bandwidth, metric, p, ranges, weights
        How much each row counts, as in :class:`CertifiedKernelRegressor`.
    classes : array, optional
        All labels there can be. None: an attacker's rows may have any label, so a rival nobody has seen is reckoned
        with, which wins ties.
    empty_value : label, optional
        Declared class where no row is similar at all. None: the smallest declared class; where classes are undeclared
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
    >>> model = CertifiedKernelClassifier("box", 4.0, classes=[0, 1]).fit(X, X[:, 0] >= 10)
    >>> print(model.certify([[3.0], [9.0]]).radius)
    [8 1]
    """

    def __init__(
        self,
        similarity: AnySimilarity = "tricube",
        bandwidth: float = 1.0,
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
        self.similarity = similarity
        self.bandwidth = bandwidth
        self.metric = metric
        self.p = p
        self.ranges = ranges
        self.weights = weights
        self.classes = classes
        self.empty_value = empty_value
        self.threat = threat
        self.n_jobs = n_jobs

    def _weighing(self) -> LargestSimilarity:
        return _largest(self)

    def _method(self) -> str:
        return f"exact margin, {_described(self.similarity)}"
