"""Training rows that are remembered as they are: what every model of nearest neighbours shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np

from poisonproof.certificate import Certificate
from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.neighbors.metric import Metric
from poisonproof.neighbors.ranks import UNDECIDED, ranks_for_costs
from poisonproof.neighbors.search import Search
from poisonproof.partition import check_key, content_digests
from poisonproof.settled import Settled
from poisonproof.threat import Threat
from poisonproof.votes import check_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from poisonproof.neighbors.metric import MetricName
    from poisonproof.threat import Moves

    RowNumbers = slice | NDArray[np.intp]
    LabelsOf = Callable[[RowNumbers, int], NDArray[Any]]
    CostsOf = Callable[[RowNumbers, NDArray[Any], Threat], NDArray[np.int64]]

__all__ = ["Method", "RememberedRows", "check_neighbors"]

Method = Literal["exact", "paper"]

_METHODS: Final[dict[Method, str]] = {"exact": "exact", "paper": "published bound"}


class RememberedRows(Settled):
    """A model that keeps its training rows and looks for the nearest of them.

    Notes
    -----
    Identical rows are ordered by the digests of their targets, and an inserted row may be identical to others at the
    test row. Attacks are counted as if that order favoured the attacker. So the radii hold in any case, but that no
    larger one does, as ``exact`` says, then supposes that some label of his has the digest it takes.
    """

    _read_with: ClassVar[tuple[str, ...]] = ("n_neighbors", "offset", "classes", "threat", "key")
    n_neighbors: int
    metric: MetricName
    p: float
    ranges: ArrayLike | None
    weights: ArrayLike | None
    threat: Moves
    method: Method
    key: int
    n_jobs: int | None

    def kneighbors(self, X: ArrayLike, n_neighbors: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Distances and numbers of the nearest training rows, nearest first, as the model itself orders them.

        Parameters
        ----------
        X : array or frame (n_rows, n_features)
            Rows to look around.
        n_neighbors : int, optional
            How many; None: the model's own number.

        Returns
        -------
        distances, numbers : arrays (n_rows, n_neighbors)
            Numbers count the training rows in the order they were given to ``fit``.
        """
        queries = self.metric_.encode(self._checked_rows(X))
        count = self.n_neighbors if n_neighbors is None else _checked_count(n_neighbors)
        if not 1 <= count <= len(self._order):
            raise ParameterError(f"n_neighbors={count} must be from 1 to the {len(self._order)} training rows")
        places = np.concatenate(
            self._each_chunk(lambda window: self._search.nearest(queries[window], count), len(queries))
        )
        apart = [self.metric_.distances(queries[[row]], self._search.rows[near])[0] for row, near in enumerate(places)]
        return np.array(apart), self._order[places]

    def _check_parameters(self) -> None:
        check_neighbors(self.n_neighbors)
        if not isinstance(self.method, str) or self.method not in _METHODS:
            raise ParameterError(f"method={self.method!r} is unknown; use 'exact' or 'paper'")
        check_key(self.key)
        check_jobs(self.n_jobs)

    def _remember(
        self, rows: NDArray[np.float64], label_digests: NDArray[np.uint64], labels: NDArray[Any]
    ) -> NDArray[np.int64]:
        """Keep the encoded rows in the order that breaks ties at equal distances; the order is returned.

        Labels may hash alike, as ``1`` and ``01`` do; ``labels`` tells them apart.
        """
        metric, threat = Metric(self.metric, self.p, self.ranges, self.weights), Threat.of(self.threat)
        if self.n_neighbors > len(rows):
            raise DataError(
                f"n_neighbors={self.n_neighbors} is more than the training rows, n_samples={len(rows)}; "
                f"use at most {len(rows) - (len(rows) + 1) % 2}"
            )
        digests = content_digests(rows, self.key)
        # Sound because the order is one of content: inserting or deleting rows leaves that of the others as it is.
        order = np.lexsort((labels, label_digests[:, 1], label_digests[:, 0], digests[:, 1], digests[:, 0]))
        self.metric_, self.threat_, self._order = metric, threat, order
        self._search = Search(metric, metric.encode(rows)[order])
        return order

    def _each_chunk(self, work: Callable[[slice], Any], n_rows: int) -> list[Any]:
        return self._search.each_chunk(work, n_rows, self.n_jobs)

    def _radii(
        self, window: slice, ranked: NDArray[Any], labels_of: LabelsOf, costs_of: CostsOf
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Radius and attack of the rows in a window, from the ranks at hand or, where they do not decide, from all."""
        attack = costs_of(window, ranked, self.threat_)
        for row in np.flatnonzero(attack == UNDECIDED):
            number = np.array([window.start + row])
            attack[row] = costs_of(number, labels_of(number, len(self._order)), self.threat_)[0]
        if self.method == "exact":
            return attack - 1, attack
        # The published bound lets each modification replace one vote, which is what a changed label does.
        published = costs_of(window, ranked[:, : self.n_neighbors], Threat("relabel")) - 1
        # Sound because only deletions can leave fewer than k rows, and that takes more than n_rows - k of them.
        most = len(self._order) - self.n_neighbors if self.threat_.deletes else len(self._order)
        return np.minimum(published, most), attack

    def _n_ranks(self) -> int:
        return ranks_for_costs(self.n_neighbors, len(self._order), self.threat_)

    def _certificate(
        self, prediction: NDArray[Any], radius: NDArray[np.int64], attack: NDArray[np.int64], **region: NDArray[Any]
    ) -> Certificate:
        return Certificate(
            prediction=prediction,
            radius=radius,
            attack=attack,
            unbreakable=attack > len(self._order),
            threat=self.threat_,
            method=f"{_METHODS[self.method]}, {self.n_neighbors} nearest neighbours",
            **region,
        )


def check_neighbors(count: int) -> None:
    """An error unless so many neighbours can vote."""
    k = _checked_count(count)
    if k < 1:
        raise ParameterError(f"n_neighbors={k} must be at least 1")
    if k % 2 == 0:
        raise ParameterError(f"n_neighbors={k} must be odd so that two sides never tie; use {k - 1} or {k + 1}")


def _checked_count(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int | np.integer):
        raise ParameterTypeError(f"n_neighbors={count!r} must be an integer")
    return int(count)
