"""Certified accuracy: the share of rows whose prediction withstands so many modifications, over one or more trials."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from poisonproof.certificate import Certificate
from poisonproof.errors import DataError, MissingExtraError, ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from poisonproof.threat import Threat

__all__ = ["CertifiedAccuracy", "certified_accuracy"]

SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, eq=False)
class CertifiedAccuracy:
    """The share of rows with at least each radius.

    Parameters
    ----------
    radii : int64 array (n_radii,)
        The radii asked for.
    shares : float array (n_trials, n_radii)
        The share of each trial's rows whose certified radius is at least that large.
    n_rows : int64 array (n_trials,)
        How many rows each trial certified.
    threat : Threat
        What the attacker may do; the same in every trial.
    method : str
        How the radii were computed.

    Examples
    --------
    >>> from poisonproof.threat import Threat
    >>> accuracy = CertifiedAccuracy(
    ...     radii=np.array([1, 35]), shares=np.array([[0.75, 0.5], [0.85, 0.6]]), n_rows=np.array([100, 100]),
    ...     threat=Threat(), method="unit cost")
    >>> accuracy.mean.round(2).tolist(), accuracy.sd.round(4).tolist()
    ([0.8, 0.55], [0.0707, 0.0707])
    """

    radii: NDArray[np.int64]
    shares: NDArray[np.float64]
    n_rows: NDArray[np.int64]
    threat: Threat
    method: str

    @property
    def n_trials(self) -> int:
        """How many trials there are."""
        return len(self.shares)

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean share over the trials, ``(n_radii,)``."""
        return np.asarray(self.shares.mean(axis=0))

    @property
    def sd(self) -> NDArray[np.float64]:
        """The sample standard deviation over the trials, ``(n_radii,)``; NaN for a single trial."""
        if self.n_trials == 1:
            return np.full(len(self.radii), np.nan)
        return np.asarray(self.shares.std(axis=0, ddof=1))

    def at(self, radius: int) -> float:
        """The mean share at one of the radii asked for."""
        (places,) = np.nonzero(self.radii == radius)
        if len(places) == 0:
            raise ParameterError(f"radius={radius} was not evaluated; use one of {self.radii.tolist()}")
        return float(self.mean[places[0]])

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and strings, ready for JSON; the deviation of a single trial is None."""
        return {
            "schema_version": SCHEMA_VERSION,
            "threat": self.threat.moves,
            "unit": self.threat.unit,
            "method": self.method,
            "n_trials": self.n_trials,
            "n_rows": self.n_rows.tolist(),
            "radius": self.radii.tolist(),
            "certified_accuracy": self.mean.tolist(),
            "sd": [None if np.isnan(value) else value for value in self.sd.tolist()],
            "trials": self.shares.tolist(),
        }

    def to_json(self) -> str:
        """One JSON document."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def to_frame(self) -> Any:  # noqa: ANN401  pandas is not a dependency, so its type cannot be named
        """A pandas frame, a row per radius; threat, unit and method are columns, so that no radius stands alone."""
        try:
            import pandas as pd  # noqa: PLC0415  optional
        except ImportError:
            raise MissingExtraError("to_frame() needs pandas; run: pip install pandas, or use to_dict()") from None
        constants = {"threat": self.threat.moves, "unit": self.threat.unit, "method": self.method}
        return pd.DataFrame({"radius": self.radii, "certified_accuracy": self.mean, "sd": self.sd} | constants)

    def to_markdown(self) -> str:
        """A Markdown table in percent, with the threat and the method below it."""
        lines = ["| radius | certified accuracy |", "| ---: | ---: |"]
        lines += [
            f"| {radius:,} | {_percent(mean, sd)} |"
            for radius, mean, sd in zip(self.radii.tolist(), self.mean.tolist(), self.sd.tolist(), strict=True)
        ]
        return "\n".join([*lines, "", self.summary()])

    def summary(self) -> str:
        """What the figures mean, in words."""
        rows = f"{int(self.n_rows.sum()):,} rows" + (f" in {self.n_trials} trials" if self.n_trials > 1 else "")
        return f"Share of {rows} that withstand so many modifications ({self.threat}; {self.method})."

    def __repr__(self) -> str:
        figures = ", ".join(
            f"{radius:,}: {share:.1%}" for radius, share in zip(self.radii.tolist(), self.mean.tolist(), strict=True)
        )
        return f"<CertifiedAccuracy {figures} ({self.threat})>"


def certified_accuracy(certificates: Certificate | Sequence[Certificate], radii: ArrayLike) -> CertifiedAccuracy:
    """The share of rows with radius >= each value, of one certificate or of one for each trial.

    Parameters
    ----------
    certificates : Certificate, or a sequence of them
        One certificate for each trial; all for the same threat and by the same method.
    radii : array of int (n_radii,)
        The radii to ask for, at least 0; radius 0 asks for predictions that are within their bounds.

    Examples
    --------
    >>> from poisonproof.threat import Threat
    >>> cert = Certificate(
    ...     prediction=np.zeros(4), radius=np.array([-1, 0, 3, 9]), attack=np.array([0, 1, 4, 10]),
    ...     unbreakable=np.zeros(4, dtype=bool), threat=Threat(), method="unit cost")
    >>> certified_accuracy(cert, [0, 3, 4])
    <CertifiedAccuracy 0: 75.0%, 3: 50.0%, 4: 25.0% (insert+delete of rows)>
    """
    trials = [certificates] if isinstance(certificates, Certificate) else list(certificates)
    asked = _checked_radii(radii)
    _check_trials(trials)
    shares = np.array([(trial.radius[:, None] >= asked).mean(axis=0) for trial in trials])
    n_rows = np.array([len(trial) for trial in trials], dtype=np.int64)
    return CertifiedAccuracy(asked, shares, n_rows, trials[0].threat, trials[0].method)


def _checked_radii(radii: ArrayLike) -> NDArray[np.int64]:
    asked = np.atleast_1d(np.asarray(radii))
    if asked.size == 0:
        raise ParameterError("radii is empty; give at least one radius")
    if asked.dtype.kind not in "iu" or asked.ndim != 1:
        raise ParameterTypeError(f"radii={radii!r} must be integers below 2**63, in one dimension")
    if asked.min() < 0:
        raise ParameterError(f"radii contains {asked.min()}; every radius must be at least 0")
    # Sound because a larger number would come out negative as a signed one, and every radius would reach it.
    if asked.max() > np.iinfo(np.int64).max:
        raise ParameterError(f"radii contains {asked.max()}; every radius must be below 2**63")
    return asked.astype(np.int64)


def _check_trials(trials: list[Certificate]) -> None:
    if not trials:
        raise DataError("no certificate was given; give one for each trial")
    if any(len(trial) == 0 for trial in trials):
        raise DataError("a certificate has no rows; certify at least one row")
    for trial in trials[1:]:
        if (trial.threat, trial.method) != (trials[0].threat, trials[0].method):
            raise DataError(
                f"certificates for '{trials[0].threat}' ({trials[0].method}) and '{trial.threat}' ({trial.method}) "
                "cannot be averaged; give trials of one threat and one method"
            )


def _percent(mean: float, sd: float) -> str:
    return f"{mean:.1%}" if np.isnan(sd) else f"{mean:.1%} ± {100 * sd:.1f}"
