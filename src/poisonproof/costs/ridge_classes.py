"""Costs of ridge classifiers by formula: the score of a class over another is a ridge regression of its own.

A ridge classifier regresses one column for each class, 1 on its rows and -1 on all others (one column alone where there
are two classes), and chooses the highest. Half of the difference of two columns is 1 on the rows of the one class, -1
on those of the other and 0 elsewhere, and its regression is half of the difference of the scores: on all rows, and
after any deletions that leave both classes, the last two included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import Pipeline

from poisonproof.costs.smoother import Recipe, SmootherCosts, recipe_of
from poisonproof.costs.smoother.factors import about_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from poisonproof.costs.smoother.engine import Prepared
    from poisonproof.costs.smoother.factors import Factors

    Choice = Callable[[NDArray[np.float64]], NDArray[np.integer]]
    FitChoice = Callable[[NDArray[np.float64], NDArray[np.float64]], Choice]
    Scores = Callable[[NDArray[np.float64]], NDArray[np.float64]]

__all__ = ["RidgeClassCosts", "ridge_recipe_of"]

_SHARED: Final = ("alpha", "fit_intercept", "copy_X", "max_iter", "tol", "solver", "positive", "random_state")


@dataclass(frozen=True, eq=False)
class Block:
    """One submodel's rows.

    Parameters
    ----------
    classes : int array (n,)
        The class of each row.
    emptied : Choice
        What is chosen without rows.
    smoother : Prepared or None
        The rows taken apart for a regression; None where they are of a single class.
    """

    classes: NDArray[np.int64]
    emptied: Choice
    smoother: Prepared | None

    def __len__(self) -> int:
        return len(self.classes)


class RidgeClassCosts:
    """How many rows a ridge classifier must lose before a class reaches the score of the one it chooses.

    Certifies deletions of rows. Exact for one and two deletions where no class can vanish, up to a margin; sound
    bounds otherwise.

    Parameters
    ----------
    recipe : Recipe
        The regression of one column.
    max_cost : int
        Largest cost to ask for.
    shift : int
        The class of the label in place 0.

    Notes
    -----
    A class is chosen once it has overtaken every other one that has not lost its last row: that is no choice any more,
    and the others score as before. Only the chosen class and the next one are looked at: the rest can but raise a cost.
    """

    def __init__(self, recipe: Recipe, max_cost: int, shift: int) -> None:
        self.recipe = recipe
        self.max_cost = max_cost
        self.shift = shift
        self._engine = SmootherCosts(recipe, max_cost, "delete")
        self._intercept = bool(recipe.core.fit_intercept)
        self.method = f"{self._engine.method} for ridge classes"

    def prepare(self, fit: FitChoice, X: NDArray[np.float64], y: NDArray[np.float64]) -> Block:
        """The rows taken apart once, for all pairs of classes."""
        classes, emptied = y.astype(np.int64) + self.shift, fit(X[:0], y[:0])
        if len(np.unique(classes)) < 2:
            return Block(classes, emptied, None)
        targets = _between(classes, int(classes.max()), int(classes.min()))
        # What no rows choose goes along as their vote; nobody asks: no bound reaches as far as all rows.
        return Block(classes, emptied, self._engine.prepare(cast("Any", fit), X, targets))

    def joining(
        self, prepared: object, X: NDArray[np.float64], votes: NDArray[np.integer], scores: Scores
    ) -> NDArray[np.int64]:
        """The least number of rows left out after which each class may be chosen, ``(n_classes, n_rows)``."""
        block, given = cast("Block", prepared), scores(X)
        costs = np.full((given.shape[1], len(X)), self.max_cost, dtype=np.int64)
        present = np.unique(block.classes)
        costs[present] = 1
        # Sound because whoever is chosen has overtaken both of the first two, or they are gone: the dearer one counts.
        for leader, rows in _leading(given, votes, present):
            for rival in present[present != leader]:
                some = rows[votes[rows] != rival]
                ahead = self._overtaking(block, int(rival), leader, X[some], given[some])
                costs[rival, some] = np.maximum(costs[rival, some], ahead)
        costs[votes, np.arange(len(X))] = self.max_cost  # what is chosen already takes nothing
        unaccounted = ~np.isin(votes, present) if len(block) else np.zeros(len(X), dtype=bool)
        costs[:, unaccounted | self._unknown(block)] = 1
        if 0 < len(block) < self.max_cost:
            last = (block.emptied(X), np.arange(len(X)))
            costs[last] = np.minimum(costs[last], len(block))
        return costs

    def reordering(
        self, prepared: object, X: NDArray[np.float64], ranks: NDArray[np.integer], scores: Scores
    ) -> NDArray[np.int64]:
        """The least number of rows left out after which the ranking may be another, ``(n_rows,)``."""
        block, given = cast("Block", prepared), scores(X)
        present, counts = np.unique(block.classes, return_counts=True)
        costs = np.full(len(X), self.max_cost, dtype=np.int64)
        if len(block) == 0:
            return costs
        # Sound because no order changes while each class keeps its neighbours, and while none of them vanishes.
        costs = np.minimum(costs, counts.min())
        if self._unknown(block):
            return np.ones_like(costs)
        order = present[np.argsort(ranks[present], axis=0)]
        for held, rival in pairwise(order):
            for pair in np.unique(np.stack([rival, held]), axis=1).T:
                rows = np.flatnonzero((rival == pair[0]) & (held == pair[1]))
                ahead = self._overtaking(block, int(pair[0]), int(pair[1]), X[rows], given[rows])
                costs[rows] = np.minimum(costs[rows], ahead)
        return costs

    def _unknown(self, block: Block) -> bool:
        """Whether nothing is known, because the regression hangs on rounding."""
        return block.smoother is not None and block.smoother.factors is None

    def _overtaking(
        self, block: Block, rival: int, held: int, X: NDArray[np.float64], given: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """The least number of rows left out after which ``rival`` may score as high as ``held``, or that is gone."""
        most = min(int(np.sum(block.classes == held)), self.max_cost)
        if most == 1 or self._unknown(block) or len(X) == 0:
            return np.ones(len(X), dtype=np.int64)
        smoother = cast("Prepared", block.smoother)
        targets = _between(block.classes, rival, held)
        factors = _relearned(cast("Factors", smoother.factors), targets, intercept=self._intercept)
        with np.errstate(invalid="ignore"):  # a submodel that votes its constant scores no class of its rows
            ahead = (given[:, rival] - given[:, held]) / 2
        # No deeper than the class has rows: what more deletions do to the scores is of no account.
        reach = SmootherCosts(self.recipe, most, "delete").reach(replace(smoother, factors=factors), ahead, X)
        # Sound because a tie counts as overtaking, whichever class ties go to, and so does what is not a number.
        return np.maximum(np.sum(reach.high < 0, axis=0), 1)


def _leading(
    given: NDArray[np.float64], votes: NDArray[np.integer], present: NDArray[np.int64]
) -> list[tuple[int, NDArray[np.intp]]]:
    """Each class, and the rows on which it is chosen or scores highest of the others."""
    others = np.where(present[:, None] == votes, -np.inf, given.T[present])
    second = present[others.argmax(axis=0)] if len(present) > 1 else votes
    return [(int(leader), np.flatnonzero((votes == leader) | (second == leader))) for leader in present]


def ridge_recipe_of(classifier: Any) -> Recipe | str:  # noqa: ANN401  any scikit-learn classifier
    """The recipe of the regression of one column, or why there is none.

    Examples
    --------
    >>> ridge_recipe_of(RidgeClassifier(alpha=0.1)).core
    Ridge(alpha=0.1)
    >>> ridge_recipe_of(RidgeClassifier(class_weight="balanced"))
    "class_weight='balanced' weighs rows by how many others there are"
    """
    regression = _regression_of(classifier)
    return regression if isinstance(regression, str) else recipe_of(regression)


def _regression_of(classifier: Any) -> Any:  # noqa: ANN401  as above
    # Exact types throughout: a subclass may compute anything.
    if type(classifier) is Pipeline:
        *steps, (name, last) = classifier.steps
        inner = _regression_of(last)
        return inner if isinstance(inner, str) else Pipeline([*steps, (name, inner)])
    if type(classifier) is not RidgeClassifier:
        return f"{type(classifier).__name__} is no ridge classifier"
    if classifier.class_weight is not None:
        return f"class_weight={classifier.class_weight!r} weighs rows by how many others there are"
    return Ridge(**{name: getattr(classifier, name) for name in _SHARED})


def _between(classes: NDArray[np.int64], rival: int, held: int) -> NDArray[np.float64]:
    """What the score of ``rival`` over that of ``held`` learns, halved."""
    return (classes == rival).astype(np.float64) - (classes == held)


def _relearned(factors: Factors, targets: NDArray[np.float64], *, intercept: bool) -> Factors:
    """The same regression of other targets, which are halves of the difference of two columns of ±1."""
    about = about_mean(targets) if intercept else targets
    if factors.root is not None:
        residuals = factors.root @ (factors.root.T @ about)
    else:
        residuals = about - factors.weights(factors.features) @ about
    # Sound because each column is solved by itself, with an error in proportion to its own spread: both are counted.
    columns = [np.where(targets == side, 0.5, -0.5) for side in (1, -1)]
    spread = sum(float(np.linalg.norm(column - column.mean() if intercept else column)) for column in columns)
    return factors._replace(targets=targets, residuals=residuals, spread=spread)
