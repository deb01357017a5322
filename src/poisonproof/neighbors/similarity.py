"""How much a training row says about a test row: a declared similarity between 0 and 1, kept in whole steps.

A similarity becomes a weight by rounding it to a multiple of 2**-30. Whole steps add up without rounding errors, in any
order, so neither the other rows nor the batch change a sum, and a margin between two sums is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from poisonproof.compiled import njit
from poisonproof.errors import DataError, ParameterError, ParameterTypeError
from poisonproof.neighbors.metric import Metric, MetricName

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["STEPS", "AnySimilarity", "KernelName", "LargestSimilarity", "PairFunction", "Similarity"]

KernelName = Literal["box", "tricube", "gaussian", "laplacian"]
PairFunction: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
AnySimilarity: TypeAlias = KernelName | PairFunction | Sequence[tuple[float, KernelName | PairFunction]]

STEPS: Final = 1 << 30  # of similarity 1, the most that 32 bits hold
_KERNELS: Final[dict[KernelName, int]] = {"box": 0, "tricube": 1, "gaussian": 2, "laplacian": 3}
_TILE: Final = 256  # distances that run through the same instructions
_PROBES: Final = 4  # training rows whose similarities are computed twice


@dataclass(frozen=True, eq=False)
class Similarity:
    """A similarity that falls with the distance of two rows, from 1 where they are the same.

    Parameters
    ----------
    kernel : {"tricube", "box", "gaussian", "laplacian"}
        With ``u`` the distance divided by the bandwidth: ``(1 - u**3)**3`` up to ``u = 1``, 1 up to ``u = 1``,
        ``exp(-u**2 / 2)``, or ``exp(-u)``.
    bandwidth : float, default=1
        The distance that counts as one.
    metric, p, ranges, weights
        The distance, as in :class:`poisonproof.neighbors.Metric`.

    Examples
    --------
    >>> tent = Similarity("box", bandwidth=2.0)
    >>> tent(np.array([[0.0]]), np.array([[1.0], [2.0], [3.0]])).tolist()
    [[1.0, 1.0, 0.0]]
    """

    kernel: KernelName = "tricube"
    bandwidth: float = 1.0
    metric: MetricName = "euclidean"
    p: float = 2.0
    ranges: ArrayLike | None = None
    weights: ArrayLike | None = None
    _metric: Metric = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.kernel not in get_args(KernelName):
            allowed = ", ".join(map(repr, get_args(KernelName)))
            raise ParameterError(
                f"similarity={self.kernel!r} is unknown; use one of {allowed}, or a function of two blocks of rows"
            )
        check_positive(self.bandwidth, "bandwidth")
        object.__setattr__(self, "_metric", Metric(self.metric, self.p, self.ranges, self.weights))

    def __call__(self, queries: ArrayLike, rows: ArrayLike) -> NDArray[np.float64]:
        """The similarity of each query to each row, ``(n_queries, n_rows)``."""
        return self.between(self.encode(queries), self.encode(rows))

    def encode(self, X: ArrayLike) -> NDArray[np.float64]:
        """The rows as they are measured."""
        return self._metric.encode(X)

    def between(self, queries: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The similarities of encoded rows."""
        distances = self._metric.distances(queries, rows)
        _apply_kernel(_KERNELS[self.kernel], float(self.bandwidth), distances.reshape(-1))
        return distances


@dataclass(frozen=True)
class _Pairwise:
    """A user's function as a similarity; it gets the rows as they are."""

    function: PairFunction

    def check(self, rows: NDArray[np.float64]) -> None:
        """An error where the similarity of two rows is seen to hang on the rows beside them."""
        probes = rows[:: max(1, len(rows) // _PROBES)][:_PROBES]
        together = self.between(probes, rows)
        # Sound only because no other row has a say in a weight, not even by the way a matrix product is summed.
        for place in range(len(probes)):
            if (self.between(probes[place : place + 1], rows[::2]) != together[place : place + 1, ::2]).any():
                raise DataError(
                    "the similarity of two rows depends on the rows beside them; compute it from the two alone and "
                    "with declared constants, by elementwise operations or scipy's cdist rather than a matrix product"
                )

    def encode(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return X

    def between(self, queries: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
        try:
            values = np.asarray(self.function(queries, rows), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"the similarity failed on blocks of {len(queries)} and {len(rows)} rows: {error}"
            ) from error
        if values.shape != (len(queries), len(rows)):
            raise DataError(
                f"the similarity of {len(queries)} and {len(rows)} rows has shape {values.shape}; "
                f"it must be {(len(queries), len(rows))}"
            )
        if not (np.all(values >= 0) and np.all(values <= 1)):
            raise DataError("the similarity returned a value outside [0, 1], or NaN; scale it into [0, 1]")
        return values


class LargestSimilarity:
    """The largest of some scaled similarities, in whole steps: the weights of a kernel median.

    Parameters
    ----------
    declared : str, callable, or sequence of (scale, str or callable)
        What the user declared; scales lie above 0 and up to 1.
    template : Similarity
        Bandwidth and metric of the similarities that are given by their name.
    """

    def __init__(self, declared: AnySimilarity, template: Similarity) -> None:
        pairs = [(1.0, declared)] if isinstance(declared, str) or callable(declared) else _checked_pairs(declared)
        self._terms = [(_checked_scale(scale), _term(similarity, template)) for scale, similarity in pairs]

    @property
    def heaviest(self) -> int:
        """The weight of the most similar row there can be."""
        return max(round(scale * STEPS) for scale, _ in self._terms)

    def weigh_inserted(self, queries: list[NDArray[np.float64]]) -> NDArray[np.int64]:
        """The weight of a row inserted at each encoded query, ``(n_queries,)``."""
        if any(isinstance(term, Similarity) and round(scale * STEPS) == self.heaviest for scale, term in self._terms):
            return np.full(len(queries[0]), self.heaviest)  # at no distance the named ones are 1
        alone = ([block[[place]] for block in queries] for place in range(len(queries[0])))
        return np.array([self.weigh(row, row)[0, 0] for row in alone], dtype=np.int64)

    def encode(self, rows: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """The rows as each similarity measures them."""
        return [term.encode(rows) for _, term in self._terms]

    def remember(self, rows: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """The training rows as each similarity measures them, each of which must look at two rows alone."""
        for _, term in self._terms:
            if isinstance(term, _Pairwise):
                term.check(rows)
        return self.encode(rows)

    def weigh(self, queries: list[NDArray[np.float64]], rows: list[NDArray[np.float64]]) -> NDArray[np.int32]:
        """The weight of each encoded row for each encoded query, ``(n_queries, n_rows)``."""
        largest = np.zeros((len(queries[0]), len(rows[0])), dtype=np.int32)
        for (scale, term), some, others in zip(self._terms, queries, rows, strict=True):
            similarity = term.between(some, others)
            # Sound because what is rounded is a function of the pair alone; the rounded weight is the declared one.
            np.maximum(largest, np.rint(similarity * (scale * STEPS)).astype(np.int32), out=largest)
        return largest


def check_positive(value: float, name: str) -> None:
    """An error unless the parameter is a positive number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ParameterTypeError(f"{name}={value!r} must be a number")
    if not np.isfinite(value) or value <= 0:
        raise ParameterError(f"{name}={value!r} must be finite and above 0")


def _checked_pairs(declared: Any) -> list[tuple[Any, Any]]:  # noqa: ANN401  whatever the user gave
    try:
        pairs = [(scale, similarity) for scale, similarity in declared]
    except (TypeError, ValueError):
        raise ParameterTypeError(
            f"similarity={declared!r} must be a name, a function of two blocks of rows, or pairs of a scale and one of "
            "these"
        ) from None
    if not pairs:
        raise ParameterError("similarity is empty; give at least one pair of a scale and a similarity")
    return pairs


def _checked_scale(scale: float) -> float:
    check_positive(scale, "the scale of a similarity")
    if scale > 1:
        raise ParameterError(
            f"the scale of a similarity is {scale}; it must be at most 1, divide all scales by the largest"
        )
    if round(scale * STEPS) == 0:
        # Where every row weighs nothing, no attack is known either.
        raise ParameterError(f"the scale of a similarity is {scale}, which rounds to 0; it must be at least 2**-30")
    return float(scale)


def _term(similarity: Any, template: Similarity) -> Similarity | _Pairwise:  # noqa: ANN401  whatever the user gave
    if isinstance(similarity, Similarity):
        return similarity
    if callable(similarity):
        return _Pairwise(similarity)
    return Similarity(similarity, template.bandwidth, template.metric, template.p, template.ranges, template.weights)


@njit
def _apply_kernel(kernel: int, bandwidth: float, distances: NDArray[np.float64]) -> None:
    """Distances to similarities, in place, through full tiles.

    Sound because every distance runs through the same instructions, wherever it stands: a vector of exponentials and a
    single one may round differently.
    """
    tile = np.zeros(_TILE)
    for start in range(0, len(distances), _TILE):
        size = min(_TILE, len(distances) - start)
        tile[:size] = distances[start : start + size]
        for place in range(_TILE):
            tile[place] /= bandwidth
        if kernel == 0:
            for place in range(_TILE):
                tile[place] = 1.0 if tile[place] <= 1.0 else 0.0
        elif kernel == 1:
            for place in range(_TILE):
                left = max(0.0, 1.0 - tile[place] * tile[place] * tile[place])
                tile[place] = left * left * left
        elif kernel == 2:
            for place in range(_TILE):
                tile[place] = np.exp(-0.5 * tile[place] * tile[place])
        else:
            for place in range(_TILE):
                tile[place] = np.exp(-tile[place])
        distances[start : start + size] = tile[:size]
