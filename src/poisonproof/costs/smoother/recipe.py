"""Which estimators are linear smoothers, and what they do to rows and targets before and after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline

from poisonproof.costs.smoother.factors import EPS, Factors, kernel_factors, ridge_factors
from poisonproof.errors import DataError
from poisonproof.learners.kernel_ridge import SCALES, KernelRidge
from poisonproof.rowlocal import learning_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.learners.kernel_ridge import Scale

__all__ = ["Recipe", "recipe_of"]

_ULPS: Final = 16.0
_ROUNDING: Final = 1e-9  # of how full a table is

# Other solvers stop at a tolerance or drop small singular values, and then a replica is not what its formula says.
_DIRECT_SOLVERS: Final = ("auto", "cholesky")

_INCREASING: Final[dict[tuple[Any, Any], tuple[Scale, Scale]]] = {
    (None, None): SCALES[None],
    (np.log, np.exp): SCALES["log"],
    (np.log1p, np.expm1): SCALES["log1p"],
    (np.log2, np.exp2): (np.log2, np.exp2),
    (np.arcsinh, np.sinh): (np.arcsinh, np.sinh),
}


@dataclass(frozen=True, eq=False)
class Recipe:
    """A linear smoother inside row-local steps and increasing target transforms.

    Parameters
    ----------
    core : Ridge or KernelRidge
        The smoother.
    encoders : list of transformers
        What each row goes through first, outermost first; nothing here learns from rows.
    scales : list of pairs
        What targets go through first, outermost first, and the way back.
    """

    core: Any
    encoders: list[Any] = field(default_factory=list)
    scales: list[tuple[Scale, Scale]] = field(default_factory=list)

    def fitted_encoders(self, rows: NDArray[np.float64], depth: int) -> list[Any]:
        """The encoders, fitted; on which rows does not matter to row-local ones.

        What up to ``depth`` deletions could make sparse is sparse.
        """
        fitted = []
        for encoder in self.encoders:
            fitted.append(_sparse_early(clone(encoder), depth / len(rows)).fit(rows, None))
            rows = fitted[-1].transform(rows)
        return fitted

    def encode(self, encoders: list[Any], rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rows as the smoother sees them, ``(n_rows, n_encoded)``."""
        encoded: Any = rows
        for encoder in encoders:
            encoded = encoder.transform(encoded)
        if encoders:
            if sp.issparse(encoded):
                raise DataError("a step gives sparse rows, which the smoother is not solved for; make it dense")
            encoded = np.asarray(encoded)
            # Sound because Ridge solves in the precision of its rows, and a margin for 64 bits is none for 32.
            if encoded.dtype == np.float32 and not isinstance(self.core, KernelRidge):
                raise DataError("a step gives rows of 32 bits, in which Ridge then solves; make it give float64")
            encoded = encoded.astype(np.float64, copy=False)
        return self.core.encoded(encoded) if isinstance(self.core, KernelRidge) else encoded

    def rounding(self, encoders: list[Any], rows: NDArray[np.float64], encoded: NDArray[np.float64]) -> float:
        """How many units of rounding the training rows change by once others are gone; at least 1.

        A step that learned nothing here may still multiply all rows at once, by matrices whose products cancel, and
        then round each row as the shape of the table has it.
        """
        if not encoders or len(rows) < 2:
            return 1.0
        spread = np.linalg.norm(encoded - encoded.mean(axis=0))
        some = (slice(1, None), slice(0, 1))
        apart = np.max([np.linalg.norm(self.encode(encoders, rows[few]) - encoded[few]) for few in some])
        return float(np.maximum(apart / (EPS * spread), 1.0)) if apart else 1.0

    def learned(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """The targets as the smoother learns them."""
        for forward, _ in self.scales:
            targets = forward(targets)
        return self.core.learned_targets(targets) if isinstance(self.core, KernelRidge) else targets

    def forward(self, votes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Votes on the scale that is learned."""
        for forward, _ in self._all_scales():
            votes = forward(votes)
        return votes

    def between(
        self, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both ends on the learned scale as ends of votes; every step increases, so bounds stay bounds."""
        scales = self._all_scales()
        for _, inverse in reversed(scales):
            low, high = inverse(low), inverse(high)
        if not scales:
            return low, high
        # Sound because a transform rounds, in arrays of other shapes perhaps otherwise, but by no more than this.
        return low - _ULPS * np.spacing(np.abs(low)), high + _ULPS * np.spacing(np.abs(high))

    def factors(self, encoded: NDArray[np.float64], learned: NDArray[np.float64]) -> Factors:
        """The smoother on encoded rows and learned targets, taken apart."""
        alpha = self.core.alpha
        alpha = float(alpha) if np.ndim(alpha) == 0 else float(np.asarray(alpha).item())
        if isinstance(self.core, KernelRidge):
            return kernel_factors(encoded, learned, self.core.kernel(), alpha)
        return ridge_factors(encoded, learned, alpha, intercept=bool(self.core.fit_intercept))

    def learned_range(self) -> tuple[float, float] | None:
        """The declared range of learned targets; None where there is none."""
        return self.core.learned_range() if isinstance(self.core, KernelRidge) else None

    @property
    def is_boxed(self) -> bool:
        """Whether rows and targets are clipped into declared ranges before the smoother sees them."""
        return (
            isinstance(self.core, KernelRidge) and self.core.ranges is not None and self.core.target_range is not None
        )

    @property
    def takes_any_label(self) -> bool:
        """Whether every finite label gets through the transforms in front of the smoother's own clipping."""
        return all(forward in (np.positive, np.arcsinh) for forward, _ in self.scales)

    def _all_scales(self) -> list[tuple[Scale, Scale]]:
        transform = self.core.target_transform if isinstance(self.core, KernelRidge) else None
        return self.scales if transform is None else [*self.scales, SCALES[transform]]


def _sparse_early(encoder: Any, share: float) -> Any:  # noqa: ANN401  any scikit-learn transformer
    """The encoder, with column transformers that are sparse where deleting that share of the rows may make them so.

    How full a table is decides whether it is sparse, and that decides the solver.
    """
    for name, threshold in encoder.get_params().items():
        if name.split("__")[-1] == "sparse_threshold" and threshold > 0:
            # Sound because no row is more than full: without k of n rows, d of them full, (n d - k) / (n - k) are left.
            # That is at least the threshold t where d is at least t + (1 - t) k / n.
            least = threshold + (1.0 - threshold) * share + _ROUNDING
            encoder.set_params(**{name: min(least, 1.0)})
    return encoder


def recipe_of(estimator: Any) -> Recipe | str:  # noqa: ANN401  any scikit-learn estimator
    """The recipe of a linear smoother, or why there is none.

    Examples
    --------
    >>> recipe_of(Ridge()).core
    Ridge()
    >>> recipe_of(Ridge(solver="lsqr"))
    "Ridge(solver='lsqr') stops at a tolerance"
    """
    learning = learning_steps(estimator)
    if learning:
        step = learning[0]
        return f"step {step.step!r} ({step.estimator}) learns from the rows of its block"
    return _unwrapped(estimator)


def _unwrapped(estimator: Any) -> Recipe | str:  # noqa: ANN401  as above
    # Exact types throughout: a subclass may compute anything.
    kind = type(estimator)
    if kind is KernelRidge:
        return Recipe(estimator)
    if kind is Ridge:
        why_not = _why_not_ridge(estimator)
        return why_not or Recipe(estimator)
    if kind is Pipeline:
        inner = _unwrapped(estimator.steps[-1][1])
        steps = [step for _, step in estimator.steps[:-1] if step not in (None, "passthrough")]
        return inner if isinstance(inner, str) else Recipe(inner.core, steps + inner.encoders, inner.scales)
    if kind is TransformedTargetRegressor:
        inner = _unwrapped(estimator.regressor)
        scale = _INCREASING.get((estimator.func, estimator.inverse_func))
        if estimator.transformer is not None or scale is None:
            return "its target transform is not known to increase (known are log, log1p, log2 and arcsinh of numpy)"
        return inner if isinstance(inner, str) else Recipe(inner.core, inner.encoders, [scale, *inner.scales])
    return f"{kind.__name__} is no linear smoother"


def _why_not_ridge(ridge: Ridge) -> str:
    if ridge.positive:
        return "Ridge(positive=True) is not linear in its targets"
    if ridge.solver not in _DIRECT_SOLVERS:
        does = "drops small singular values" if ridge.solver == "svd" else "stops at a tolerance"
        return f"Ridge(solver={ridge.solver!r}) {does}"
    if np.size(ridge.alpha) != 1:
        return "Ridge with several penalties is not served"
    return ""
