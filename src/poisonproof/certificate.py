"""What a model proves about its predictions: certificates and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from html import escape
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from poisonproof.errors import DataError, MissingExtraError, ParameterError

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from poisonproof.threat import Threat

__all__ = ["Certificate", "Interval"]

SCHEMA_VERSION: Final = 1
_SHOWN_ROWS: Final = 8


@dataclass(frozen=True, eq=False)
class Certificate:
    """How many modifications of the training data each prediction withstands.

    A radius is a proof: no ``radius[i]`` modifications of the kind ``threat`` names, whichever they are, move
    prediction ``i`` out of its bounds. It never appears without its threat, its unit and its method.

    Parameters
    ----------
    prediction : array (n_rows,)
        The model's predictions.
    radius : int64 array (n_rows,)
        Modifications withstood for certain; -1 where the prediction itself is out of bounds, or at its class where
        empty or refused submodels could outvote it.
    attack : int64 array (n_rows,)
        Cost of the best attack found on the costs used, always above the radius.
    unbreakable : bool array (n_rows,)
        Where no attack of this kind can succeed: the radius is then the number of units there are, and the
        attack is one more by convention.
    threat : Threat
        What the attacker may do.
    method : str
        How the radius was computed.
    lower, upper : float arrays (n_rows,), or None for a classifier
        The certified bounds, both inclusive.
    target : array (n_rows,) or None
        The certified class, for a classifier.
    trusted_solver : bool array (n_rows,) or None
        Where the radius rests on a floating-point solver's word (only ``effort="exact"`` does that).
    witness : sparse int64 array (n_rows, n_blocks) or None
        How often the attack touches each block, where that was asked for.
    """

    prediction: NDArray[Any]
    radius: NDArray[np.int64]
    attack: NDArray[np.int64]
    unbreakable: NDArray[np.bool_]
    threat: Threat
    method: str
    lower: NDArray[np.float64] | None = None
    upper: NDArray[np.float64] | None = None
    target: NDArray[Any] | None = None
    trusted_solver: NDArray[np.bool_] | None = None
    witness: sp.csr_array | None = None

    def __post_init__(self) -> None:
        if np.any(self.attack <= self.radius):
            raise DataError("an attack must cost more than the radius it bounds")

    def __len__(self) -> int:
        return len(self.radius)

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Where no larger radius is true on the costs used."""
        return self.attack == self.radius + 1

    def summary(self, row: int | None = None) -> str:
        """The certificate in words: of one row, or of all of them together.

        Examples
        --------
        >>> from poisonproof.threat import Threat
        >>> cert = Certificate(
        ...     prediction=np.array([4000.0]), radius=np.array([12]), attack=np.array([13]),
        ...     unbreakable=np.array([False]), threat=Threat(), method="unit cost",
        ...     lower=np.array([3400.0]), upper=np.array([4600.0]))
        >>> print(cert.summary(0))
        any 12 inserted or deleted training rows leave this prediction within [3,400, 4,600]
        """
        if row is not None:
            return self._sentence(row)
        return self._overview()

    def _sentence(self, row: int) -> str:
        radius = int(self.radius[row])
        if self._outvoted()[row]:
            return (
                f"this prediction is {self._region(row)}, but empty or refused submodels could outvote it, so nothing "
                f"is certified; use fewer partitions, or declare the classes ({self.threat})"
            )
        if radius < 0:
            region = self._region(row, ROUND_CEILING, ROUND_FLOOR)
            return f"this prediction is not {region}, so nothing is certified ({self.threat})"
        if self.unbreakable[row]:
            return f"no modification of the kind '{self.threat}' can move this prediction: it stays {self._region(row)}"
        verb = "leaves" if radius == 1 else "leave"
        return f"{self.threat.phrase(radius)} {verb} this prediction {self._region(row)}"

    def _region(self, row: int, down: str = ROUND_FLOOR, up: str = ROUND_CEILING) -> str:
        if self.lower is None or self.upper is None:
            return f"at class {self.target[row] if self.target is not None else self.prediction[row]}"
        lower, upper = self.lower[row], self.upper[row]
        if np.isinf(lower):
            return f"at or below {number_text(upper, up)}"
        if np.isinf(upper):
            return f"at or above {number_text(lower, down)}"
        return f"within [{number_text(lower, down)}, {number_text(upper, up)}]"

    def _outvoted(self) -> NDArray[np.bool_]:
        """Where a prediction is at its class and yet not certified: abstentions count for a class nobody declared."""
        if self.target is None:
            return np.zeros(len(self), dtype=np.bool_)
        return (self.radius < 0) & (self.prediction == self.target)

    def _overview(self) -> str:
        inside, outvoted = self.radius >= 0, int(self._outvoted().sum())
        if not inside.any() and not outvoted:
            place = "within its bounds" if self.target is None else "at its class"
            return f"none of {len(self):,} predictions is {place}, so nothing is certified ({self.threat})"
        more = f"{outvoted:,} could be outvoted by empty or refused submodels"
        if not inside.any():
            return f"none of {len(self):,} predictions is certified, and {more} ({self.threat})"
        median = int(np.quantile(self.radius[inside], 0.5, method="lower"))
        place = "within their bounds" if self.target is None else "at their class"
        text = (
            f"{inside.sum():,} of {len(self):,} predictions are {'certified' if outvoted else place}; "
            f"at least half of those withstand {self.threat.phrase(median)} ({self.method})"
        )
        return f"{text}; {more}" if outvoted else text

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and strings, ready for JSON; an infinite bound is None."""
        record: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "threat": self.threat.moves,
            "unit": self.threat.unit,
            "method": self.method,
        }
        return record | {name: _plain(column) for name, column in self._columns().items()}

    def to_frame(self) -> Any:  # noqa: ANN401  pandas is not a dependency, so its type cannot be named
        """A pandas frame, a row per prediction; threat, unit and method are columns, so that no radius stands alone."""
        constants = {"threat": self.threat.moves, "unit": self.threat.unit, "method": self.method}
        return _pandas_frame(self._columns() | constants)

    def _columns(self) -> dict[str, NDArray[Any]]:
        columns = {
            "prediction": self.prediction,
            "lower": self.lower,
            "upper": self.upper,
            "target": self.target,
            "radius": self.radius,
            "attack": self.attack,
            "exact": self.exact,
            "unbreakable": self.unbreakable,
            "trusted_solver": self.trusted_solver,
        }
        return {name: column for name, column in columns.items() if column is not None}

    def __repr__(self) -> str:
        return f"<Certificate of {len(self):,} predictions: {self._overview()}>"

    def _repr_html_(self) -> str:
        return _html_table(self._columns(), f"{self._overview()}", len(self))


@dataclass(frozen=True, eq=False)
class Interval:
    """Where a number of modifications can move each prediction.

    Parameters
    ----------
    lower, upper : float arrays (n_rows,)
        The ends, both inclusive; infinite where the budget suffices to move the prediction anywhere.
    prediction : float array (n_rows,)
        The model's predictions.
    budget : int
        How many modifications.
    threat : Threat
        Of which kind.
    method : str
        How the ends were computed.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    prediction: NDArray[np.float64]
    budget: int
    threat: Threat
    method: str

    def __len__(self) -> int:
        return len(self.lower)

    def summary(self, row: int | None = None) -> str:
        """The interval of one row in words, or what all of them together come to.

        Examples
        --------
        >>> from poisonproof.threat import Threat
        >>> ends = Interval(np.array([2.0, 3.0]), np.array([4.0, 9.0]), np.array([3.0, 5.0]), 2, Threat(), "unit cost")
        >>> print(ends.summary(0))
        any 2 inserted or deleted training rows leave this prediction within [2, 4]
        >>> print(ends.summary())
        any 2 inserted or deleted training rows leave 2 predictions within their ends, half of which are at most 2 apart
        """
        verb = "leaves" if self.budget == 1 else "leave"
        if row is None:
            text = f"{self.threat.phrase(self.budget)} {verb} {len(self):,} predictions within their ends"
            return f"{text}, half of which are at most {self._usual_width()} apart" if len(self) else text
        ends = f"[{number_text(self.lower[row], ROUND_FLOOR)}, {number_text(self.upper[row], ROUND_CEILING)}]"
        return f"{self.threat.phrase(self.budget)} {verb} this prediction within {ends}"

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and strings, ready for JSON; an infinite end is None."""
        record: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "threat": self.threat.moves,
            "unit": self.threat.unit,
            "method": self.method,
            "budget": self.budget,
        }
        return record | {name: _plain(column) for name, column in self._columns().items()}

    def to_frame(self) -> Any:  # noqa: ANN401  pandas is not a dependency, so its type cannot be named
        """A pandas frame, a row per prediction; budget, threat, unit and method are columns of it."""
        constants = {"threat": self.threat.moves, "unit": self.threat.unit, "method": self.method}
        return _pandas_frame(self._columns() | {"budget": self.budget} | constants)

    def _usual_width(self) -> str:
        """How far apart the ends of half of the rows are at most."""
        return number_text(float(np.quantile(self.upper - self.lower, 0.5, method="lower")), ROUND_CEILING)

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {"prediction": self.prediction, "lower": self.lower, "upper": self.upper}

    def __repr__(self) -> str:
        return f"<Interval of {len(self):,} predictions under {self.threat.phrase(self.budget)} ({self.method})>"

    def _repr_html_(self) -> str:
        caption = f"{self.threat.phrase(self.budget)} leave each prediction within these ends ({self.method})"
        return _html_table(self._columns(), caption, len(self))


def bounds_of(
    prediction: NDArray[np.float64],
    lower: Any,  # noqa: ANN401  a scalar, a sequence, a series or None
    upper: Any,  # noqa: ANN401
    within: float | None,
    *,
    relative: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The two bounds of every prediction, from explicit bounds or from a distance around the prediction."""
    if within is None:
        return _explicit_bounds(len(prediction), lower, upper)
    if lower is not None or upper is not None:
        raise ParameterError("within= and lower=/upper= were both given; give one of them")
    if not isinstance(within, Real) or not np.isfinite(within) or within < 0:
        raise ParameterError(f"within={within!r} must be a finite number of at least 0")
    reach = within * np.abs(prediction) if relative else np.full_like(prediction, within)
    # Sound because these bounds are constants of the observed data, and any constants may be certified.
    return prediction - reach, prediction + reach


def _explicit_bounds(
    count: int,
    lower: Any,  # noqa: ANN401  as in bounds_of
    upper: Any,  # noqa: ANN401
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if lower is None and upper is None:
        raise ParameterError("no bounds were given; give lower=, upper=, both, or within=")
    low = _bound(lower, -np.inf, count, "lower")
    high = _bound(upper, np.inf, count, "upper")
    if np.any(low > high):
        row = int(np.argmax(low > high))
        raise DataError(f"lower={low[row]:g} is above upper={high[row]:g} in row {row}; each must be at most its upper")
    return low, high


def _bound(value: Any, default: float, count: int, name: str) -> NDArray[np.float64]:  # noqa: ANN401
    try:
        bound = np.asarray(default if value is None else value, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be a number or an array of numbers, got {value!r}") from None
    if bound.shape not in ((), (count,)):
        raise DataError(f"{name} has shape {bound.shape}; it must be a number or have one for each of the {count} rows")
    if np.isnan(bound).any():
        raise DataError(f"{name} contains NaN; use -inf or inf where there is no bound")
    return np.broadcast_to(bound, (count,)).copy()


def number_text(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number as a person writes it: 3,400 rather than 3400.0, and 3,401.7 with four digits."""
    if np.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == int(value):
        return f"{int(value):,}"
    # Sound because a sentence says no more than was proved: its bounds are rounded outwards.
    exact = Decimal(float(value))
    value = float(exact.quantize(Decimal(1).scaleb(min(exact.adjusted() - 3, 0)), rounding))
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _plain(column: NDArray[Any]) -> list[Any]:
    if column.dtype.kind == "f":
        return [value if np.isfinite(value) else None for value in column.tolist()]
    return list(column.tolist())


def _pandas_frame(columns: dict[str, Any]) -> Any:  # noqa: ANN401
    try:
        import pandas as pd  # noqa: PLC0415  optional
    except ImportError:
        raise MissingExtraError("to_frame() needs pandas; run: pip install pandas, or use to_dict()") from None
    return pd.DataFrame(columns)


def _html_table(columns: dict[str, NDArray[Any]], caption: str, count: int) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = "".join(_html_row([column[row] for column in columns.values()]) for row in range(min(count, _SHOWN_ROWS)))
    more = f"<p>… and {count - _SHOWN_ROWS:,} more rows</p>" if count > _SHOWN_ROWS else ""
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{rows}</table>{more}"


def _html_row(values: list[Any]) -> str:
    shown = (number_text(float(value)) if isinstance(value, float | np.floating) else str(value) for value in values)
    return "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in shown) + "</tr>"
