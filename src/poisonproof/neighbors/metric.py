"""How far apart two rows are: a declared metric whose value depends on its two rows alone, to the last bit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np

from poisonproof.compiled import njit
from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.partition import canonical

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Metric", "MetricName"]

MetricName = Literal["euclidean", "manhattan", "chebyshev", "cosine", "minkowski"]

_SQUARES: Final = 0
_ABSOLUTES: Final = 1
_LARGEST: Final = 2
_POWERS: Final = 3
_HALVED_SQUARES: Final = 4
_SUMS: Final[dict[MetricName, int]] = {
    "euclidean": _SQUARES,
    "manhattan": _ABSOLUTES,
    "chebyshev": _LARGEST,
    "cosine": _HALVED_SQUARES,
    "minkowski": _POWERS,
}
_TILE_ROWS: Final = 256  # rows measured side by side: a tile of them stays in the second-level cache


@dataclass(frozen=True, eq=False)
class Metric:
    """A distance between rows that is declared in full, so that no training row has a say in it.

    Parameters
    ----------
    name : {"euclidean", "manhattan", "chebyshev", "cosine", "minkowski"}
        Which distance.
    p : float, default=2
        The exponent of "minkowski"; the others ignore it.
    ranges : array (n_features, 2) or (2,), optional
        Lower and upper end of each feature (two numbers: of every feature). Rows are clipped into them and scaled to
        [0, 1]. None: neither.
    weights : array (n_features,), optional
        What each feature is multiplied by after scaling, at least 0. None: 1.

    Notes
    -----
    The terms of a distance are added in the order of the features, one pair of rows at a time. So a distance is the
    same number whatever the other rows are and whatever batch it is computed in, which distances from a matrix
    product are not. "cosine" is half the squared distance of the rows divided by their lengths, which is one minus
    the cosine of their angle; a row of zeros is at 0.5 from every row that has a direction.

    Examples
    --------
    >>> metric = Metric("manhattan", ranges=[[0, 10], [0, 100]])
    >>> rows = metric.encode([[5.0, 50.0], [20.0, 0.0]])
    >>> rows.tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    >>> metric.distances(rows[:1], rows).tolist()
    [[0.0, 1.0]]
    """

    name: MetricName = "euclidean"
    p: float = 2.0
    ranges: ArrayLike | None = None
    weights: ArrayLike | None = None
    _ends: NDArray[np.float64] | None = field(init=False, repr=False)
    _factors: NDArray[np.float64] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.name not in get_args(MetricName):
            known = ", ".join(map(repr, get_args(MetricName)))
            raise ParameterError(f"metric={self.name!r} is unknown; use one of {known}")
        _check_exponent(self.p)
        object.__setattr__(self, "_ends", None if self.ranges is None else _checked_ends(self.ranges))
        object.__setattr__(self, "_factors", None if self.weights is None else _checked_factors(self.weights))

    def encode(self, X: ArrayLike) -> NDArray[np.float64]:
        """The rows as they are measured, ``(n_rows, n_features)``: clipped, scaled and weighted, each by itself."""
        rows = canonical(X)
        if rows.ndim != 2:
            raise DataError(f"rows of shape {rows.shape} must be a table of rows and features")
        if not np.isfinite(rows).all():
            raise DataError("rows contain NaN or infinite values, so they have no distances; fill them in before")
        self._check_fit(rows.shape[1])
        if self._ends is not None:
            lower, upper = self._ends[..., 0], self._ends[..., 1]
            np.clip(rows, lower, upper, out=rows)
            rows -= lower
            rows /= upper - lower
        if self._factors is not None:
            with np.errstate(over="ignore"):
                rows *= self._factors
            if not np.isfinite(rows).all():
                raise DataError("weights are so large that weighted rows overflow; use smaller weights")
        return _directions(rows) if self.name == "cosine" else rows

    def distances(self, queries: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The distance of each encoded query to each encoded row, ``(n_queries, n_rows)``."""
        out = np.empty((len(queries), len(rows)))
        _measure(_SUMS[self.name], float(self.p), queries, rows, out)
        return out

    def _check_fit(self, n_features: int) -> None:
        if self._ends is not None and self._ends.ndim == 2 and len(self._ends) != n_features:
            raise ParameterError(
                f"ranges has {len(self._ends)} pairs, but rows have {n_features} features; "
                "give one pair for each, or one for all"
            )
        if self._factors is not None and len(self._factors) != n_features:
            raise ParameterError(
                f"weights has {len(self._factors)} values, but rows have {n_features} features; give one for each"
            )


def _check_exponent(p: float) -> None:
    if isinstance(p, bool) or not isinstance(p, int | float | np.integer | np.floating):
        raise ParameterTypeError(f"p={p!r} must be a number")
    if not np.isfinite(p) or p <= 0:
        raise ParameterError(f"p={p!r} must be finite and above 0; for the largest difference use metric='chebyshev'")


def _checked_ends(ranges: ArrayLike) -> NDArray[np.float64]:
    ends = _numbers(ranges, "ranges")
    if ends.shape != (2,) and (ends.ndim != 2 or ends.shape[1] != 2):
        raise ParameterError(
            f"ranges of shape {ends.shape} must be (n_features, 2), a lower and an upper end each, or (2,) for all"
        )
    lower, upper = np.atleast_2d(ends).T
    with np.errstate(over="ignore"):
        width = upper - lower
    if np.any(lower >= upper):
        worst = int(np.argmax(lower >= upper))
        raise ParameterError(
            f"ranges[{worst}]=({lower[worst]:g}, {upper[worst]:g}) is empty; the lower end must be below the upper end"
        )
    if not np.isfinite(width).all():
        raise ParameterError("ranges are too wide to be scaled to [0, 1]; use narrower ones")
    return ends


def _checked_factors(weights: ArrayLike) -> NDArray[np.float64]:
    factors = _numbers(weights, "weights")
    if factors.ndim != 1:
        raise ParameterError(f"weights of shape {factors.shape} must be (n_features,)")
    if np.any(factors < 0):
        worst = int(np.argmin(factors))
        raise ParameterError(f"weights[{worst}]={factors[worst]:g} is negative; every weight must be at least 0")
    return factors


def _numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        numbers = canonical(values)
    except (TypeError, ValueError):
        raise ParameterTypeError(f"{name} must be an array of numbers; got {type(values).__name__}") from None
    if not np.isfinite(numbers).all():
        raise ParameterError(f"{name} contains NaN or infinite values; every number must be finite")
    return numbers


@njit
def _directions(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each row divided by its length, feature by feature; a row of zeros stays."""
    unit = np.zeros_like(rows)
    for row in range(rows.shape[0]):
        largest = 0.0
        for feature in range(rows.shape[1]):
            largest = max(largest, abs(rows[row, feature]))
        if largest == 0.0:
            continue
        total = 0.0
        for feature in range(rows.shape[1]):
            # Divided first, so that no square overflows.
            unit[row, feature] = rows[row, feature] / largest
            total += unit[row, feature] * unit[row, feature]
        length = np.sqrt(total)
        for feature in range(rows.shape[1]):
            unit[row, feature] /= length
    return unit


@njit
def _measure(
    kind: int,
    p: float,
    queries: NDArray[np.float64],
    rows: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """The distances, tile by tile of rows; every tile is full, so that each row runs through the same instructions."""
    n_rows, n_features = rows.shape
    tile = np.zeros((n_features, _TILE_ROWS))
    sums = np.empty(_TILE_ROWS)
    for start in range(0, n_rows, _TILE_ROWS):
        size = min(_TILE_ROWS, n_rows - start)
        for row in range(size):
            for feature in range(n_features):
                tile[feature, row] = rows[start + row, feature]
        for query in range(queries.shape[0]):
            _add_terms(kind, p, queries[query], tile, sums)
            _finish(kind, p, sums)
            for row in range(size):
                out[query, start + row] = sums[row]


@njit
def _add_terms(
    kind: int,
    p: float,
    query: NDArray[np.float64],
    tile: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """What the features add up to between one query and every row of a tile.

    Sound because each sum runs over the features in their order, and no two rows share an accumulator.
    """
    sums[:] = 0.0
    for feature in range(tile.shape[0]):
        place, column = query[feature], tile[feature]
        if kind in (_SQUARES, _HALVED_SQUARES):
            for row in range(_TILE_ROWS):
                apart = place - column[row]
                sums[row] += apart * apart
        elif kind == _ABSOLUTES:
            for row in range(_TILE_ROWS):
                sums[row] += abs(place - column[row])
        elif kind == _LARGEST:
            for row in range(_TILE_ROWS):
                sums[row] = max(sums[row], abs(place - column[row]))
        else:
            for row in range(_TILE_ROWS):
                sums[row] += abs(place - column[row]) ** p


@njit
def _finish(kind: int, p: float, sums: NDArray[np.float64]) -> None:
    """The distances that the sums stand for, in their place."""
    if kind == _SQUARES:
        for row in range(_TILE_ROWS):
            sums[row] = np.sqrt(sums[row])
    elif kind == _HALVED_SQUARES:
        for row in range(_TILE_ROWS):
            sums[row] *= 0.5
    elif kind == _POWERS:
        for row in range(_TILE_ROWS):
            sums[row] **= 1.0 / p
