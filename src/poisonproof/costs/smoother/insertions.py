"""How far inserted rows can move a kernel ridge model that clips features and targets into declared ranges.

Write ``h(x, z)`` for what the model's hat matrix would be between any two rows, so ``h(x, z) = <phi(x), phi(z)>`` for
some features, and ``rho`` for the largest residual ``|y - f(z)|`` of any row that clipping lets through. Inserting
rows Z moves a prediction by ``h(x, Z) (I + h(Z, Z))^-1 r``, ``|r| <= rho sqrt(k)``. The factor in front has norm at
most ``max_s s / (1 + s^2) = 1/2`` times ``|phi(x)| = sqrt(h(x))``, and also at most
``|h(x, Z)| <= sqrt(k h(x) h_max)``. So k insertions move it by at most
``min(sqrt(k h(x)) / 2, k sqrt(h(x) h_max)) rho``.

Deleting j rows first raises ``h(x)`` by at most ``sum a^2 / (1 - nu)`` over the j rows where that is largest, and
changes ``f(z)`` by at most ``sqrt(v eps)``: ``eps = sum e^2 / (1 - nu)``, and ``v`` the most that ``h(z)`` can rise
anywhere, for which ``a_i(z)^2 = <phi(z), phi_i>^2 <= h_max h_i`` is used. The order does not matter to the trained
model, so the worst split of the budget into deletions and insertions, deletions first, bounds all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from poisonproof.costs.smoother.factors import EPS, SAFETY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.costs.smoother.factors import Factors
    from poisonproof.learners.kernel_ridge import BlockKernel

__all__ = [
    "Opening",
    "Slack",
    "after_insertions",
    "opening_of",
    "own_leverage",
    "rise_after_insertions",
    "slack_of",
]


@dataclass(frozen=True, eq=False)
class Opening:
    """What one block leaves open to inserted rows.

    Parameters
    ----------
    gram_mean : float array (n,)
        Mean kernel of each training row with all training rows.
    residual : float
        ``rho``, the largest residual of any row that clipping lets through.
    leverage : float
        ``h_max``, the largest ``h(z, z)`` of such a row.
    """

    gram_mean: NDArray[np.float64]
    residual: float
    leverage: float


@dataclass(frozen=True, eq=False)
class Slack:
    """What deleting j rows first adds, for each ``j = 0 … depth``; infinite where no bound is known.

    Parameters
    ----------
    own : float array (depth + 1, n_rows)
        Rise of ``h(x)``.
    anywhere : float array (depth + 1,)
        Rise ``v`` of ``h(z)``, wherever z is.
    residual : float array (depth + 1,)
        ``eps``.
    """

    own: NDArray[np.float64]
    anywhere: NDArray[np.float64]
    residual: NDArray[np.float64]


def opening_of(
    factors: Factors, box: tuple[NDArray[np.float64], NDArray[np.float64]], limits: tuple[float, float]
) -> Opening:
    """The opening of a block whose rows are clipped into ``box`` and its learned targets into ``limits``."""
    kernel = _kernel_of(factors)
    gram = kernel.between(factors.features, factors.features)
    gram_mean = gram.mean(axis=0)
    spread = _largest_spread(kernel, factors.features, gram, box)
    low, high = _levels(kernel, factors, gram, spread, box)
    residual = max(limits[1] - low, high - limits[0])
    return Opening(gram_mean, residual, 1 / len(gram) + spread / factors.unit)


def _kernel_of(factors: Factors) -> BlockKernel:
    if factors.kernel is None:
        raise TypeError("insertions are bounded for kernel ridge alone")
    return factors.kernel


def after_insertions(factors: Factors, box: tuple[NDArray[np.float64], NDArray[np.float64]], depth: int) -> Factors:
    """The same factors, with the errors that refitting with up to ``depth`` rows inserted may have.

    Notes
    -----
    Only the penalty bounds what rows from anywhere in the box do to the inverse; all of them, and the rows to predict,
    are as long as its farthest corner at most.
    """
    kernel = _kernel_of(factors)
    corner = np.maximum(np.abs(box[0]), np.abs(box[1]))[None]
    most = float(kernel.with_itself(corner)[0])
    total = float(kernel.with_itself(factors.features).sum())
    return factors._replace(
        precision=factors.precision + SAFETY * EPS * (total + depth * most) / factors.unit,
        gain=1 / factors.unit,
        origin=factors.origin + depth**0.5 * most,
        extent=factors.extent + kernel.linear * (depth * float(corner[0] @ corner[0])) ** 0.5,
    )


def _largest_spread(
    kernel: BlockKernel,
    rows: NDArray[np.float64],
    gram: NDArray[np.float64],
    box: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> float:
    """The largest squared distance, in the kernel's own space, of a row in the box from the mean of the rows."""
    low, high = box
    centre = rows.mean(axis=0)
    spread = kernel.linear * float(np.sum(np.maximum(high - centre, centre - low) ** 2))
    if kernel.gamma:
        laplace = gram - kernel.linear * (rows @ rows.T)
        spread += 1 / kernel.gamma - 2 * float(_least_laplace(kernel, rows, box).mean()) + float(laplace.mean())
    return spread


def _least_laplace(
    kernel: BlockKernel, rows: NDArray[np.float64], box: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The least Laplace kernel each row has with any row in the box: with the corner farthest from it."""
    low, high = box
    farthest = np.maximum(rows - low, high - rows).sum(axis=1)
    return np.asarray(np.exp(-kernel.gamma * farthest) / kernel.gamma)


def _levels(
    kernel: BlockKernel,
    factors: Factors,
    gram: NDArray[np.float64],
    spread: float,
    box: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> tuple[float, float]:
    """Between which levels the model predicts any row in the box."""
    coefficients, mean = factors.residuals, float(factors.targets.mean())
    # By Cauchy and Schwarz: the model is a vector of this norm, tested on a row at most this far from the mean.
    norm = np.sqrt(max(float(coefficients @ gram @ coefficients), 0.0) * spread)
    slopes = kernel.linear * (factors.features.T @ coefficients)
    ends = np.stack([slopes * box[0], slopes * box[1]])
    intercept = mean - float(np.mean(gram @ coefficients))
    low, high = intercept + float(ends.min(axis=0).sum()), intercept + float(ends.max(axis=0).sum())
    if kernel.gamma:
        near, far = coefficients / kernel.gamma, coefficients * _least_laplace(kernel, factors.features, box)
        low += float(np.minimum(near, far).sum())
        high += float(np.maximum(near, far).sum())
    return max(low, mean - norm), min(high, mean + norm)


def own_leverage(factors: Factors, opening: Opening, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """``h(x, x)`` of each row, ``(n_rows,)``, rounded up."""
    kernel = _kernel_of(factors)
    to_rows = kernel.between(rows, factors.features)
    spread = kernel.with_itself(rows) - 2 * to_rows.mean(axis=1) + opening.gram_mean.mean()
    away = to_rows - opening.gram_mean
    explained = np.einsum("ij,ij->i", away @ factors.matrix, away)
    # What is not explained is a difference; its rounding is a share of what it was taken from.
    unexplained = np.maximum(spread - explained, 0.0) + factors.precision * np.abs(spread)
    return np.asarray(1 / len(opening.gram_mean) + unexplained / factors.unit)


def slack_of(
    leverage: NDArray[np.float64],
    residuals: NDArray[np.float64],
    weights: NDArray[np.float64],
    nu: NDArray[np.float64],
    opening: Opening,
) -> Slack:
    """What deletions first add, from scaled residuals and weights and the bounds ``nu`` on their coupling."""
    depth = len(nu) - 1
    known = (nu < 1) & (np.arange(depth + 1) < len(leverage))
    share = 1 / np.where(known, 1 - nu, 1.0)
    odds = opening.leverage * leverage / (1 - leverage)
    own, anywhere, left = (_largest_sums(values, depth) for values in (weights**2, odds, residuals**2))
    return Slack(
        own=np.where(known[:, None], own.T * share[:, None], np.inf),
        anywhere=np.where(known, anywhere * share, np.inf),
        residual=np.where(known, left * share, np.inf),
    )


def _largest_sums(values: NDArray[np.float64], depth: int) -> NDArray[np.float64]:
    """Sums of the 0, 1, … ``depth`` largest values along the last axis."""
    top = -np.sort(-values, axis=-1)[..., :depth]
    sums = np.zeros((*values.shape[:-1], depth + 1))
    sums[..., 1 : top.shape[-1] + 1] = np.cumsum(top, axis=-1)
    sums[..., top.shape[-1] + 1 :] = sums[..., [top.shape[-1]]]
    return sums


def rise_after_insertions(
    opening: Opening, leverage: NDArray[np.float64], slack: Slack, deleted: NDArray[np.float64], *, deletes: bool
) -> NDArray[np.float64]:
    """How far k insertions, and deletions if ``deletes``, move each prediction, ``(2, depth + 1, n_rows)``.

    Parameters
    ----------
    opening : Opening
        Of the block.
    leverage : float array (n_rows,)
        ``h(x, x)`` of the rows to predict.
    slack : Slack
        What deletions first add.
    deleted : float array (2, depth + 1, n_rows)
        How far deletions alone move each prediction.
    deletes : bool
        Whether rows may be deleted too.
    """
    rises = np.zeros_like(deleted)
    for total in range(1, deleted.shape[1]):
        for gone in range(total + 1 if deletes else 1):
            added = total - gone
            more = _insertion(opening, leverage, slack, gone, added) if added else 0.0
            rises[:, total] = np.maximum(rises[:, total], deleted[:, gone] + more)
    return rises


def _insertion(
    opening: Opening, leverage: NDArray[np.float64], slack: Slack, gone: int, added: int
) -> NDArray[np.float64]:
    own = leverage + slack.own[gone]
    anywhere = opening.leverage + slack.anywhere[gone]
    residual = opening.residual + np.sqrt(slack.anywhere[gone] * slack.residual[gone])
    return np.asarray(np.minimum(np.sqrt(added * own) / 2, added * np.sqrt(own * anywhere)) * residual)
