"""Costs of linear smoothers by formula: ridge and kernel ridge, whole blocks and all test rows at once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from poisonproof.compiled import pass_on
from poisonproof.costs.protocol import Reach
from poisonproof.costs.smoother.deletion_bounds import rise_after_one
from poisonproof.costs.smoother.deletions import (
    NU_LIMIT,
    couple,
    least_nu,
    rise_after_deletions,
    rise_by_leverage,
)
from poisonproof.costs.smoother.factors import EPS, SAFETY, Factors
from poisonproof.costs.smoother.insertions import (
    Opening,
    after_insertions,
    opening_of,
    own_leverage,
    rise_after_insertions,
    slack_of,
)
from poisonproof.costs.smoother.margins import error_by_length, error_by_solution, rounding_margin
from poisonproof.costs.smoother.relabels import rise_after_relabels
from poisonproof.errors import ThreatError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.costs.protocol import FitVote, Vote
    from poisonproof.costs.smoother.recipe import Recipe
    from poisonproof.threat import Moves

__all__ = ["SmootherCosts"]

_LEAST_MARGIN: Final = 1e-9  # of the targets' standard deviation
_NEGLIGIBLE: Final = 1e3  # least margins, up to which an error need not be known better
_USELESS: Final = 0.1  # relative error from which on nothing is claimed
_LEAST_TARGET: Final = 1e-140  # the squares of targets that are all smaller vanish, and every margin with them
_MOST_COUPLED: Final = 2500  # rows whose n x n coupling is worth its memory
_LOST: Final = 1 / (1 - NU_LIMIT)  # how much of the precision the bounds on three and more deletions may lose


@dataclass(frozen=True, eq=False)
class Prepared:
    """One block, taken apart.

    Parameters
    ----------
    n : int
        Rows of the block.
    emptied : Vote
        The vote function of no rows.
    encoders : list
        Fitted row-local steps.
    factors : Factors or None
        None where the block cannot be taken apart: its vote is known, its reach is not.
    opening : Opening or None
        What inserted rows can do, where the threat has them.
    """

    n: int
    emptied: Vote
    encoders: list[Any]
    factors: Factors | None
    opening: Opening | None


class SmootherCosts:
    """How far a few modifications move ridge or kernel ridge, from its hat matrix.

    Serves deletions, relabels, insertions, and insertions with deletions. Exact for one and two deletions and for
    relabels, up to a margin; sound bounds otherwise.

    Parameters
    ----------
    recipe : Recipe
        The estimator.
    max_cost : int
        Largest cost to ask for.
    moves : {"delete", "relabel", "insert", "insert+delete"}
        What the attacker may do.

    Notes
    -----
    Refitting rounds differently from a formula. Every reach is widened by the larger of ``1e-9`` standard deviations of
    the targets and the estimated error of both, and by what formula and vote differ for the block as it is. A block
    whose estimated error is useless, or that cannot be taken apart, has cost 1.
    """

    def __init__(self, recipe: Recipe, max_cost: int, moves: Moves) -> None:
        limits = recipe.learned_range()
        _check_threat(recipe, moves, limits)
        self.recipe = recipe
        self.depth = max_cost - 1
        self.moves = moves
        self.limits = limits
        self.method = "smoother formulas"

    def prepare(self, fit: FitVote, X: NDArray[np.float64], y: NDArray[np.float64]) -> Prepared:
        """The block taken apart, and its vote function without rows."""
        emptied = fit(X[:0], y[:0])
        if len(y) == 0:
            return Prepared(0, emptied, [], None, None)
        try:
            with np.errstate(all="ignore"):
                encoders = self.recipe.fitted_encoders(X, self.depth)
                encoded, learned = self.recipe.encode(encoders, X), self.recipe.learned(y)
                factors = self.recipe.factors(encoded, learned)
                # Sound because the precision is in proportion to how the rows are rounded, in here and in a refit.
                rounding = self.recipe.rounding(encoders, X, encoded)
                if rounding != 1:
                    factors = factors._replace(precision=factors.precision * rounding)
                factors, opening = self._opened(factors)
        except Exception as error:  # noqa: BLE001  whatever a step raises, a block that is not understood has cost 1
            pass_on(error)
            return Prepared(len(y), emptied, [], None, None)
        usable = factors.precision <= _USELESS and (len(y) == 1 or np.minimum.reduce(factors.freedom) > 0)
        usable = usable and not 0 < np.maximum.reduce(np.abs(learned)) < _LEAST_TARGET
        return Prepared(len(y), emptied, encoders, factors if usable else None, opening)

    def reach(self, prepared: object, votes: NDArray[np.float64], X: NDArray[np.float64]) -> Reach:
        """The reach ``(max_cost, n_rows)`` of the votes ``(n_rows,)`` on the rows ``X``."""
        block = cast("Prepared", prepared)
        if block.factors is not None:
            with np.errstate(all="ignore"):
                low, high = self._ends(block, block.factors, votes, X)
        else:
            # Nothing can be deleted from no rows or relabelled in them; otherwise nothing is known.
            still = block.n == 0 and self.moves in ("delete", "relabel")
            low, high = (
                np.repeat((votes if still else np.full_like(votes, end))[None], self.depth, axis=0)
                for end in (-np.inf, np.inf)
            )
        if self.moves in ("delete", "insert+delete") and 0 < block.n <= self.depth:
            constant = block.emptied(X)
            low[block.n - 1 :] = np.minimum(low[block.n - 1 :], constant)
            high[block.n - 1 :] = np.maximum(high[block.n - 1 :], constant)
        return Reach.around(votes, low, high)

    def _opened(self, factors: Factors) -> tuple[Factors, Opening | None]:
        """What rows or labels from outside can do, and the error they can bring with them."""
        if self.limits is None or self.moves == "delete":
            return factors, None
        # Labels from outside spread the targets wider than they are.
        spread = factors.spread + np.sqrt(self.depth) * (self.limits[1] - self.limits[0])
        if self.moves == "relabel":
            return factors._replace(spread=float(spread)), None
        box = self.recipe.core.box(factors.features.shape[1])
        return after_insertions(factors._replace(spread=float(spread)), box, self.depth), opening_of(
            factors, box, self.limits
        )

    def _ends(
        self, block: Prepared, factors: Factors, votes: NDArray[np.float64], X: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both ends of the reach, from one modification on, ``(depth, n_rows)`` each."""
        rows = self._encoded(block, factors, X)
        seen = factors.seen(rows)
        weights = factors.weights_of(seen)
        levels = weights @ factors.targets
        margin = _margin(factors, levels - self.recipe.forward(votes), weights, seen, rows, self.depth)
        lost: NDArray[np.float64] | float = 1.0
        if self.moves == "relabel":
            limits = cast("tuple[float, float]", self.limits)
            rises = rise_after_relabels(weights, factors.targets, limits, self.depth)[:, 1:]
        elif self.moves == "delete":
            rises, lost = self._deleted(factors, weights)
        else:
            rises, lost = self._inserted(block, factors, weights, rows), _LOST
        wider = rises * (1 + factors.precision * lost) + margin
        low, high = self.recipe.between(levels - wider[1], levels + wider[0])
        # Sound because a vote that is not finite becomes the declared constant, which may be anywhere.
        open_ended = ~np.isfinite(high - low)
        if open_ended.any():
            low, high = np.where(open_ended, -np.inf, low), np.where(open_ended, np.inf, high)
        return low, high

    def _encoded(self, block: Prepared, factors: Factors, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rows as the smoother sees them; no numbers for a row that a step refuses."""
        try:
            return self.recipe.encode(block.encoders, X)
        except Exception as error:  # noqa: BLE001  whatever a step raises, it is about one row or another
            pass_on(error)
            encoded = np.full((len(X), factors.features.shape[1]), np.nan)
            for place, row in enumerate(X):
                with suppress(Exception):
                    encoded[place] = self.recipe.encode(block.encoders, row[None])[0]
            return encoded

    def _deleted(
        self, factors: Factors, weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | float]:
        """Rises after 1, 2, … deletions, and how much of the precision each loses."""
        n = len(factors.targets)
        depth = min(self.depth, n - 1)
        if depth <= 0:
            return np.zeros((2, self.depth, len(weights))), 1.0
        if depth == 1:
            rises = rise_after_one(weights, factors.residuals / factors.freedom)
            if depth == self.depth:
                return rises, 1.0
            lost = np.ones((1, 1))
        else:
            lost = np.full((depth, 1), _LOST)
            lost[0] = 1.0
            rises, lost[1] = _several(factors, weights, depth)
        if depth < self.depth:
            # Deleting the whole block gives the constant, which the caller counts; other sets have fewer rows.
            more = self.depth - depth
            rises = np.concatenate([rises, np.repeat(rises[:, -1:], more, axis=1)], axis=1)
            lost = np.append(lost, np.full((more, 1), _LOST), axis=0)
        return rises, lost

    def _inserted(
        self, block: Prepared, factors: Factors, weights: NDArray[np.float64], rows: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Rises after 1, 2, … insertions, and deletions if the threat has them."""
        opening = cast("Opening", block.opening)
        deletes = self.moves == "insert+delete"
        deleted = np.zeros((2, self.depth + 1, len(weights)))
        nu = np.ones(self.depth + 1)
        nu[0] = 0.0
        if deletes:
            deleted[:, 1:] = self._deleted(factors, weights)[0]
            nu = _nu(factors, self.depth)
        freedom = factors.unit * factors.freedom
        scale = np.sqrt(freedom)
        slack = slack_of(1 - freedom, factors.unit * factors.residuals / scale, weights / scale, nu, opening)
        own = own_leverage(factors, opening, rows)
        return rise_after_insertions(opening, own, slack, deleted, deletes=deletes)[:, 1:]


def _check_threat(recipe: Recipe, moves: Moves, limits: tuple[float, float] | None) -> None:
    """Refuse threats under which a row from outside could do anything."""
    if moves == "delete":
        return
    what = f"max_cost above 1 with threat={moves!r}"
    if moves == "relabel" and limits is None:
        raise ThreatError(
            f"{what} needs a declared range of labels; "
            "use KernelRidge(target_range=(low, high)), with gamma=None for plain ridge, or max_cost=1"
        )
    if moves != "relabel" and not recipe.is_boxed:
        raise ThreatError(
            f"{what} needs rows and labels that are clipped into declared ranges; "
            "use KernelRidge(ranges=..., target_range=(low, high)), threat='delete', or max_cost=1"
        )
    # Sound because nothing stands before the clipping that could refuse what an attacker brings, and with it the fit.
    if not recipe.takes_any_label:
        raise ThreatError(
            f"{what} needs labels that are clipped first, but a target transform around KernelRidge refuses some; "
            "use KernelRidge(target_transform=...) in its place, or max_cost=1"
        )
    if moves != "relabel" and recipe.encoders:
        raise ThreatError(
            f"{what} needs rows that are clipped first, but step {recipe.encoders[0]!r} may refuse some; "
            "encode the rows before the ensemble sees them, or use threat='delete', or max_cost=1"
        )


def _margin(  # noqa: PLR0917  what is known of some rows, and how many may go
    factors: Factors,
    apart: NDArray[np.float64],
    weights: NDArray[np.float64],
    seen: NDArray[np.float64],
    rows: NDArray[np.float64],
    depth: int,
) -> NDArray[np.float64]:
    """How far rounding may put a formula from a refit, on the learned scale, ``(n_rows,)``."""
    targets, spread = factors.targets, factors.spread
    per_seen = SAFETY * EPS * factors.gain * spread
    absolute = 64 * EPS * float(targets @ targets) ** 0.5 + per_seen * factors.origin
    least = _LEAST_MARGIN * spread / len(targets) ** 0.5
    relative = factors.precision * spread
    margin = rounding_margin(weights, apart, seen, rows, relative, per_seen, per_seen * factors.extent, absolute, least)
    if factors.inverse is None:
        return margin
    return margin + _normal_error(factors, factors.inverse, weights, seen, depth, _NEGLIGIBLE * least)


def _normal_error(  # noqa: PLR0917  what is known of some rows, and how many may go
    factors: Factors,
    inverse: NDArray[np.float64],
    weights: NDArray[np.float64],
    seen: NDArray[np.float64],
    depth: int,
    negligible: float,
) -> NDArray[np.float64]:
    """How far the normal equations may err in each prediction after up to ``depth`` deletions, ``(n_rows,)``.

    Notes
    -----
    Rounding changes the penalised Gram matrix A and what it is solved for, and a prediction at x by as much times the
    length of ``A^-1 x``; with all the rows, that may be large where no weight is. Without the rows S it is the length
    of ``A^-1 x + A^-1 X_S' (I - H_SS)^-1 a_S`` (Woodbury; x and X are about the mean of all rows, and the intercept is
    a feature without penalty). The penalty alone bounds it as well.
    """
    per_length = 0.25 * factors.precision * factors.spread / factors.gain
    centre = cast("NDArray[np.float64]", factors.centre)
    # The penalty alpha is a quarter of the gain's square, turned over.
    bound = error_by_length(seen, factors.features, centre, 4 * factors.gain**2 * per_length)
    k = min(depth, len(factors.targets) - 1)
    if k == 0 or not np.max(bound, initial=0.0) > negligible:
        return bound
    nu = 0.0 if k == 1 else 1.0 if len(factors.targets) > _MOST_COUPLED else float(_nu(factors, k)[k])
    if nu >= 1:
        return bound
    freedom = factors.unit * factors.freedom
    solved = error_by_solution(seen @ inverse, weights, factors.matrix, freedom, per_length, k / (1 - nu))
    return np.minimum(bound, solved)


def _several(factors: Factors, weights: NDArray[np.float64], depth: int) -> tuple[NDArray[np.float64], float]:
    """Rises after 1, 2, … deletions, and how much of the precision two of them lose."""
    if len(factors.targets) > _MOST_COUPLED:
        leverage = 1 - factors.unit * factors.freedom
        rises = rise_by_leverage(leverage, factors.unit * factors.residuals, weights, depth)
        rises[:, 1] = rise_after_one(weights, factors.residuals / factors.freedom)[:, 0]
        return rises[:, 1:], _LOST
    coupling = couple(factors.residual_maker(), factors.residuals, depth)
    rises = rise_after_deletions(coupling, weights, depth)
    return rises[:, 1:], min(_LOST, 1 / max(1 - float(coupling.nu[2]), 1e-9) ** 2)


def _nu(factors: Factors, depth: int) -> NDArray[np.float64]:
    """Bounds on the coupling of up to ``depth`` rows, ``(depth + 1,)``; 1 where nothing useful is known."""
    coupling = couple(factors.residual_maker(), factors.residuals, depth)
    nu = least_nu(np.abs(coupling.matrix), coupling.largest)
    padded = np.ones(depth + 1)
    padded[: len(nu)] = nu[: depth + 1]
    return np.where(padded < NU_LIMIT, padded, 1.0)
