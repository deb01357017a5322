"""Gradient-boosted regression trees whose leave-out replicas can be grown together."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.learners.kernel_ridge import SCALES
from poisonproof.learners.mixup import mix
from poisonproof.learners.presort import presort
from poisonproof.learners.tree_growth import Growth, Trees, grow, predict

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from poisonproof.learners.kernel_ridge import TargetTransform
    from poisonproof.learners.mixup import Mixed

__all__ = ["BoostedTreesRegressor"]

_MOST_DEPTH: Final = 9
_MOST_PENALTY: Final = 1e15
_MOST_MIXTURES: Final = 1e3
_MOST_TARGET: Final = 1e150  # squares of sums of targets stay finite
_LEARNED: Final[dict[TargetTransform | None, tuple[Callable[[float], float], float]]] = {
    None: (float, -np.inf),
    "log": (math.log, 0.0),
    "log1p": (math.log1p, -1.0),
}
"""Each target transform of one number, and what the number must be above."""


class BoostedTreesRegressor(RegressorMixin, BaseEstimator):
    """Gradient boosting of regression trees on squared error, every split the best there is.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees at most; growth ends early once a tree changes nothing.
    learning_rate : float, default=0.3
        Share of each leaf's best value that is added, above 0 and at most 1.
    max_depth : int, default=2
        Splits between root and leaf, 1 to 9.
    reg_lambda : float, default=1.0
        Penalty that shrinks leaf values: the sum of residuals is divided by the number of rows plus this.
    min_split_loss : float, default=0.0
        Splits that lower the penalised loss by less are taken back, from the leaves upwards.
    min_child_weight : float, default=1.0
        Fewest rows on either side of a split.
    mixup : float, default=0.0
        How many mixtures of each pair of rows to learn from as well, on average; n rows have n(n - 1)/2 pairs.
    target_transform : {None, "log", "log1p"}
        The scale the target is learned on; predictions come back on the target's own.

    Attributes
    ----------
    base_ : float
        The mean of the learned targets, where every prediction starts.
    n_estimators_ : int
        How many trees there are.

    Notes
    -----
    The exact greedy algorithm of Chen and Guestrin (2016), without their approximations and without randomness. Sums of
    residuals are exact, so splits that part a node's rows alike are always equally good: the lowest feature wins, then
    the lowest threshold. A threshold lies halfway between two neighbouring values of the node's rows; smaller values go
    to the left. The order of the rows matters only for the rounding of their mean.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> model = BoostedTreesRegressor(n_estimators=1, learning_rate=1.0, max_depth=1, reg_lambda=0.0)
    >>> model.fit(X, [1, 1, 1, 1, 1, 4, 4, 4]).predict([[4.4], [4.5]]).tolist()
    [1.0, 4.0]
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        learning_rate: float = 0.3,
        max_depth: int = 2,
        reg_lambda: float = 1.0,
        min_split_loss: float = 0.0,
        min_child_weight: float = 1.0,
        mixup: float = 0.0,
        target_transform: TargetTransform | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.reg_lambda = reg_lambda
        self.min_split_loss = min_split_loss
        self.min_child_weight = min_child_weight
        self.mixup = mixup
        self.target_transform = target_transform

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array (n_rows, n_features)
            Training rows.
        y : array (n_rows,)
            Targets.
        """
        growth = self.growth()
        rows, targets = validate_data(self, X, y, dtype=np.float64, order="C", y_numeric=True)
        targets = np.asarray(targets, dtype=np.float64)
        unusable = ~self.learnable(targets)
        if unusable.any():
            row = int(np.argmax(unusable))
            limit = f"above {_LEARNED[self.target_transform][1]:g} and " if self.target_transform else ""
            raise DataError(f"the target of row {row} is {targets[row]:g}; it must be {limit}at most 1e150 in size")
        grown = self.mixed(rows, targets)
        trees = Trees(*grow(grown.X, grown.y, presort(grown.X), growth))
        self.base_, self._unit, self._feature, self._threshold, self._leaf = trees
        self.n_estimators_ = len(trees.feature)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The prediction for each row, ``(n_rows,)``."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        trees = Trees(self.base_, self._unit, self._feature, self._threshold, self._leaf)
        return self.in_target_units(predict(trees, rows))

    def growth(self) -> Growth:
        """The parameters, checked."""
        self._check_types()
        if self.n_estimators < 1:
            raise ParameterError(f"n_estimators={self.n_estimators} must be at least 1")
        if not 1 <= self.max_depth <= _MOST_DEPTH:
            raise ParameterError(f"max_depth={self.max_depth} must be from 1 to {_MOST_DEPTH}")
        if not 0 < self.learning_rate <= 1:
            raise ParameterError(f"learning_rate={self.learning_rate!r} must be above 0 and at most 1")
        for name in ("reg_lambda", "min_split_loss", "min_child_weight", "mixup"):
            value, most = getattr(self, name), _MOST_MIXTURES if name == "mixup" else _MOST_PENALTY
            if not 0 <= value <= most:
                raise ParameterError(f"{name}={value!r} must be from 0 to {most:g}")
        if self.target_transform not in tuple(_LEARNED):
            allowed = ", ".join(map(repr, _LEARNED))
            raise ParameterError(f"target_transform={self.target_transform!r} is unknown; use one of {allowed}")
        return Growth(
            int(self.n_estimators),
            int(self.max_depth),
            float(self.learning_rate),
            float(self.reg_lambda),
            float(self.min_split_loss),
            # A side without rows is no side.
            max(1.0, float(self.min_child_weight)),
        )

    def _check_types(self) -> None:
        for name in ("n_estimators", "max_depth"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise ParameterTypeError(f"{name}={value!r} must be an integer")
        for name in ("learning_rate", "reg_lambda", "min_split_loss", "min_child_weight", "mixup"):
            if not isinstance(getattr(self, name), Real):
                raise ParameterTypeError(f"{name}={getattr(self, name)!r} must be a number")

    def learnable(self, targets: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which targets can be learned: finite, of a sensible size, and within the transform's domain."""
        return (np.abs(targets) <= _MOST_TARGET) & (targets > _LEARNED[self.target_transform][1])

    def learned(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """The targets on the scale that is learned, each computed by itself."""
        # Sound because a target's rounding must not depend on the rows beside it: vector instructions promise nothing.
        scale = _LEARNED[self.target_transform][0]
        return np.array([scale(target) for target in targets.tolist()], dtype=np.float64)

    def mixed(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> Mixed:
        """What trees are grown on: the rows with their mixtures, the targets on the scale that is learned."""
        return mix(X, self.learned(y), self.mixup)

    def in_target_units(self, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions on the learned scale as predictions of the target."""
        with np.errstate(over="ignore"):
            return np.asarray(SCALES[self.target_transform][1](predictions), dtype=np.float64)
