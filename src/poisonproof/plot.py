"""Pictures of certificates: how accuracy falls with the radius, how radii spread, where predictions can be moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from poisonproof.certificate import Certificate
from poisonproof.errors import DataError, MissingExtraError
from poisonproof.evaluate import certified_accuracy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from poisonproof.certificate import Interval
    from poisonproof.threat import Threat

__all__ = ["CertifiedAccuracyDisplay", "IntervalDisplay", "RadiusDisplay"]

_MOST_STEPS = 400


@dataclass(eq=False)
class CertifiedAccuracyDisplay:
    """The share of predictions that withstand each number of modifications.

    Parameters
    ----------
    radii : int array (n_radii,)
        Numbers of modifications.
    mean, sd : float arrays (n_radii,)
        Share that withstands them, over trials.
    threat : Threat
        What was certified.
    """

    radii: NDArray[np.int64]
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    threat: Threat
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_certificate(
        cls,
        certificates: Certificate | Sequence[Certificate],
        radii: ArrayLike | None = None,
        *,
        ax: Any = None,  # noqa: ANN401  matplotlib is not a dependency, so its types cannot be named
        label: str | None = None,
    ) -> Self:
        """The curve of one certificate, or the mean and spread of one for each trial."""
        trials = [certificates] if isinstance(certificates, Certificate) else list(certificates)
        steps = _steps(trials) if radii is None else np.asarray(radii, dtype=np.int64)
        found = certified_accuracy(trials, steps)
        return cls(steps, found.mean, np.nan_to_num(found.sd), trials[0].threat).plot(ax=ax, label=label)

    @classmethod
    def from_estimator(cls, estimator: Any, X: ArrayLike, *, ax: Any = None, **bounds: Any) -> Self:  # noqa: ANN401
        """The curve of a fitted model's certificates on rows ``X``; ``bounds`` go to its ``certify``."""
        return cls.from_certificate(estimator.certify(X, **bounds), ax=ax)

    def plot(self, *, ax: Any = None, label: str | None = None) -> Self:  # noqa: ANN401
        """Draw it, into ``ax`` if that is given."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        (line,) = self.ax_.step(self.radii, 100 * self.mean, where="post", label=label)
        if self.sd.any():
            low, high = 100 * (self.mean - self.sd), 100 * (self.mean + self.sd)
            self.ax_.fill_between(self.radii, low, high, step="post", alpha=0.2, color=line.get_color(), linewidth=0)
        self.ax_.set(xlabel=_counted(self.threat), ylabel="certified accuracy (%)", ylim=(0, 100))
        self.ax_.set_xlim(left=0)
        if label is not None:
            self.ax_.legend(frameon=False)
        return self


@dataclass(eq=False)
class RadiusDisplay:
    """How the radii of predictions spread.

    Parameters
    ----------
    radius : int array (n_rows,)
        The radii; rows whose prediction is out of bounds are counted in the title.
    threat : Threat
        What was certified.
    """

    radius: NDArray[np.int64]
    threat: Threat
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_certificate(cls, certificate: Certificate, *, ax: Any = None) -> Self:  # noqa: ANN401
        """The histogram of one certificate."""
        return cls(certificate.radius, certificate.threat).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: ArrayLike, *, ax: Any = None, **bounds: Any) -> Self:  # noqa: ANN401
        """The histogram of a fitted model's certificates on rows ``X``; ``bounds`` go to its ``certify``."""
        return cls.from_certificate(estimator.certify(X, **bounds), ax=ax)

    def plot(self, *, ax: Any = None) -> Self:  # noqa: ANN401
        """Draw it, into ``ax`` if that is given."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        inside = self.radius[self.radius >= 0]
        self.ax_.hist(
            inside, bins=np.histogram_bin_edges(np.append(inside, 0), bins=min(30, 2 + int(inside.max(initial=0))))
        )
        self.ax_.set(xlabel=_counted(self.threat), ylabel="predictions")
        self.ax_.set_title(
            f"{len(self.radius) - len(inside):,} of {len(self.radius):,} out of bounds", fontsize="medium"
        )
        return self


@dataclass(eq=False)
class IntervalDisplay:
    """Where a number of modifications can move each prediction.

    Parameters
    ----------
    interval : Interval
        The ends.
    target : float array (n_rows,) or None
        True targets, to be marked.
    """

    interval: Interval
    target: NDArray[np.float64] | None = None
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_interval(cls, interval: Interval, target: ArrayLike | None = None, *, ax: Any = None) -> Self:  # noqa: ANN401
        """The intervals, in the order of their predictions."""
        marked = None if target is None else np.asarray(target, dtype=np.float64)
        if marked is not None and marked.shape != interval.prediction.shape:
            raise DataError(f"target has shape {marked.shape}; it must have one entry for each of {len(interval)} rows")
        return cls(interval, marked).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,  # noqa: ANN401  any certified regressor
        X: ArrayLike,
        budget: int,
        target: ArrayLike | None = None,
        *,
        ax: Any = None,  # noqa: ANN401
    ) -> Self:
        """The intervals of a fitted model's predictions on rows ``X``."""
        return cls.from_interval(estimator.interval(X, budget), target, ax=ax)

    def plot(self, *, ax: Any = None) -> Self:  # noqa: ANN401
        """Draw it, into ``ax`` if that is given."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        band, order = self.interval, np.argsort(self.interval.prediction, kind="stable")
        places = np.arange(len(order))
        # An infinite end reaches beyond whatever else is drawn.
        known = np.concatenate(
            [band.prediction, band.lower[np.isfinite(band.lower)], band.upper[np.isfinite(band.upper)]]
        )
        floor, ceiling = known.min(), known.max()
        low, high = np.clip(band.lower, floor, None)[order], np.clip(band.upper, None, ceiling)[order]
        self.ax_.vlines(places, low, high, alpha=0.4)
        self.ax_.plot(places, band.prediction[order], ".", markersize=3, label="prediction")
        if self.target is not None:
            self.ax_.plot(places, self.target[order], "x", markersize=3, label="target")
            self.ax_.legend(frameon=False)
        self.ax_.set(
            xlabel="rows, by prediction", ylabel="prediction", title=f"under {band.threat.phrase(band.budget)}"
        )
        return self


def _steps(trials: list[Certificate]) -> NDArray[np.int64]:
    most = max(int(trial.radius.max(initial=0)) for trial in trials) + 1
    return np.unique(np.linspace(0, most, min(most, _MOST_STEPS) + 1).astype(np.int64))


def _counted(threat: Threat) -> str:
    return threat.phrase(2).replace("any 2 ", "")


def _axes(ax: Any) -> Any:  # noqa: ANN401
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415  optional
    except ImportError:
        raise MissingExtraError("pictures need matplotlib; run: pip install 'poisonproof[plot]'") from None
    return plt.subplots(figsize=(5, 3.5), layout="constrained")[1]
