"""Kernel ridge regression for small blocks of rows: two kernels in one, a free intercept, declared ranges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Final, Literal, Self, get_args

import numpy as np
import scipy.linalg
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from poisonproof.compiled import njit_any_order
from poisonproof.errors import DataError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Scale = Callable[[NDArray[np.float64]], NDArray[np.float64]]

__all__ = ["SCALES", "BlockKernel", "KernelRidge", "TargetTransform", "constant_mirror", "contrasts_solved"]

TargetTransform = Literal["log", "log1p"]

SCALES: Final[dict[TargetTransform | None, tuple[Scale, Scale]]] = {
    None: (np.positive, np.positive),
    "log": (np.log, np.exp),
    "log1p": (np.log1p, np.expm1),
}
"""Each target transform and its inverse; all increase, so they pass through a median and through a bound."""


@dataclass(frozen=True)
class BlockKernel:
    """The kernel ``exp(-gamma * L1) / gamma + linear * dot product``, each part where its factor is not 0."""

    gamma: float
    linear: float

    def between(self, rows: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
        """The kernel of every pair, ``(n_rows, n_others)``."""
        if not self.gamma:
            return self.linear * (rows @ others.T)
        values = _city_block(rows, others)
        values *= -self.gamma
        np.exp(values, out=values)
        values /= self.gamma
        if self.linear:
            values += self.linear * (rows @ others.T)
        return values

    def with_itself(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The kernel of each row with itself, ``(n_rows,)``."""
        values = self.linear * np.einsum("ij,ij->i", rows, rows)
        return values + 1 / self.gamma if self.gamma else values


class KernelRidge(RegressorMixin, BaseEstimator):
    """Kernel ridge regression made for blocks of 10 to 500 rows.

    Parameters
    ----------
    alpha : float, default=0.03
        Penalty. With 0 the model interpolates, and refuses rows that do not determine it.
    gamma : float or None, default=0.3
        Rate of the Laplace part ``exp(-gamma * L1) / gamma``; None leaves the part out.
    linear : float, default=1.0
        Factor of the linear part, the dot product; 0 leaves the part out.
    weights : array (n_features,), optional
        Declared importance of each feature, which it is multiplied with. One-hot columns do well at 0.03 to 0.3 where
        numbers are scaled to [0, 1].
    target_transform : {None, "log", "log1p"}
        The scale the target is learned on; predictions come back on the target's own.
    ranges : pair, or array (n_features, 2), optional
        Declared range of the features before weighting, one pair for all or one each: every row is clipped into it.
    target_range : pair, optional
        Declared range of the target: training targets are clipped into it, so no label pulls further than its ends.

    Attributes
    ----------
    intercept_ : float
        Unpenalised level.
    dual_coef_ : float array (n_rows,)
        Weight of each training row's kernel; they sum to 0.
    rows_ : float array (n_rows, n_features)
        The training rows, clipped and weighted.

    Notes
    -----
    The intercept is free, so the coefficients live in the complement of the constant vector, and the system is solved
    there: nothing cancels, and any part of the kernel that is constant drops out. Each prediction is summed in a fixed
    order and so depends on its own row alone, to the last bit. With ``ranges`` and ``target_range`` declared, what an
    inserted row or a changed label can do is bounded, which costs above one need under those threats.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 12).reshape(-1, 1)
    >>> model = KernelRidge(alpha=1e-6).fit(X, np.exp(X[:, 0]))
    >>> model.predict([[0.5]]).round(2).tolist()
    [1.65]
    """

    def __init__(
        self,
        alpha: float = 0.03,
        *,
        gamma: float | None = 0.3,
        linear: float = 1.0,
        weights: ArrayLike | None = None,
        target_transform: TargetTransform | None = None,
        ranges: ArrayLike | None = None,
        target_range: tuple[float, float] | None = None,
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.linear = linear
        self.weights = weights
        self.target_transform = target_transform
        self.ranges = ranges
        self.target_range = target_range

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train on one block of rows.

        Parameters
        ----------
        X : array (n_rows, n_features)
            Training rows.
        y : array (n_rows,)
            Targets.
        """
        kernel = self.kernel()
        rows, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self.rows_ = self.encoded(rows)
        learned = self.learned_targets(targets)
        gram = kernel.between(self.rows_, self.rows_)
        solved = contrasts_solved(gram, float(self.alpha))
        level = np.mean(learned)
        self.dual_coef_ = solved @ (solved.T @ (learned - level))
        self.intercept_ = float(level - np.mean(gram @ self.dual_coef_))
        if not isfinite(self.intercept_):
            raise DataError("the coefficients of these rows are not finite; use a larger alpha, or smaller targets")
        self._slopes = kernel.linear * (self.rows_.T @ self.dual_coef_)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The prediction for each row, ``(n_rows,)``."""
        check_is_fitted(self)
        rows = self.encoded(validate_data(self, X, reset=False, dtype=np.float64))
        levels = _levels(rows, self.rows_, self.dual_coef_, self._slopes, self.intercept_, float(self.gamma or 0.0))
        return SCALES[self.target_transform][1](levels)

    def kernel(self) -> BlockKernel:
        """The kernel these parameters declare; an error where they declare none."""
        for name, value in (("alpha", self.alpha), ("linear", self.linear)):
            if not (isinstance(value, Real) and np.isfinite(value) and value >= 0):
                raise ParameterError(f"{name}={value!r} must be a finite number of at least 0")
        if self.gamma is not None and not (isinstance(self.gamma, Real) and np.isfinite(self.gamma) and self.gamma > 0):
            raise ParameterError(f"gamma={self.gamma!r} must be a finite number above 0, or None for no Laplace part")
        gamma = float(self.gamma or 0.0)
        if not gamma and not self.linear:
            raise ParameterError("gamma=None with linear=0 leaves no kernel; give gamma, or a linear factor above 0")
        if self.target_transform not in tuple(SCALES):
            allowed = ", ".join(map(repr, (None, *get_args(TargetTransform))))
            raise ParameterError(f"target_transform={self.target_transform!r} is unknown; use one of {allowed}")
        return BlockKernel(gamma, float(self.linear))

    def encoded(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rows as the kernel sees them: clipped into their ranges, then weighted; each by itself."""
        limits = self._limits(rows.shape[1])
        if limits is not None:
            rows = np.clip(rows, *limits)
        weights = self._weights(rows.shape[1])
        return np.ascontiguousarray(rows if weights is None else rows * weights)

    def box(self, n_features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Where the kernel can see a row: ``(low, high)`` of each feature after weighting; None without ranges."""
        limits = self._limits(n_features)
        if limits is None:
            return None
        weights = self._weights(n_features)
        factor = np.ones(n_features) if weights is None else weights
        return limits[0] * factor, limits[1] * factor

    def learned_targets(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """The targets as they are learned: clipped into their range, then transformed."""
        limits = self.learned_range()
        with np.errstate(divide="ignore", invalid="ignore"):
            learned = SCALES[self.target_transform][0](targets)
        if limits is not None:
            # An increasing transform may be clipped on either side of it; -inf and NaN only arise on this one.
            learned = np.clip(np.where(np.isnan(learned), -np.inf, learned), *limits)
        if not np.all(np.isfinite(learned)):
            least = "above 0" if self.target_transform == "log" else "above -1"
            raise DataError(
                f"target_transform={self.target_transform!r} needs targets {least}, or a target_range that is"
            )
        return learned

    def learned_range(self) -> tuple[float, float] | None:
        """The declared range on the scale that is learned; None without one."""
        if self.target_range is None:
            return None
        given = np.asarray(self.target_range, dtype=np.float64)
        if given.shape != (2,) or not np.all(np.isfinite(given)) or given[0] >= given[1]:
            raise ParameterError(f"target_range={self.target_range!r} must be two finite numbers, the lower one first")
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = SCALES[self.target_transform][0](given)
        if not np.isfinite(low):
            raise ParameterError(
                f"target_range={self.target_range!r} has no finite {self.target_transform}; raise its lower end"
            )
        return float(low), float(high)

    def _limits(self, n_features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        if self.ranges is None:
            return None
        given = np.asarray(self.ranges, dtype=np.float64)
        if given.shape not in ((2,), (n_features, 2)):
            raise ParameterError(
                f"ranges of shape {given.shape} must be one pair or {n_features} pairs, one per feature"
            )
        low, high = np.broadcast_to(given, (n_features, 2)).T
        if not np.all(np.isfinite(given)) or np.any(low > high):
            raise ParameterError("ranges must be pairs of finite numbers, the lower one first")
        return low, high

    def _weights(self, n_features: int) -> NDArray[np.float64] | None:
        if self.weights is None:
            return None
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (n_features,) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
            raise ParameterError(f"weights must be {n_features} finite numbers of at least 0, one per feature")
        return weights


def contrasts_solved(gram: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """A root ``(n, n - 1)`` of the matrix that takes targets to coefficients: ``root @ root.T @ y``.

    Notes
    -----
    With an orthonormal basis ``B`` of the complement of the constant vector, coefficients are
    ``B (B'KB + alpha I)^-1 B' y``. The root makes each diagonal entry a sum of squares. A Householder reflection that
    swaps the constant vector with the first axis holds the basis, so applying it is two rank-one updates.

    Raises
    ------
    DataError
        The kernel is not finite, or does not determine the coefficients.
    """
    n = len(gram)
    mirror = constant_mirror(n)
    penalised = gram.copy()
    penalised.reshape(-1)[:: n + 1] += alpha
    image = penalised @ mirror
    level = float(mirror @ image)
    if not isfinite(level):  # the mirror has no zeros, so every entry of the kernel is in this number
        raise DataError("the kernel of these rows is not finite; scale the features, or declare ranges")
    crossed = mirror[:, None] * (image - mirror * (level / 2))
    inner = (penalised - crossed - crossed.T)[1:, 1:]
    root = np.zeros((n, n - 1))
    if n > 1:
        factor, failed = scipy.linalg.lapack.dpotrf(inner, lower=1, clean=1)
        if failed:
            raise DataError(f"alpha={alpha:g} leaves these rows without a unique solution; use a larger alpha")
        root[1:] = scipy.linalg.lapack.dtrtri(factor, lower=1)[0].T
        root -= mirror[:, None] * (mirror @ root)
    return root


@lru_cache(maxsize=256)
def constant_mirror(n: int) -> NDArray[np.float64]:
    """The vector ``v``, ``v @ v == 2``, whose reflection ``I - v v'`` takes the constant vector to the first axis."""
    mirror = np.full(n, 1 / np.sqrt(n))
    mirror[0] += 1.0
    mirror /= np.sqrt(1.0 + 1 / np.sqrt(n))
    mirror.flags.writeable = False
    return mirror


@njit_any_order
def _city_block(rows: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    distances = np.empty((len(rows), len(others)))
    for i in range(len(rows)):
        for j in range(len(others)):
            total = 0.0
            for f in range(rows.shape[1]):
                total += abs(rows[i, f] - others[j, f])
            distances[i, j] = total
    return distances


@njit_any_order
def _levels(  # noqa: PLR0917  a compiled loop and what it reads
    rows: NDArray[np.float64],
    trained: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    slopes: NDArray[np.float64],
    intercept: float,
    gamma: float,
) -> NDArray[np.float64]:
    levels = np.empty(len(rows))
    for i in range(len(rows)):
        level = intercept
        for f in range(rows.shape[1]):
            level += rows[i, f] * slopes[f]
        if gamma > 0.0:
            near = 0.0
            for j in range(len(trained)):
                total = 0.0
                for f in range(rows.shape[1]):
                    total += abs(rows[i, f] - trained[j, f])
                near += coefficients[j] * np.exp(-gamma * total)
            level += near / gamma
        levels[i] = level
    return levels
