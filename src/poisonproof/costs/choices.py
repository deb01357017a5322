"""What it takes to change a submodel's choice of a class: by formula for ridge classifiers, otherwise by refits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from poisonproof.costs.refit import RefitCosts
from poisonproof.costs.ridge_classes import RidgeClassCosts, ridge_recipe_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Choice = Callable[[NDArray[np.float64]], NDArray[np.integer]]
    FitChoice = Callable[[NDArray[np.float64], NDArray[np.float64]], Choice]
    Scores = Callable[[NDArray[np.float64]], NDArray[np.float64]]

__all__ = ["ClassCosts", "RefitClassCosts", "class_costs_for", "costs_of_change", "costs_of_joining"]


class ClassCosts(Protocol):
    """How many rows a submodel must lose before it chooses otherwise, up to ``max_cost``.

    Every number is a lower bound. A number above a submodel's rows says that no deletions bring the change about.
    """

    method: str
    """How the costs are found; it stands in every certificate."""

    def prepare(self, fit: FitChoice, X: NDArray[np.float64], y: NDArray[np.float64]) -> object:
        """What is kept of one submodel's rows and of the places of their labels; once, at fit."""
        ...

    def joining(
        self, prepared: object, X: NDArray[np.float64], votes: NDArray[np.integer], scores: Scores
    ) -> NDArray[np.int64]:
        """The least number of rows left out after which each class may be chosen, ``(n_classes, n_rows)``."""
        ...

    def reordering(
        self, prepared: object, X: NDArray[np.float64], ranks: NDArray[np.integer], scores: Scores
    ) -> NDArray[np.int64]:
        """The least number of rows left out after which the ranking may be another, ``(n_rows,)``."""
        ...


class RefitClassCosts:
    """Refits without every set of fewer than ``max_cost`` rows: any deterministic classifier.

    Certifies deletions of rows. Exact: a cost below ``max_cost`` is the number of deletions that really change the
    choice.
    """

    def __init__(self, max_cost: int, n_classes: int, why: str) -> None:
        self.max_cost = max_cost
        self.n_classes = n_classes
        self.method = f"leave-out refits ({why})"

    def prepare(self, fit: FitChoice, X: NDArray[np.float64], y: NDArray[np.float64]) -> object:
        """The replicas without 1, 2, … ``max_cost - 1`` rows, a list for each number."""
        return RefitCosts(self.max_cost).prepare(cast("Any", fit), X, y)

    def joining(
        self,
        prepared: object,
        X: NDArray[np.float64],
        votes: NDArray[np.integer],  # noqa: ARG002  the protocol's
        scores: Scores,  # noqa: ARG002  the protocol's
    ) -> NDArray[np.int64]:
        """See :class:`ClassCosts`."""
        return costs_of_joining(cast("Any", prepared), X, self.n_classes, self.max_cost)

    def reordering(
        self,
        prepared: object,
        X: NDArray[np.float64],
        ranks: NDArray[np.integer],
        scores: Scores,  # noqa: ARG002  the protocol's
    ) -> NDArray[np.int64]:
        """See :class:`ClassCosts`."""
        return costs_of_change(cast("Any", prepared), X, ranks, self.max_cost)


def class_costs_for(classifier: object, max_cost: int, n_classes: int, shift: int) -> ClassCosts:
    """The way to find costs up to ``max_cost`` for this classifier, against deletions.

    ``shift`` of the ``n_classes`` numbers of classes stand before that of the first label.
    """
    recipe = ridge_recipe_of(classifier)
    if isinstance(recipe, str):
        return RefitClassCosts(max_cost, n_classes, recipe)
    return RidgeClassCosts(recipe, max_cost, shift)


def costs_of_joining(
    replicas: Sequence[Sequence[Choice]], X: NDArray[np.float64], n_classes: int, max_cost: int
) -> NDArray[np.int64]:
    """The least number of rows left out after which each class may be chosen, ``(n_classes, n_rows)``.

    ``max_cost`` where fewer than that never bring the class about.
    """
    costs = np.full((n_classes, len(X)), max_cost, dtype=np.int64)
    rows = np.arange(len(X))
    # From many rows left out to few, so that the fewest stand at the end.
    for size in range(len(replicas), 0, -1):
        for choice in replicas[size - 1]:
            costs[choice(X), rows] = size
    return costs


def costs_of_change(
    replicas: Sequence[Sequence[Choice]], X: NDArray[np.float64], ranks: NDArray[np.integer], max_cost: int
) -> NDArray[np.int64]:
    """The least number of rows left out after which the ranking ``(n_classes, n_rows)`` may change, ``(n_rows,)``."""
    costs = np.full(len(X), max_cost, dtype=np.int64)
    for size in range(len(replicas), 0, -1):
        for choice in replicas[size - 1]:
            costs[np.any(choice(X) != ranks, axis=0)] = size
    return costs
