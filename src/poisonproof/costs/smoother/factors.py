"""Linear smoothers taken apart: the weights of the targets in a prediction, and what is left of each target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import scipy.linalg

from poisonproof.errors import DataError
from poisonproof.learners.kernel_ridge import constant_mirror, contrasts_solved

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.learners.kernel_ridge import BlockKernel

__all__ = ["EPS", "SAFETY", "Factors", "about_mean", "kernel_factors", "ridge_factors"]

EPS: Final = float(np.finfo(np.float64).eps)
SAFETY: Final = 16.0  # rounding in factors and solves, over eps times the condition number
_LEAST_FREEDOM: Final = 1e-3  # below it 1 - h is not taken as a difference
_LEAST_ALPHA: Final = 1e-4
_LEAST_SCALE: Final = 1e-290  # of a system to solve; below it numbers lose digits of their own
_MOST_SPECTRAL: Final = 2500  # all left vectors are needed: n x n numbers
_LEAST_PRECISION: Final = 1e-6  # what the Gram matrix has to keep


class Factors(NamedTuple):
    """A fitted linear smoother: a prediction is ``weights(x) @ targets``.

    Parameters
    ----------
    features : float array (n, n_features)
        Training rows as the smoother sees them.
    targets : float array (n,)
        Training targets as it learns them.
    kernel : BlockKernel or None
        None: ridge regression, whose weights are linear in the features.
    matrix, shift : float arrays (n_features or n, n) and (n,)
        ``weights(x)`` is ``centred features of x @ matrix + shift`` for ridge, else ``kernel of x @ matrix + shift``;
        then the matrix is ``(I - H) / unit`` too.
    residuals, freedom : float arrays (n,)
        ``(I - H) y`` and the diagonal of ``I - H`` for the hat matrix ``H``; both over ``unit``.
    root : float array (n, r) or None
        For ridge, ``root @ root.T`` is ``(I - H) / unit``; None where the weights of the training rows give it.
    unit : float
        What ``residuals``, ``freedom`` and ``root`` are multiplied with to get ``I - H``; deletions need not know.
    spread : float
        Root of the sum of squares of the targets about their mean, or about 0 without an intercept.
    precision : float
        Estimated relative error of everything here, and of refitting with some of the rows gone.
    gain : float
        Bound on the norm of ``matrix``, whichever rows are gone: what rounding of a row to predict is multiplied with.
    origin, extent : float
        Norms of what is taken off each row, or off its kernel, to centre it, and of the rows that a kernel multiplies
        each row with: what is rounded when they are.
    centre : float array (n_features,) or None
        For ridge, what is taken off each row.
    inverse : float array (n_features, n_features) or None
        For ridge with at least as many rows as features, the inverse of the penalised Gram matrix of the features.

    Notes
    -----
    The precision rests on a condition number that no deletion raises: what is left after deleting rows is the system
    compressed to a subspace, and its eigenvalues interlace.
    """

    features: NDArray[np.float64]
    targets: NDArray[np.float64]
    kernel: BlockKernel | None
    matrix: NDArray[np.float64]
    shift: NDArray[np.float64]
    residuals: NDArray[np.float64]
    freedom: NDArray[np.float64]
    root: NDArray[np.float64] | None
    unit: float
    spread: float
    precision: float
    gain: float
    origin: float
    extent: float
    centre: NDArray[np.float64] | None = None
    inverse: NDArray[np.float64] | None = None

    def seen(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the weights are linear in: the rows about their centre, or their kernel with the training rows."""
        if self.kernel is not None:
            return self.kernel.between(rows, self.features)
        # Sound because weights of rows taken as they are would be differences, whose rounding deletions multiply.
        return rows if self.centre is None else rows - self.centre

    def weights(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weight of each training target in the prediction of each row, ``(n_rows, n)``."""
        return self.weights_of(self.seen(rows))

    def weights_of(self, seen: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same from what is seen of each row."""
        weights = seen @ self.matrix
        weights += self.shift
        return weights

    def residual_maker(self) -> NDArray[np.float64]:
        """The matrix ``(I - H) / unit``, ``(n, n)``."""
        if self.kernel is not None:
            return self.matrix
        if self.root is not None:
            return self.root @ self.root.T
        maker = -self.weights(self.features)
        maker = (maker + maker.T) / 2
        np.fill_diagonal(maker, self.freedom)
        return maker


def about_mean(targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """The targets about their mean, ``(n,)``, however far that is from 0."""
    about = targets - np.add.reduce(targets) / len(targets)
    # Sound because rounding of the mean would stay in every residual, where deletions multiply it; what is left of it
    # after the second pass is rounding of the spread alone.
    about -= np.add.reduce(about) / len(about)
    return about


def ridge_factors(
    features: NDArray[np.float64], targets: NDArray[np.float64], alpha: float, *, intercept: bool
) -> Factors:
    """Ridge regression with penalty ``alpha``, its intercept, if any, unpenalised.

    Notes
    -----
    With more rows than features the normal equations are the cheapest way, and the Gram matrix with fewer. The former
    know ``1 - h`` only as a difference, which is lost where a row is almost interpolated; there, and for tiny
    penalties, singular values take over: ``1 - h`` is then a sum of squares times ``alpha / (s^2 + alpha)``.
    """
    n, n_features = features.shape
    centre = np.add.reduce(features) / n if intercept else np.zeros(n_features)
    centred = features - centre
    # Sound because what rounding of the mean leaves in every row is taken off too, as ``about_mean`` does for targets:
    # deletions would multiply it.
    finer = np.add.reduce(centred) / n if intercept else centre
    centred -= finer
    table = _Table(features, centred, targets, centre, finer)
    factors = None
    if n > n_features and alpha >= _LEAST_ALPHA:
        factors = _primal(table, alpha, intercept=intercept)
    elif n <= n_features and intercept:
        factors = _dual(table, alpha)
    return factors or _spectral(table, alpha, intercept=intercept)


class _Table(NamedTuple):
    """Training rows, and the same about their centre, which is taken off in two steps."""

    features: NDArray[np.float64]
    centred: NDArray[np.float64]
    targets: NDArray[np.float64]
    centre: NDArray[np.float64]
    finer: NDArray[np.float64]


def _primal(table: _Table, alpha: float, *, intercept: bool) -> Factors | None:
    """By the normal equations; None where they are too inexact."""
    features, centred, targets, centre, finer = table
    n = len(targets)
    gram = centred.T @ centred
    largest = float(np.trace(gram))
    gram.reshape(-1)[:: len(gram) + 1] += alpha
    factor, failed = scipy.linalg.lapack.dpotrf(gram, lower=1)
    if failed:
        return None
    matrix = scipy.linalg.lapack.dpotrs(factor, centred.T, lower=1)[0]
    inverse = scipy.linalg.lapack.dpotrs(factor, np.eye(len(gram)), lower=1)[0]
    level = 1 / n if intercept else 0.0
    freedom = 1.0 - level - np.einsum("ij,ji->i", centred, matrix)
    least = float(freedom.min())
    if not least >= _LEAST_FREEDOM:
        return None
    about = about_mean(targets) if intercept else targets
    residuals = about - centred @ (matrix @ about)
    spread = float(about @ about) ** 0.5
    shift = level - finer @ matrix
    # The difference 1 - h is exact to the precision of h, so its relative error grows as it shrinks.
    trust = _trust(largest / least, alpha, n, centre)
    return Factors(
        features, targets, None, matrix, shift, residuals, freedom, None, 1.0, spread, *trust, centre, inverse
    )


def _dual(table: _Table, alpha: float) -> Factors | None:
    """By the Gram matrix of the rows, in the complement of the constant vector; None where it is too inexact."""
    features, centred, targets, centre, finer = table
    gram = centred @ centred.T
    total = float(np.add.reduce(gram.diagonal()))
    try:
        root = contrasts_solved(gram, alpha)
    except DataError:
        return None
    freedom = np.einsum("ij,ij->i", root, root)
    # The traces of a matrix and of its inverse bound its condition; few rows may do well with next to no penalty.
    if not SAFETY * EPS * total * float(np.add.reduce(freedom)) <= _LEAST_PRECISION:
        return None
    about = about_mean(targets)
    solved = root @ root.T
    coefficients = solved @ about
    spread = float(about @ about) ** 0.5
    matrix = centred.T @ solved
    shift = 1 / len(targets) - finer @ matrix
    trust = _trust(total, alpha, len(targets), centre)
    return Factors(features, targets, None, matrix, shift, coefficients, freedom, root, alpha, spread, *trust, centre)


def _spectral(table: _Table, alpha: float, *, intercept: bool) -> Factors:
    """By singular values, in a basis without the constant vector."""
    features, centred, targets, centre, finer = table
    n = len(targets)
    if n > _MOST_SPECTRAL:
        raise DataError(f"{n} rows are too many for singular values; use a larger alpha")
    basis = np.eye(n)
    if intercept:
        mirror = constant_mirror(n)
        basis = (basis - mirror[:, None] * mirror)[:, 1:]
    contrasts = basis.T @ centred
    # All left vectors are needed, those that the features do not reach included; of the right ones only the reached.
    left, values, right = np.linalg.svd(contrasts, full_matrices=len(contrasts) > contrasts.shape[1])
    rank = len(values)
    left = basis @ left
    penalised = values * values + alpha
    kept = np.ones(left.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        kept[:rank] = np.where(penalised > 0, alpha / penalised, 1.0)
        shrunk = np.where(penalised > 0, values / penalised, 0.0)
    root = left * np.sqrt(kept)
    matrix = (right[:rank].T * shrunk) @ left[:, :rank].T
    shift = (1 / n if intercept else 0.0) - finer @ matrix
    about = about_mean(targets) if intercept else targets
    residuals = left @ (kept * (left.T @ about))
    spread = float(about @ about) ** 0.5
    freedom = np.einsum("ij,ij->i", root, root)
    trust = _trust(float(values @ values), alpha, n, centre)
    inverse = None
    if n >= len(matrix):
        # What no training row reaches has the penalty alone.
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = (right[:rank].T * (1 / penalised)) @ right[:rank]
            inverse += (np.eye(len(matrix)) - right[:rank].T @ right[:rank]) / alpha
    return Factors(
        features, targets, None, matrix, shift, residuals, freedom, root, 1.0, spread, *trust, centre, inverse
    )


def _trust(total: float, alpha: float, n: int, centre: NDArray[np.float64]) -> tuple[float, float, float, float]:
    """Precision, gain, origin and extent of ridge, from the sum of squares of its features and their centre.

    Notes
    -----
    A refit may work with the penalised Gram matrix itself, whose condition only the penalty bounds. No coefficients are
    longer than the targets over ``2 sqrt(alpha)``, for ``s / (s^2 + alpha)`` is never larger. What a refit
    keeps of the rounding of its centre moves all rows alike, which only its square can tell.
    """
    # Sound because next to a larger penalty numbers with fewer digits are of no account.
    if alpha < _LEAST_SCALE:
        return np.inf, np.inf, 0.0, 0.0
    origin = float(centre @ centre) ** 0.5
    precision = SAFETY * EPS * (total / alpha + 1) + n * (SAFETY * EPS * origin) ** 2 / alpha
    return precision, 0.5 / alpha**0.5, origin, 0.0


def kernel_factors(
    features: NDArray[np.float64], targets: NDArray[np.float64], kernel: BlockKernel, alpha: float
) -> Factors:
    """Kernel ridge regression with penalty ``alpha`` and an unpenalised intercept."""
    n = len(targets)
    gram = kernel.between(features, features)
    gram_mean = gram.mean(axis=0)
    root = contrasts_solved(gram, alpha)
    matrix = root @ root.T
    shift = 1 / n - gram_mean @ matrix
    about = about_mean(targets)
    residuals = root @ (root.T @ about)
    spread = float(about @ about) ** 0.5
    freedom = np.einsum("ij,ij->i", root, root)
    # Both bounds hold for the least eigenvalue: the penalty, and one over the trace of the inverse.
    inverse = min(float(freedom.sum()), 1 / alpha if alpha > 0 else np.inf)
    largest = float(np.trace(gram)) + alpha
    precision = SAFETY * EPS * (largest * inverse + 1) if largest >= _LEAST_SCALE else np.inf
    origin, extent = float(np.linalg.norm(gram_mean)), kernel.linear * float(np.linalg.norm(features))
    return Factors(
        features, targets, kernel, matrix, shift, residuals, freedom, None, alpha, spread,
        precision, inverse, origin, extent,
    )  # fmt: skip
